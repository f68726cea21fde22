//! keyloom on LMDB, redb and fjall, compared with the raw engines with the same bytes, and the
//! memory store, compared with the standard `BTreeMap`. One million records of 100 bytes under
//! random keys of 16 bytes.
//!
//! The layer promises to cost nothing, so both contenders of a pair do the same work: one
//! transaction for all gets, one for all puts, and a read of every value. Neither file is synced,
//! because the comparison is not about the disk. Arguments select parts:
//!
//! ```text
//! cargo bench -p keyloom-compare --bench store -- fjall small
//! ```

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Bound;

use fjall::{KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, Readable as _};
use heed::EnvFlags;
use keyloom::lmdb::Durability;
use keyloom::{KeyRange, Lmdb, Memory, Order, Reader, Store, Writer};
use keyloom_compare::compare;
use keyloom_compare::peers::{RawLmdb, raw_lmdb};
use keyloom_fjall::Fjall;
use keyloom_redb::Redb;
use redb::{Database as RedbDatabase, ReadableDatabase, ReadableTable, TableDefinition};

const RECORDS: usize = 1_000_000;
const VALUE: [u8; 100] = [0x2A; 100];
const MAP_BYTES: usize = 4 << 30;

type Key = [u8; 16];

fn main() {
    println!("ratios are keyloom / peer: below 1 keyloom is faster; files are not synced\n");
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let keys: Vec<Key> = (0..RECORDS as u64).map(key).collect();
    let asked: Vec<Key> = (0..RECORDS as u64).map(|n| key(n * 7_919 % RECORDS as u64)).collect();
    let parts: [(&str, &dyn Fn()); 5] = [
        ("lmdb", &|| lmdb(&keys, &asked)),
        ("redb", &|| redb(&keys, &asked)),
        ("fjall", &|| fjall(&keys, &asked)),
        ("small", &|| {
            small_transactions(&asked);
            durable_transactions(&asked);
        }),
        ("memory", &|| memory(&keys, &asked)),
    ];
    for (name, part) in parts {
        if chosen.is_empty() || chosen.iter().any(|one| one == name) {
            part();
        }
    }
}

/// The n-th key. Keys are spread over the whole key space, in no order.
fn key(n: u64) -> Key {
    let mut key = [0; 16];
    let (spread, serial) = key.split_at_mut(8);
    spread.copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    serial.copy_from_slice(&n.to_be_bytes());
    key
}

fn open(directory: &tempfile::TempDir) -> Lmdb {
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(MAP_BYTES);
    options.open(directory.path()).unwrap()
}

fn open_raw(directory: &tempfile::TempDir) -> RawLmdb {
    raw_lmdb(directory.path(), MAP_BYTES, EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC)
}

fn put(store: &impl Store, keys: &[Key]) {
    store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, &VALUE))).unwrap();
}

fn put_raw((env, database): &RawLmdb, keys: &[Key]) {
    let mut txn = env.write_txn().unwrap();
    keys.iter().for_each(|key| database.put(&mut txn, key, &VALUE).unwrap());
    txn.commit().unwrap();
}

/// Reads an entry, as a program would.
fn touch((key, value): (&[u8], &[u8])) -> u64 {
    u64::from(key[0]) + u64::from(value[0])
}

