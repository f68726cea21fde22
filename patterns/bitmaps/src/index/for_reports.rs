//! What reports need to know of an index.

use keyloom::{KeyRange, Reader, Result, Subspace};

use super::{Field, InvertedIndex, SelectValues};
use keyloom_tables::table::RecordKey;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Values,
    Integers,
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// What the fields hold, what the keys of their chunks begin with, and where their columns are.
    pub(crate) fn kinds_of_fields(&self) -> impl Iterator<Item = (FieldKind, &[u8], &Subspace)> {
        let of = |field: &'_ Field<K, V>| field.function.kind();
        self.fields.iter().map(move |field| (of(field), field.space.prefix(), &field.column))
    }

    /// Where the columns of a field are.
    pub(crate) fn columns_of_field(&self, name: &str) -> Result<&Subspace> {
        Ok(&self.known(name)?.column)
    }

    /// Where the containers of a field are, and which of them are of a value.
    pub(crate) fn containers_of_field(&self, name: &str) -> Result<(&Subspace, KeyRange<'static>)> {
        let field = self.values_field(name)?;
        Ok((&field.space, field.select(&().selected())))
    }

    /// Where the bitmap of all ids is.
    pub(crate) fn all_space(&self) -> &Subspace {
        self.all.space()
    }

    /// How many chunks there are that have records.
    pub(crate) fn chunks(&self, reader: &impl Reader) -> Result<u64> {
        reader.count(self.all.space().range())
    }

    /// Whether a bitmap or integers in this subspace are of this index, so that all their ids are
    /// those of records.
    pub(crate) fn owns(&self, space: &Subspace) -> bool {
        let of_field = |field: &Field<K, V>| space.prefix().starts_with(field.space.prefix());
        space == self.all.space() || self.fields.iter().any(of_field)
    }
}
