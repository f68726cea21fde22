//! Composite-key index: how are records found by several fields, or by the first few of them?
//!
//! With entries ordered by `(country, region, name)`, each of these queries is one range: the
//! cities of a country, the cities of a region, and the cities of a region whose names begin with
//! "San". The order of the parts is the design decision, since a query gives the parts from left to
//! right.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, parts of the entry, record key as one element | header, covered fields |
//! | [unique](Index::unique): subspace, parts of the entry | header, record key as one element, covered fields |
//!
//! The header has 2 bytes, big-endian. From the most significant bit: 4 bits for the format (1); 1
//! bit for the location of the record key (0: at the end of the key, 1: in the value); 11 bits for
//! the length of the record key in bytes.
//!
//! ```text
//! ("geo", "by_place", "FR", "11", "Paris", 2988507)  ->  10 04
//!  subspace            parts                record key    format 1, record key of 4 bytes
//! ("geo", "by_code", "PAR")                          ->  18 04  17 2D 99 DB
//!  subspace           parts                               unique, the record key
//! ```
//!
//! In the key of an entry, the record key comes last; a composite record key is a nested tuple. So
//! entries with equal parts have different keys, in the order of the record keys. The length in the
//! value gives the position of the record key, so an entry can be split without the types of its
//! parts. Covered fields are a [packed tuple](keyloom::key) as well: they can be read without a
//! schema, and strings are borrowed from the tuple.
//!
//! # Invariants
//!
//! * An entry exists if and only if the function of the index returns its parts for an existing
//!   record. The covered fields of the entry equal those of the record.
//! * A record may have no entry (a partial index), one, or several (one per tag).
//! * An entry that cannot be read, whatever its bytes are, is one fault. A query that reads such an
//!   entry returns an error that names its key. [`check`](crate::Maintained::check) reports the
//!   entry, and [`repair`](crate::Maintained::repair) writes it again from its record. Before the
//!   repair, a unique index refuses a put of a record with the parts of such an entry. In a
//!   [schema](crate::schema), an index that a newer program has built is refused.
//! * In a unique index no two records have an entry with the same parts. A record without an entry
//!   is exempt, which gives "unique where not null".
//!
//! Two transactions that take the same value of a unique index read and write *the same key*. No
//! serializable store lets both commit, however it detects conflicts. If the record key were part
//! of the key, the transactions would write different keys, and uniqueness would depend on how the
//! store detects phantoms in empty ranges.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put of a record | 1 key written per entry that is added or removed, or whose covered fields change; 0 if no entry changes |
//! | the same, unique | 1 more get per such entry, all in 1 round trip |
//! | [`range`](Index::range), [`query`](Index::query) | 1 range; reads exactly the entries that it returns; a page also checks whether there is another entry after it |
//! | [`get`](Index::get) of a unique index | 1 get |
//! | [`first_of_each`](Index::first_of_each), [`last_of_each`](Index::last_of_each) | about 1 range per group, see [`aggregation`](crate::aggregate#cost) |
//! | [`count`](Index::count) | 1 range; reads all its entries, unless the store can count |
//! | [`records`](IndexQuery::records) | n entries and n gets, in 2 round trips; 1 round trip if nothing is found |
//! | [`check`](crate::Maintained::check), [`repair`](crate::Maintained::repair) | see [`derived`] |
//!
//! In a [schema](crate::schema#life-cycle), an index is built, disabled and dropped while other
//! transactions write.
//!
//! # The function of an index
//!
//! The function must be pure. If it **panics**, the panic propagates through the put and
//! [`transact`](Store::transact): the transaction is rolled back, and the store stays usable. If it
//! returns **different entries for the same record**, entries remain that no write removes:
//! [`check`](crate::Maintained::check) reports them as dangling or missing, and
//! [`repair`](crate::Maintained::repair) fixes them once the function is right.
//!
//! # When not to use it
//!
//! * Queries that leave out the first part: each order of the parts needs its own index.
//! * Long texts as parts: the key of an entry, with all its parts, has at most 511 bytes.
//! * Queries by distance on a map: one range cannot cover two dimensions.
//!
//! # Source
//!
//! "Composite key index" in I. Katsov, *NoSQL Data Modeling Techniques* (2012).

