//! Points on the sphere, compared with SQLite's R*Tree module and with the in-memory R*-tree of the
//! crate `rstar`.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench dimensionality_reduction [-- POINTS]
//! ```
//!
//! A million points, uniform on the sphere. Every contender returns the same results, and each is
//! used as its users would use it. SQLite searches the bounding box of the circle and then filters
//! by the positions, which are auxiliary columns. `rstar` searches in three dimensions, where the
//! sphere has neither poles nor an antimeridian. SQLite needs several boxes for a query across a
//! pole or the antimeridian, so there are no such queries.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::Cell;
use std::hint::black_box;

use keyloom::lmdb::Durability;
use keyloom::{DynWriter, Lmdb, Reader, Store, Subspace, pack};
use keyloom_compare::places::uniform;
use keyloom_compare::{compare, peers};
use keyloom_patterns::derived::{RecordChange, SortedWrites};
use keyloom_patterns::spatial::EARTH_RADIUS;
use keyloom_patterns::{
    BoundingBox, Circle, DerivedEntries, Explain, LatLng, PointIndex, Scan, Table,
};
use rstar::RTree;
use rstar::primitives::GeomWithData;
use rusqlite::{CachedStatement, Connection, Statement};

type Place = (f64, f64);
type Points = RTree<GeomWithData<[f64; 3], u32>>;

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let points: usize = numbers.next().unwrap_or(1_000_000);
    println!("ratios are keyloom on LMDB / peer: below 1 keyloom is faster; {points} points\n");
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(8 << 30);
    let store = options.open(directory.path().join("lmdb")).unwrap();
    let mut sqlite = sqlite(&directory.path().join("sqlite"));
    let places = places(7, points);
    inserting(&store, &mut sqlite, &places);
    let tree = RTree::bulk_load(
        (0..).zip(&places).map(|(id, place)| GeomWithData::new(vector(*place), id)).collect(),
    );
    reading(&store, &sqlite, &tree);
}

fn places(seed: u64, count: usize) -> Vec<Place> {
    uniform(seed).take(count).collect()
}

fn vector((latitude, longitude): Place) -> [f64; 3] {
    let (latitude, longitude) = (latitude.to_radians(), longitude.to_radians());
    let across = latitude.cos();
    [across * longitude.cos(), across * longitude.sin(), latitude.sin()]
}

fn index() -> PointIndex<u32, Place> {
    PointIndex::new(&Subspace::new(&2), |_id, (latitude, longitude): &Place| {
        LatLng::new(*latitude, *longitude).map(Some)
    })
}

fn sqlite(path: &std::path::Path) -> Connection {
    let sqlite = peers::sqlite(path, "OFF");
    let tables = "CREATE VIRTUAL TABLE by_place USING rtree(id, south, north, west, east, +latitude, +longitude);
        CREATE TABLE places (id INTEGER PRIMARY KEY, latitude REAL, longitude REAL)";
    sqlite.execute_batch(tables).unwrap();
    sqlite
}

const INSERT: &str = "INSERT INTO by_place VALUES (?1, ?2, ?2, ?3, ?3, ?2, ?3)";
const INSERT_RECORD: &str = "INSERT INTO places VALUES (?1, ?2, ?3)";
const BATCH: usize = 10_000;

/// Inserts the points, ten thousand per transaction and one after the other: first into the index
/// alone, then some with their records.
fn inserting(store: &Lmdb, sqlite: &mut Connection, places: &[Place]) {
    let index = index();
    let batches: Vec<Vec<(u32, Place)>> = {
        let mut numbered = (0_u32..).zip(places.iter().copied());
        std::iter::from_fn(|| Some(numbered.by_ref().take(BATCH).collect::<Vec<_>>()))
            .take_while(|batch| !batch.is_empty())
            .collect()
    };
    let (here, there) = (Cell::new(0), Cell::new(0));
    let next = |turn: &Cell<usize>| {
        turn.set(turn.get() + 1);
        &batches[turn.get() - 1]
    };
    let mut keyloom = || {
        let batch = next(&here);
        let put = |txn: &mut DynWriter<'_>| {
            batch.iter().try_for_each(|(id, place)| {
                let stored_key = &pack(&(*id,));
                let change = RecordChange { key: id, stored_key, old: None, new: Some(place) };
                let mut writes = SortedWrites::default();
                index.maintain(txn, &[change], &mut writes)?;
                writes.apply(txn)
            })
        };
        store.transact(|txn| put(&mut DynWriter::new(txn))).unwrap();
    };
    let mut of_sqlite = || {
        let transaction = sqlite.transaction().unwrap();
        {
            let mut insert = transaction.prepare_cached(INSERT).unwrap();
            next(&there).iter().for_each(|(id, place)| put(&mut insert, *id, *place));
        }
        transaction.commit().unwrap();
    };
    // The warm-up of the harness takes a tenth more.
    let rounds = batches.len() * 10 / 11;
    let contenders: &mut [(&str, &mut dyn FnMut())] =
        &mut [("keyloom", &mut keyloom), ("SQLite R*Tree", &mut of_sqlite)];
    compare("insert into the index", BATCH, rounds, contenders);
    while here.get() < batches.len() {
        contenders.iter_mut().for_each(|(_, batch)| batch());
    }
    with_records(store, sqlite);
}

