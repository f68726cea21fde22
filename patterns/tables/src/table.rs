//! Table: how are typed records stored, with all derived data kept consistent?
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, record key | the record, as the table's codec writes it |
//!
//! The record key is any [tuple key](keyloom::key), so a table can be clustered: with keys
//! `(customer, order)` the orders of a customer are adjacent and form one range.
//!
//! # Invariants
//!
//! * Every key of the subspace decodes as a record key and every value as a record.
//! * After every transaction, the data [attached](Table::with) to the table is exactly what follows
//!   from the records.
//!
//! # Cost
//!
//! The round trips of an operation that writes do not include the commit, which adds one.
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`get`](Table::get) | 1 get | 1 |
//! | [`get_many`](Table::get_many) | n gets | 1 |
//! | [`put`](Table::put), [`put_many`](Table::put_many), nothing attached | 1 key written per record | 0 |
//! | [`put`](Table::put) | 1 get, 1 key written, and the changes of the derived data | 1 |
//! | [`put_many`](Table::put_many) | the same per record | 1 |
//! | [`delete`](Table::delete) | 1 get, 1 key written, and the changes of the derived data | 1 |
//! | [`delete_many`](Table::delete_many) | the same per record | 1 |
//! | [`delete_record_only`](Table::delete_record_only) | 1 key written | 0 |
//! | [`range`](Table::range), [`page`](Table::page) | 1 range; reads what it returns | 1 |
//!
//! A [unique](crate::Index::unique) index reads before it writes: it adds its gets, in one round
//! trip per call. Derived data that is not plain entries adds [round trips of its
//! own](crate::aggregate#cost), once per record if it is maintained record by record, as a
//! [`RankedIndex`](crate::aggregate::RankedIndex) is.
//!
//! A put that changes no derived data writes exactly one key. An empty batch costs nothing. If a
//! key occurs twice in a batch, only its last record is written. From 4,096 records on, a batch
//! first reads one range (1 round trip) to check whether there are records between its first and
//! its last key; if there are none, it skips the gets. A batch writes the records and their derived
//! data together in the order of their keys, which is about twice as fast for a store as unordered
//! writes. The store limits how many records fit into a transaction; see
//! [`BatchSize`](crate::BatchSize) for loads of any size.
//!
//! # Errors and transactions
//!
//! An operation that fails may have made part of its writes *in the transaction*. So the
//! transaction [does not commit](keyloom::Writer#a-failed-write) after it. Return the error from
//! the body of [`transact`](keyloom::Store::transact). To avoid the failure, read first, in the
//! same transaction, whether the write is possible.
//!
//! # Records that do not decode
//!
//! A program of another version, another codec or a damaged file may leave a record that does not
//! decode. Reading it is an error that names its key. A [`range`](Table::range) continues after it;
//! to continue a [`page`](Table::page), pass the continuation from the error. The record can be
//! deleted and replaced like any other:
//!
//! | attached | [`delete`](Table::delete), [`put`](Table::put) and their `_many` |
//! |---|---|
//! | nothing | delete and replace it |
//! | [entries](crate::DerivedEntries), such as an [`Index`](crate::Index) | the same; since its old entries cannot be computed, each index is scanned once for entries of such records, in the same transaction |
//! | other data that can [forget](crate::Derived::forget) records | the same, at its own cost |
//! | anything else, such as [`Totals`](crate::aggregate::Totals) | an error: use [`delete_record_only`](Table::delete_record_only), and repair the derived data |
//!
//! A record of a [newer format](keyloom::Error::NewerFormat) is not damaged. If derived data is
//! attached, the record is neither deleted nor replaced.
//!
//! # When not to use it
//!
//! When fields of one record are read or written independently, or when a record is larger than a
//! few kilobytes: a put writes the whole record. When the keys come from another system and are not
//! tuples.
//!
//! # Source
//!
//! The "row" of every document and wide-column store. The record layers on ordered stores, such as
//! FoundationDB's, work this way.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use keyloom::value::{Codec, Postcard};
use keyloom::{
    DynWriter, Entry, Error, KeyBuf, KeyRange, Order, Pack, Reader, Result, Subspace, Writer,
};
use keyloom_kit::derived::{Attach, LostRecords, RecordChange, SortedWrites};
use keyloom_kit::{Continuation, Page, Select, answers, get_many};

use smallvec::{SmallVec, smallvec};

#[cfg(doc)]
use crate::UnreadableEntry;
use crate::changes::{Change, PackedKeys, last_of_each};
use crate::schema::{Follow, Followed, Owned, queue_key, write_queued};
use crate::upkeep::Upkeep;
#[doc(inline)]
pub use keyloom_kit::RecordKey;

/// Typed records in a subspace; see the [module](self).
///
/// Cheap to clone: clones share the attached derived data.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::Table;
/// let prices = Table::<String, f64>::new(&Subspace::new("prices"));
/// let store = Memory::new();
/// store.transact(|txn| prices.put(txn, &"tea".into(), &2.5))?;
/// assert_eq!(prices.get(&store.snapshot()?, "tea")?, Some(2.5));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Table<K, V, C = Postcard> {
    space: Subspace,
    upkeep: Upkeep<K, V>,
    codec: PhantomData<fn() -> C>,
    /// The key of a record, if it is part of it. Shared by all clones.
    key_of: Arc<OnceLock<fn(&V) -> K>>,
    /// Checked in each transaction of a repair that a schema runs.
    repair_guard: Option<RepairGuard>,
}