mod entries;
mod error;
mod found;
mod maintain;
mod on_index;
mod query;
mod unique;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{DynWriter, Entry, Error, KeyBuf, KeyRange, Order, Reader, Result, Store, Subspace};
use keyloom_kit::derived::{
    AS_ENTRIES, AS_INDEX, Attach, Derived, DerivedEntries, DerivedEntry, RecordChange, SortedWrites,
};
use keyloom_kit::parts::{AnyParts, KeyShape, PackAs, Parts};
use keyloom_kit::{
    Continuation, Inconsistency, Page, Progress, RecordKey, RepairOptions, Scan, Select,
    UnreadableEntry, answers, pack_one, scan,
};

use crate::derived;
use crate::derived::Maintained;
use crate::grouping::{Grouping, Groups};
use crate::table::Table;

pub(super) use entries::IndexEntry;
pub use entries::{IndexEntries, entry};
pub use error::{IndexError, NotUnique};
pub use found::Found;
use found::FoundEntries;
pub use query::IndexQuery;
pub(crate) use query::{QuerySource, existing, nothing};

use found::no_entry;

type Sure<K, V> = dyn Fn(&K, &V) -> IndexEntries<AnyParts> + Send + Sync;
type Refusing<K, V> = dyn Fn(&K, &V) -> Result<IndexEntries<AnyParts>> + Send + Sync;

/// The function that returns the entries of a record.
enum Function<K, V> {
    Sure(Arc<Sure<K, V>>),
    Refusing(Arc<Refusing<K, V>>),
}

impl<K, V> Function<K, V> {
    fn entries(&self, key: &K, value: &V) -> Result<IndexEntries<AnyParts>> {
        match self {
            Self::Sure(function) => Ok(function(key, value)),
            Self::Refusing(function) => function(key, value),
        }
    }
}

impl<K, V> Clone for Function<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Sure(function) => Self::Sure(Arc::clone(function)),
            Self::Refusing(function) => Self::Refusing(Arc::clone(function)),
        }
    }
}

/// An index of the records of a [`Table`]; see the [module](self).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::{Index, IndexEntries, Table};
/// let by_tag = Index::new(&Subspace::new("by_tag"), |_id, tags: &Vec<String>| tags.iter().collect());
/// let posts = Table::<u32, Vec<String>>::new(&Subspace::new("posts")).with(&by_tag);
/// let store = Memory::new();
/// store.transact(|txn| posts.put(txn, &7, &vec!["rust".into(), "lmdb".into()]))?;
/// let found = by_tag.range(&store.snapshot()?, "rust")?
///     .map(|found| found?.record_key())
///     .collect::<Result<Vec<u32>, _>>()?;
/// assert_eq!(found, [7]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// `P` is the [type](crate::parts) of the parts. In the example, `by_tag` is an `Index<u32,
/// Vec<String>, String>`.
pub struct Index<K, V, P> {
    space: Subspace,
    function: Function<K, V>,
    is_unique: bool,
    parts: PhantomData<fn() -> P>,
}

impl<K, V, P> Clone for Index<K, V, P> {
    fn clone(&self) -> Self {
        self.with_parts()
    }
}

impl<K, V, P> Index<K, V, P> {
    /// The same index with `T` as the type of its parts.
    fn with_parts<T>(&self) -> Index<K, V, T> {
        let Self { space, function, is_unique, .. } = self;
        let (space, function) = (space.clone(), function.clone());
        Index { space, function, is_unique: *is_unique, parts: PhantomData }
    }

