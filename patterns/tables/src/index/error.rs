//! Errors of indexes.

use keyloom::key::{Unpacker, display, display_named, elements};
use keyloom::{Error, KeyBuf, MAX_KEY_BYTES, Result, Subspace};
use keyloom_kit::RecordKey;

use super::IndexEntry;

/// An error of an [`Index`](crate::Index). It is wrapped in an [`Error::Other`]; unwrap it with
/// [`Error::downcast_ref`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Another record has an entry with the same parts in a unique index. Nothing was written to
    /// this index. Return the error from the transaction, and change one of the two records.
    #[error(transparent)]
    NotUnique(Box<NotUnique>),
    /// The key of an entry would exceed the limit. Index a shorter part; for a string, use its
    /// [short form](crate::shortened).
    #[error(
        "the entry of the index {index} for the record {record} has a key of {bytes} bytes, the limit is {limit}{longest}; index a shorter part, of a string its short form (`shortened`)"
    )]
    EntryTooLong {
        /// The subspace of the index.
        index: String,
        /// The key of the record.
        record: String,
        /// The length of the key.
        bytes: usize,
        /// The maximum length of a key.
        limit: usize,
        /// The longest part, as text.
        longest: String,
    },
    /// The function of the index [refuses](crate::Index::try_new) the record.
    /// [`Error::downcast_ref`] returns the error of the function.
    #[error("the index {index} refuses the record {record}: {source}")]
    Refused {
        /// The subspace of the index.
        index: String,
        /// The whole key of the record in its table.
        record: String,
        /// The error of the function.
        source: Box<Error>,
    },
}

/// The two records that claim one entry of a unique index.
#[derive(Debug, thiserror::Error)]
#[error(
    "the unique index {name} already holds {} for the record {}, so the record {} cannot have it; change one of them",
    display(.parts), display(.holder), display(.record)
)]
pub struct NotUnique {
    pub(super) index: Subspace,
    /// The name of the index when the error occurred: the handle that registers the name may be
    /// dropped before the error is printed.
    pub(super) name: String,
    pub(super) parts: KeyBuf,
    pub(super) record: KeyBuf,
    pub(super) holder: KeyBuf,
}

impl NotUnique {
    /// The subspace of the index.
    pub fn index(&self) -> &Subspace {
        &self.index
    }

    /// The parts that both records claim, packed.
    pub fn parts(&self) -> &[u8] {
        &self.parts
    }

    /// The key of the refused record.
    ///
    /// # Errors
    /// [`Error::Key`] if the key is not a `K`.
    pub fn record<K: RecordKey>(&self) -> Result<K> {
        one_element(&self.record)
    }

    /// The key of the record that has the entry.
    ///
    /// # Errors
    /// [`Error::Key`] if the key is not a `K`.
    pub fn holder<K: RecordKey>(&self) -> Result<K> {
        one_element(&self.holder)
    }
}

fn one_element<K: RecordKey>(packed: &[u8]) -> Result<K> {
    Ok(K::unpack_element(&mut Unpacker::new(packed))?)
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Self {
        Self::other(error)
    }
}

#[cold]
pub(super) fn refused(index: &Subspace, stored_key: &[u8], error: Error) -> Error {
    let (index, record) = (index.named(), display_named(stored_key).to_string());
    IndexError::Refused { index, record, source: Box::new(error) }.into()
}

#[cold]
pub(super) fn too_long(
    index: &Subspace,
    entry: &IndexEntry,
    record_key: &[u8],
    bytes: usize,
) -> Error {
    let parts = elements(&entry.parts).unwrap_or_default();
    let lengths = parts.iter().enumerate().map(|(place, part)| (packed_bytes(part), place + 1));
    let longest = lengths.max().map_or(String::new(), |(bytes, place)| {
        format!(", {bytes} of them in part {place} of {}", parts.len())
    });
    IndexError::EntryTooLong {
        index: index.named(),
        record: display(record_key).to_string(),
        bytes,
        limit: MAX_KEY_BYTES,
        longest,
    }
    .into()
}

fn packed_bytes(part: &keyloom::Element) -> usize {
    keyloom::pack(part).len()
}