/// Fails if a repair must not continue.
pub(crate) type RepairGuard = Arc<dyn Fn(&mut DynWriter<'_>) -> Result<()> + Send + Sync>;

impl<K, V, C> Clone for Table<K, V, C> {
    fn clone(&self) -> Self {
        let Self { space, upkeep, repair_guard, key_of, .. } = self;
        let (space, upkeep, repair_guard) = (space.clone(), upkeep.clone(), repair_guard.clone());
        Self { space, upkeep, codec: PhantomData, key_of: Arc::clone(key_of), repair_guard }
    }
}

impl<K, V, C> fmt::Debug for Table<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Table");
        shown.field("space", &self.space);
        match &self.upkeep {
            Upkeep::Given(derived) => shown.field("derived", &derived.len()),
            Upkeep::Owned(owned) => shown.field("owned", owned),
            Upkeep::Refused(error) => shown.field("refused", error),
        };
        shown.finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> Table<K, V> {
    /// A table in `space`, whose records are written with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<K: RecordKey, V, C> Table<K, V, C> {
    /// A table in `space`, whose records are written with the codec `C`.
    ///
    /// ```
    /// use keyloom::{Subspace, value::Json};
    /// use keyloom_tables::Table;
    /// let table = Table::<u32, Vec<String>, Json>::with_codec(&Subspace::new("tags"));
    /// ```
    pub fn with_codec(space: &Subspace) -> Self {
        Self::kept_up(space.clone(), Upkeep::of(space))
    }

    /// A table that a schema owns.
    pub(crate) fn owned(space: Subspace, owned: Arc<Owned<K, V>>) -> Self {
        Self::kept_up(space, Upkeep::Owned(owned))
    }

    fn kept_up(space: Subspace, upkeep: Upkeep<K, V>) -> Self {
        Self { space, upkeep, codec: PhantomData, key_of: Arc::default(), repair_guard: None }
    }

    /// The same table for a repair whose transactions must each pass the guard.
    pub(crate) fn guarded_by(&self, guard: RepairGuard) -> Self {
        Self { repair_guard: Some(guard), ..self.clone() }
    }

    /// Called first in each transaction of a repair.
    #[doc(hidden)]
    pub fn check_repair(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| {
            let guard = self.repair_guard.as_ref();
            guard.map_or(Ok(()), |guard| guard(&mut DynWriter::new(txn)))
        })
    }

    /// The shared state of the schema that owns the table.
    pub(crate) fn owner(&self) -> Option<&Arc<Owned<K, V>>> {
        match &self.upkeep {
            Upkeep::Owned(owned) => Some(owned),
            Upkeep::Given(_) | Upkeep::Refused(_) => None,
        }
    }

    /// Whether a schema owns the table.
    #[doc(hidden)]
    pub fn is_owned(&self) -> bool {
        self.owner().is_some()
    }

    /// The same table with `derived` attached: from now on puts and deletes *through this value*
    /// maintain it. Records that are already in the table are not visited;
    /// [`repair`](crate::Maintained::repair) does that.
    ///
    /// The table refuses every write if `derived` overlaps with the records or with other data
    /// attached to the table. It also refuses every write if a [schema](crate::schema) owns the
    /// table: declare the data with [`Schema::derive`](crate::Schema::derive) instead.
    #[must_use]
    pub fn with<const HOW: u8>(mut self, derived: &impl Attach<K, V, HOW>) -> Self {
        self.upkeep.give(derived.attached(), &self.space);
        self
    }

    /// [`with`](Table::with), for derived data that must be outside of `all`, which contains the
    /// table.
    #[doc(hidden)]
    pub fn with_outside<const HOW: u8>(
        mut self,
        derived: &impl Attach<K, V, HOW>,
        all: &Subspace,
    ) -> Self {
        self.upkeep.give(derived.attached(), all);
        self
    }

    /// The same table, for records that contain their key: each clone of it refuses to put a record
    /// under another key than the one that `key_of` returns. Costs nothing in the store.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let seats = Table::<u8, (u8, String)>::new(&Subspace::new("seats")).keyed_by(|seat| seat.0);
    /// let store = Memory::new();
    /// store.transact(|txn| seats.put(txn, &7, &(7, "Ada".into())))?;
    /// assert!(store.transact(|txn| seats.put(txn, &8, &(7, "Ada".into()))).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn keyed_by(self, key_of: fn(&V) -> K) -> Self {
        self.key_of.get_or_init(|| key_of);
        self
    }

    /// # Errors
    /// [`Error::InvalidArgument`] for a record that has another key than `packed`.
    pub(crate) fn refuse_other_key(&self, packed: &[u8], value: &V) -> Result<()> {
        let Some(key_of) = self.key_of.get() else { return Ok(()) };
        let own = self.space.pack(&key_of(value));
        if *own == *packed {
            return Ok(());
        }
        Err(Error::InvalidArgument {
            what: "the key of the record",
            value: Subspace::from_bytes(&own).to_string(),
            why: "the record is put under another key; put it under its own, and delete the record of the other one if it has moved",
        }
        .at(packed))
    }

    /// The same table, which refuses each write with `error`.
    #[doc(hidden)]
    pub fn refusing(self, error: Error) -> Self {
        Self { upkeep: Upkeep::Refused(error), ..self }
    }

    /// The subspace of the records.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The number of selected records. Reads all of them.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn count(&self, reader: &impl Reader, select: impl Select<K>) -> Result<u64> {
        reader.count(select.key_range(&self.space))
    }
}

