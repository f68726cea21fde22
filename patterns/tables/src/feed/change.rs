//! A change of a record, and its encoding.

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Result};
use serde::{Deserialize, Serialize};

use keyloom_kit::RecordKey;

/// The version of the encoding of a change.
const FORMAT: u8 = 1;

/// One change of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<K, V> {
    /// The number in the feed. The first change has the number 1.
    pub number: u64,
    /// Whether the record was inserted, updated or deleted.
    pub kind: ChangeKind,
    /// The key of the record.
    pub key: K,
    /// The value after the change; `None` if the record was deleted, or if the feed has [only
    /// keys](crate::Feed::keys_only).
    pub new: Option<V>,
    /// The value before the change, if the record existed and the feed has [old
    /// values](crate::Feed::with_old_values).
    pub old: Option<V>,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ChangeKind {
    /// There was no record of this key before.
    Inserted,
    /// The record was put again, with another value or the same value.
    Updated,
    /// The record was deleted.
    Deleted,
}

impl ChangeKind {
    pub(super) fn of(was_there: bool, is_there: bool) -> Self {
        match (was_there, is_there) {
            (false, _) => Self::Inserted,
            (true, true) => Self::Updated,
            (true, false) => Self::Deleted,
        }
    }
}

/// A change as it is stored: the keys and values are bytes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) kind: ChangeKind,
    pub(super) key: Vec<u8>,
    pub(super) new: Option<Vec<u8>>,
    pub(super) old: Option<Vec<u8>>,
}

impl Stored {
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![FORMAT];
        Postcard::encode(self, &mut bytes)?;
        Ok(bytes)
    }

    fn of_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes.split_first() {
            Some((&FORMAT, rest)) => Postcard::decode(rest),
            Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
                what: "a change of a feed".into(),
                found: format.into(),
                supported: FORMAT.into(),
            }),
            _ => Err(Error::other("the bytes are not a change of a feed")),
        }
    }

    /// Decodes a change. Its number is set to 0, because the number is in the key and not in these
    /// bytes.
    pub(super) fn decode<K: RecordKey, V, C: Codec<V>>(bytes: &[u8]) -> Result<Change<K, V>> {
        let Self { kind, key, new, old } = Self::of_bytes(bytes)?;
        let value = |bytes: Option<Vec<u8>>| bytes.map(|bytes| C::decode(&bytes)).transpose();
        Ok(Change {
            number: 0,
            kind,
            key: keyloom::unpack(&key)?,
            new: value(new)?,
            old: value(old)?,
        })
    }
}
