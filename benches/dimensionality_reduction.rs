//! Dimensionality reduction: the codes of the curves, 1,024 of them a time, and extents.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "dimensionality_reduction/extents.rs"]
mod extents;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use keyloom_patterns::general::dimensionality_reduction::curve::{Hilbert, Morton};

const CELLS: usize = 1_024;

/// Numbers without an order, the same ones in each run.
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

/// Codes of `N` dimensions, and the search in boxes around the middle, of half the grid a side.
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

fn hilbert(c: &mut Criterion) {
    let mut group = c.benchmark_group("curve");
    group.throughput(Throughput::Elements(CELLS as u64));
    let cells = cells::<_, 2>(|number| number as u32);
    for order in [16, 32] {
        let curve = Hilbert::new(order).unwrap();
        let indexes = cells.iter().map(|&cell| curve.encode(cell)).collect::<Vec<_>>();
        group.bench_function(format!("encode/Hilbert, order {order}"), |b| {
            b.iter(|| {
                for &cell in black_box(&cells) {
                    black_box(curve.encode(cell));
                }
            });
        });
        group.bench_function(format!("decode/Hilbert, order {order}"), |b| {
            b.iter(|| {
                for &index in black_box(&indexes) {
                    black_box(curve.decode(index));
                }
            });
        });
    }
    group.finish();
}

fn curve(c: &mut Criterion) {
    morton::<u64, 2>(c, "u64", |number| number as u32);
    morton::<u64, 3>(c, "u64", |number| number as u32);
    morton::<u64, 4>(c, "u64", |number| number as u32);
    morton::<u128, 2>(c, "u128", |number| number);
    morton::<u128, 3>(c, "u128", |number| number);
    morton::<u128, 4>(c, "u128", |number| number);
    hilbert(c);
}

criterion_group!(benches, curve, extents::extents);
criterion_main!(benches);