impl<K: RecordKey, V, C: Codec<V>> Table<K, V, C> {
    /// The record of `key`, which may be a borrowed form of `K`: a `&str` for a `String`. Costs one
    /// get.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let ages = Table::<String, u8>::new(&Subspace::new("ages"));
    /// let store = Memory::new();
    /// store.transact(|txn| ages.put(txn, &"Ada".into(), &36))?;
    /// assert_eq!(ages.get(&store.snapshot()?, "Ada")?, Some(36));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::Value`] if the stored bytes do not decode as a record; any
    /// error of the store.
    pub fn get<Q>(&self, reader: &impl Reader, key: &Q) -> Result<Option<V>>
    where
        K: Borrow<Q>,
        Q: Pack + ?Sized,
    {
        let packed = self.space.pack(key);
        Self::decode(&packed, reader.get(&packed)?)
    }

    /// The records of many keys, in the order of `keys`. Costs one round trip.
    ///
    /// # Errors
    /// The errors of [`get`](Table::get).
    pub fn get_many<'k, Q>(
        &self,
        reader: &impl Reader,
        keys: impl IntoIterator<Item = &'k Q>,
    ) -> Result<Vec<Option<V>>>
    where
        K: Borrow<Q>,
        Q: Pack + ?Sized + 'k,
    {
        let keys: Vec<KeyBuf> = keys.into_iter().map(|key| self.space.pack(key)).collect();
        Self::read_many(reader, &keys)
    }

    /// Sets the record of `key` and updates the derived data.
    ///
    /// Costs one key written; with derived data attached, also one get and the writes of the
    /// changed derived data.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a record that has [another key](Table::keyed_by);
    /// [`Error::At`] with an [`Error::Value`] if the codec cannot encode the record; with
    /// [`Undecodable`] in an [`Error::Other`] if the record that it replaces [does not
    /// decode](self#records-that-do-not-decode) and the derived data depends on it; any error of
    /// the derived data; any error of the store.
    pub fn put(&self, txn: &mut impl Writer, key: &K, value: &V) -> Result<()> {
        txn.guarded(|txn| {
            let packed = self.space.pack(key);
            self.make_all(txn, &[Change::setting(key, &packed, value)?]).map(drop)
        })
    }

    /// Sets many records and updates the derived data. The effect is that of one
    /// [`put`](Table::put) after another. But the records that they replace are read in one round
    /// trip, and all writes are made in the order of their keys. So it is also the way to load many
    /// records.
    ///
    /// Takes pairs or references to pairs. If a key occurs twice, its last record is written.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Table, entry};
    /// let by_price = Index::new(&Subspace::new("by_price"), |_, price: &u32| entry(price));
    /// let prices = Table::<String, u32>::new(&Subspace::new("prices")).with(&by_price);
    /// let store = Memory::new();
    /// let list = vec![("tea".to_owned(), 250), ("milk".to_owned(), 120)];
    /// store.transact(|txn| prices.put_many(txn, &list))?;
    /// assert_eq!(prices.get(&store.snapshot()?, "milk")?, Some(120));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// Costs one key written per record. With derived data attached, also one get per record, all
    /// in one round trip, and the writes of the changed derived data. Keeps in memory the records,
    /// the encoded bytes of their keys, of the records and of their derived entries, and the
    /// records that they replace.
    ///
    /// # Errors
    /// The errors of [`put`](Table::put). A key that is too long, and an old or new record that the
    /// codec cannot encode or decode, is reported before anything is written.
    pub fn put_many(
        &self,
        txn: &mut impl Writer,
        records: impl IntoIterator<Item: Borrow<(K, V)>>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let records: Vec<_> = records.into_iter().collect();
            let records = || records.iter().map(Borrow::borrow);
            let packed = PackedKeys::of(&self.space, records().map(|(key, _)| key));
            let changes = records()
                .zip(packed.iter())
                .map(|((key, value), packed)| Change::setting(key, packed, value));
            let changes = changes.collect::<Result<Vec<_>>>()?;
            self.make_all(txn, &last_of_each(changes)).map(drop)
        })
    }

    /// Removes the record of `key` and the data derived from it, and returns whether there was a
    /// record.
    ///
    /// Also removes a record that does not decode, as far as the [derived
    /// data](self#records-that-do-not-decode) allows.
    ///
    /// # Errors
    /// The errors of [`put`](Table::put).
    pub fn delete(&self, txn: &mut impl Writer, key: &K) -> Result<bool> {
        txn.guarded(|txn| {
            let packed = self.space.pack(key);
            Ok(self.make_all(txn, &[Change::removing(key, &packed)])? > 0)
        })
    }

    /// Removes the record of `key` without reading it, and leaves the derived data unchanged.
    ///
    /// Use it to remove a record that does not decode if [`delete`](Table::delete) depends on the
    /// old record. Afterwards the derived data is inconsistent until it is
    /// [repaired](crate::Maintained::repair). Costs one key written.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn delete_record_only(&self, txn: &mut impl Writer, key: &K) -> Result<()> {
        txn.guarded(|txn| txn.delete(&self.space.pack(key)))
    }

    /// Removes the records of many keys and the data derived from them, and returns how many
    /// records there were. The effect is that of one [`delete`](Table::delete) after another, but
    /// the records are read in one round trip.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let squares = Table::<u32, u32>::new(&Subspace::new("squares"));
    /// let store = Memory::new();
    /// store.transact(|txn| squares.put_many(txn, (0..5).map(|n| (n, n * n))))?;
    /// let there = store.transact(|txn| squares.delete_many(txn, &[3, 4, 5, 4]))?;
    /// assert_eq!(there, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put_many`](Table::put_many).
    pub fn delete_many<'k>(
        &self,
        txn: &mut impl Writer,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<usize> {
        txn.guarded(|txn| {
            let keys: Vec<&K> = keys.into_iter().collect();
            let packed = PackedKeys::of(&self.space, keys.iter().copied());
            let changes =
                keys.iter().zip(packed.iter()).map(|(key, packed)| Change::removing(*key, packed));
            self.make_all(txn, &last_of_each(changes.collect()))
        })
    }

    /// The records whose keys `select` selects, in `order`. A key prefix selects the keys that
    /// begin with it, and `()` selects all; [`Select`] lists the other forms.
    ///
    /// ```
    /// use keyloom::{Memory, Order, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let orders = Table::<(u32, u32), String>::new(&Subspace::new("orders"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     orders.put(txn, &(7, 1), &"tea".into())?;
    ///     orders.put(txn, &(7, 2), &"milk".into())?;
    ///     orders.put(txn, &(8, 1), &"bread".into())
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let of_customer = orders.range(&snapshot, 7, Order::Descending)?;
    /// let of_customer = of_customer.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(of_customer, [((7, 2), "milk".into()), ((7, 1), "tea".into())]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store. The iterator also reports keys and values that do not decode.
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select<K>,
        order: Order,
    ) -> Result<Records<R::Entries<'r>, K, V, C>> {
        let entries = reader.range(select.key_range(&self.space), order)?;
        Ok(Records { entries, space: self.space.clone(), record: PhantomData, codec: PhantomData })
    }

    /// At most `limit` of the records of [`range`](Table::range), beginning after `after`.
    ///
    /// A record that does not decode ends the page before it, so a page may be shorter than `limit`
    /// and have a `next`. A page that begins with such a record is an error, in which an
    /// [`UnreadableEntry`] holds the continuation after it:
    ///
    /// ```
    /// use keyloom::{Memory, Order, Store, Subspace, Writer};
    /// use keyloom_tables::{Table, UnreadableEntry};
    /// let words = Table::<u32, String>::new(&Subspace::new("words"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     words.put_many(txn, [(1, "one".into()), (3, "three".into())])?;
    ///     txn.put(&words.space().pack(&2), b"\xFF")
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let (mut found, mut damaged, mut next) = (Vec::new(), Vec::new(), None);
    /// loop {
    ///     next = match words.page(&snapshot, (), Order::Ascending, 10, next.as_ref()) {
    ///         Ok(page) => {
    ///             found.extend(page.items);
    ///             page.next
    ///         }
    ///         Err(error) => {
    ///             damaged.push(error.to_string());
    ///             let Some(unreadable) = error.downcast_ref::<UnreadableEntry>() else {
    ///                 return Err(error);
    ///             };
    ///             Some(unreadable.next.clone())
    ///         }
    ///     };
    ///     if next.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(found, [(1, "one".into()), (3, "three".into())]);
    /// assert!(damaged[0].contains(r#"("words", 2)"#) && damaged.len() == 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// ```
    /// use keyloom::{Memory, Order, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let table = Table::<u32, u32>::new(&Subspace::new("squares"));
    /// let store = Memory::new();
    /// store.transact(|txn| (0..5).try_for_each(|n| table.put(txn, &n, &(n * n))))?;
    /// let snapshot = store.snapshot()?;
    /// let one = table.page(&snapshot, (), Order::Ascending, 3, None)?;
    /// let two = table.page(&snapshot, (), Order::Ascending, 3, one.next.as_ref())?;
    /// assert_eq!(two.items, [(3, 9), (4, 16)]);
    /// assert!(two.next.is_none());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a continuation of another query; [`Error::At`] with an
    /// [`UnreadableEntry`] in an [`Error::Other`] if the first record does not decode.
    pub fn page(
        &self,
        reader: &impl Reader,
        select: impl Select<K>,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(K, V)>> {
        let query = select.key_range(&self.space);
        let rest = Continuation::resume(after, query.clone(), order)?;
        let page = reader.page(rest, order, limit)?;
        let behind = |last: &[u8]| Continuation::behind(last, &query, order);
        let next = page.last.map(|last| behind(&last));
        let entries = page.entries.into_iter().map(|(key, value)| {
            let record = record::<_, K, V, C>(&self.space, (&*key, &*value));
            (key, record.map(Some))
        });
        answers(entries, next, behind)
    }

    /// Changes the record of `key` from `old`, which the caller has read in this transaction, to
    /// `new`.
    #[doc(hidden)]
    pub fn replace(
        &self,
        txn: &mut impl Writer,
        key: &K,
        old: Option<&V>,
        new: Option<&V>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let packed = self.space.pack(key);
            let change = match new {
                Some(value) => Change::setting(key, &packed, value)?,
                None => Change::removing(key, &packed),
            };
            let followed = self.follow(txn)?;
            self.make(txn, &[change], &[Met::of(old)], &followed, &Queued::new())
        })
    }

    /// Changes many records with distinct keys, each from the first value of its pair to the
    /// second. The caller has read the first values in this transaction. Reads only what the
    /// derived data needs.
    pub(crate) fn replace_many<'c>(
        &self,
        txn: &mut impl Writer,
        records: impl IntoIterator<Item = (&'c K, [&'c V; 2])>,
    ) -> Result<()>
    where
        V: 'c,
    {
        let records: Vec<_> = records.into_iter().collect();
        let packed = PackedKeys::of(&self.space, records.iter().map(|(key, _)| *key));
        let (mut changes, mut before) = (Vec::new(), Vec::new());
        for ((key, [old, new]), packed) in records.iter().zip(packed.iter()) {
            changes.push(Change::setting(*key, packed, *new)?);
            before.push(Met::Record(*old));
        }
        let followed = self.follow(txn)?;
        self.make(txn, &changes, &before, &followed, &Queued::new())
    }

    /// The keys of the changed records in the queues of the deferred data that the program
    /// declares.
    fn queue_keys(&self, changes: &[Change<'_, K, V>]) -> Vec<KeyBuf> {
        let Upkeep::Owned(owned) = &self.upkeep else { return Vec::new() };
        let keys = |queue: Subspace| {
            changes.iter().map(move |change| queue_key(&queue, &self.space, change.packed))
        };
        owned.queues().into_iter().flat_map(keys).collect()
    }

    /// Refuses derived data that this table does not maintain.
    #[doc(hidden)]
    pub fn refuse_unless_attached(&self, derived: &Subspace) -> Result<()> {
        if self.upkeep.includes(derived) {
            return Ok(());
        }
        Err(Error::InvalidArgument {
            what: "the table",
            value: self.space.named(),
            why: "it does not maintain this derived data: attach it with `Table::with`, or pass the table that does",
        })
    }

    fn decode<B: Deref<Target = [u8]>>(key: &[u8], bytes: Option<B>) -> Result<Option<V>> {
        bytes.map(|bytes| C::decode(&bytes)).transpose().map_err(|error| error.at(key))
    }

    /// The records of packed keys, in the order of `keys`. Without keys it costs no round trip.
    pub(crate) fn read_many(
        reader: &impl Reader,
        keys: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Option<V>>> {
        let mut records = Vec::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(get_many(reader, keys)?) {
            records.push(Self::decode(key.as_ref(), value)?);
        }
        Ok(records)
    }

    /// The records of many keys, in the order of `keys`, each with the error if it does not decode.
    /// Costs a get for each key, in one round trip.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::Table;
    /// let words = Table::<u32, String>::new(&Subspace::new("words"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     words.put(txn, &1, &"one".into())?;
    ///     txn.put(&words.space().pack(&2), b"\xFF")
    /// })?;
    /// let found = words.find_many(&store.snapshot()?, &[1, 2, 3])?;
    /// assert!(matches!(&found[..], [Ok(Some(one)), Err(_), Ok(None)] if one == "one"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store.
    pub fn find_many<'k>(
        &self,
        reader: &impl Reader,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<Vec<Result<Option<V>>>> {
        let keys: Vec<KeyBuf> = keys.into_iter().map(|key| self.space.pack(key)).collect();
        let stored = get_many(reader, &keys)?;
        Ok(keys.iter().zip(stored).map(|(key, bytes)| Self::decode(key, bytes)).collect())
    }

    fn encode(key: &[u8], value: &V, bytes: &mut Vec<u8>) -> Result<()> {
        C::encode(value, bytes).map_err(|error| error.at(key))
    }

    /// Makes changes of distinct records, and returns how many of them had an old record. Reads all
    /// old records at once.
    fn make_all(&self, txn: &mut impl Writer, changes: &[Change<'_, K, V>]) -> Result<usize> {
        let (met, followed, queued) = self.replaced_by(txn, changes)?;
        let before: SmallVec<[Met<&V>; 1]> = met.iter().map(Met::as_ref).collect();
        self.make(txn, changes, &before, &followed, &queued)?;
        Ok(met.iter().filter(|met| !matches!(met, Met::Nothing)).count())
    }

    /// Makes changes of distinct records, whose old records are in `met`; if it is empty, there are
    /// no old records. Writes the records and the derived data together in the order of their keys.
    fn make(
        &self,
        txn: &mut impl Writer,
        changes: &[Change<'_, K, V>],
        met: &[Met<&V>],
        followed: &[Follow<K, V>],
        queued: &Queued,
    ) -> Result<()> {
        let mut records = SortedWrites::default();
        let mut changed = SmallVec::<[_; 1]>::with_capacity(changes.len());
        for (n, change) in changes.iter().enumerate() {
            let met = met.get(n).copied().unwrap_or(Met::Nothing);
            match change.new {
                Some(value) => {
                    let key = change.packed;
                    self.refuse_other_key(key, value)?;
                    records.put_with(key, |bytes| Self::encode(key, value, bytes))?;
                }
                None if matches!(met, Met::Nothing) => continue,
                None => records.delete(change.packed)?,
            }
            let old = met.record();
            if old.is_some() || change.new.is_some() {
                let Change { key, packed: stored_key, new } = *change;
                changed.push(RecordChange { key, stored_key, old, new });
            }
        }
        // Derived data is updated before the records: it may write immediately, and it may refuse
        // the change.
        let mut writes = SortedWrites::default();
        for follow in followed {
            let visited: SmallVec<[_; 1]>;
            let changed = match follow.visited() {
                None => &changed,
                Some(last) => {
                    visited = changed.iter().filter(|c| c.stored_key <= &**last).copied().collect();
                    &visited
                }
            };
            match &follow.queue {
                _ if changed.is_empty() => {}
                None => follow.update(&mut DynWriter::new(txn), changed, &mut writes)?,
                Some(queue) => {
                    follow.derived.validate(changed)?;
                    self.queue(txn, queue, changed, queued, &mut writes)?;
                }
            }
        }
        writes.apply_with(&mut records, txn)
    }

    /// Queues the old values of the records that change, unless these records are queued already.
    fn queue(
        &self,
        txn: &impl Reader,
        queue: &Subspace,
        changes: &[RecordChange<'_, K, V>],
        queued: &Queued,
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let keys = changes.iter().map(|change| queue_key(queue, &self.space, change.stored_key));
        let keys: Vec<KeyBuf> = keys.collect();
        for ((key, change), is_queued) in
            keys.iter().zip(changes).zip(are_queued(txn, &keys, queued)?)
        {
            if !is_queued {
                writes.put_with(key, |bytes| {
                    let encode =
                        |old: &V, bytes: &mut Vec<u8>| Self::encode(change.stored_key, old, bytes);
                    write_queued(change.old, encode, bytes)
                })?;
            }
        }
        Ok(())
    }

    /// The key of the table's entry in its schema, which a transaction that writes reads once.
    #[doc(hidden)]
    pub fn entry(&self) -> Option<&KeyBuf> {
        self.upkeep.entry()
    }

    /// An error if a write to the table would be refused whatever it writes, for example after a
    /// drop. Costs a get if this is the first operation of the transaction on a table of a schema,
    /// and nothing otherwise.
    #[doc(hidden)]
    pub fn expect_writable(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| self.follow(txn).map(drop))
    }

    /// The derived data that the transaction maintains. Reads the table's entry in the schema
    /// unless this transaction has read it.
    fn follow(&self, txn: &mut impl Writer) -> Result<Followed<K, V>> {
        if let Some(followed) = self.remembered(txn) {
            return followed;
        }
        let Some(key) = self.upkeep.entry() else { return self.upkeep.followed(None) };
        let entry = txn.get(key)?.map(|bytes| self.upkeep.entry_bytes(&bytes));
        self.remember(txn, entry)
    }

    /// The derived data that the transaction maintains, if it has read the table's entry in the
    /// schema.
    fn remembered(&self, txn: &mut impl Writer) -> Option<Result<Followed<K, V>>> {
        let entry = txn.state().remembered(self.upkeep.entry()?)?;
        Some(self.upkeep.followed(entry))
    }

    /// The derived data that the transaction maintains, given that it has read `entry`. Later
    /// writes of the transaction need not read it again.
    fn remember(&self, txn: &mut impl Writer, entry: Option<EntryBytes>) -> Result<Followed<K, V>> {
        if let Some(key) = self.upkeep.entry() {
            txn.state().remember(key, entry.clone());
        }
        self.upkeep.followed(entry.as_deref())
    }

    /// The old records of `changes` and the derived data to maintain, read in one round trip. The
    /// old records are an empty list if there are none or if nothing depends on them. If an old
    /// record does not decode, the data derived from it is removed.
    fn replaced_by(
        &self,
        txn: &mut impl Writer,
        changes: &[Change<'_, K, V>],
    ) -> Result<Before<Met<V>, K, V>> {
        let is_bare = self.upkeep.is_bare();
        let does_not_matter = is_bare && changes.iter().all(|c| c.new.is_some());
        // Another thread may declare derived data meanwhile, which needs the old records.
        let refuse_declared = |followed: &[Follow<K, V>]| match is_bare && !followed.is_empty() {
            true => Err(Error::Conflict { what: "a declaration of derived data".into() }),
            false => Ok(()),
        };
        if does_not_matter || Self::is_free(txn, changes)? {
            let followed = self.follow(txn)?;
            refuse_declared(&followed)?;
            return Ok((SmallVec::new(), followed, Queued::new()));
        }
        let followed = self.remembered(txn).transpose()?;
        let is_read = followed.is_some();
        let (stored, entry, queued) = self.read_before(txn, changes, is_read)?;
        let (met, lost) = if is_bare {
            let met = |bytes: Option<_>| bytes.map_or(Met::Nothing, |_| Met::Unknown);
            (stored.into_iter().map(met).collect(), Vec::new())
        } else {
            Self::met(changes, stored)?
        };
        let followed = match followed {
            Some(followed) => followed,
            None => self.remember(txn, entry)?,
        };
        refuse_declared(&followed)?;
        self.forget(txn, lost, &followed, &queued)?;
        Ok((met, followed, queued))
    }

    /// The decoded old records of the changes, and the changes whose old record does not decode.
    fn met<'c, B: Deref<Target = [u8]>>(
        changes: &'c [Change<'c, K, V>],
        stored: Stored<B>,
    ) -> Result<(AllMet<V>, AllLost<'c, K, V>)> {
        let (mut met, mut lost) = (SmallVec::with_capacity(changes.len()), Vec::new());
        for (change, bytes) in changes.iter().zip(stored) {
            let record = bytes.map(|bytes| C::decode(&bytes)).transpose();
            met.push(match record {
                Ok(record) => Met::of(record),
                Err(error @ Error::Value { .. }) => {
                    lost.push((change, error));
                    Met::Unknown
                }
                Err(error) => return Err(error.at(change.packed)),
            });
        }
        Ok((met, lost))
    }

    /// The bytes of the old records of the changes, the bytes of the table's entry in the schema
    /// unless it `is_read`, and which of the records are queued. Costs one round trip.
    fn read_before<'r, R: Reader>(
        &self,
        txn: &'r R,
        changes: &[Change<'_, K, V>],
        is_read: bool,
    ) -> Result<(Stored<R::Bytes<'r>>, Option<EntryBytes>, Queued)> {
        let entry = self.upkeep.entry().filter(|_| !is_read);
        let queue_keys = self.queue_keys(changes);
        if entry.is_none() && queue_keys.is_empty() {
            let stored = match changes {
                [one] => smallvec![txn.get(one.packed)?],
                many => get_many(txn, many)?.into(),
            };
            return Ok((stored, None, Queued::new()));
        }
        let mut keys: SmallVec<[&[u8]; 2]> = changes.iter().map(|change| change.packed).collect();
        keys.extend(queue_keys.iter().map(|key| &**key));
        keys.extend(entry.map(|key| &**key));
        let mut stored: Stored<R::Bytes<'r>> = txn.get_many(&keys)?.into();
        let entry = entry.and_then(|_| stored.pop().flatten());
        let entry = entry.map(|bytes| self.upkeep.entry_bytes(&bytes));
        let is_queued: Vec<bool> =
            stored.drain(changes.len()..).map(|queued| queued.is_some()).collect();
        std::mem::drop(keys);
        Ok((stored, entry, queue_keys.into_iter().zip(is_queued).collect()))
    }

    /// Removes the data derived from records that do not decode, or fails with the error of the
    /// first record whose derived data cannot be removed.
    ///
    /// Deferred data still reflects a queued record as it was at the last drain, and the queue
    /// holds that old value. So queued records need not be forgotten.
    fn forget(
        &self,
        txn: &mut impl Writer,
        mut lost: AllLost<'_, K, V>,
        followed: &[Follow<K, V>],
        queued: &Queued,
    ) -> Result<()> {
        if lost.is_empty() {
            return Ok(());
        }
        for follow in followed {
            let packed = lost.iter().map(|(change, _)| change.packed);
            let is_queued: Vec<bool> = match &follow.queue {
                None => vec![false; lost.len()],
                Some(queue) => {
                    let keys = packed.map(|key| queue_key(queue, &self.space, key));
                    are_queued(txn, &keys.collect::<Vec<_>>(), queued)?
                }
            };
            let unknown =
                lost.iter().enumerate().zip(is_queued).filter(|(_, is_queued)| !is_queued);
            let (places, keys): (Vec<usize>, Vec<&K>) =
                unknown.map(|((place, (change, _)), _)| (place, change.key)).unzip();
            let Some(first) = places.first() else { continue };
            let keys = LostRecords::new(keys.into_iter());
            if !follow.derived.forget(&mut DynWriter::new(txn), &keys)? {
                let (change, source) = lost.swap_remove(*first);
                return Err(Error::other(Undecodable { source }).at(change.packed));
            }
        }
        Ok(())
    }

    /// Whether a large batch of changes has no old record between its first and its last key: this
    /// one read replaces the gets. Returns `false` for smaller batches without reading.
    fn is_free(txn: &impl Writer, changes: &[Change<'_, K, V>]) -> Result<bool> {
        let [first, .., last] = changes else { return Ok(false) };
        if changes.len() < MANY {
            return Ok(false);
        }
        let between = KeyRange::starting_at(first.packed).intersect(KeyRange::through(last.packed));
        Ok(txn.first(between)?.is_none())
    }
}

/// Minimum batch size for the emptiness probe, which costs a round trip.
const MANY: usize = 4_096;

/// The bytes of a table's entry in its schema.
type EntryBytes = Arc<[u8]>;

/// The bytes of the old records of some changes.
type Stored<B> = SmallVec<[Option<B>; 1]>;

/// The old record of each of some changes.
type AllMet<V> = SmallVec<[Met<V>; 1]>;

/// The changes whose old record does not decode, each with the error.
type AllLost<'c, K, V> = Vec<(&'c Change<'c, K, V>, Error)>;

/// The old record of each change (or an empty list if there are none), the derived data to
/// maintain, and which records are queued.
type Before<T, K, V> = (SmallVec<[T; 1]>, Followed<K, V>, Queued);

/// Keys of queues that were read, and whether each is in its queue.
type Queued = BTreeMap<KeyBuf, bool>;

/// Whether records are queued. Reads the keys only if one of them is not in `known`.
fn are_queued(reader: &impl Reader, keys: &[KeyBuf], known: &Queued) -> Result<Vec<bool>> {
    match keys.iter().map(|key| known.get(key).copied()).collect() {
        Some(all) => Ok(all),
        None => Ok(get_many(reader, keys)?.iter().map(Option::is_some).collect()),
    }
}

/// The old record of a change.
#[derive(Clone, Copy)]
enum Met<V> {
    Nothing,
    Record(V),
    /// It does not decode, or was not decoded.
    Unknown,
}

impl<V> Met<V> {
    fn of(record: Option<V>) -> Self {
        record.map_or(Self::Nothing, Self::Record)
    }

    fn as_ref(&self) -> Met<&V> {
        match self {
            Self::Nothing => Met::Nothing,
            Self::Record(record) => Met::Record(record),
            Self::Unknown => Met::Unknown,
        }
    }

    fn record(self) -> Option<V> {
        match self {
            Self::Record(record) => Some(record),
            Self::Nothing | Self::Unknown => None,
        }
    }
}

/// A record does not decode, and the data derived from it cannot be updated without it.
///
/// Remove the record with [`Table::delete_record_only`], and repair the derived data.
#[derive(Debug, thiserror::Error)]
#[error(
    "{source}; the derived data of the table cannot be updated without the old record: \
     remove it with `delete_record_only`, and repair the derived data"
)]
pub struct Undecodable {
    source: Error,
}

/// A record of a table, and some of another, in one round trip. `entries` are those of the tables
/// that the transaction will write: the writes need not read them again.
#[doc(hidden)]
pub fn get_with<'k, K, V, C, L, W, D>(
    txn: &mut impl Writer,
    (table, key): (&Table<K, V, C>, &K),
    (other, keys): (&Table<L, W, D>, impl IntoIterator<Item = &'k L>),
    entries: &[Option<&KeyBuf>],
) -> Result<(Option<V>, Vec<Option<W>>)>
where
    K: RecordKey,
    C: Codec<V>,
    L: RecordKey + 'k,
    D: Codec<W>,
{
    let entries = entries.iter().copied().flatten();
    let entries: Vec<_> =
        entries.filter(|entry| txn.state().remembered(entry).is_none()).cloned().collect();
    let mut packed = entries.clone();
    packed.push(table.space.pack(key));
    packed.extend(keys.into_iter().map(|key| other.space.pack(key)));
    let values = txn.get_many(&packed)?;
    let mut values = packed.iter().zip(values);
    let states = values.by_ref().take(entries.len());
    let states: Vec<Option<EntryBytes>> =
        states.map(|(_, entry)| entry.map(|bytes| (&*bytes).into())).collect();
    let first = match values.next() {
        Some((key, value)) => Table::<K, V, C>::decode(key, value)?,
        None => None,
    };
    let others = values.map(|(key, value)| Table::<L, W, D>::decode(key, value));
    let others = others.collect::<Result<_>>()?;
    for (key, entry) in entries.iter().zip(states) {
        txn.state().remember(key, entry);
    }
    Ok((first, others))
}

/// A key and a record from an entry of a table in `space`.
#[doc(hidden)]
pub fn record<B: Deref<Target = [u8]>, K: RecordKey, V, C: Codec<V>>(
    space: &Subspace,
    (key, value): Entry<B>,
) -> Result<(K, V)> {
    let decode = || Ok((space.unpack(&key)?, C::decode(&value)?));
    decode().map_err(|error: Error| error.at(&key))
}

/// The records of a range of a [`Table`].
pub struct Records<I, K, V, C> {
    entries: I,
    space: Subspace,
    record: PhantomData<fn() -> (K, V)>,
    codec: PhantomData<fn() -> C>,
}

impl<I, K, V, C> fmt::Debug for Records<I, K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<I, B, K: RecordKey, V, C: Codec<V>> Iterator for Records<I, K, V, C>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.entries.next()?.and_then(|entry| record::<_, K, V, C>(&self.space, entry)))
    }
}
