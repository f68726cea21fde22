//! Queries of an index in a schema. A query reads the table of the index, and checks that the index
//! is readable.

use keyloom::value::Codec;
use keyloom::{Reader, Result};
use keyloom_kit::parts::KeyShape;
use keyloom_kit::{Page, RecordKey};

use super::attached::Attached;
use crate::index::{Index, IndexQuery, QuerySource, existing, nothing};
use crate::table::Table;

impl<K: RecordKey, V: 'static, P: KeyShape + 'static, C: Codec<V>> Attached<Index<K, V, P>, C> {
    /// Begins a query over the index and its table. The query fails if the index is not readable.
    ///
    /// For a [deferred](super::Schema::derive_deferred) index, the query skips records that no
    /// longer have the entry. So a page that is not the last one may have fewer records than its
    /// limit, or none.
    ///
    /// ```
    /// use keyloom::{Desc, Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "game")?;
    /// let scores = schema.table::<String, u32>("scores")?;
    /// let by_score = schema.index(&scores, "by_score", 1, |_, score| entry(Desc(*score)))?;
    /// store.transact(|txn| scores.put_many(txn, [("Ada".to_owned(), 80), ("Bob".to_owned(), 95)]))?;
    /// let best = by_score.query().limit(1).records(&store.snapshot()?)?;
    /// assert_eq!(best.items, [("Bob".to_owned(), 95)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn query(&self) -> IndexQuery<'_, K, V, P, &Self> {
        IndexQuery::new(&self.derived, self)
    }
}

impl<K: RecordKey, V: 'static, P: KeyShape + 'static, C: Codec<V>> QuerySource
    for &Attached<Index<K, V, P>, C>
{
    fn require_readable(&self, reader: &impl Reader) -> Result<()> {
        self.at(reader).map(drop)
    }
}

impl<'q, K, V, P, C> IndexQuery<'q, K, V, P, &'q Attached<Index<K, V, P>, C>>
where
    K: RecordKey,
    V: 'static,
    P: KeyShape + 'static,
    C: Codec<V>,
{
    /// The records, in the order of the index, and a continuation for the next page.
    ///
    /// # Errors
    /// The errors of [`page`](IndexQuery::page). An [`UnreadableEntry`](crate::UnreadableEntry) is
    /// also returned for an entry whose record does not decode or, unless the index is deferred,
    /// does not exist.
    pub fn records(&self, reader: &impl Reader) -> Result<Page<(K, V)>> {
        self.joined(reader, nothing, |key, value, ()| Ok(Some((key, value))))
    }

    /// A page of the results of `answer` for the records. `others` returns one more value for each
    /// key, which is passed to `answer`.
    fn joined<M, T>(
        &self,
        reader: &impl Reader,
        others: impl FnOnce(&[&K]) -> Result<Vec<M>>,
        answer: impl Fn(K, V, M) -> Result<Option<T>>,
    ) -> Result<Page<T>> {
        self.require_runnable(reader)?;
        let Self { index, source, range, order, limit, after, .. } = self;
        let untyped = source.is_deferred().then(|| index.untyped());
        let answer = |key: K, value: Option<V>, other: M, entry: &[u8]| match (&untyped, value) {
            // The record of an entry of a deferred index may no longer exist, or no longer have the
            // entry.
            (Some(untyped), Some(value)) if untyped.has_entry(&key, &value, entry) => {
                answer(key, value, other)
            }
            (Some(_), _) => Ok(None),
            (None, value) => {
                let (key, value) = existing(key, value, entry)?;
                answer(key, value, other)
            }
        };
        index.records_of(reader, source.table(), range, *order, *limit, *after, others, answer)
    }

    /// Like [`records`](IndexQuery::records), joined with another table by the record key: each
    /// record comes with the record of the same key in `other`, if there is one. This is a join of
    /// two tables with the same keys, such as states and contents. `answer` makes the items of the
    /// page, and may leave out some.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let books = schema.table::<u32, String>("books")?;
    /// let covers = schema.table::<u32, Vec<u8>>("covers")?;
    /// let by_title = schema.index(&books, "by_title", 1, |_, title| entry(title))?;
    /// store.transact(|txn| {
    ///     books.put_many(txn, [(1, "Persuasion".to_owned()), (2, "Emma".to_owned())])?;
    ///     covers.put(txn, &1, &vec![7; 3])
    /// })?;
    /// let page = by_title.query().records_with(&store.snapshot()?, &covers, |id, title, cover| {
    ///     Some((id, title, cover.map_or(0, |cover| cover.len())))
    /// })?;
    /// assert_eq!(page.items, [(2, "Emma".to_owned(), 0), (1, "Persuasion".to_owned(), 3)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// Costs one more get for each record, in one more round trip.
    ///
    /// # Errors
    /// The errors of [`records`](IndexQuery::records), and an
    /// [`UnreadableEntry`](crate::UnreadableEntry) also for a record of the other table that does
    /// not decode.
    pub fn records_with<W, D: Codec<W>, T>(
        &self,
        reader: &impl Reader,
        other: &Table<K, W, D>,
        answer: impl Fn(K, V, Option<W>) -> Option<T>,
    ) -> Result<Page<T>> {
        self.joined(
            reader,
            |keys| other.find_many(reader, keys.iter().copied()),
            |key, value, other| Ok(answer(key, value, other?)),
        )
    }

    /// The first record, in the order of the index. If the query gives all parts of a unique index,
    /// this is the only record.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let books = schema.table::<u32, String>("books")?;
    /// let by_title = schema.unique_index(&books, "by_title", 1, |_, title| entry(title))?;
    /// store.transact(|txn| books.put(txn, &7, &"Emma".to_owned()))?;
    /// let snapshot = store.snapshot()?;
    /// let emma = by_title.query().prefix("Emma").first(&snapshot)?;
    /// assert_eq!(emma, Some((7, "Emma".to_owned())));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// Costs 2 gets and 1 range, in 3 round trips. For a deferred index, each skipped entry, whose
    /// record no longer has the entry, costs the same again.
    ///
    /// # Errors
    /// The errors of [`records`](IndexQuery::records).
    pub fn first(&self, reader: &impl Reader) -> Result<Option<(K, V)>> {
        let mut next = None;
        loop {
            let after = next.as_ref().or(self.after);
            let page = IndexQuery { limit: 1, after, ..self.clone() }.records(reader)?;
            next = page.next;
            let first = page.items.into_iter().next();
            if first.is_some() || next.is_none() {
                return Ok(first);
            }
        }
    }
}
