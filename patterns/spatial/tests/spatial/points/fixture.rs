//! Places, many of them near poles, the antimeridian and cell borders, and an index of them.

use keyloom::{Result, Store, Subspace};
use keyloom_spatial::{LatLng, PointIndex};
use keyloom_tables::{BatchSize, Table};
use proptest::prelude::*;

use super::super::keys::{index_of, key};

/// Latitude and longitude, in the program's representation.
pub type Place = Option<(f64, f64)>;

pub struct Places {
    pub table: Table<u32, Place>,
    pub index: PointIndex<u32, Place>,
}

impl Places {
    pub fn new() -> Self {
        let by_place = Subspace::new("by_place");
        let index = PointIndex::new(&by_place, |_id, place: &Place| as_position(place));
        Self { table: Table::new(&Subspace::new("places")).with(&index), index }
    }

    pub fn put(&self, store: &impl Store, places: &[(f64, f64)]) {
        let records: Vec<_> = (0..).map(key).zip(places.iter().copied().map(Some)).collect();
        BatchSize::new(1_000)
            .transact_all(store, &records, |txn, some| self.table.put_many(txn, some))
            .unwrap();
    }
}

/// The position of a place, if it is on the sphere.
pub fn as_position(place: &Place) -> Result<Option<LatLng>> {
    place.map(|(latitude, longitude)| LatLng::wrapping(latitude, longitude)).transpose()
}

pub fn position((latitude, longitude): (f64, f64)) -> LatLng {
    LatLng::wrapping(latitude, longitude).unwrap()
}

/// The keys of the records that a query found, in its order.
pub fn keys<T>(found: impl Iterator<Item = Result<T>>, key: impl Fn(T) -> Result<u32>) -> Vec<u32> {
    let mut all: Vec<u32> = found.map(|found| index_of(key(found.unwrap()).unwrap())).collect();
    all.sort_unstable();
    all
}

fn latitude() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -90.0..=90.0,
        3 => 80.0..=90.0,
        1 => -90.0..=-85.0,
        1 => 89.999..=90.0,
        2 => prop::sample::select(vec![-90.0, -45.0, -0.0, 0.0, 45.0, 66.56, 89.999_999, 90.0]),
        // Borders of cells.
        2 => (0_u32..=64).prop_map(|n| f64::from(n) * (180.0 / 64.0) - 90.0),
    ]
}

fn longitude() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -180.0..=180.0,
        2 => 179.0..=181.0,
        1 => 179.999_99..=180.000_01,
        2 => prop::sample::select(vec![-180.0, -90.0, -0.0, 0.0, 90.0, 179.999_999_9, 180.0]),
        2 => (0_u32..=64).prop_map(|n| f64::from(n) * (360.0 / 64.0) - 180.0),
    ]
}

pub fn place() -> impl Strategy<Value = (f64, f64)> {
    (latitude(), longitude())
}

/// Places, some of them equal or near each other.
pub fn places(most: usize) -> impl Strategy<Value = Vec<(f64, f64)>> {
    let near = |(latitude, longitude): (f64, f64), step: f64| {
        [(latitude, longitude), (latitude * (1.0 - step), longitude + step), (latitude, longitude)]
    };
    let few = (place(), prop::sample::select(vec![0.0, 1e-12, 1e-7, 1e-3]))
        .prop_map(move |(place, step)| near(place, step).to_vec());
    let groups = prop_oneof![4 => place().prop_map(|place| vec![place]), 1 => few];
    prop::collection::vec(groups, 0..most).prop_map(|groups| groups.concat())
}

/// Radii from 0 to more than the circumference of the Earth.
pub fn radius() -> impl Strategy<Value = f64> {
    prop_oneof![
        1 => Just(0.0),
        8 => (-3.0..7.5_f64).prop_map(|exponent| 10_f64.powf(exponent)),
        1 => prop::sample::select(vec![20_015_114.4, 20_015_115.0, 10_007_557.2, 5e7]),
    ]
}