/// Records and their index together, in a separate table.
fn with_records(store: &Lmdb, sqlite: &mut Connection) {
    let index = PointIndex::new(&Subspace::new(&4), |_id, (latitude, longitude): &Place| {
        LatLng::new(*latitude, *longitude).map(Some)
    });
    let table = Table::<u32, Place>::new(&Subspace::new(&3)).with(&index);
    let next = Cell::new([10_000_000_u32; 2]);
    let mut more = fastrand::Rng::with_seed(3);
    let places = places(more.u64(..), BATCH);
    let batch = |who: usize| {
        let mut first = next.get();
        first[who] += BATCH as u32;
        next.set(first);
        (first[who]..).zip(places.iter().copied())
    };
    let mut one_by_one = || {
        store
            .transact(|txn| batch(0).try_for_each(|(id, place)| table.put(txn, &id, &place)))
            .unwrap()
    };
    let mut of_sqlite = || {
        let transaction = sqlite.transaction().unwrap();
        {
            let mut insert = transaction.prepare_cached(INSERT).unwrap();
            let mut record = transaction.prepare_cached(INSERT_RECORD).unwrap();
            for (id, place) in batch(1) {
                put(&mut record, id, place);
                put(&mut insert, id, place);
            }
        }
        transaction.rollback().unwrap();
    };
    let contenders: &mut [(&str, &mut dyn FnMut())] =
        &mut [("keyloom", &mut one_by_one), ("SQLite, table and R*Tree", &mut of_sqlite)];
    compare("insert records and index", BATCH, 20, contenders);
}

fn put(insert: &mut CachedStatement<'_>, id: u32, (latitude, longitude): Place) {
    assert_eq!(insert.execute((id, latitude, longitude)).unwrap(), 1);
}

const IN_BOX: &str = "SELECT id, latitude, longitude FROM by_place
    WHERE north >= ?1 AND south <= ?2 AND east >= ?3 AND west <= ?4";

/// The ids of the rows in a box whose positions pass the filter.
fn rows(
    query: &mut Statement<'_>,
    south_west: Place,
    north_east: Place,
    is_in: impl Fn(Place) -> bool,
) -> u64 {
    let bounds = (south_west.0, north_east.0, south_west.1, north_east.1);
    let mut rows = query.query(bounds).unwrap();
    let mut count = 0;
    while let Some(row) = rows.next().unwrap() {
        let place = (row.get(1).unwrap(), row.get(2).unwrap());
        count += u64::from(is_in(place) && row.get::<_, u32>(0).unwrap() < u32::MAX);
    }
    count
}

/// Centres whose surroundings include neither a pole nor the antimeridian.
fn centres(seed: u64) -> impl FnMut() -> Place {
    let mut places = places(seed, 100_000).into_iter();
    move || places.find(|place| place.0.abs() < 70.0 && place.1.abs() < 160.0).unwrap()
}

fn reading(store: &Lmdb, sqlite: &Connection, tree: &Points) {
    let snapshot = store.snapshot().unwrap();
    for radius in [10_000.0, 50_000.0, 200_000.0, 1_000_000.0] {
        circles(&snapshot, sqlite, tree, radius);
    }
    for ranges in [4, 9, 16, 64, 256] {
        amplification(&snapshot, ranges);
    }
    for degrees in [0.2, 1.0, 5.0] {
        boxes(&snapshot, sqlite, degrees);
    }
    for k in [1, 10, 100] {
        nearest(&snapshot, tree, k);
    }
}

