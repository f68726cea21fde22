//! Dimensionality reduction: the codes of the curves, 1,024 at a time; points; events in space and
//! time; boxes of numbers, and extents. All in memory.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "spatial/extents.rs"]
mod extents;
#[path = "spatial/points.rs"]
mod points;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use keyloom::{Memory, Store, Subspace};
use keyloom_patterns::spatial::curve::{Dimension, Morton};
use keyloom_patterns::{Circle, CurveIndex, LatLng, SpaceTimeIndex, Table};

const CELLS: usize = 1_024;

/// Pseudo-random numbers, the same in each run.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x9E37_79B9_7F4A_7C15_u64), |number| {
        Some(number.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(0x2545_F491_4F6C_DD1D))
    })
    .map(|number| number ^ number >> 29)
}

fn cells<T, const N: usize>(of: impl Fn(u64) -> T) -> Vec<[T; N]> {
    let mut numbers = numbers();
    (0..CELLS).map(|_| std::array::from_fn(|_| of(numbers.next().unwrap()))).collect()
}

/// Codes of `N` dimensions, and a search in a box around the centre whose sides are half of the
/// grid.
fn morton<M: Morton<N>, const N: usize>(
    c: &mut Criterion,
    word: &str,
    of: impl Fn(u64) -> M::Coordinate,
) where
    M::Coordinate: Copy,
{
    let mut group = c.benchmark_group("curve");
    group.throughput(Throughput::Elements(CELLS as u64));
    let name = |operation: &str| BenchmarkId::new(operation, format!("{word}, {N} dimensions"));
    let cells = cells::<_, N>(&of);
    let codes = cells.iter().map(|&cell| M::encode(cell)).collect::<Vec<_>>();
    let corner = |share: u64| M::encode(std::array::from_fn(|_| of((1 << (M::BITS - 2)) * share)));
    let (low, high) = (corner(1), corner(3));
    group.bench_function(name("encode"), |b| {
        b.iter(|| {
            for &cell in black_box(&cells) {
                black_box(M::encode(cell));
            }
        });
    });
    group.bench_function(name("decode"), |b| {
        b.iter(|| {
            for &code in black_box(&codes) {
                black_box(code.decode());
            }
        });
    });
    group.bench_function(name("next_inside"), |b| {
        b.iter(|| {
            for &code in black_box(&codes) {
                black_box(code.next_inside(low, high));
            }
        });
    });
    group.finish();
}

fn curve(c: &mut Criterion) {
    morton::<u64, 2>(c, "u64", |number| number as u32);
    morton::<u64, 3>(c, "u64", |number| number as u32);
    morton::<u64, 4>(c, "u64", |number| number as u32);
    morton::<u128, 2>(c, "u128", |number| number);
    morton::<u128, 3>(c, "u128", |number| number);
    morton::<u128, 4>(c, "u128", |number| number);
}

const RECORDS: u32 = 100_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// `N` numbers from 0 to 1 for each record.
fn records<const N: usize>() -> Vec<[f64; N]> {
    let mut numbers = numbers();
    let share = |number: u64| (number >> 11) as f64 / (1_u64 << 53) as f64;
    (0..RECORDS).map(|_| std::array::from_fn(|_| share(numbers.next().unwrap()))).collect()
}

type Event = (f64, f64, i64);

/// Events all over the Earth, within ten weeks, in weekly bins.
fn space_time(c: &mut Criterion) {
    let mut group = c.benchmark_group("space_time");
    let width = Duration::from_millis((7 * DAY_MS).unsigned_abs());
    let by_event = SpaceTimeIndex::new(&Subspace::new("by_event"), width, |_, event: &Event| {
        Ok(Some((LatLng::new(event.0, event.1)?, event.2)))
    });
    let by_event = by_event.unwrap();
    let table = Table::<u32, Event>::new(&Subspace::new("events")).with(&by_event);
    let event = |[north, east, time]: [f64; 3]| {
        let latitude = (2.0 * north - 1.0).asin().to_degrees();
        (latitude, 360.0 * east - 180.0, (time * 70.0 * DAY_MS as f64) as i64)
    };
    let events: Vec<Event> = records().into_iter().map(event).collect();
    let store = Memory::new();
    store.transact(|txn| table.put_many(txn, (0..).zip(events.iter().copied()))).unwrap();

    let snapshot = store.snapshot().unwrap();
    let at = LatLng::new(48.85, 2.35).unwrap();
    for (metres, days) in [(300e3, 3), (1_000e3, 3), (1_000e3, 70)] {
        let circle = Circle::new(at, metres).unwrap();
        let times = 20 * DAY_MS..(20 + days) * DAY_MS;
        let name = format!("{} km, {days} days", metres / 1e3);
        group.bench_function(BenchmarkId::new("circle", name), |b| {
            b.iter(|| by_event.within(circle, times.clone()).count(&snapshot).unwrap());
        });
    }
    group.throughput(Throughput::Elements(CELLS as u64));
    group.bench_function("put_many", |b| {
        let mut seconds = 0;
        b.iter(|| {
            seconds += 1_000;
            let moved =
                events.iter().take(CELLS).map(|event| (event.0, event.1, event.2 + seconds));
            let moved: Vec<_> = (0..).zip(moved).collect();
            store.transact(|txn| table.put_many(txn, moved.iter().copied())).unwrap();
        });
    });
    group.finish();
}

/// Boxes that contain a thousandth of all records.
fn boxes<const N: usize>(c: &mut Criterion)
where
    u64: Morton<N, Coordinate = u32>,
{
    let mut group = c.benchmark_group("curve_index");
    let dimensions = [Dimension::new(0.0..=1.0).unwrap(); N];
    let by_numbers =
        CurveIndex::new(&Subspace::new("by_numbers"), dimensions, |_, n: &Vec<f64>| {
            Ok(n.first_chunk().copied())
        });
    let table = Table::<u32, Vec<f64>>::new(&Subspace::new("numbers")).with(&by_numbers);
    let all: Vec<_> = (0..).zip(records::<N>()).map(|(id, n)| (id, n.to_vec())).collect();
    let store = Memory::new();
    store.transact(|txn| table.put_many(txn, all.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let side = 0.001_f64.powf(1.0 / N as f64);
    for ranges in [1, 4, 16] {
        group.bench_function(BenchmarkId::new(format!("box, {N} dimensions"), ranges), |b| {
            b.iter(|| {
                let query = by_numbers.within([(); N].map(|()| 0.3..0.3 + side)).unwrap();
                query.in_ranges(ranges).unwrap().count(&snapshot).unwrap()
            });
        });
    }
    group.finish();
}

fn curve_index(c: &mut Criterion) {
    boxes::<2>(c);
    boxes::<3>(c);
    boxes::<4>(c);
}

criterion_group!(
    benches,
    curve,
    points::points,
    points::points_of_tenants,
    extents::extents,
    space_time,
    curve_index
);
criterion_main!(benches);
