//! Queries of an index.

use keyloom::{KeyRange, Order, Pack, Reader, Result, Subspace, Unpack};
use keyloom_kit::{RecordKey, Scan, Select, in_order, pack_one, scan};
use keyloom_tables::aggregate::Grouping;

use super::fields::{Function, null};
use super::ids::Ids;
use super::values::{self, Union};
use super::{InvertedIndex, SelectValues};
use crate::{BitSliced, BitmapExpr};

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// Returns the id of the record of `key`, if it has one. Costs one get. If keys are ids, it
    /// costs nothing, and the record need not exist.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) with the key if the stored bytes
    /// are not an id.
    pub fn id_of(&self, reader: &impl Reader, key: &K) -> Result<Option<u64>> {
        self.ids.of(reader, key)
    }

    /// Returns the keys of the records with these ids, in the order of the ids. Costs one get per
    /// id, in one round trip; reads nothing if keys are ids.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) with the key if the stored bytes
    /// are not a key.
    pub fn keys(
        &self,
        reader: &impl Reader,
        ids: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Option<K>>> {
        self.ids.keys_of(reader, ids)
    }

    /// Returns the ids of the records with these keys, in the order of the keys. Costs one round
    /// trip; reads nothing if keys are ids.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// use keyloom_tables::Table;
    /// let by_city = InvertedIndex::<String, String>::new(&Subspace::new("by city"))
    ///     .field("city", |_, city| one(city));
    /// let users = Table::new(&Subspace::new("users")).with(&by_city);
    /// let store = Memory::new();
    /// let [ada, bob] = ["ada", "bob"].map(String::from);
    /// store.transact(|txn| users.put(txn, &ada, &"Oslo".into()))?;
    /// let ids = by_city.ids_of(&store.snapshot()?, [&ada, &bob])?;
    /// assert_eq!(ids, [Some(0), None]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) with the key if the stored bytes
    /// are not an id.
    pub fn ids_of<'k>(
        &self,
        reader: &impl Reader,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<Vec<Option<u64>>>
    where
        K: 'k,
    {
        match &self.ids {
            Ids::Dense(ids) => ids.of_many(reader, keys),
            Ids::Same(ids) => Ok(keys.into_iter().map(|key| Some((ids.id)(key))).collect()),
        }
    }

    /// The ids of all records.
    pub fn all(&self) -> BitmapExpr {
        self.expr(&self.all)
    }

    /// An expression of the given ids of this index, kept in memory. The ids must ascend.
    pub fn of_sorted_ids(&self, ids: impl IntoIterator<Item = u64>) -> BitmapExpr {
        BitmapExpr::of_sorted(ids).owned_by(&self.owner)
    }

    /// The ids of the records with this value in this field. The expression reads nothing until it
    /// is evaluated.
    ///
    /// The value must have the type that the function of the field returns; a tuple must have all
    /// of its elements. No record has a value of another type, so a term of another type is empty.
    /// [`any_term`](InvertedIndex::any_term) reads the store, and refuses a selection of another
    /// type.
    ///
    /// # Errors
    /// [`InvertedIndexError::UnknownField`](super::InvertedIndexError::UnknownField),
    /// [`InvertedIndexError::OtherKind`](super::InvertedIndexError::OtherKind).
    pub fn term<P: Pack>(&self, field: &str, value: P) -> Result<BitmapExpr> {
        Ok(self.expr(&self.values_field(field)?.bitmap(&pack_one(&value))))
    }

    /// The ids of the records with this packed value in this field, as returned by
    /// [`ForwardEntry::packed`](super::ForwardEntry::packed).
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
    /// let user = index.forward(&snapshot, 9)?.expect("it has a record");
    /// for city in user.packed("city") {
    ///     assert_eq!(index.packed_term("city", city)?.count(&snapshot)?, 1);
    /// }
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`term`](InvertedIndex::term).
    pub fn packed_term(&self, field: &str, value: &[u8]) -> Result<BitmapExpr> {
        Ok(self.expr(&self.values_field(field)?.bitmap(value)))
    }

    /// Returns the ids of the records with any of the selected values in this field. A selection is
    /// a value or the leading elements of a tuple, a prefix
    /// ([`starting_with`](keyloom_tables::starting_with)), bounds
    /// ([`within`](keyloom_tables::within)), or `..` for all values. See [`SelectValues`].
    ///
    /// Unites the containers in memory, with at most 2 bytes per id and value, and at most 4 KiB,
    /// per chunk. The result is kept in the stored form. Costs one range over the containers, and
    /// up to two more reads if there are none.
    ///
    /// The result is fixed at the time of the read. The continuation of a [page](BitmapExpr::page)
    /// identifies its query by the ids in memory. So the continuation is refused if `any_term` is
    /// called again after a write that changed which records have these values.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// use keyloom_tables::{Table, starting_with, within};
    /// let index = InvertedIndex::new(&Subspace::new("index"))
    ///     .field("name", |_: &u32, name: &String| one(name));
    /// let towns = Table::<u32, String>::new(&Subspace::new("towns")).with(&index);
    /// let store = Memory::new();
    /// let names = ["Oslo", "Paris", "Parma", "Rome"].map(String::from);
    /// store.transact(|txn| towns.put_many(txn, (0..).zip(names.clone())))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(index.any_term(&snapshot, "name", starting_with("Par"))?.count(&snapshot)?, 2);
    /// assert_eq!(index.any_term(&snapshot, "name", within(.."Paris"))?.count(&snapshot)?, 1);
    /// assert!(index.any_term(&snapshot, "name", 5).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`term`](InvertedIndex::term);
    /// [`InvertedIndexError::OtherType`](super::InvertedIndexError::OtherType) if the selection is
    /// of another type than the values; any error of the store; [`Error::At`](keyloom::Error::At)
    /// with the key if stored bytes are not a container.
    pub fn any_term(
        &self,
        reader: &impl Reader,
        field: &str,
        select: impl SelectValues,
    ) -> Result<BitmapExpr> {
        let (field, selected) = (self.values_field(field)?, select.selected());
        let mut entries = reader.range(field.select(&selected), Order::Ascending)?;
        let first = entries.next().transpose()?;
        let key = first.as_ref().map(|entry| &entry.0[..]);
        field.refuse_others(reader, &selected, key, &self.space)?;
        let mut united = Union::default();
        united.add(first.map(Ok).into_iter().chain(entries), &field.space)?;
        Ok(united.held()?.owned_by(&self.owner))
    }

    /// Like [`any_term`](InvertedIndex::any_term), for any of several selections: an `IN` list.
    ///
    /// Reads the selections together: up to 1,000 selections with up to 16,384 containers cost one
    /// round trip. A longer list costs one round trip per 1,000 selections. All selections with
    /// more than their share of the containers are continued together. If there are no containers,
    /// up to two more reads are needed.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// use keyloom_tables::Table;
    /// let index = InvertedIndex::new(&Subspace::new("index"))
    ///     .field("name", |_: &u32, name: &String| one(name));
    /// let towns = Table::<u32, String>::new(&Subspace::new("towns")).with(&index);
    /// let store = Memory::new();
    /// let names = ["Oslo", "Paris", "Parma", "Rome"].map(String::from);
    /// store.transact(|txn| towns.put_many(txn, (0..).zip(names.clone())))?;
    /// let snapshot = store.snapshot()?;
    /// let capitals = index.any_of_terms(&snapshot, "name", ["Oslo", "Paris", "Bern"])?;
    /// assert_eq!(capitals.count(&snapshot)?, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`any_term`](InvertedIndex::any_term);
    /// [`InvertedIndexError::OtherType`](super::InvertedIndexError::OtherType) only if no record
    /// has any of the values and the first selection is of another type.
    pub fn any_of_terms<S: SelectValues>(
        &self,
        reader: &impl Reader,
        field: &str,
        selects: impl IntoIterator<Item = S>,
    ) -> Result<BitmapExpr> {
        let field = self.values_field(field)?;
        let selected: Vec<_> = selects.into_iter().map(|select| select.selected()).collect();
        let ranges = selected.iter().map(|selected| field.select(selected)).collect();
        let mut united = Union::default();
        united.add_ranges(reader, ranges, &field.space)?;
        if let Some(first) = selected.first().filter(|_| united.is_empty()) {
            field.refuse_others(reader, first, None, &self.space)?;
        }
        Ok(united.held()?.owned_by(&self.owner))
    }

    /// The ids of the records without a value in this field. The expression reads nothing until it
    /// is evaluated.
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
    /// let ids = index
    ///     .absent("city")?
    ///     .ids(&snapshot, ..)?
    ///     .collect::<Result<Vec<u64>>>()?;
    /// assert_eq!(ids, [4]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvertedIndexError::UnknownField`](super::InvertedIndexError::UnknownField).
    pub fn absent(&self, field: &str) -> Result<BitmapExpr> {
        let field = self.known(field)?;
        Ok(match field.function {
            Function::Values(_) => self.expr(&field.bitmap(&null())),
            Function::Integer(_) => self.all() - field.integers.has(),
        })
    }

    /// The ids of the records with a value in this field. The expression reads nothing until it is
    /// evaluated.
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
    /// let ids = index
    ///     .has("city")?
    ///     .ids(&snapshot, ..)?
    ///     .collect::<Result<Vec<u64>>>()?;
    /// assert_eq!(ids, [3, 9]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvertedIndexError::UnknownField`](super::InvertedIndexError::UnknownField).
    pub fn has(&self, field: &str) -> Result<BitmapExpr> {
        let field = self.known(field)?;
        Ok(match field.function {
            Function::Values(_) => self.all() - self.expr(&field.bitmap(&null())),
            Function::Integer(_) => field.integers.has(),
        })
    }

    /// The integers of a field, for comparisons and sums.
    ///
    /// # Errors
    /// [`InvertedIndexError::UnknownField`](super::InvertedIndexError::UnknownField),
    /// [`InvertedIndexError::OtherKind`](super::InvertedIndexError::OtherKind).
    pub fn integers_of(&self, field: &str) -> Result<&BitSliced> {
        let field = self.known(field)?;
        match field.function {
            Function::Integer(_) => Ok(&field.integers),
            Function::Values(_) => Err(self.other_kind(field, "values", "integers")),
        }
    }

    /// Returns the distinct selected values of a field, in order. This is a skip scan: it costs one
    /// range, and for each value another range or the steps over its containers. Unless all values
    /// (`..`) are selected, it costs up to three more reads.
    ///
    /// # Errors
    /// The errors of [`any_term`](InvertedIndex::any_term); the iterator also returns an error if a
    /// value is not a `P`.
    pub fn values<'r, R: Reader, P: for<'k> Unpack<'k> + 'r, S: SelectValues>(
        &self,
        reader: &'r R,
        field: &str,
        select: S,
    ) -> Result<impl Scan<Item = Result<P>> + 'r + use<'r, R, P, S, K, V>> {
        let field = self.values_field(field)?;
        let range = Selected(field.select_alike(reader, &select.selected(), &self.space)?);
        let range = in_order(range, select.order());
        let values = Grouping::new(&field.space, 1).values::<R, (P,), _>(reader, range)?;
        Ok(scan(values, |values| Ok(values.next().transpose()?.map(|(value,)| value))))
    }

    /// Returns the number of distinct selected values of a field. This is a skip scan, like
    /// [`values`](InvertedIndex::values), at the same cost.
    ///
    /// # Errors
    /// The errors of [`any_term`](InvertedIndex::any_term).
    pub fn distinct(
        &self,
        reader: &impl Reader,
        field: &str,
        select: impl SelectValues,
    ) -> Result<u64> {
        let field = self.values_field(field)?;
        let range = Selected(field.select_alike(reader, &select.selected(), &self.space)?);
        let groups = Grouping::new(&field.space, 1).first_of_each(reader, range)?;
        groups.map(|found| found.map(|_| 1)).sum()
    }

    /// Returns the distinct selected values of a field, in order, each with its number of records.
    /// Costs one range, and up to three more reads unless all values (`..`) are selected. Checks
    /// the structure of each container and reads its count, but does not convert it to words.
    ///
    /// # Errors
    /// The errors of [`values`](InvertedIndex::values).
    pub fn value_counts<'r, R: Reader, P: for<'k> Unpack<'k> + 'r, S: SelectValues>(
        &self,
        reader: &'r R,
        field: &str,
        select: S,
    ) -> Result<impl Iterator<Item = Result<(P, u64)>> + 'r + use<'r, R, P, S, K, V>> {
        let field = self.values_field(field)?;
        let range = field.select_alike(reader, &select.selected(), &self.space)?;
        Ok(values::value_counts(reader.range(range, select.order())?, field.space.clone()))
    }

    /// Returns how many containers a field of values has, including the containers of the records
    /// without a value: the cost of reading all of them. Costs one get.
    ///
    /// # Errors
    /// The errors of [`term`](InvertedIndex::term);
    /// [`Error::NotACounter`](keyloom::Error::NotACounter); any error of the store.
    pub fn containers(&self, reader: &impl Reader, field: &str) -> Result<u64> {
        let count = reader.counter(&self.values_field(field)?.counter)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }
}

/// A selection whose key range is already known.
struct Selected(KeyRange<'static>);

impl Select for Selected {
    fn key_range(&self, _: &Subspace) -> KeyRange<'static> {
        self.0.clone()
    }
}
