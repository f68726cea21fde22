//! What reports need to know of an index.

use keyloom::{Error, KeyBuf, KeyRange, Reader, Result, Subspace};

use super::fields::Function;
use super::{DirectEntry, Field, InvertedIndex};
use crate::table::{RecordKey, get_many};

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::general::inverted_index) enum FieldKind {
    Values,
    Integers,
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// The names of the fields, what they hold, and what the keys of their chunks begin with.
    pub(in crate::general::inverted_index) fn kinds_of_fields(
        &self,
    ) -> impl Iterator<Item = (&str, FieldKind, &[u8])> {
        self.fields.iter().map(|field| {
            let kind = match field.function {
                Function::Values(_) => FieldKind::Values,
                Function::Integer(_) => FieldKind::Integers,
            };
            (&*field.name, kind, field.space.prefix())
        })
    }

    /// Where the containers of a field are, and which of them are of a value.
    pub(in crate::general::inverted_index) fn containers_of_field(
        &self,
        name: &str,
    ) -> Result<(&Subspace, KeyRange<'static>)> {
        let field = self.values_field(name)?;
        Ok((&field.space, field.select(())))
    }

    /// Where the bitmap of all ids is.
    pub(in crate::general::inverted_index) fn all_space(&self) -> &Subspace {
        self.all.space()
    }

    /// How many chunks there are that have records.
    pub(in crate::general::inverted_index) fn chunks(&self, reader: &impl Reader) -> Result<u64> {
        reader.count(self.all.space().range())
    }

    /// Whether a bitmap or integers in this subspace are of this index, so that all their ids are those of records.
    pub(in crate::general::inverted_index) fn owns(&self, space: &Subspace) -> bool {
        let of_field = |field: &Field<K, V>| space.prefix().starts_with(field.space.prefix());
        space == self.all.space() || self.fields.iter().any(of_field)
    }

    /// What the fields of records hold, as [`direct`](InvertedIndex::direct) tells it of one.
    pub(in crate::general::inverted_index) fn direct_many<'r, R: Reader>(
        &self,
        reader: &'r R,
        ids: &[u64],
    ) -> Result<Vec<Option<DirectEntry<R::Bytes<'r>>>>> {
        let keys: Vec<KeyBuf> = ids.iter().map(|id| self.direct.pack(id)).collect();
        let entries = keys.iter().zip(get_many(reader, &keys)?).map(|(key, entry)| {
            entry.map(DirectEntry::new).transpose().map_err(|error| error.at(key))
        });
        entries.collect()
    }

    /// An error of an entry of the direct index, with its key.
    pub(in crate::general::inverted_index) fn at_direct(&self, id: u64, error: Error) -> Error {
        error.at(&self.direct.pack(&id))
    }
}
