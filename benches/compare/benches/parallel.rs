//! Reads of one state on one thread and on two: a scan, a count and a group-by of 10 million
//! records, and the check of an index of a tenth of them.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench parallel [-- RECORDS]
//! ```

#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::HashMap;
use std::hint::black_box;

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Reader, Store, Subspace};
use keyloom_compare::compare;
use keyloom_patterns::{Schema, Table, entry, in_parallel};
use keyloom_redb::Redb;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Sale {
    shop: u16,
    amount: u32,
}

fn sale(number: u32) -> Sale {
    let mixed = number.wrapping_mul(0x9E37_79B9) >> 7;
    Sale { shop: (mixed % 1_000) as u16, amount: mixed % 5_000 }
}

type Sales = Table<u32, Sale>;

const ROUNDS: usize = 11;

/// The sum of the amounts of all records.
fn scan(store: &impl Store, sales: &Sales, threads: usize) -> u64 {
    let parts = sales.in_parallel(store, .., threads, |records| {
        let mut sum = 0;
        for record in records {
            sum += u64::from(record?.1.amount);
        }
        Ok(sum)
    });
    parts.unwrap().into_iter().sum()
}

fn count(store: &impl Store, sales: &Sales, threads: usize) -> u64 {
    let range = sales.space().self_and_children();
    in_parallel(store, range, threads, |snapshot, part| snapshot.count(part))
        .unwrap()
        .into_iter()
        .sum()
}

/// The sum of the amounts of each shop.
fn group(store: &impl Store, sales: &Sales, threads: usize) -> HashMap<u16, u64> {
    let parts = sales.in_parallel(store, .., threads, |records| {
        let mut sums = HashMap::<u16, u64>::new();
        for record in records {
            let (_, sale) = record?;
            *sums.entry(sale.shop).or_default() += u64::from(sale.amount);
        }
        Ok(sums)
    });
    let mut sums = HashMap::new();
    for (shop, sum) in parts.unwrap().into_iter().flatten() {
        *sums.entry(shop).or_insert(0) += sum;
    }
    sums
}

/// Compares an index by amount with its table.
fn check(name: &str, store: &impl Store, records: u32) {
    let schema = Schema::open(store, "checked").unwrap();
    let sales = schema.table("sales").unwrap();
    let by_amount = schema.index(&sales, "by_amount", 1, |_: &u32, s: &Sale| entry(s.amount));
    fill(store, &sales, records);
    let by_amount = by_amount.unwrap();
    measure(&format!("{name}: check"), records, |threads| {
        by_amount.check_in_parallel(store, threads).unwrap().len()
    });
}

fn fill(store: &impl Store, sales: &Sales, records: u32) {
    const BATCH: u32 = 100_000;
    for from in (0..records).step_by(BATCH as usize) {
        let batch = (from..records.min(from + BATCH)).map(|number| (number, sale(number)));
        let batch: Vec<_> = batch.collect();
        store.transact(|txn| sales.put_many(txn, &batch)).unwrap();
    }
}

fn measure<T: PartialEq + std::fmt::Debug>(name: &str, records: u32, read: impl Fn(usize) -> T) {
    assert_eq!(read(1), read(2));
    compare(
        name,
        records as usize,
        ROUNDS,
        &mut [
            ("2 threads", &mut || drop(black_box(read(2)))),
            ("1 thread", &mut || drop(black_box(read(1)))),
        ],
    );
}

/// The scan beside two threads that share nothing: each scans a store of its own, with half of the
/// records. This is what two threads can reach on this machine.
fn scan_apart(store: &impl Store, records: u32) {
    let sales = Sales::new(&Subspace::new("sales"));
    let halves = [Memory::new(), Memory::new()];
    for half in &halves {
        fill(half, &sales, records / 2);
    }
    let apart = || {
        std::thread::scope(|scope| {
            let scans = halves.each_ref().map(|half| scope.spawn(|| scan(half, &sales, 1)));
            scans.into_iter().map(|scan| scan.join().unwrap()).sum::<u64>()
        })
    };
    compare(
        "memory: scan, beside a store per thread",
        records as usize,
        ROUNDS,
        &mut [
            ("2 threads", &mut || _ = black_box(scan(store, &sales, 2))),
            ("1 thread", &mut || _ = black_box(scan(store, &sales, 1))),
            ("2 threads, a store each", &mut || _ = black_box(apart())),
        ],
    );
}

fn reads(name: &str, store: &impl Store, records: u32) {
    let sales = Sales::new(&Subspace::new("sales"));
    fill(store, &sales, records);
    measure(&format!("{name}: scan"), records, |threads| scan(store, &sales, threads));
    measure(&format!("{name}: count"), records, |threads| count(store, &sales, threads));
    measure(&format!("{name}: group-by"), records, |threads| group(store, &sales, threads));
    check(name, store, records / 10);
}

fn main() {
    let records = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let records = records.unwrap_or(10_000_000);
    let memory = Memory::new();
    reads("memory", &memory, records);
    scan_apart(&memory, records);
    drop(memory);
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    reads("LMDB", &options.open(directory.path()).unwrap(), records);
    let options = Redb::options().durability(keyloom_redb::Durability::MayLoseCommits);
    reads("redb", &options.open(directory.path().join("redb")).unwrap(), records);
}
