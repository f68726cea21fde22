//! Pitfalls of LMDB that keyloom avoids: one test per pitfall.
#![cfg(feature = "lmdb")]
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod backups;
mod beginning;
mod child;
mod dead_readers;
mod failed_flush;
mod loads;
mod one_handle;
mod opening;
mod snapshots;
#[cfg(target_os = "linux")]
mod synced;
mod the_disk;
mod the_map;
#[cfg(target_os = "linux")]
mod waits;
mod writers;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use child::{Child, run_child};
use keyloom::lmdb::{Compaction, Durability, LmdbOptions};
use keyloom::{
    Error, KeyRange, Lmdb, LmdbError, MAX_KEY_BYTES, Order, Reader, StorageError, Store,
    Transaction, Writer,
};
use tempfile::tempdir;

fn quick() -> LmdbOptions {
    Lmdb::options().durability(Durability::MayLoseStore)
}

fn count(store: &Lmdb) -> u64 {
    store.snapshot().unwrap().count(KeyRange::all()).unwrap()
}

/// Puts `count` values of 1,000 bytes in one transaction.
fn fill(store: &Lmdb, count: u32) -> keyloom::Result<()> {
    store.transact(|txn| (0..count).try_for_each(|n| txn.put(&n.to_be_bytes(), &[7; 1000])))
}

#[test]
fn statistics_count_what_is_there() {
    let directory = tempdir().unwrap();
    let store = quick().map_bytes(64 << 20).open(directory.path()).unwrap();
    fill(&store, 1_000).unwrap();
    store.transact(|txn| txn.put(b"large", &[7; 100_000])).unwrap();
    let statistics = store.statistics().unwrap();
    assert_eq!(statistics.entries, 1_001);
    assert_eq!(statistics.map_bytes, 64 << 20);
    // A value of n bytes takes (16 + n) / 4096 pages, rounded up.
    let expected = (100_000 + 16u64).div_ceil(u64::from(statistics.page_bytes));
    assert_eq!(statistics.overflow_pages, expected);
    let pages = statistics.branch_pages + statistics.leaf_pages + statistics.overflow_pages;
    let tree_bytes = pages * u64::from(statistics.page_bytes);
    assert!(statistics.file_bytes >= tree_bytes && tree_bytes > 1_000 * 1_000);
    assert!(statistics.depth >= 2 && statistics.last_transaction >= 3);
}

#[test]
fn longest_key_is_stored_and_a_longer_one_is_an_error() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let longest = vec![7; MAX_KEY_BYTES];
    store.transact(|txn| txn.put(&longest, b"")).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(snapshot.get(&longest).unwrap().is_some());
    let longer = vec![7; MAX_KEY_BYTES + 1];
    assert!(matches!(snapshot.get(&longer), Err(Error::KeyTooLong { bytes: 512, .. })));
    let from_longer = snapshot.range(KeyRange::starting_at(&longer), Order::Ascending).unwrap();
    assert_eq!(from_longer.count(), 0);
    let up_to_longer = KeyRange::all().before(&longer);
    assert_eq!(snapshot.range(up_to_longer, Order::Descending).unwrap().count(), 1);
}
