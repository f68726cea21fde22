//! Results in the order of a sort key that is computed from each record.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Pack, Reader, Result, pack};
use keyloom_kit::{Continuation, Page, RecordKey};
use keyloom_tables::table::Table;

use super::request::Scores;
use super::results::RecordHit;
use super::searches::Search;
use super::statistics::{Statistics, StoredStatistics};

/// The place of a document: its packed sort key, then its id.
type Place = (Vec<u8>, u32);

/// A document with its record.
struct Sorted<K, V> {
    place: Place,
    hit: RecordHit<K, V>,
}

impl<K, V> PartialEq for Sorted<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<K, V> Eq for Sorted<K, V> {}

impl<K, V> PartialOrd for Sorted<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K, V> Ord for Sorted<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}

/// The first documents after a place.
struct First<K, V> {
    limit: usize,
    after: Option<Place>,
    /// The collected documents; the last one in the order of the results is on top.
    heap: BinaryHeap<Sorted<K, V>>,
}

impl<K, V> First<K, V> {
    fn push(&mut self, one: Sorted<K, V>) {
        if self.after.as_ref().is_some_and(|after| one.place <= *after) {
            return;
        }
        if self.heap.len() < self.limit {
            self.heap.push(one);
        } else if let Some(mut last) = self.heap.peek_mut()
            && one < *last
        {
            *last = one;
        }
    }
}

/// The position of a continuation: the last document of the page, and the statistics of the first
/// page.
type Stored = (Place, StoredStatistics);

fn read(after: &Continuation, search: u64) -> Result<(Place, Arc<Statistics>)> {
    let stored = <Postcard as Codec<Stored>>::decode(after.position(search)?);
    let (place, statistics) = stored.map_err(|_| Error::InvalidArgument {
        what: "the continuation",
        value: String::new(),
        why: "these bytes are not a continuation of a search in the order of a sort key",
    })?;
    Ok((place, Arc::new(Statistics::from_stored(statistics))))
}

impl<K: RecordKey, V> Search<'_, K, V> {
    /// The records in ascending order of the sort key that `sort_key` computes from the key, the
    /// record and the score of each match. If sort keys are equal, the smaller id comes first.
    ///
    /// A sort key is any tuple that can be [packed](keyloom::Pack): a string, several fields,
    /// [`Desc`](keyloom::Desc) of one, or an `Option`, whose `None` comes first. The function must
    /// be pure, and the same for all pages. The continuation contains the sort key of the last
    /// record. An order set by [`sort_by`](Search::sort_by), [`score_by`](Search::score_by) or
    /// [`rescore`](Search::rescore) is ignored.
    ///
    /// Reads the records of all matches, also those of other pages. In addition to the reads of the
    /// search, this costs two round trips for each 1,024 matches, or one if keys are ids. For many
    /// matches and one integer field, use [`sort_by`](Search::sort_by).
    ///
    /// `table` is the table of the index.
    ///
    /// ```
    /// # use keyloom::{Desc, Memory, Store, Subspace};
    /// # use keyloom_tables::Table;
    /// # use keyloom_text::{Analyzer, Query, TextIndex};
    /// let texts = TextIndex::new(&Subspace::new("text"))
    ///     .field("title", Analyzer::simple(), |_id: &u32, book: &(String, u32), add| add(&book.0));
    /// let books = Table::<u32, (String, u32)>::new(&Subspace::new("books")).with(&texts);
    /// let store = Memory::new();
    /// let book = |title: &str, year| (title.to_owned(), year);
    /// let all = [(1, book("Sea", 1990)), (2, book("Sea and land", 2001)), (3, book("Sea", 2010))];
    /// store.transact(|txn| books.put_many(txn, &all))?;
    ///
    /// // By title, then the newest first.
    /// let search = texts.search(Query::term("title", "sea"));
    /// let page = search.records_sorted_by(&store.snapshot()?, &books, |_, (title, year), _score| {
    ///     (title.clone(), Desc(*year))
    /// })?;
    /// assert!(page.items.iter().map(|hit| hit.key).eq([3, 1, 2]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`records`](Search::records).
    pub fn records_sorted_by<S: Pack, C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        sort_key: impl Fn(&K, &V, f64) -> S,
    ) -> Result<Page<RecordHit<K, V>>> {
        table.refuse_unless_attached(self.index.space())?;
        let mut request = self.request.clone();
        request.order = "by a sort key of the record".to_owned();
        let search = request.fingerprint(self.index);
        let after = request.after.take().map(|after| read(&after, search)).transpose()?;
        let after = after.map(|(place, statistics)| {
            request.statistics = Some(statistics);
            place
        });
        let prepared = request.prepare(self.index, reader)?;
        let mut first = First { limit: request.limit, after, heap: BinaryHeap::new() };
        request.for_each_batch(self.index, reader, &prepared, Scores::Computed, |some, ids| {
            let keys = self.index.records().keys(reader, ids.iter().copied())?;
            let keys = some.iter().zip(keys);
            let keys = keys.map(|(found, key)| key.ok_or_else(|| self.no_record(found.doc)));
            let keys = keys.collect::<Result<Vec<K>>>()?;
            let values = table.get_many(reader, &keys)?;
            for ((found, key), value) in some.iter().zip(keys).zip(values) {
                let (value, score) = (value.ok_or_else(|| self.no_record(found.doc))?, found.score);
                let place = (pack(&sort_key(&key, &value, score)).to_vec(), found.doc);
                first.push(Sorted { place, hit: RecordHit { key, value, score } });
            }
            Ok(())
        })?;
        let sorted = first.heap.into_sorted_vec();
        let last = sorted.last().filter(|_| sorted.len() >= request.limit);
        let next = last.map(|last| {
            let (mut position, statistics) = (Vec::new(), prepared.statistics.to_stored());
            Postcard::encode(&(last.place.clone(), statistics), &mut position)?;
            Ok::<_, Error>(Continuation::at(search, &position))
        });
        let next = next.transpose()?;
        Ok(Page { items: sorted.into_iter().map(|one| one.hit).collect(), next })
    }
}
