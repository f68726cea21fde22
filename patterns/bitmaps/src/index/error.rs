//! What an inverted index refuses.

use keyloom::key::display;
use keyloom::{Error, MAX_KEY_BYTES, Subspace};

/// What an inverted index or its ids refuse. It comes as an [`Error::Other`]; get it back with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvertedIndexError {
    /// The index has no field of this name. Ask for one of those that it has, or declare it and
    /// [repair](keyloom_tables::Maintained::repair) the index.
    #[error("the inverted index {index} has no field {field:?}; it has {known}")]
    UnknownField {
        /// The subspace of the index.
        index: String,
        /// The name asked for.
        field: String,
        /// The names that there are.
        known: String,
    },
    /// The field is of the other kind: it has values where integers are asked for, or the other way
    /// round. Declare it as what is asked of it, under another name where both are.
    #[error(
        "the field {field:?} of the inverted index {index} holds {holds}, not {wanted}; declare another field for these"
    )]
    OtherKind {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// What it holds.
        holds: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// A selection is of another type than the values of the field, so that it could find nothing.
    /// Select by a value as the function of the field returns it, or by the leading elements of a
    /// tuple.
    #[error(
        "the selection {asked} of the field {field:?} of the inverted index {index} is of another type than its values, such as {holds}; select by a value as the function of the field returns it, or by the leading elements of a tuple"
    )]
    OtherType {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// The value that was selected, printable.
        asked: String,
        /// A value that the field has, printable.
        holds: String,
    },
    /// [`store_in`](crate::BitmapExpr::store_in) was called with an expression of an index that
    /// assigns ids. Such ids are reused after a deletion, so a stored bitmap would soon contain
    /// other records. Evaluate the expression again, store the [keys](super::InvertedIndex::keys)
    /// of the records, or use an index whose [keys are
    /// ids](super::InvertedIndex::with_keys_as_ids).
    #[error(
        "the ids of this index are reused after a deletion, so a stored bitmap would soon contain other records; evaluate the expression again, store the keys of the records, or use an index whose keys are ids"
    )]
    IdsAreReused,
    /// The key of a value's container would be longer than a key may be. Shorten the value, or give
    /// a beginning or a hash of it.
    #[error(
        "the value {value} of the field {field:?} makes a key of {bytes} bytes in the inverted index {index}, the limit is {limit}; shorten it, or give a beginning or a hash of it"
    )]
    ValueTooLong {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// The beginning of the value, printable.
        value: String,
        /// How long the key would be.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// What a field holds for a block of 1,016 ids is larger than the store takes as one value,
    /// because each of them has many values, or long ones. Give the field fewer or shorter values,
    /// such as hashes, or divide them among several fields.
    #[error(
        "the values of the field {field:?} of 1,016 ids make a column of {bytes} bytes in the inverted index {index}, the store takes {limit} as a value; give the field fewer or shorter values, or divide them among several fields"
    )]
    ColumnTooLarge {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// How large the column would be.
        bytes: usize,
        /// How large a value may be: [`Limits::max_value_bytes`](keyloom::Limits).
        limit: usize,
    },
    /// Where [keys are ids](super::InvertedIndex::with_keys_as_ids): a key that is not packed as
    /// the number that it is, so that nobody would find the record by its id. Pack it so, or let
    /// the index give out ids.
    #[error(
        "the key {key} is the id {id} in the inverted index {index}, and is not packed as this number; pack it so, or let the index give out ids"
    )]
    OtherPacking {
        /// The subspace of the index.
        index: String,
        /// The key, printable.
        key: String,
        /// The id that it is.
        id: u64,
    },
    /// Every id of the universe is in use. Enlarge the universe, or delete records.
    #[error(
        "the ids {ids} are used up: the universe has {universe}; enlarge it, or delete records"
    )]
    NoIdLeft {
        /// The subspace of the ids.
        ids: String,
        /// How many ids there are.
        universe: u64,
    },
}

impl From<InvertedIndexError> for Error {
    fn from(error: InvertedIndexError) -> Self {
        Self::other(error)
    }
}

/// How much of a value that is too long is shown.
const SHOWN_CHARS: usize = 60;

#[cold]
pub(super) fn value_too_long(index: &Subspace, field: &str, value: &[u8], bytes: usize) -> Error {
    let mut shown = display(value).to_string();
    if let Some((cut, _)) = shown.char_indices().nth(SHOWN_CHARS) {
        shown.truncate(cut);
        shown.push('…');
    }
    let (index, field) = (index.to_string(), field.to_owned());
    InvertedIndexError::ValueTooLong { index, field, value: shown, bytes, limit: MAX_KEY_BYTES }
        .into()
}