fn lmdb(keys: &[Key], asked: &[Key]) {
    compare(
        "LMDB: put 1 million into a new file",
        RECORDS,
        9,
        &mut [
            ("keyloom", &mut || {
                let directory = tempfile::tempdir().unwrap();
                put(&open(&directory), keys);
            }),
            ("raw heed", &mut || {
                let directory = tempfile::tempdir().unwrap();
                put_raw(&open_raw(&directory), keys);
            }),
        ],
    );
    let directories = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(&directories.0);
    let raw = open_raw(&directories.1);
    put(&store, keys);
    put_raw(&raw, keys);
    compare(
        "LMDB: overwrite 10,000 in one transaction",
        10_000,
        101,
        &mut [
            ("keyloom", &mut || put(&store, &asked[..10_000])),
            ("raw heed", &mut || put_raw(&raw, &asked[..10_000])),
        ],
    );
    let snapshot = store.snapshot().unwrap();
    let (env, database) = &raw;
    let txn = env.read_txn().unwrap();
    let mut batches = asked.chunks(10_000).cycle();
    let mut raw_batches = batches.clone();
    compare(
        "LMDB: get",
        10_000,
        300,
        &mut [
            ("keyloom", &mut || {
                for key in batches.next().unwrap() {
                    black_box(snapshot.get(key).unwrap().unwrap()[0]);
                }
            }),
            ("raw heed", &mut || {
                for key in raw_batches.next().unwrap() {
                    black_box(database.get(&txn, key).unwrap().unwrap()[0]);
                }
            }),
        ],
    );
    compare_scans(
        "LMDB: scan 1 million",
        RECORDS,
        "raw heed, iter",
        || sum(&snapshot, KeyRange::all(), Order::Ascending),
        || database.iter(&txn).unwrap().map(|entry| touch(entry.unwrap())).sum(),
    );
    let (from, to) = ([0x40], [0xC0]);
    let half = KeyRange::half_open(&from, &to);
    let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
    compare_scans(
        "LMDB: scan half of it between bounds",
        RECORDS / 2,
        "raw heed, range",
        || sum(&snapshot, half.clone(), Order::Ascending),
        || database.range(&txn, &bounds).unwrap().map(|entry| touch(entry.unwrap())).sum(),
    );
    compare_scans(
        "LMDB: scan half of it, descending",
        RECORDS / 2,
        "raw heed, rev_range",
        || sum(&snapshot, half.clone(), Order::Descending),
        || database.rev_range(&txn, &bounds).unwrap().map(|entry| touch(entry.unwrap())).sum(),
    );
}

const RAW_TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
const CACHE_BYTES: usize = 1 << 30;

fn open_redb(directory: &tempfile::TempDir) -> Redb {
    let options = Redb::options().durability(keyloom_redb::Durability::MayLoseCommits);
    options.cache_bytes(CACHE_BYTES).open(directory.path().join("redb")).unwrap()
}

fn open_raw_redb(directory: &tempfile::TempDir) -> RedbDatabase {
    let mut options = RedbDatabase::builder();
    options.set_cache_size(CACHE_BYTES).create(directory.path().join("redb")).unwrap()
}

fn put_raw_redb(database: &RedbDatabase, keys: &[Key]) {
    let mut txn = database.begin_write().unwrap();
    txn.set_durability(redb::Durability::None).unwrap();
    {
        let mut table = txn.open_table(RAW_TABLE).unwrap();
        for key in keys {
            table.insert(&key[..], &VALUE[..]).unwrap();
        }
    }
    txn.commit().unwrap();
}

fn redb(keys: &[Key], asked: &[Key]) {
    compare(
        "redb: put 1 million into a new file",
        RECORDS,
        5,
        &mut [
            ("keyloom", &mut || {
                let directory = tempfile::tempdir().unwrap();
                put(&open_redb(&directory), keys);
            }),
            ("raw redb", &mut || {
                let directory = tempfile::tempdir().unwrap();
                put_raw_redb(&open_raw_redb(&directory), keys);
            }),
        ],
    );
    let directories = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, raw) = (open_redb(&directories.0), open_raw_redb(&directories.1));
    put(&store, keys);
    put_raw_redb(&raw, keys);
    compare(
        "redb: overwrite 10,000 in one transaction",
        10_000,
        41,
        &mut [
            ("keyloom", &mut || put(&store, &asked[..10_000])),
            ("raw redb", &mut || put_raw_redb(&raw, &asked[..10_000])),
        ],
    );
    let snapshot = store.snapshot().unwrap();
    let table = raw.begin_read().unwrap().open_table(RAW_TABLE).unwrap();
    let mut batches = asked.chunks(10_000).cycle();
    let mut raw_batches = batches.clone();
    compare(
        "redb: get",
        10_000,
        200,
        &mut [
            ("keyloom", &mut || {
                for key in batches.next().unwrap() {
                    black_box(snapshot.get(key).unwrap().unwrap()[0]);
                }
            }),
            ("raw redb", &mut || {
                for key in raw_batches.next().unwrap() {
                    black_box(table.get(&key[..]).unwrap().unwrap().value()[0]);
                }
            }),
        ],
    );
    compare_scans(
        "redb: scan 1 million",
        RECORDS,
        "raw redb, iter",
        || sum(&snapshot, KeyRange::all(), Order::Ascending),
        || {
            let entries = table.iter().unwrap().map(|entry| entry.unwrap());
            entries.map(|(key, value)| touch((key.value(), value.value()))).sum()
        },
    );
}