    /// The same index with [parts of any type](AnyParts), for example for a list of indexes of
    /// several types. A query with parts of a wrong type then compiles, and finds nothing.
    pub fn untyped(&self) -> Index<K, V, AnyParts> {
        self.with_parts()
    }
}

impl<K, V, P> fmt::Debug for Index<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("space", &self.space)
            .field("is_unique", &self.is_unique)
            .finish_non_exhaustive()
    }
}

impl<K: RecordKey, V, P> Index<K, V, P> {
    /// An index in `space`; `function` returns the entries of a record.
    ///
    /// **`space` must contain nothing else**, and the table must be outside of it: a key that is
    /// not an entry is a fault, and [`repair`](crate::Maintained::repair) removes it.
    ///
    /// The function must be pure: the same record gives the same entries. If the function changes,
    /// the stored entries are wrong until [`repair`](crate::Maintained::repair) has run.
    pub fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> IndexEntries<P> + Send + Sync + 'static,
    ) -> Self {
        let function = move |key: &K, value: &V| function(key, value).untyped();
        Self::with_function(space, Function::Sure(Arc::new(function)))
    }

    /// Like [`new`](Index::new), with a function that may fail. If the function fails, the put
    /// fails with [`IndexError::Refused`], which names the index and the record.
    /// [`Error::downcast_ref`] returns the error of the function.
    ///
    /// An existing record for which the function fails has no entry in the index.
    ///
    /// ```
    /// use keyloom::{Error, Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Table, entry};
    /// let by_score = Index::try_new(&Subspace::new("by_score"), |_id, score: &f64| match score.is_nan() {
    ///     true => {
    ///         let (what, value) = ("the score", score.to_string());
    ///         Err(Error::InvalidArgument { what, value, why: "it is not a number" })
    ///     }
    ///     false => Ok(entry(*score)),
    /// });
    /// let games = Table::<u32, f64>::new(&Subspace::new("games")).with(&by_score);
    /// let store = Memory::new();
    /// store.transact(|txn| games.put(txn, &1, &9.5))?;
    /// let error = store.transact(|txn| games.put(txn, &2, &f64::NAN)).unwrap_err();
    /// let message = r#"the index ("by_score",) refuses the record ("games", 2): "#;
    /// assert!(error.to_string().starts_with(message));
    /// assert!(error.downcast_ref::<Error>().is_some());
    /// assert_eq!(games.count(&store.snapshot()?, ..)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn try_new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<IndexEntries<P>> + Send + Sync + 'static,
    ) -> Self {
        let function = move |key: &K, value: &V| function(key, value).map(IndexEntries::untyped);
        Self::with_function(space, Function::Refusing(Arc::new(function)))
    }

    fn with_function(space: &Subspace, function: Function<K, V>) -> Self {
        Self { space: space.clone(), function, is_unique: false, parts: PhantomData }
    }

    /// Makes the index unique: no two records may have an entry with the same parts.
    ///
    /// A put that would take the parts of another record fails with [`IndexError::NotUnique`],
    /// which names that record. The put fails before it writes to this index. Return [no
    /// entry](IndexEntries::none) for a record that is exempt. The layout of the entries differs
    /// from that of an index that is not unique: see the [layout](self#layout).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Index, IndexError, Table, entry};
    /// let by_email = Index::new(&Subspace::new("by_email"), |_id, email: &String| entry(email)).unique();
    /// let users = Table::<u32, String>::new(&Subspace::new("users")).with(&by_email);
    /// let store = Memory::new();
    /// store.transact(|txn| users.put(txn, &1, &"ada@example.org".into()))?;
    /// let error = store.transact(|txn| users.put(txn, &2, &"ada@example.org".into())).unwrap_err();
    /// let Some(IndexError::NotUnique(taken)) = error.downcast_ref() else { panic!("{error}") };
    /// assert_eq!(taken.holder::<u32>()?, 1);
    /// let found = by_email.get(&store.snapshot()?, "ada@example.org")?.map(|found| found.record_key());
    /// assert_eq!(found.transpose()?, Some(1));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn unique(self) -> Self {
        Self { is_unique: true, ..self }
    }

    /// Whether the index is [unique](Index::unique).
    pub fn is_unique(&self) -> bool {
        self.is_unique
    }

    /// The entry of a unique index with exactly these parts. Costs one get.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the index is not unique; [`Error::At`] if the stored bytes are
    /// not an entry of an index; any error of the store.
    pub fn get<'r, R: Reader>(
        &self,
        reader: &'r R,
        parts: impl PackAs<P>,
    ) -> Result<Option<Found<R::Bytes<'r>, K, P, KeyBuf>>> {
        if !self.is_unique {
            return Err(Error::InvalidArgument {
                what: "the index",
                value: self.space.named(),
                why: "an index that is not unique may have several entries with the same parts: take `range`",
            });
        }
        let key = self.space.pack(&parts);
        let value = reader.get(&key)?;
        value.map(|value| Found::new(&self.space, (key, value))).transpose()
    }

    /// The subspace of the entries.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Parses an entry of this index.
    pub(crate) fn found<B: Deref<Target = [u8]>>(&self, entry: Entry<B>) -> Result<Found<B, K, P>> {
        Found::new(&self.space, entry)
    }

    /// The entries whose parts `select` selects, in ascending order unless `select` is
    /// [`descending`](crate::descending). A prefix of parts selects the entries that begin with the
    /// prefix, and `..` selects all; [`Select`] lists the other forms.
    ///
    /// # Errors
    /// Any error of the store. The iterator also reports entries that cannot be read.
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select<P>,
    ) -> Result<FoundEntries<R::Entries<'r>, K, P>> {
        let entries = reader.range(select.key_range(&self.space), select.order())?;
        Ok(FoundEntries::new(entries, &self.space))
    }

    /// Begins a query, which selects, orders and limits the entries. For a single clause,
    /// [`range`](Index::range) and [`count`](Index::count) are shorter.
    ///
    /// ```
    /// use keyloom::{Desc, Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Table, entry};
    /// let by_score = Index::new(&Subspace::new("by_score"), |_name: &String, score: &u32| entry(Desc(*score)));
    /// let scores = Table::<String, u32>::new(&Subspace::new("scores")).with(&by_score);
    /// let store = Memory::new();
    /// store.transact(|txn| scores.put_many(txn, [("Ada".to_owned(), 80), ("Bob".to_owned(), 95)]))?;
    /// let best = by_score.query().limit(1).records(&store.snapshot()?, &scores)?;
    /// assert_eq!(best.items, [("Bob".to_owned(), 95)]);
    /// assert!(best.next.is_some());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn query(&self) -> IndexQuery<'_, K, V, P> {
        IndexQuery::new(self, self)
    }

    /// One page of the entries in the range `query`.
    pub(crate) fn page_of<'r, R: Reader>(
        &self,
        reader: &'r R,
        query: &KeyRange<'_>,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<Found<R::Bytes<'r>, K, P>>> {
        let rest = Continuation::resume(after, query.clone(), order)?;
        let page = reader.page(rest, order, limit)?;
        let behind = |last: &[u8]| Continuation::behind(last, query, order);
        let mut items: Vec<Found<_, K, P>> = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            match (Found::try_new(&self.space, entry), items.last()) {
                (Ok(entry), _) => items.push(entry),
                (Err(_), Some(last)) => {
                    let next = Some(behind(last.entry_key()));
                    return Ok(Page { items, next });
                }
                (Err(key), None) => {
                    return Err(UnreadableEntry::error(no_entry(&key), &key, behind(&key)));
                }
            }
        }
        Ok(Page { items, next: page.last.map(|last| behind(&last)) })
    }

    /// One page of the results of `answer` for the entries in `query`. The arguments of `answer`
    /// are the key of the record, the record if it exists, the value that `others` returns for this
    /// key, and the key of the entry.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn records_of<C: Codec<V>, M, T>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        query: &KeyRange<'_>,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
        others: impl FnOnce(&[&K]) -> Result<Vec<M>>,
        answer: impl Fn(K, Option<V>, M, &[u8]) -> Result<Option<T>>,
    ) -> Result<Page<T>> {
        table.refuse_unless_attached(&self.space)?;
        let Page { items, next } = self.page_of(reader, query, order, limit, after)?;
        let keys: Vec<Result<K>> = items.iter().map(Found::record_key).collect();
        let decoded: Vec<&K> = keys.iter().flatten().collect();
        let records = table.find_many(reader, decoded.iter().copied())?;
        // One item for each key that decodes.
        let mut records = records.into_iter().zip(others(&decoded)?);
        let entries = items.iter().zip(keys).map(|(found, key)| {
            let entry = found.entry_key();
            let answered = key.and_then(|key| match records.next() {
                Some((record, other)) => answer(key, record?, other, entry),
                None => Ok(None),
            });
            (entry, answered)
        });
        let behind = |last: &[u8]| Continuation::behind(last, query, order);
        answers(entries, next, behind)
    }

    /// The first selected entry of each group. A group consists of the entries whose first `parts`
    /// parts are equal. The first entry of a group is the first one in the order of the index; the
    /// groups come in the order of `select`.
    ///
    /// This is a skip scan: it costs about one range per group; see [`Grouping::first_of_each`].
    ///
    /// ```
    /// use keyloom::{Desc, Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Table, entry};
    /// type City = (String, u64);
    /// let by_size = Index::new(&Subspace::new("by_size"), |_id, (country, people): &City| entry((country, Desc(*people))));
    /// let cities = Table::<u32, City>::new(&Subspace::new("cities")).with(&by_size);
    /// let store = Memory::new();
    /// let all = [(1, ("FR", 472_317)), (2, ("FR", 2_138_551)), (3, ("CH", 341_730))];
    /// store.transact(|txn| cities.put_many(txn, all.map(|(id, (country, n))| (id, (country.to_owned(), n)))))?;
    /// let largest = by_size.first_of_each(&store.snapshot()?, .., 1)?
    ///     .map(|found| found?.record_key())
    ///     .collect::<Result<Vec<u32>, _>>()?;
    /// assert_eq!(largest, [3, 2]); // the largest of each country
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`range`](Index::range). The iterator also reports an entry with fewer than
    /// `parts` elements.
    pub fn first_of_each<'r, R: Reader, S: Select<P>>(
        &self,
        reader: &'r R,
        select: S,
        parts: usize,
    ) -> Result<impl Scan<Item = Result<Found<R::Bytes<'r>, K, P>>> + 'r + use<'r, R, S, K, V, P>>
    where
        P: 'r,
    {
        let far = select.order() == Order::Descending;
        Ok(self.found_groups(self.grouped_by(parts).groups(reader, select, far)?))
    }

    /// The last selected entry of each group; see [`first_of_each`](Index::first_of_each).
    ///
    /// # Errors
    /// The errors of [`first_of_each`](Index::first_of_each).
    pub fn last_of_each<'r, R: Reader, S: Select<P>>(
        &self,
        reader: &'r R,
        select: S,
        parts: usize,
    ) -> Result<impl Scan<Item = Result<Found<R::Bytes<'r>, K, P>>> + 'r + use<'r, R, S, K, V, P>>
    where
        P: 'r,
    {
        let far = select.order() == Order::Ascending;
        Ok(self.found_groups(self.grouped_by(parts).groups(reader, select, far)?))
    }

    fn found_groups<'r, R: Reader>(
        &self,
        groups: Groups<'r, R>,
    ) -> impl Scan<Item = Result<Found<R::Bytes<'r>, K, P>>> + 'r + use<'r, R, K, V, P>
    where
        P: 'r,
    {
        let space = self.space.clone();
        scan(groups, move |groups| groups.one()?.map(|entry| Found::new(&space, entry)).transpose())
    }

    /// The entries grouped by their first `parts` parts: for distinct values, loose index scans and
    /// group-by.
    pub fn grouped_by(&self, parts: usize) -> Grouping<P> {
        Grouping::of(&self.space, parts)
    }

    /// The number of selected entries. Reads all of them.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn count(&self, reader: &impl Reader, select: impl Select<P>) -> Result<u64> {
        reader.count(select.key_range(&self.space))
    }
}

