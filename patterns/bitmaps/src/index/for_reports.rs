//! The parts of an index that reports use.

use keyloom::{KeyRange, Reader, Result, Subspace};
use keyloom_kit::RecordKey;

use super::fields::FieldKind;
use super::{Field, InvertedIndex, SelectedValues};

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// The kinds of the fields, the key prefixes of their chunks, and the subspaces of their
    /// columns.
    pub(crate) fn kinds_of_fields(&self) -> impl Iterator<Item = (FieldKind, &[u8], &Subspace)> {
        let of = |field: &'_ Field<K, V>| field.function.kind();
        self.fields.iter().map(move |field| (of(field), field.space.prefix(), &field.column))
    }

    /// The subspace of the columns of a field.
    pub(crate) fn columns_of_field(&self, name: &str) -> Result<&Subspace> {
        Ok(&self.known(name)?.column)
    }

    /// The subspace of the containers of a field, and the range of the containers of the selected
    /// values. Returns an error if the selection has another type than the values. Costs the same
    /// as [`select_alike`](Field::select_alike).
    pub(crate) fn containers_of_values(
        &self,
        reader: &impl Reader,
        name: &str,
        selected: &SelectedValues,
    ) -> Result<(&Subspace, KeyRange<'static>)> {
        let field = self.values_field(name)?;
        Ok((&field.space, field.select_alike(reader, selected, &self.space)?))
    }

    /// The subspace of the bitmap of all ids.
    pub(crate) fn all_space(&self) -> &Subspace {
        self.all.space()
    }

    /// The number of chunks with records.
    pub(crate) fn chunks(&self, reader: &impl Reader) -> Result<u64> {
        reader.count(self.all.space().range())
    }

    /// Whether a bitmap or integers in this subspace belong to this index, so that all their ids
    /// are ids of records.
    pub(crate) fn owns(&self, space: &Subspace) -> bool {
        let of_field = |field: &Field<K, V>| space.prefix().starts_with(field.space.prefix());
        space == self.all.space() || self.fields.iter().any(of_field)
    }
}