type RawFjall = (OptimisticTxDatabase, OptimisticTxKeyspace);

fn open_fjall(directory: &tempfile::TempDir) -> Fjall {
    let options = Fjall::options().durability(keyloom_fjall::Durability::MayLoseCommits);
    options.cache_bytes(CACHE_BYTES as u64).open(directory.path().join("fjall")).unwrap()
}

fn open_raw_fjall(directory: &tempfile::TempDir) -> RawFjall {
    let options = OptimisticTxDatabase::builder(directory.path().join("fjall"));
    let database = options.cache_size(CACHE_BYTES as u64).open().unwrap();
    let records = database.keyspace("records", KeyspaceCreateOptions::default).unwrap();
    (database, records)
}

fn put_raw_fjall((database, records): &RawFjall, keys: &[Key]) {
    let mut txn = database.write_tx().unwrap();
    keys.iter().for_each(|key| txn.insert(records, &key[..], &VALUE[..]));
    txn.commit().unwrap().unwrap();
}

fn fjall(keys: &[Key], asked: &[Key]) {
    let in_parts = |put: &dyn Fn(&[Key])| keys.chunks(10_000).for_each(put);
    compare(
        "fjall: put 1 million into a new store, 10,000 in a transaction",
        RECORDS,
        5,
        &mut [
            ("keyloom", &mut || {
                let directory = tempfile::tempdir().unwrap();
                let store = open_fjall(&directory);
                in_parts(&|keys| put(&store, keys));
            }),
            ("raw fjall", &mut || {
                let directory = tempfile::tempdir().unwrap();
                let raw = open_raw_fjall(&directory);
                in_parts(&|keys| put_raw_fjall(&raw, keys));
            }),
        ],
    );
    let directories = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, raw) = (open_fjall(&directories.0), open_raw_fjall(&directories.1));
    in_parts(&|keys| put(&store, keys));
    in_parts(&|keys| put_raw_fjall(&raw, keys));
    compare(
        "fjall: overwrite 10,000 in one transaction",
        10_000,
        41,
        &mut [
            ("keyloom", &mut || put(&store, &asked[..10_000])),
            ("raw fjall", &mut || put_raw_fjall(&raw, &asked[..10_000])),
        ],
    );
    let snapshot = store.snapshot().unwrap();
    let (database, records) = &raw;
    let raw_snapshot = database.read_tx();
    let mut batches = asked.chunks(10_000).cycle();
    let mut raw_batches = batches.clone();
    compare(
        "fjall: get",
        10_000,
        100,
        &mut [
            ("keyloom", &mut || {
                for key in batches.next().unwrap() {
                    black_box(snapshot.get(key).unwrap().unwrap()[0]);
                }
            }),
            ("raw fjall", &mut || {
                for key in raw_batches.next().unwrap() {
                    black_box(raw_snapshot.get(records, key).unwrap().unwrap()[0]);
                }
            }),
        ],
    );
    compare_scans(
        "fjall: scan 1 million",
        RECORDS,
        "raw fjall, iter",
        || sum(&snapshot, KeyRange::all(), Order::Ascending),
        || {
            let entries = raw_snapshot.iter(records).map(|entry| entry.into_inner().unwrap());
            entries.map(|(key, value)| touch((&key, &value))).sum()
        },
    );
}

