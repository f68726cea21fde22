//! Many records at one position, and pages that start among them.

use keyloom::{Memory, Metered, Store};
use keyloom_spatial::{Circle, GeoCell, LatLng};
use keyloom_tables::{Continuation, DerivedEntries, Page, Scan};
use keyloom_testing::laws::property;
use proptest::prelude::*;

use super::super::keys::index_of;
use super::fixture::{Places, position};

const CROWD: u32 = 50_000;
const AT: (f64, f64) = (10.0, 20.0);

/// Records `0..CROWD` at one position, and some around it.
fn crowded() -> (Metered<Memory>, Places) {
    let (store, places) = (Memory::new(), Places::new());
    let around = (0..40).map(|n| (AT.0 + f64::from(n % 7) - 3.3, AT.1 + f64::from(n / 7) - 3.3));
    let all = std::iter::repeat_n(AT, CROWD as usize).chain(around);
    let entries = (0..).zip(all).flat_map(|(id, at)| places.index.entries(&id, &Some(at)));
    store
        .transact(|txn| {
            let mut entries = entries.clone();
            entries.try_for_each(|(key, value)| keyloom::Writer::put(txn, &key, &value))
        })
        .unwrap();
    (Metered::new(store), places)
}

#[test]
fn nearest_of_many_at_one_position_reads_few_keys() {
    let (store, places) = crowded();
    for from in [AT, (10.001, 20.001), (10.4, 20.4), (-40.0, 170.0)] {
        let from = position(from);
        let snapshot = store.snapshot().unwrap();
        let mut wanted: Vec<(f64, u32)> = places
            .index
            .within(GeoCell::WORLD)
            .points(&snapshot)
            .unwrap()
            .map(Result::unwrap)
            .map(|point| (from.distance(&point.position()), point.record_key().unwrap()))
            .collect();
        wanted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (k, most) in [(1, 200), (100, 600), (10_000, 30_000)] {
            let before = store.cost();
            let found: Vec<(f64, u32)> = places
                .index
                .nearest(&snapshot, from)
                .unwrap()
                .take(k)
                .map(Result::unwrap)
                .map(|near| (near.distance(), near.record_key().unwrap()))
                .collect();
            let spent = store.cost() - before;
            assert_eq!(found, wanted[..k], "{k} from {from}");
            assert!(spent.keys_read <= most && spent.ranges <= 60, "{k} from {from}: {spent}");
        }
    }
}

/// The records of all pages of a query, and the number of the pages.
fn read_pages<T>(
    mut page: impl FnMut(Option<&Continuation>) -> Page<T>,
    key: impl Fn(&T) -> u32,
) -> (Vec<u32>, u64) {
    let (mut all, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let Page { items, next } = page(after.as_ref());
        all.extend(items.iter().map(&key));
        pages += 1;
        after = next;
        if after.is_none() {
            return (all, pages);
        }
    }
}

#[test]
fn pages_of_many_at_one_position_read_each_key_once() {
    let (store, places) = crowded();
    let snapshot = store.snapshot().unwrap();
    let area = Circle::new(position((10.1, 20.1)), 20_000.0).unwrap();
    let query = || places.index.within(area);
    let before = store.cost();
    let (found, pages) = read_pages(
        |after| query().page(&snapshot, 500, after).unwrap(),
        |point| point.record_key().unwrap(),
    );
    let spent = store.cost() - before;
    assert!(found.iter().copied().eq(0..CROWD));
    assert!(pages >= 100 && spent.keys_read <= u64::from(CROWD) + 20 * pages, "{spent}");

    let from = position((10.2, 20.0));
    let before = store.cost();
    let (found, pages) = read_pages(
        |after| query().page_by_distance(&snapshot, from, 500, after).unwrap(),
        |near| near.record_key().unwrap(),
    );
    let spent = store.cost() - before;
    assert!(found.iter().copied().eq(0..CROWD));
    assert!(spent.keys_read <= 2 * u64::from(CROWD) + 100 * pages, "{spent}");
}

/// Positions in one cell of 64 bits, some of them equal; they are ordered by distance.
#[test]
fn positions_with_one_code_are_sorted_by_distance() {
    let (store, places) = (Memory::new(), Places::new());
    let step = |n: u32| f64::from(n % 11) * 1e-10;
    let all: Vec<(f64, f64)> = (0..300).map(|n| (45.0 + step(n), 7.0 + step(n / 5))).collect();
    let codes = |at: &(f64, f64)| GeoCell::of(&position(*at), 64).unwrap();
    assert!(all.iter().all(|at| codes(at) == codes(&all[0])));
    places.put(&store, &all);
    let snapshot = store.snapshot().unwrap();
    for from in [(45.0, 7.0), (45.0 + 3e-10, 7.0 + 3e-10), (44.0, 8.0)] {
        let from: LatLng = position(from);
        let mut wanted: Vec<f64> = all.iter().map(|at| from.distance(&position(*at))).collect();
        wanted.sort_unstable_by(f64::total_cmp);
        let mut nearest = places.index.nearest(&snapshot, from).unwrap();
        let found: Vec<f64> = nearest.by_ref().map(|near| near.unwrap().distance()).collect();
        assert_eq!(found, wanted);
        assert!(nearest.explain().keys_scanned <= 3 * 300, "{}", nearest.explain());
        let query = || places.index.within(GeoCell::WORLD);
        let (paged, _) = read_pages(
            |after| query().page_by_distance(&snapshot, from, 7, after).unwrap(),
            |near| near.record_key().unwrap(),
        );
        let paged: Vec<f64> = paged
            .iter()
            .map(|key| from.distance(&position(all[index_of(*key) as usize])))
            .collect();
        assert_eq!(paged, wanted);
    }
}

/// Several crowds in one cell of 64 bits: each is read in parts, and each point is found once.
#[test]
fn crowds_with_one_code_are_found_once() {
    let sizes = prop::collection::vec(prop_oneof![2 => 0..6_usize, 2 => 10..140_usize], 1..6);
    property((sizes, 0..6_u32, 1..40_usize), |(sizes, from, limit)| {
        let at = |n: u32| (45.0 + f64::from(n) * 1e-10, 7.0 + f64::from(n * 7 % 5) * 1e-10);
        let all: Vec<(f64, f64)> =
            (0..).zip(&sizes).flat_map(|(n, size)| std::iter::repeat_n(at(n), *size)).collect();
        let code = |at: &(f64, f64)| GeoCell::of(&position(*at), 64).unwrap();
        assert!(all.iter().all(|at| code(at) == code(&all[0])));
        let (store, places) = (Memory::new(), Places::new());
        places.put(&store, &all);
        let snapshot = store.snapshot().unwrap();
        let from = position(at(from));
        let nearest = places.index.nearest(&snapshot, from).unwrap().map(Result::unwrap);
        let found: Vec<(f64, u32)> =
            nearest.map(|near| (near.distance(), near.record_key().unwrap())).collect();
        assert!(found.is_sorted_by(|one, next| one.0 <= next.0));
        let mut keys: Vec<u32> = found.iter().map(|(_, key)| index_of(*key)).collect();
        keys.sort_unstable();
        assert!(keys.iter().copied().eq(0..all.len() as u32), "{sizes:?}: {keys:?}");
        let (paged, _) = read_pages(
            |after| {
                let query = places.index.within(GeoCell::WORLD);
                query.page_by_distance(&snapshot, from, limit, after).unwrap()
            },
            |near| near.record_key().unwrap(),
        );
        assert_eq!(paged, found.iter().map(|(_, key)| *key).collect::<Vec<_>>());
    });
}