fn circles(snapshot: &impl Reader, sqlite: &Connection, tree: &Points, radius: f64) {
    let index = index();
    let found = Cell::new([0_u64; 3]);
    let count = |who: usize, more: u64| {
        let mut counts = found.get();
        counts[who] += more;
        found.set(counts);
    };
    let explain = Cell::new(Explain::default());
    let circle = |place: Place| {
        let circle = Circle::new(LatLng::new(place.0, place.1).unwrap(), radius).unwrap();
        let mut points = index.within(circle).points(snapshot).unwrap();
        let hits = points.by_ref().map(|point| point.unwrap().record_key().unwrap());
        count(0, hits.filter(|id| black_box(*id) < u32::MAX).count() as u64);
        explain.set(points.explain());
    };
    let mut query = sqlite.prepare(IN_BOX).unwrap();
    let degrees = (radius / EARTH_RADIUS).to_degrees();
    let mut of_sqlite = |place: Place| {
        let centre = LatLng::new(place.0, place.1).unwrap();
        let width = (radius / EARTH_RADIUS).sin() / place.0.to_radians().cos();
        let width = width.min(1.0).asin().to_degrees() + 1e-9;
        let (south_west, north_east) = (
            (place.0 - degrees - 1e-9, place.1 - width),
            (place.0 + degrees + 1e-9, place.1 + width),
        );
        let is_in = |at: Place| LatLng::new(at.0, at.1).unwrap().distance(&centre) <= radius;
        count(1, rows(&mut query, south_west, north_east, is_in));
    };
    // A circle on the sphere is the intersection with a ball in space.
    let chord = 2.0 * (radius / EARTH_RADIUS / 2.0).sin();
    let of_rstar = |place: Place| {
        let all = tree.locate_within_distance(vector(place), chord * chord);
        count(2, all.filter(|point| black_box(point.data) < u32::MAX).count() as u64);
    };
    let [mut a, mut b, mut c] = [centres(5), centres(5), centres(5)];
    compare(
        &format!("within {} km", radius / 1_000.0),
        1,
        if radius > 500_000.0 { 200 } else { 1_000 },
        &mut [
            ("keyloom", &mut || circle(a())),
            ("SQLite R*Tree", &mut || of_sqlite(b())),
            ("rstar, in memory", &mut || of_rstar(c())),
        ],
    );
    let [here, there, in_memory] = found.get();
    assert_eq!(here, there);
    // Rounding may put a point at the very border on the other side.
    assert!(here.abs_diff(in_memory) < 3);
    println!("    {here} found; the last query: {}", explain.get());
}

/// Keys read per point found, around centres up to 80 degrees north and south.
fn amplification(snapshot: &impl Reader, ranges: usize) {
    let index = index();
    print!("keys per point found, {ranges} ranges:");
    for kilometres in [10, 50, 100, 300, 1_000] {
        let (mut scanned, mut returned) = (0, 0);
        for place in places(9, 500).into_iter().filter(|place| place.0.abs() < 80.0) {
            let at = LatLng::new(place.0, place.1).unwrap();
            let circle = Circle::new(at, f64::from(kilometres) * 1e3).unwrap();
            let query = index.within(circle).in_ranges(ranges).unwrap();
            let mut points = query.points(snapshot).unwrap();
            points.by_ref().for_each(|point| assert!(point.is_ok()));
            scanned += points.explain().keys_scanned;
            returned += points.explain().keys_returned;
        }
        print!("  {kilometres} km {:.3}", scanned as f64 / returned as f64);
    }
    println!();
}

fn boxes(snapshot: &impl Reader, sqlite: &Connection, degrees: f64) {
    let index = index();
    let found = Cell::new([0_u64; 2]);
    let count = |who: usize, more: u64| {
        let mut counts = found.get();
        counts[who] += more;
        found.set(counts);
    };
    let here = |(south, west): Place| {
        let area = BoundingBox::wrapping(south, west, south + degrees, west + degrees).unwrap();
        let points = index.within(area).points(snapshot).unwrap();
        let hits = points.map(|point| point.unwrap().record_key().unwrap());
        count(0, hits.filter(|id| black_box(*id) < u32::MAX).count() as u64);
    };
    let mut query = sqlite.prepare(IN_BOX).unwrap();
    let mut of_sqlite = |(south, west): Place| {
        let (north, east) = (south + degrees, west + degrees);
        let is_in = |at: Place| (south..=north).contains(&at.0) && (west..=east).contains(&at.1);
        count(1, rows(&mut query, (south, west), (north, east), is_in));
    };
    let [mut a, mut b] = [centres(6), centres(6)];
    compare(
        &format!("box of {degrees} degrees"),
        1,
        1_000,
        &mut [("keyloom", &mut || here(a())), ("SQLite R*Tree", &mut || of_sqlite(b()))],
    );
    let [here, there] = found.get();
    assert_eq!(here, there);
    println!("    {here} found");
}

fn nearest(snapshot: &impl Reader, tree: &Points, k: usize) {
    let index = index();
    let sums = Cell::new([0_u64; 2]);
    let add = |who: usize, id: u32| {
        let mut all = sums.get();
        all[who] += u64::from(id);
        sums.set(all);
    };
    let here = |place: Place| {
        let from = LatLng::new(place.0, place.1).unwrap();
        let nearest = index.nearest(snapshot, from).unwrap().take(k);
        nearest.for_each(|near| add(0, near.unwrap().record_key().unwrap()));
    };
    let of_rstar = |place: Place| {
        let nearest = tree.nearest_neighbor_iter(vector(place)).take(k);
        nearest.for_each(|near| add(1, near.data));
    };
    let [mut a, mut b] = [centres(8), centres(8)];
    compare(
        &format!("nearest {k}"),
        1,
        2_000,
        &mut [("keyloom", &mut || here(a())), ("rstar, in memory", &mut || of_rstar(b()))],
    );
    let [here, there] = sums.get();
    assert_eq!(here, there);
}
