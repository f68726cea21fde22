//! Searches on a remote store return the same results, with few round trips.

use std::cell::Cell;

use keyloom::{Entry, EntryPage, KeyRange, Memory, Order, Reader, Result, Store};
use keyloom_text::Query;

use super::corpus::{Model, index, post, posts};
use super::naive::query;

/// The number of entries per round trip.
const PAGE: usize = 64;

/// A reader that counts the round trips of a remote store.
struct Remote<'r, R> {
    reader: &'r R,
    round_trips: Cell<usize>,
}

impl<R> Remote<'_, R> {
    fn wait(&self) {
        self.round_trips.set(self.round_trips.get() + 1);
    }
}

struct Pages<'r, E> {
    entries: E,
    taken: usize,
    round_trips: &'r Cell<usize>,
}

impl<E: Iterator<Item = Result<Entry<B>>>, B> Iterator for Pages<'_, E> {
    type Item = Result<Entry<B>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.taken.is_multiple_of(PAGE) {
            self.round_trips.set(self.round_trips.get() + 1);
        }
        self.taken += 1;
        self.entries.next()
    }
}

impl<R: Reader> Reader for Remote<'_, R> {
    type Bytes<'b>
        = R::Bytes<'b>
    where
        Self: 'b;
    type Entries<'b>
        = Pages<'b, R::Entries<'b>>
    where
        Self: 'b;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.wait();
        self.reader.get(key)
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        self.wait();
        self.reader.get_many(keys)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        let entries = self.reader.range(range, order)?;
        Ok(Pages { entries, taken: 0, round_trips: &self.round_trips })
    }

    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<EntryPage<Self::Bytes<'_>>>> {
        self.wait();
        self.reader.range_many(ranges, limit)
    }

    fn prefetched(&self) -> usize {
        PAGE
    }
}

#[test]
fn searches_of_a_remote_store_wait_once_for_all_terms() {
    let (store, index) = (Memory::new(), index(false));
    let table = posts(&index);
    let mut random = fastrand::Rng::with_seed(31);
    let model: Model = (0..4_000).map(|id| (id, post(&mut random))).collect();
    store.transact(|txn| table.put_many(txn, model.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let remote = || Remote { reader: &snapshot, round_trips: Cell::new(0) };
    for n in 0..60 {
        let query = query(&mut random, n % 3);
        let search = index.search(query.clone()).limit(5);
        let reader = remote();
        let explained = search.explain(&snapshot).unwrap();
        assert_eq!(search.hits(&reader).unwrap(), search.hits(&snapshot).unwrap(), "{query}");
        assert_eq!(search.ids(&reader).unwrap(), search.ids(&snapshot).unwrap(), "{query}");
        assert!(explained.hits <= 5);
    }
    let rare = |n: u32| Query::term("body", format!("w{n}"));
    let reader = remote();
    let search = index.search(Query::any_of((40..48).map(rare)));
    assert_eq!(search.hits(&reader).unwrap().items.len(), 10);
    // The statistics, and the lists of all eight terms.
    assert_eq!(reader.round_trips.get(), 2);
    let explain = search.explain(&remote()).unwrap();
    assert_eq!((explain.round_trips, explain.lists, explain.ranges), (2, 8, 16));
}