/// The main use of each engine: one put per transaction, at random keys, without a sync.
fn small_transactions(asked: &[Key]) {
    let directories: [_; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let fjall = open_fjall(&directories[0]);
    let lmdb = open(&directories[1]);
    let redb = open_redb(&directories[2]);
    let (mut a, mut b, mut c) = (asked.chunks(100), asked.chunks(100), asked.chunks(100));
    fn each(store: &impl Store, keys: Option<&[Key]>) {
        keys.unwrap().iter().for_each(|key| put(store, &[*key]));
    }
    compare(
        "one put in a transaction: fjall, LMDB, redb",
        100,
        2_000,
        &mut [
            ("keyloom on fjall", &mut || each(&fjall, a.next())),
            ("keyloom on LMDB", &mut || each(&lmdb, b.next())),
            ("keyloom on redb", &mut || each(&redb, c.next())),
        ],
    );
}

/// The same with a sync at each commit.
fn durable_transactions(asked: &[Key]) {
    let directories: [_; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let fjall = Fjall::open(directories[0].path().join("fjall")).unwrap();
    let lmdb = Lmdb::options().map_bytes(MAP_BYTES).open(directories[1].path()).unwrap();
    let redb = Redb::open(directories[2].path().join("redb")).unwrap();
    let (mut a, mut b, mut c) = (asked.iter(), asked.iter(), asked.iter());
    compare(
        "one durable put in a transaction: fjall, LMDB, redb",
        1,
        500,
        &mut [
            ("keyloom on fjall", &mut || put(&fjall, &[*a.next().unwrap()])),
            ("keyloom on LMDB", &mut || put(&lmdb, &[*b.next().unwrap()])),
            ("keyloom on redb", &mut || put(&redb, &[*c.next().unwrap()])),
        ],
    );
}

/// Reads every entry of a range.
fn sum(reader: &impl Reader, range: KeyRange<'_>, order: Order) -> u64 {
    reader
        .range(range, order)
        .unwrap()
        .map(|entry| {
            let (key, value) = entry.unwrap();
            touch((&key, &value))
        })
        .sum()
}

fn compare_scans(
    name: &str,
    entries: usize,
    peer: &str,
    mut ours: impl FnMut() -> u64,
    mut theirs: impl FnMut() -> u64,
) {
    compare(
        name,
        entries,
        41,
        &mut [
            ("keyloom", &mut || {
                black_box(ours());
            }),
            (peer, &mut || {
                black_box(theirs());
            }),
        ],
    );
}

fn memory(keys: &[Key], asked: &[Key]) {
    let store = Memory::new();
    put(&store, keys);
    let mut map: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for key in keys {
        map.insert(key.to_vec(), VALUE.to_vec());
    }
    let snapshot = store.snapshot().unwrap();
    let mut batches = asked.chunks(10_000).cycle();
    let mut map_batches = batches.clone();
    compare(
        "memory: get",
        10_000,
        300,
        &mut [
            ("keyloom", &mut || {
                for key in batches.next().unwrap() {
                    black_box(snapshot.get(key).unwrap().unwrap()[0]);
                }
            }),
            ("BTreeMap", &mut || {
                for key in map_batches.next().unwrap() {
                    black_box(map.get(&key[..]).unwrap()[0]);
                }
            }),
        ],
    );
    compare_scans(
        "memory: scan 1 million",
        RECORDS,
        "BTreeMap",
        || sum(&snapshot, KeyRange::all(), Order::Ascending),
        || map.iter().map(|(key, value)| touch((key, value))).sum(),
    );
    compare(
        "memory: put 1 million, one transaction",
        RECORDS,
        5,
        &mut [
            ("keyloom", &mut || put(&Memory::new(), keys)),
            ("BTreeMap", &mut || {
                let mut map: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
                for key in keys {
                    map.insert(key.to_vec(), VALUE.to_vec());
                }
                black_box(map.len());
            }),
        ],
    );
    compare(
        "memory: snapshot (against a clone of 1 million)",
        1,
        5,
        &mut [
            ("keyloom", &mut || drop(black_box(store.snapshot().unwrap()))),
            ("BTreeMap::clone", &mut || drop(black_box(map.clone()))),
        ],
    );
}