impl<K: RecordKey, V: 'static, P: KeyShape + 'static> Maintained for Index<K, V, P> {
    crate::described!(|index| if index.is_unique() { "unique index" } else { "index" }, parts |_| P::key_shape(), deferred if |index| !index.is_unique());

    /// Every inconsistency between `table` and this index.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Maintained, Table, entry};
    /// let by_size = Index::new(&Subspace::new("by_size"), |_id, size: &u64| entry(size));
    /// let forgetful = Table::<u32, u64>::new(&Subspace::new("files"));
    /// let files = forgetful.clone().with(&by_size);
    /// let store = Memory::new();
    /// store.transact(|txn| forgetful.put(txn, &1, &4096))?;
    /// let found = by_size.check(&store.snapshot()?, &files)?;
    /// assert_eq!(found[0].to_string(), r#"the key ("by_size", 4096, 1) is missing"#);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Maintained::check`].
    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        derived::check(&self.untyped(), table, reader, |inconsistency| found.push(inconsistency))?;
        Ok(found)
    }

    fn check_in_parallel<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        threads: usize,
        guard: impl Fn(&S::Snapshot<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<Inconsistency>> {
        derived::check_in_parallel(&self.untyped(), table, store, threads, guard)
    }

    /// Repairs or builds the index in bounded transactions; see [`derived::repair`].
    ///
    /// # Errors
    /// The errors of [`derived::repair`].
    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        derived::repair(&self.untyped(), table, store, options, progress)
    }
}

