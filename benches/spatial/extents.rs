//! Extents: 100,000 boxes of 10 m to 1,000 km.

use criterion::{BenchmarkId, Criterion, Throughput};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store};
use keyloom_patterns::{BoundingBox, Circle, ExtentIndex, LatLng, Scan, Schema};

const EXTENTS: u32 = 100_000;
const QUERIES: usize = 64;
/// Sides of the query boxes, in degrees.
const SIDES: [f64; 4] = [0.0, 0.1, 1.0, 10.0];

type Edges = [f64; 4];

/// Pseudo-random numbers from 0 to 1, the same in each run.
fn fractions() -> impl Iterator<Item = f64> {
    super::numbers().map(|number| (number >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Boxes all over the sphere. Without a given side, all orders of magnitude are equally frequent.
fn boxes(side: Option<f64>) -> impl Iterator<Item = Edges> {
    let mut fractions = fractions();
    let mut next = move || fractions.next().unwrap();
    std::iter::repeat_with(move || {
        let latitude = (2.0 * next() - 1.0).asin().to_degrees();
        let west = next() * 360.0 - 180.0;
        let height = side.unwrap_or(10_f64.powf(next() * 5.0 - 4.0));
        let width = side.unwrap_or(height * 10_f64.powf(next() - 0.5));
        let south = (latitude - height / 2.0).max(-90.0);
        [south, west, (south + height).min(90.0), west + width]
    })
}

fn bounding_box([south, west, north, east]: Edges) -> keyloom::Result<BoundingBox> {
    BoundingBox::wrapping(south, west, north, east)
}

/// A circle around the south-western corner of a box that touches the northern edge.
fn within(area: &BoundingBox) -> Circle {
    let corner = |latitude| LatLng::new(latitude, area.west()).unwrap();
    let centre = corner(area.south());
    Circle::new(centre, centre.distance(&corner(area.north()))).unwrap()
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let schema = Schema::open(store, "bench").unwrap();
    let table = schema.table::<u32, Edges>("things").unwrap();
    let extent = |_: &u32, edges: &Edges| bounding_box(*edges).map(Some);
    let index = schema.derive(&table, "by_extent", 1, |space| Ok(ExtentIndex::new(space, extent)));
    let index = index.unwrap();
    let all: Vec<(u32, Edges)> = (0..EXTENTS).zip(boxes(None)).collect();
    all.chunks(10_000).for_each(|some| store.transact(|txn| table.put_many(txn, some)).unwrap());
    let mut group = c.benchmark_group(format!("extents/{name}"));
    {
        let snapshot = store.snapshot().unwrap();
        let index = index.at(&snapshot).unwrap();
        for side in SIDES {
            let areas = boxes(Some(side)).take(QUERIES).map(|edges| bounding_box(edges).unwrap());
            let areas: Vec<BoundingBox> = areas.collect();
            let run = || {
                areas.iter().fold([0, 0], |[scanned, found], area| {
                    let mut extents = index.overlapping(*area).extents(&snapshot).unwrap();
                    extents.by_ref().for_each(|extent| drop(extent.unwrap()));
                    let explain = extents.explain();
                    [scanned + explain.keys_scanned, found + explain.keys_returned]
                })
            };
            let [scanned, found] = run();
            println!("{side} degrees, {QUERIES} queries: {scanned} keys scanned, {found} found");
            group.throughput(Throughput::Elements(QUERIES as u64));
            group.bench_function(BenchmarkId::new("overlapping", side), |b| b.iter(run));
            group.bench_function(BenchmarkId::new("containing", side), |b| {
                let count = |area: &BoundingBox| index.containing_box(*area).count(&snapshot);
                b.iter(|| areas.iter().map(|area| count(area).unwrap()).sum::<u64>());
            });
            group.bench_function(BenchmarkId::new("10 nearest", side), |b| {
                let corner = |area: &BoundingBox| LatLng::new(area.south(), area.west()).unwrap();
                let nearest = |at: LatLng| index.nearest(&snapshot, at).unwrap().take(10).count();
                b.iter(|| areas.iter().map(|area| nearest(corner(area))).sum::<usize>());
            });
            let circles: Vec<Circle> = areas.iter().map(within).collect();
            group.bench_function(BenchmarkId::new("overlapping a circle", side), |b| {
                let count = |circle: &Circle| index.overlapping(circle).count(&snapshot);
                b.iter(|| circles.iter().map(|circle| count(circle).unwrap()).sum::<u64>());
            });
        }
    }
    group.throughput(Throughput::Elements(100));
    let mut moved = boxes(None).skip(EXTENTS as usize);
    let mut batches = all.chunks(100).cycle();
    group.bench_function("put_many of 100 that move", |b| {
        b.iter(|| {
            let ids = batches.next().unwrap().iter().map(|(id, _)| *id);
            let records: Vec<(u32, Edges)> = ids.zip(moved.by_ref()).collect();
            store.transact(|txn| table.put_many(txn, &records)).unwrap();
        });
    });
    group.finish();
}

pub fn extents(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}
