//! The round trips of a query on a remote store.

use std::cell::Cell;

use keyloom::{Entry, EntryPage, KeyRange, Memory, Order, Reader, Result, Store};
use keyloom_spatial::Circle;
use keyloom_tables::Scan;

use super::fixture::{Places, position};
use keyloom_testing::laws::clear;

const PAGE: usize = 256;

/// A reader whose ranges come in pages, one round trip each, like those of a remote store.
struct Paged<'r, R> {
    reader: &'r R,
    round_trips: Cell<usize>,
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

impl<R: Reader> Reader for Paged<'_, R> {
    type Bytes<'b>
        = R::Bytes<'b>
    where
        Self: 'b;
    type Entries<'b>
        = Pages<'b, R::Entries<'b>>
    where
        Self: 'b;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.round_trips.set(self.round_trips.get() + 1);
        self.reader.get(key)
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
        self.round_trips.set(self.round_trips.get() + 1);
        self.reader.range_many(ranges, limit)
    }

    fn prefetched(&self) -> usize {
        PAGE
    }
}

/// Places evenly distributed over the inhabited part of the world.
fn spread(count: u32) -> Vec<(f64, f64)> {
    let golden = |n: u32, by: f64| (f64::from(n) * by).fract();
    let place = |n| (golden(n, 0.618_034) * 160.0 - 80.0, golden(n, 0.414_214) * 360.0 - 180.0);
    (0..count).map(place).collect()
}

/// The round trips for a small circle on a remote store, and the number of its ranges on a local
/// one.
pub fn a_small_circle_waits_once(store: &impl Store) {
    clear(store);
    let places = Places::new();
    let all = spread(500);
    places.put(store, &all);
    for at in all.iter().step_by(25) {
        let circle = Circle::new(position(*at), 1_000.0).unwrap();
        let snapshot = store.snapshot().unwrap();
        let before = store.round_trips();
        let mut points = places.index.within(circle).points(&snapshot).unwrap();
        assert_eq!(points.by_ref().map(Result::unwrap).count(), 1);
        let waited = store.round_trips().zip(before).map(|(after, before)| after - before);
        let most = if snapshot.prefetched() > 0 { 1 } else { 4 };
        assert!(points.explain().ranges <= most, "{at:?}: {}", points.explain());
        assert!(waited.is_none_or(|waited| waited == 1), "{at:?}: {waited:?}");
    }
}

#[test]
fn a_query_waits_about_as_often_as_the_best_number_of_ranges() {
    let (store, places) = (Memory::new(), Places::new());
    let all = spread(50_000);
    places.put(&store, &all);
    let snapshot = store.snapshot().unwrap();
    for radius in [1e3, 1e4, 1e5, 3e5, 1e6, 3e6] {
        let (mut waits, mut best, mut worst) = (0, 0, 0.0_f64);
        for at in all.iter().step_by(1_999) {
            let query = || places.index.within(Circle::new(position(*at), radius).unwrap());
            let cost = |ranges: Option<usize>| {
                let paged = Paged { reader: &snapshot, round_trips: Cell::new(0) };
                let query = match ranges {
                    Some(ranges) => query().in_ranges(ranges).unwrap(),
                    None => query(),
                };
                (query.count(&paged).unwrap(), paged.round_trips.get())
            };
            let found = [1, 2, 4, 9, 16, 64].map(|ranges| cost(Some(ranges)));
            let (count, own) = cost(None);
            assert!(found.iter().all(|(of_these, _)| *of_these == count));
            let least = found.map(|(_, trips)| trips).into_iter().min().unwrap();
            (waits, best) = (waits + own, best + least);
            worst = worst.max(own as f64 / least as f64);
        }
        let mean = f64::from(waits as u32) / f64::from(best as u32);
        assert!(mean <= 1.5 && worst <= 3.0, "{radius} m: {mean} times the best, {worst} at worst");
    }
}

/// The distances of the `k` points nearest to `from`.
fn nearest(all: &[(f64, f64)], from: (f64, f64), k: usize) -> Vec<f64> {
    let from = position(from);
    let mut distances: Vec<f64> = all.iter().map(|at| from.distance(&position(*at))).collect();
    distances.sort_unstable_by(f64::total_cmp);
    distances.truncate(k);
    distances
}

pub fn a_thousand_nearest_take_few_round_trips(store: &impl Store) {
    clear(store);
    let places = Places::new();
    let all = spread(3_000);
    places.put(store, &all);
    for at in [all[7], all[2_000], (90.0, 0.0), (0.0, 180.0)] {
        let snapshot = store.snapshot().unwrap();
        // The first read of a snapshot may need a round trip to begin it.
        assert!(snapshot.get(b"?").unwrap().is_none());
        for (k, most) in [(10, 4), (1_000, 6)] {
            let before = store.round_trips();
            let found = places.index.nearest(&snapshot, position(at)).unwrap().take(k);
            let found: Vec<f64> = found.map(|near| near.unwrap().distance()).collect();
            let waited = store.round_trips().zip(before).map(|(after, before)| after - before);
            assert_eq!(found, nearest(&all, at, k));
            assert!(waited.is_none_or(|waited| waited <= most), "{k} at {at:?}: {waited:?}");
        }
    }
}

#[test]
fn round_trips_of_nearest_grow_with_the_logarithm() {
    let (store, places) = (Memory::new(), Places::new());
    let all = spread(50_000);
    places.put(&store, &all);
    let snapshot = store.snapshot().unwrap();
    let poles = [(90.0, 0.0), (-90.0, 0.0), (84.0, -179.9)];
    for at in all.iter().step_by(4_999).copied().chain(poles) {
        for (k, most) in [(1, 4), (10, 4), (100, 5), (1_000, 6)] {
            let paged = Paged { reader: &snapshot, round_trips: Cell::new(0) };
            let found = places.index.nearest(&paged, position(at)).unwrap().take(k);
            let found: Vec<f64> = found.map(|near| near.unwrap().distance()).collect();
            assert_eq!(found, nearest(&all, at, k));
            assert!(paged.round_trips.get() <= most, "{k} at {at:?}: {:?}", paged.round_trips);
        }
    }
}