impl<K: RecordKey, V: 'static, P> Index<K, V, P> {
    /// The [`Derived`] value of the index, which is the same code for all types of parts.
    pub(crate) fn attached(&self) -> Arc<dyn Derived<K, V>> {
        Attach::<K, V, AS_ENTRIES>::attached(&self.untyped())
    }
}

impl<K: RecordKey, V: 'static, P: Parts> Attach<K, V, AS_INDEX> for Index<K, V, P> {
    fn attached(&self) -> Arc<dyn Derived<K, V>> {
        self.attached()
    }
}

impl<K: RecordKey, V> Index<K, V, AnyParts> {
    /// The packed parts of the entries of a record.
    pub(crate) fn parts(&self, key: &K, value: &V) -> impl Iterator<Item = KeyBuf> + use<K, V> {
        self.entries_of(key, Some(value)).into_parts()
    }
}

impl<K: RecordKey, V> DerivedEntries<K, V> for Index<K, V, AnyParts> {
    fn space(&self) -> &Subspace {
        &self.space
    }

    fn entries(&self, key: &K, value: &V) -> Vec<DerivedEntry> {
        let record_key = pack_one(key);
        let entries = self.entries_of(key, Some(value));
        entries.iter().map(|entry| self.stored(entry, &record_key)).collect()
    }

    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<K> {
        Found::<_, K, AnyParts, _>::new(&self.space, (key, value))?.record_key()
    }

    fn maintain(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        match self.is_unique {
            true => self.take_values(txn, changes, writes),
            false => self.follow(changes, writes),
        }
    }

    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        changes.iter().try_for_each(|change| {
            self.check_lengths(&self.new_entries(change)?, &pack_one(change.key))
        })
    }
}
