//! Sets of ids of every kind: dense, sparse, runs, at the borders of chunks, and the last id.

use std::collections::BTreeSet;

use keyloom::{Order, Reader, Result, Store, Subspace};
use keyloom_bitmaps::{Bitmap, CHUNK_IDS};
use keyloom_tables::in_order;
use proptest::collection::vec;
use proptest::prelude::*;

pub type Set = BTreeSet<u64>;

pub const LAST_CHUNK: u64 = u64::MAX / CHUNK_IDS;

/// The first id of a chunk: adjacent chunks, a distant chunk, the chunk of 2^32, and the last
/// chunk.
fn start() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 1, 2, 7, (1 << 32) / CHUNK_IDS, LAST_CHUNK])
        .prop_map(|chunk| chunk * CHUNK_IDS)
}

/// Adjacent ids.
fn some() -> impl Strategy<Value = Vec<u64>> {
    let any = (start(), vec(0..CHUNK_IDS, 1..40)).prop_map(|(start, offsets)| {
        offsets.into_iter().filter_map(|o| start.checked_add(o)).collect()
    });
    let run = (start(), 0..CHUNK_IDS, 1..3_000_u64).prop_map(|(start, at, ids)| {
        (0..ids).filter_map(|id| start.checked_add(at + id)).collect()
    });
    let dense = (start(), 2..12_u64, 100..4_000_u64).prop_map(|(start, step, ids)| {
        (0..ids).filter_map(|id| start.checked_add(id * step + id % 2)).collect()
    });
    let borders = (start(), vec(0..5_u64, 1..5)).prop_map(|(start, around)| {
        around.into_iter().map(|n| start.saturating_sub(2).saturating_add(n)).collect()
    });
    let last =
        vec(0..5_u64, 1..4).prop_map(|before| before.into_iter().map(|n| u64::MAX - n).collect());
    prop_oneof![3 => any, 2 => run, 2 => dense, 2 => borders, 1 => last]
}

pub fn set() -> impl Strategy<Value = Set> {
    vec(some(), 0..5).prop_map(|some| some.into_iter().flatten().collect())
}

/// Unordered ids with some duplicates.
pub fn ids() -> impl Strategy<Value = Vec<u64>> {
    vec(some(), 0..3).prop_map(|some| some.concat()).prop_shuffle()
}

/// A random set that contains each of `ids` with a probability of one in `odds`.
pub fn random_set(seed: u64, ids: std::ops::Range<u64>, odds: u64) -> Set {
    let mut state = seed | 1;
    let mut is_in = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33).is_multiple_of(odds)
    };
    ids.filter(|_| is_in()).collect()
}

pub fn bitmap() -> Bitmap {
    Bitmap::new(&Subspace::new(&("bitmaps", "a")))
}

pub fn put(store: &impl Store, bitmap: &Bitmap, set: &Set) {
    let ids = store.transact(|txn| bitmap.replace(txn, set.iter().copied())).unwrap();
    assert_eq!(ids, set.len() as u64);
}

pub fn all(reader: &impl Reader, bitmap: &Bitmap, order: Order) -> Result<Vec<u64>> {
    bitmap.ids(reader, in_order(.., order))?.collect()
}
