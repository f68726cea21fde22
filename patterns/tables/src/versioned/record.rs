//! The encoding of a record with its version.

use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::value::Codec;
use keyloom::value::shape::Shape;
use keyloom::{Error, Result};

/// The format version that this code writes.
const FORMAT: u8 = 1;

/// A record of a [`VersionedTable`](super::VersionedTable) with its version. Dereferences to the
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionedRecord<V> {
    /// The version. It differs from the versions of all earlier and later records of this key,
    /// except with [`ExternalVersion::GreaterOrEqual`](super::ExternalVersion::GreaterOrEqual).
    pub version: u64,
    /// The record.
    pub value: V,
}

impl<V> Deref for VersionedRecord<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

/// A codec that writes the version of the record before the encoding of `C`; see the
/// [layout](super).
#[derive(Clone, Copy, Debug, Default)]
pub struct WithVersion<C>(PhantomData<C>);

#[derive(Debug, thiserror::Error)]
#[error("it has no version prefix: {0} bytes; is another kind of data in the subspace?")]
struct NoVersion(usize);

impl<V, C: Codec<V>> Codec<VersionedRecord<V>> for WithVersion<C> {
    fn encode(record: &VersionedRecord<V>, out: &mut Vec<u8>) -> Result<()> {
        out.push(FORMAT);
        out.extend_from_slice(&record.version.to_be_bytes());
        C::encode(&record.value, out)
    }

    fn decode(bytes: &[u8]) -> Result<VersionedRecord<V>> {
        match bytes.split_first() {
            Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
                what: "a record with a version".into(),
                found: format.into(),
                supported: FORMAT.into(),
            }),
            Some((&FORMAT, rest)) if rest.len() >= size_of::<u64>() => {
                let (version, value) = rest.split_at(size_of::<u64>());
                let version = version.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
                Ok(VersionedRecord { version, value: C::decode(value)? })
            }
            _ => Err(Error::Value {
                codec: "a record with a version",
                action: "decode",
                source: NoVersion(bytes.len()).into(),
            }),
        }
    }

    fn shape() -> Result<Shape> {
        C::shape()
    }
}
