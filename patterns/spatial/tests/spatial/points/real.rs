//! The number of keys that queries read in vain, on the cities of the world.

use std::fs::File;

use flate2::read::MultiGzDecoder;
use keyloom::{Memory, Store, Subspace};
use keyloom_spatial::{Circle, PointIndex};
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
                seeks += explain.seeks;
            }
            let per_hit = scanned as f64 / returned as f64;
            println!(
                "{radius} m in {ranges} ranges: {per_hit:.3} keys per city found, {returned} found, {seeks} seeks"
            );
            assert!(per_hit <= most, "{radius} m in {ranges} ranges: {per_hit:.3}");
        }
    }
}
