//! The number of keys that queries read without a result, on the cities of the world.

use std::fs::File;

use flate2::read::MultiGzDecoder;
use keyloom::{Memory, Metered, Store, Subspace};
use keyloom_spatial::{Circle, LatLng, PointIndex};
use keyloom_tables::{DerivedEntries, Scan};
use serde::Deserialize;

use super::fixture::position;

#[derive(Deserialize)]
struct City {
    geoname_id: u32,
    latitude: f64,
    longitude: f64,
}

fn cities() -> Vec<City> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/cities.csv.gz");
    let mut rows = csv::Reader::from_reader(MultiGzDecoder::new(File::open(file).unwrap()));
    rows.deserialize().collect::<Result<_, _>>().unwrap()
}

#[test]
fn few_keys_are_read_in_vain_around_the_cities_of_the_world() {
    let cities = cities();
    assert_eq!(cities.len(), 135_233);
    let index =
        PointIndex::new(&Subspace::new(&1), |_id, place: &(f64, f64)| Ok(Some(position(*place))));
    let store = Memory::new();
    let entries = cities
        .iter()
        .flat_map(|city| index.entries(&city.geoname_id, &(city.latitude, city.longitude)));
    store
        .transact(|txn| {
            entries.clone().try_for_each(|(key, value)| keyloom::Writer::put(txn, &key, &value))
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut centres: Vec<_> = cities.iter().filter(|city| city.latitude.abs() < 80.0).collect();
    random.shuffle(&mut centres);
    for (ranges, most) in [(9, 1.7), (64, 1.15), (256, 1.05)] {
        for radius in [10_000.0, 30_000.0, 100_000.0, 300_000.0, 1_000_000.0] {
            let (mut scanned, mut returned, mut seeks) = (0, 0, 0);
            for city in centres.iter().take(if radius < 200_000.0 { 60 } else { 8 }) {
                let circle =
                    Circle::new(position((city.latitude, city.longitude)), radius).unwrap();
                let query = index.within(circle).in_ranges(ranges).unwrap();
                let mut points = query.points(&snapshot).unwrap();
                points.by_ref().for_each(|point| assert!(point.is_ok()));
                let explain = points.explain();
                scanned += explain.keys_scanned;
                returned += explain.keys_returned;
                seeks += explain.ranges;
            }
            let per_hit = scanned as f64 / returned as f64;
            println!(
                "{radius} m in {ranges} ranges: {per_hit:.3} keys per city found, {returned} found, {seeks} seeks"
            );
            assert!(per_hit <= most, "{radius} m in {ranges} ranges: {per_hit:.3}");
        }
    }
}

/// All cities in an index.
fn index_of_cities() -> (Metered<Memory>, PointIndex<u32, (f64, f64)>, Vec<(f64, f64)>) {
    let index = PointIndex::new(&Subspace::new(&1), |_id, at: &(f64, f64)| Ok(Some(position(*at))));
    let all: Vec<_> = cities().iter().map(|city| (city.latitude, city.longitude)).collect();
    let store = Memory::new();
    let entries = (0..).zip(&all).flat_map(|(id, at)| index.entries(&id, at));
    store
        .transact(|txn| {
            entries.clone().try_for_each(|(key, value)| keyloom::Writer::put(txn, &key, &value))
        })
        .unwrap();
    (Metered::new(store), index, all)
}

/// The distances of all places from a position, in ascending order.
fn distances(all: &[(f64, f64)], from: LatLng) -> Vec<f64> {
    let mut distances: Vec<f64> = all.iter().map(|at| from.distance(&position(*at))).collect();
    distances.sort_unstable_by(f64::total_cmp);
    distances
}

#[test]
fn nearest_cities_take_few_reads_in_towns_and_at_the_poles() {
    let (store, index, all) = index_of_cities();
    let snapshot = store.snapshot().unwrap();
    let nearest = |from: LatLng, all: &[f64], k: usize| {
        let before = store.cost();
        let found = index.nearest(&snapshot, from).unwrap().take(k);
        let found: Vec<f64> = found.map(|near| near.unwrap().distance()).collect();
        let spent = store.cost() - before;
        assert_eq!(found, all[..k], "{k} nearest to {from}");
        spent
    };
    let most = [(1, 4, 40), (10, 7, 80), (100, 26, 260), (1_000, 160, 1_500)];
    let mut sums = [(0, 0); 4];
    for at in all.iter().step_by(all.len() / 20) {
        let from = position(*at);
        let all = distances(&all, from);
        for ((k, ..), (reads, keys)) in most.iter().zip(&mut sums) {
            let spent = nearest(from, &all, *k);
            (*reads, *keys) = (*reads + spent.ranges, *keys + spent.keys_read);
        }
    }
    for ((k, most_reads, most_keys), (reads, keys)) in most.into_iter().zip(sums) {
        assert!(reads <= 21 * most_reads && keys <= 21 * most_keys, "{k}: {reads}, {keys}");
    }
    for latitude in [90.0, -90.0, 89.9] {
        let from = position((latitude, 0.0));
        let spent = nearest(from, &distances(&all, from), 10);
        assert!(spent.ranges <= 26 && spent.keys_read <= 260, "{latitude}: {spent}");
    }
}

#[test]
fn page_by_distance_reads_the_cells_of_its_ring() {
    let (store, index, all) = index_of_cities();
    let snapshot = store.snapshot().unwrap();
    let from = position(all[4_321]);
    let (mut after, mut found) = (None, Vec::new());
    let begun = store.cost();
    for page in 1..=100 {
        let before = store.cost();
        let query = index.within(keyloom_spatial::GeoCell::WORLD);
        let next = query.page_by_distance(&snapshot, from, 10, after.as_ref()).unwrap();
        let spent = store.cost() - before;
        assert!(spent.ranges <= 110 && spent.keys_read <= 700, "{page}: {spent}");
        found.extend(next.items.iter().map(|near| near.distance()));
        after = next.next;
    }
    assert_eq!(found, distances(&all, from)[..1_000]);
    let spent = store.cost() - begun;
    assert!(spent.ranges <= 4_300 && spent.keys_read <= 38_000, "{spent}");
}
