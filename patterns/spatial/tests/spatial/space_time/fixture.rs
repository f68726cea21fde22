//! A table of events, and the queries of the tests.

use std::io::Read;
use std::ops::Bound;
use std::time::Duration;

use keyloom::{Store, Subspace};
use keyloom_spatial::{Area, CellBounds, CellRelation, GeoCell};
use keyloom_spatial::{BoundingBox, Circle, LatLng, Polygon, SpaceTimeIndex};
use keyloom_tables::{BatchSize, Maintained, Table};
use proptest::prelude::*;

use super::super::keys::key;

/// Latitude, longitude, milliseconds.
pub type Event = (f64, f64, i64);

#[derive(Clone)]
pub struct Events {
    pub table: Table<u32, Option<Event>>,
    pub index: SpaceTimeIndex<u32, Option<Event>>,
}

impl Events {
    pub fn new(width_ms: u64) -> Self {
        let width = Duration::from_millis(width_ms);
        let space = Subspace::new("test");
        let index = SpaceTimeIndex::new(&space.child("by_event"), width, |_, event| {
            let Some((latitude, longitude, time)) = *event else { return Ok(None) };
            Ok(Some((LatLng::new(latitude, longitude)?, time)))
        });
        let index = index.unwrap();
        Self { table: Table::new(&space.child("events")).with(&index), index }
    }

    pub fn put(&self, store: &impl Store, events: &[Event]) {
        let events = events.iter().map(|event| Some(*event));
        let records: Vec<_> = (0..).map(key).zip(events).collect();
        BatchSize::new(1_000)
            .transact_all(store, &records, |txn, some| self.table.put_many(txn, some))
            .unwrap();
    }

    pub fn faults(&self, store: &impl Store) -> Vec<String> {
        let found = self.index.check(&store.snapshot().unwrap(), &self.table).unwrap();
        found.iter().map(ToString::to_string).collect()
    }
}

pub fn position(latitude: f64, longitude: f64) -> LatLng {
    LatLng::new(latitude, longitude).unwrap()
}

/// The width of the bins of most tests.
pub const WIDTH_MS: i64 = 1_000;

/// Times near the borders of the bins, before and after 1970, and the minimum and maximum times.
pub fn time() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (-3..4_i64, -1..2_i64).prop_map(|(bin, by)| bin * WIDTH_MS + by),
        4 => -3 * WIDTH_MS..3 * WIDTH_MS,
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]),
        1 => any::<i64>(),
    ]
}

pub fn event() -> impl Strategy<Value = Event> {
    let latitude = prop_oneof![
        -90.0..90.0_f64,
        prop::sample::select(vec![-90.0, -89.999, 0.0, 10.0, 89.999, 90.0]),
    ];
    let longitude = prop_oneof![
        -180.0..180.0_f64,
        prop::sample::select(vec![-180.0, -179.999, 0.0, 20.0, 179.999, 180.0]),
    ];
    (latitude, longitude, time())
}

pub type Times = (Bound<i64>, Bound<i64>);

pub fn times() -> impl Strategy<Value = Times> {
    let bound = || {
        prop_oneof![
            4 => time().prop_map(Bound::Included),
            2 => time().prop_map(Bound::Excluded),
            1 => Just(Bound::Unbounded),
        ]
    };
    (bound(), bound())
}

/// An area of any kind.
#[derive(Clone, Debug)]
pub enum Shape {
    Circle(Circle),
    Rectangle(BoundingBox),
    Triangle(Polygon),
    Everywhere,
}

impl Shape {
    fn area(&self) -> &dyn Area {
        match self {
            Self::Circle(circle) => circle,
            Self::Rectangle(rectangle) => rectangle,
            Self::Triangle(triangle) => triangle,
            Self::Everywhere => &GeoCell::WORLD,
        }
    }
}

impl Area for Shape {
    fn contains(&self, position: &LatLng) -> bool {
        self.area().contains(position)
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        self.area().relation(cell)
    }

    fn bounds(&self) -> BoundingBox {
        self.area().bounds()
    }
}

pub fn area() -> impl Strategy<Value = Shape> {
    let metres = prop_oneof![Just(0.0), 0.0..3e6_f64, 0.0..2.1e7_f64];
    let circle = (event(), metres).prop_map(|((latitude, longitude, _), metres)| {
        Shape::Circle(Circle::new(position(latitude, longitude), metres).unwrap())
    });
    let rectangle = (event(), event()).prop_map(|((a, west, _), (b, east, _))| {
        Shape::Rectangle(BoundingBox::new(a.min(b), west, a.max(b), east).unwrap())
    });
    let triangle = (-60.0..60.0_f64, -180.0..180.0_f64, 1.0..29.0_f64).prop_map(|(y, x, by)| {
        let ring = [(y, x - by), (y, x + by), (y + by, x), (y, x - by)];
        Shape::Triangle(Polygon::new(&ring).unwrap())
    });
    prop_oneof![4 => circle, 3 => rectangle, 2 => triangle, 1 => Just(Shape::Everywhere)]
}

/// The earthquakes of a week.
pub fn earthquakes() -> Vec<Event> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/earthquakes.csv.gz");
    let mut text = String::new();
    let bytes = std::fs::File::open(file).unwrap();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    rows.records()
        .map(|row| {
            let row = row.unwrap();
            (row[2].parse().unwrap(), row[3].parse().unwrap(), row[1].parse().unwrap())
        })
        .collect()
}
