//! A query is paused at every point while one value is written again: the query must find the value
//! in each schedule.
//!
//! Random order reaches some schedules too rarely, so these are enumerated: which worker runs for
//! how many operations before the next one runs.

use std::sync::Mutex;

use keyloom::{KeyRange, Reader, Store, Subspace};
use keyloom_tables::property_index::{PropertyIndex, Stamps};

use crate::property_index::per_key::{PerKey, PerKeyReader};
use crate::property_index::turns::Work;

type Sizes = PropertyIndex<u8, u8, u8>;

/// The item, and its value, which never changes.
const ITEM: u8 = 1;
const VALUE: u8 = 7;
const ALL: usize = usize::MAX;

struct Scene {
    store: PerKey,
    /// With buckets of one entry, a second item opens a level.
    narrow: Sizes,
}

impl Scene {
    /// The item has its value. One update died after it wrote its intention, so readers do not
    /// treat the value as settled.
    fn new() -> Self {
        let narrow = Sizes::new(&Subspace::new("sizes")).bucket_width(1);
        let scene = Self { store: PerKey::new(), narrow };
        scene.set(1, 10, ITEM, VALUE);
        let dying: Work<'_> = Box::new(|| scene.set(2, 20, ITEM, 9));
        // The worker writes the list (an update and the end), the level, and the intention; then it
        // dies.
        scene.store.turns.run(vec![(Some(4), dying)], |_| 0);
        let keys = scene.store.inner.snapshot().unwrap().count(KeyRange::all()).unwrap();
        assert_eq!(keys, 3, "an update, its entry, and the intention");
        scene
    }

    /// Sets a value. Fails in a dead worker.
    fn set(&self, writer: u64, time_us: u64, item: u8, value: u8) {
        let mut stamps = Stamps::with_clock(writer, move || time_us);
        let _ = self.narrow.set(&self.store, &mut stamps, &1, &item, &value);
    }

    /// Opens levels, and then writes the value of the item again.
    fn widen_and_move(&self) {
        (2..6).for_each(|item| self.set(3, 30, item, item));
        self.set(3, 30, ITEM, VALUE);
    }

    /// Runs the workers in the order of the script, each for the given number of operations, and
    /// then to their ends. Returns whether the query found the item.
    fn finds(&self, script: &[(usize, usize)], writers: Vec<Work<'_>>) -> bool {
        self.holds(script, writers, |reader| {
            let mut items = self.narrow.items_with(reader, &1, VALUE).unwrap();
            items.any(|found| found.unwrap().1 == ITEM)
        })
    }

    /// The same law for another query.
    fn holds(
        &self,
        script: &[(usize, usize)],
        writers: Vec<Work<'_>>,
        query: impl FnOnce(&PerKeyReader) -> bool + Send,
    ) -> bool {
        let found = Mutex::new(false);
        let query: Work<'_> =
            Box::new(|| *found.lock().unwrap() = query(&self.store.snapshot().unwrap()));
        let workers: Vec<_> =
            std::iter::once(query).chain(writers).map(|work| (None, work)).collect();
        let mut script: Vec<(usize, usize)> = script.to_vec();
        self.store.turns.run(workers, |waiting| {
            script.retain(|(worker, left)| *left > 0 && waiting.contains(worker));
            match script.first_mut() {
                Some((worker, left)) => {
                    *left -= 1;
                    *worker
                }
                None => waiting.first().copied().unwrap_or_default(),
            }
        });
        found.into_inner().unwrap()
    }
}

const QUERY: usize = 0;
const ONE: usize = 1;
const OTHER: usize = 2;

#[test]
fn a_value_that_is_written_again_is_found_at_every_point() {
    for before in 0..14 {
        for first in 0..14 {
            for second in (1..9).chain([ALL]) {
                let scene = Scene::new();
                let script = [(ONE, before), (QUERY, first), (ONE, second), (QUERY, ALL)];
                let again: Work<'_> = Box::new(|| scene.set(3, 30, ITEM, VALUE));
                assert!(scene.finds(&script, vec![again]), "lost in {script:?}");
            }
        }
    }
}

#[test]
fn an_item_that_always_has_a_value_is_never_without_one() {
    for before in 0..14 {
        for first in 0..14 {
            for second in 1..10 {
                let scene = Scene::new();
                let script = [(ONE, before), (QUERY, first), (ONE, second), (QUERY, ALL)];
                let other: Work<'_> = Box::new(|| scene.set(3, 30, ITEM, 8));
                let has_one = |reader: &PerKeyReader| {
                    let value = scene.narrow.value(reader, &1, &ITEM).unwrap();
                    value == Some(VALUE) || value == Some(8)
                };
                assert!(scene.holds(&script, vec![other], has_one), "none in {script:?}");
            }
        }
    }
}

#[test]
fn a_value_that_moves_to_a_new_level_is_found_at_every_point() {
    for before in 0..30 {
        for first in 0..14 {
            let scene = Scene::new();
            let script = [(ONE, before), (QUERY, first), (ONE, ALL), (QUERY, ALL)];
            let widen_and_move: Work<'_> = Box::new(|| scene.widen_and_move());
            assert!(scene.finds(&script, vec![widen_and_move]), "lost in {script:?}");
        }
    }
}

#[test]
fn value_of_a_writer_with_the_old_level_is_found_at_every_point() {
    for before in 0..14 {
        for first in 0..14 {
            let scene = Scene::new();
            let script = [(ONE, before), (OTHER, ALL), (QUERY, first), (ONE, ALL), (QUERY, ALL)];
            let again: Work<'_> = Box::new(|| scene.set(4, 1_000, ITEM, VALUE));
            let widen_and_move: Work<'_> = Box::new(|| scene.widen_and_move());
            assert!(scene.finds(&script, vec![again, widen_and_move]), "lost in {script:?}");
        }
    }
}
