//! Errors of an inverted index and of its ids.

use keyloom::key::display;
use keyloom::{Error, MAX_KEY_BYTES, Subspace};

/// An error of an inverted index or of its ids. It is returned as an [`Error::Other`]; get it with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvertedIndexError {
    /// The index has no field with this name. Use an existing field, or declare this field and
    /// [repair](keyloom_tables::Maintained::repair) the index.
    #[error("the inverted index {index} has no field {field:?}; it has {known}")]
    UnknownField {
        /// The subspace of the index.
        index: String,
        /// The requested name.
        field: String,
        /// The names of the existing fields.
        known: String,
    },
    /// The field has values and the query needs integers, or the reverse. Declare the field as the
    /// kind that the query needs. If both kinds are needed, declare a second field.
    #[error(
        "the field {field:?} of the inverted index {index} holds {holds}, not {wanted}; declare another field for these"
    )]
    OtherKind {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// The kind of the field.
        holds: &'static str,
        /// The requested kind.
        wanted: &'static str,
    },
    /// The type of the selection differs from that of the values of the field, so no value can
    /// match. Select by a value as returned by the function of the field, or by the leading
    /// elements of a tuple.
    #[error(
        "the selection {asked} of the field {field:?} of the inverted index {index} is of another type than its values, such as {holds}; select by a value that the function of the field returns, or by the leading elements of a tuple"
    )]
    OtherType {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// The selected value, printable.
        asked: String,
        /// A stored value of the field, printable.
        holds: String,
    },
    /// An expression combines the ids of two indexes, of which at least one assigns ids. The same
    /// id stands for different records in the two indexes, so the result would contain wrong
    /// records. Use keys as ids in both
    /// ([`with_keys_as_ids`](crate::InvertedIndex::with_keys_as_ids)), or declare the fields in one
    /// index.
    #[error(
        "the bitmaps have the {one} and {other}, so one id stands for different records; use keys as ids in both, or put the fields into one index"
    )]
    MixedIds {
        /// The ids of one bitmap.
        one: String,
        /// The ids of the other.
        other: String,
    },
    /// An audience of a [`Batch`](crate::report::Batch) uses a stored bitmap that is not in the
    /// forward index. Read the bitmap into memory first, or evaluate the audience by itself.
    #[error(
        "audience {audience} of the batch has the bitmap in {bitmap}, which does not belong to the inverted index {index}; read it into memory first, or evaluate the audience by itself"
    )]
    NotInForwardIndex {
        /// The number of the audience, counted from 0.
        audience: usize,
        /// The subspace of the bitmap.
        bitmap: String,
        /// The subspace of the index.
        index: String,
    },
    /// A [breakdown by several fields](crate::report::Report::breakdown_by) has more groups than
    /// [`max_groups`](crate::report::Report::max_groups). Count only [selected
    /// values](crate::report::Report::breakdown_by_selected), report a smaller audience, or raise
    /// the limit.
    #[error(
        "the breakdown by {fields:?} in the inverted index {index} has more than {limit} groups; select values, report a smaller audience, or raise the limit with `max_groups`"
    )]
    TooManyGroups {
        /// The subspace of the index.
        index: String,
        /// The names of the fields.
        fields: Vec<String>,
        /// The maximum number of groups.
        limit: usize,
    },
    /// [`store_in`](crate::BitmapExpr::store_in) was called with an expression of an index that
    /// assigns ids. These ids are reused after a deletion, so a stored bitmap would soon contain
    /// other records. Evaluate the expression again, store the [keys](crate::InvertedIndex::keys)
    /// of the records, or use an index whose [keys are
    /// ids](crate::InvertedIndex::with_keys_as_ids).
    #[error(
        "the ids of this index are reused after a deletion, so a stored bitmap would soon contain other records; evaluate the expression again, store the keys of the records, or use an index whose keys are ids"
    )]
    IdsAreReused,
    /// The key of a value's container would exceed the maximum length of a key. Index a shorter
    /// value; for a string, index its [short form](keyloom_tables::shortened).
    #[error(
        "the value {value} of the field {field:?} makes a key of {bytes} bytes in the inverted index {index}, the limit is {limit}; give a shorter one, of a string its short form (`shortened`)"
    )]
    ValueTooLong {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// The beginning of the value, printable.
        value: String,
        /// The length of the key.
        bytes: usize,
        /// The maximum length of a key.
        limit: usize,
    },
    /// The values of a field for a block of 1,016 ids exceed the value limit of the store, because
    /// the ids have many values, or long values. Give the field fewer or shorter values, such as
    /// hashes, or divide them among several fields.
    #[error(
        "the values of the field {field:?} of 1,016 ids make a column of {bytes} bytes in the inverted index {index}, the store takes {limit} as a value; give the field fewer or shorter values, or divide them among several fields"
    )]
    ColumnTooLarge {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// The size of the column.
        bytes: usize,
        /// The maximum size of a value: [`Limits::max_value_bytes`](keyloom::Limits).
        limit: usize,
    },
    /// The [keys of the index are ids](crate::InvertedIndex::with_keys_as_ids), but this key is not
    /// packed as the number of its id, so its record could not be found by id. Pack the key as this
    /// number, or let the index assign ids.
    #[error(
        "the key {key} is the id {id} in the inverted index {index}, and is not packed as this number; pack it so, or let the index assign ids"
    )]
    OtherPacking {
        /// The subspace of the index.
        index: String,
        /// The key, printable.
        key: String,
        /// The id of the key.
        id: u64,
    },
    /// Every id of the universe is in use. Enlarge the universe, or delete records.
    #[error(
        "the ids {ids} are used up: the universe has {universe}; enlarge it, or delete records"
    )]
    NoIdLeft {
        /// The subspace of the ids.
        ids: String,
        /// The number of ids.
        universe: u64,
    },
}

impl From<InvertedIndexError> for Error {
    fn from(error: InvertedIndexError) -> Self {
        Self::other(error)
    }
}

/// The maximum number of characters shown of a value that is too long.
const SHOWN_CHARS: usize = 60;

#[cold]
pub(crate) fn value_too_long(index: &Subspace, field: &str, value: &[u8], bytes: usize) -> Error {
    let mut shown = display(value).to_string();
    if let Some((cut, _)) = shown.char_indices().nth(SHOWN_CHARS) {
        shown.truncate(cut);
        shown.push('…');
    }
    let (index, field) = (index.named(), field.to_owned());
    InvertedIndexError::ValueTooLong { index, field, value: shown, bytes, limit: MAX_KEY_BYTES }
        .into()
}
