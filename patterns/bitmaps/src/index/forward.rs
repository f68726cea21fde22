//! The forward index: the values of a record's fields, by id.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use keyloom::key::{Unpacker, display};
use keyloom::{KeyBuf, Reader, Result, Unpack};
use keyloom_kit::{OrderedRange, RecordKey, get_many, in_order, pack_one, until_error};
use smallvec::SmallVec;

use super::InvertedIndex;
use super::columns::ColumnWalk;
use super::fields::FieldKind;
use crate::Container;
use crate::bitmap::{id_range, place_of};
use crate::column::{Integers, Values, block_of};

/// The packed values of a field.
type Packed = SmallVec<[KeyBuf; 1]>;

/// The values of the fields of one record, read from the forward index.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::Table;
/// use keyloom_bitmaps::{InvertedIndex, one};
/// let index = InvertedIndex::new(&Subspace::new("index"))
///     .field("tags", |_id, tags: &Vec<String>| tags.iter().collect())
///     .field("how many", |_, tags| one(tags.len()));
/// let posts = Table::<u32, Vec<String>>::new(&Subspace::new("posts")).with(&index);
/// let store = Memory::new();
/// store.transact(|txn| posts.put(txn, &7, &vec!["rust".into(), "lmdb".into()]))?;
/// let snapshot = store.snapshot()?;
/// let entry = index.forward(&snapshot, 0)?.expect("the first record has the first id");
/// assert_eq!(entry.values::<&str>("tags")?, ["lmdb", "rust"]);
/// assert_eq!(entry.values::<u64>("how many")?, [2]);
/// assert!(entry.values::<u64>("else")?.is_empty());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ForwardEntry {
    fields: Vec<(Arc<str>, Packed)>,
}

impl fmt::Debug for ForwardEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.fields().map(|(name, values)| {
            (name, values.map(|value| display(value).to_string()).collect::<Vec<_>>())
        });
        f.debug_map().entries(shown).finish()
    }
}

impl ForwardEntry {
    /// The fields with values, in the order of their declaration.
    pub fn fields(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &[u8]>)> {
        self.fields.iter().map(|(name, values)| (&**name, values.iter().map(|value| &value[..])))
    }

    /// The values of a field as packed elements: the same bytes as in the keys of the index. Empty
    /// if the field is absent.
    pub fn packed<'e>(&'e self, field: &str) -> impl Iterator<Item = &'e [u8]> + use<'e> {
        let found = self.fields().find(|(name, _)| *name == field);
        found.into_iter().flat_map(|(_, values)| values)
    }

    /// Returns the values of a field, in order; empty if the field has no values.
    ///
    /// # Errors
    /// [`Error::Key`](keyloom::Error::Key) if a value is not a `P`.
    pub fn values<'e, P: Unpack<'e>>(&'e self, field: &str) -> Result<Vec<P>> {
        let values = self.packed(field);
        values.map(|value| Ok(P::unpack_element(&mut Unpacker::new(value))?)).collect()
    }

    fn hold(&mut self, name: &Arc<str>, values: Packed) {
        if !values.is_empty() {
            self.fields.push((Arc::clone(name), values));
        }
    }
}

impl FieldKind {
    /// The values of the id at a place of a column.
    fn packed(self, column: &[u8], place: u16) -> Result<Packed> {
        match self {
            Self::Values => {
                let column = Values::parse(column)?;
                let value = |code| column.dictionary().value(code).map(KeyBuf::from_slice);
                column.codes(place).map(value).collect()
            }
            Self::Integers => {
                let integer = Integers::parse(column)?.get(place);
                Ok(integer.iter().map(pack_one).collect())
            }
        }
    }
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// Returns the values of the record with this id, if there is one. Costs one get, and one per
    /// field, in one round trip.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) with the key if stored bytes are
    /// not a column of a forward index.
    pub fn forward(&self, reader: &impl Reader, id: u64) -> Result<Option<ForwardEntry>> {
        let ((chunk, offset), (block, place)) = (place_of(id), block_of(id));
        let mut keys = vec![self.all.key(chunk)];
        keys.extend(self.fields.iter().map(|field| field.column.pack(&block)));
        let stored = get_many(reader, &keys)?;
        let mut stored = keys.iter().zip(stored);
        let Some((key, Some(all))) = stored.next() else { return Ok(None) };
        if !Container::parse(&all).map_err(|error| error.at(key))?.contains(offset) {
            return Ok(None);
        }
        let mut entry = ForwardEntry::default();
        for (field, (key, bytes)) in self.fields.iter().zip(stored) {
            let Some(bytes) = bytes else { continue };
            let values = field.function.kind().packed(&bytes, place);
            entry.hold(&field.name, values.map_err(|error| error.at(key))?);
        }
        Ok(Some(entry))
    }

    /// Returns the values of the records with ids in `ids`, in the order of `ids`. Costs one range
    /// over the chunks of all ids, and one range per field over its columns.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("city", |_id: &u32, city: &Option<String>| one(city.as_ref()));
    /// let users = Table::<u32, Option<String>>::new(&Subspace::new("users")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     users.put_many(txn, [(3, Some("Oslo".into())), (4, None), (9, Some("Rome".into()))])
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let all =
    ///     index.forward_range(&snapshot, ..)?.collect::<Result<Vec<_>>>()?;
    /// let ids: Vec<u64> = all.iter().map(|(id, _)| *id).collect();
    /// assert_eq!(ids, [3, 4, 9]);
    /// assert_eq!(all[0].1.values::<String>("city")?, ["Oslo"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store. The iterator returns the errors of
    /// [`forward`](InvertedIndex::forward).
    pub fn forward_range<'r, R: Reader, B: OrderedRange<u64>>(
        &self,
        reader: &'r R,
        ids: B,
    ) -> Result<impl FusedIterator<Item = Result<(u64, ForwardEntry)>> + use<'r, R, B, K, V>> {
        let (range, order) = (id_range(ids.bounds()), ids.order());
        let columns = range.iter().flat_map(|ids| {
            self.fields.iter().map(move |field| {
                let (name, kind) = (Arc::clone(&field.name), field.function.kind());
                let columns = ColumnWalk::open(reader, &field.column, ids, order)?;
                Ok(FieldColumns { name, kind, columns })
            })
        });
        let mut columns: Vec<FieldColumns<'r, R>> = columns.collect::<Result<_>>()?;
        let mut ids = range
            .map(|ids| self.all.ids(reader, in_order(ids, order)))
            .transpose()?
            .into_iter()
            .flatten();
        Ok(until_error(move || {
            let Some(id) = ids.next().transpose()? else { return Ok(None) };
            let (mut entry, (block, place)) = (ForwardEntry::default(), block_of(id));
            for FieldColumns { name, kind, columns } in &mut columns {
                let Some(column) = columns.column(block)? else { continue };
                let values = kind.packed(column, place);
                entry.hold(name, values.map_err(|error| columns.at(block, error))?);
            }
            Ok(Some((id, entry)))
        }))
    }
}

/// The columns of one field.
struct FieldColumns<'r, R: Reader + 'r> {
    name: Arc<str>,
    kind: FieldKind,
    columns: ColumnWalk<R::Entries<'r>, R::Bytes<'r>>,
}
