//! Points: circles, boxes and nearest neighbours, in memory.

use criterion::{BenchmarkId, Criterion, Throughput};
use keyloom::{Memory, Store};
use keyloom_patterns::spatial::Group;
use keyloom_patterns::{BoundingBox, Circle, LatLng, PointIndex, Schema};

type Place = (f64, f64);

const PLACES: u32 = 100_000;
const MOVED: usize = 1_024;

/// Points, uniform on the sphere.
fn places() -> Vec<Place> {
    let mut random = fastrand::Rng::with_seed(7);
    let place = |_| {
        let height: f64 = random.f64() * 2.0 - 1.0;
        (height.asin().to_degrees(), random.f64() * 360.0 - 180.0)
    };
    (0..PLACES).map(place).collect()
}

/// The nearest points of one tenant of 1,000: in an index of groups, and with a filter.
pub fn points_of_tenants(c: &mut Criterion) {
    const TENANTS: u32 = 1_000;
    let mut group = c.benchmark_group("points of tenants");
    let store = Memory::new();
    let schema = Schema::open(&store, "bench").unwrap();
    let table = schema.table::<u32, Place>("places").unwrap();
    let position = |_: &u32, place: &Place| LatLng::new(place.0, place.1).map(Some);
    let all = schema.derive(&table, "by_place", 1, |space| Ok(PointIndex::new(space, position)));
    let all = all.unwrap();
    let of_tenant = |id: &u32, place: &Place| {
        Ok(Some((Group::of(id % TENANTS), LatLng::new(place.0, place.1)?)))
    };
    let grouped =
        schema.derive(&table, "by_tenant", 1, |space| Ok(PointIndex::grouped(space, of_tenant)));
    let grouped = grouped.unwrap();
    store.transact(|txn| table.put_many(txn, (0..).zip(places()))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let (all, grouped) = (all.at(&snapshot).unwrap(), grouped.at(&snapshot).unwrap());
    let at = LatLng::new(48.85, 2.35).unwrap();
    group.bench_function("nearest 3, group", |b| {
        b.iter(|| {
            let found = grouped.group(7).nearest(&snapshot, at).unwrap();
            found.take(3).map(|point| point.unwrap().record_key().unwrap()).sum::<u32>()
        });
    });
    group.bench_function("nearest 3, filter", |b| {
        b.iter(|| {
            let keys = all.nearest(&snapshot, at).unwrap();
            let keys = keys.map(|point| point.unwrap().record_key().unwrap());
            keys.filter(|id| id % TENANTS == 7).take(3).sum::<u32>()
        });
    });
    group.finish();
}

pub fn points(c: &mut Criterion) {
    let mut group = c.benchmark_group("points");
    let store = Memory::new();
    let schema = Schema::open(&store, "bench").unwrap();
    let table = schema.table::<u32, Place>("places").unwrap();
    let position = |_: &u32, place: &Place| LatLng::new(place.0, place.1).map(Some);
    let index = schema.derive(&table, "by_place", 1, |space| Ok(PointIndex::new(space, position)));
    let (index, places) = (index.unwrap(), places());
    store.transact(|txn| table.put_many(txn, (0..).zip(places.iter().copied()))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let index = index.at(&snapshot).unwrap();
    let at = LatLng::new(48.85, 2.35).unwrap();
    for kilometres in [50, 300, 1_000] {
        let circle = Circle::new(at, f64::from(kilometres) * 1e3).unwrap();
        group.bench_function(BenchmarkId::new("circle, km", kilometres), |b| {
            b.iter(|| index.within(circle).count(&snapshot).unwrap());
        });
    }
    let area = BoundingBox::new(43.0, 5.0, 48.0, 17.0).unwrap();
    group.bench_function("box of the Alps", |b| {
        b.iter(|| index.within(area).count(&snapshot).unwrap());
    });
    for k in [1, 10, 100] {
        group.bench_function(BenchmarkId::new("nearest", k), |b| {
            b.iter(|| index.nearest(&snapshot, at).unwrap().take(k).map(Result::unwrap).count());
        });
    }
    group.throughput(Throughput::Elements(MOVED as u64));
    group.bench_function("put_many", |b| {
        let mut step = 0.0;
        b.iter(|| {
            step += 1e-6;
            let moved = places.iter().take(MOVED).map(|place| (place.0, place.1 + step));
            let moved: Vec<(u32, Place)> = (0..).zip(moved).collect();
            store.transact(|txn| table.put_many(txn, moved.iter().copied())).unwrap();
        });
    });
    group.finish();
}
