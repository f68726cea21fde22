//! Snapshots of killed processes while a writer continues, and snapshots that live.

use keyloom::{LmdbError, OldestReader, StorageError};

use super::*;
use crate::child::Holder;

const MIB: u64 = 1 << 20;

/// Puts `count` values of 1,000 bytes on 100 keys in turn, one per transaction.
fn put_one_by_one(store: &Lmdb, count: u32) -> keyloom::Result<()> {
    (0..count)
        .try_for_each(|n| store.transact(|txn| txn.put(&(n % 100).to_be_bytes(), &[n as u8; 1000])))
}

fn with_max_map(path: &Path, bytes: usize) -> Lmdb {
    quick().map_bytes(bytes).max_map_bytes(bytes).max_readers(3).open(path).unwrap()
}

fn kill_a_reader(store: &Lmdb) {
    Holder::start(store.path(), 1).kill();
}

#[test]
fn dead_reader_leaves_the_file_small() {
    let directory = tempdir().unwrap();
    let store = quick().max_readers(3).open(directory.path()).unwrap();
    put_one_by_one(&store, 100).unwrap();
    kill_a_reader(&store);
    put_one_by_one(&store, 3_000).unwrap();
    let statistics = store.statistics().unwrap();
    assert!(statistics.file_bytes < 2 * MIB, "{statistics:?}");
}

#[test]
fn dead_readers_are_counted_and_cleared_by_statistics() {
    let directory = tempdir().unwrap();
    let store = quick().max_readers(3).open(directory.path()).unwrap();
    assert_eq!(store.statistics().unwrap().dead_readers, 0);
    Holder::start(store.path(), 2).kill();
    let statistics = store.statistics().unwrap();
    assert_eq!((statistics.dead_readers, statistics.oldest_reader), (2, None));
    kill_a_reader(&store);
    assert_eq!(store.statistics().unwrap().dead_readers, 3);
    assert_eq!(store.statistics().unwrap().dead_readers, 3);
}

#[test]
fn dead_reader_does_not_fill_a_bounded_map() {
    let directory = tempdir().unwrap();
    let store = with_max_map(directory.path(), 4 << 20);
    put_one_by_one(&store, 100).unwrap();
    kill_a_reader(&store);
    put_one_by_one(&store, 3_000).unwrap();
}

/// Deletes data that a reader in another process sees.
fn delete_beside_a_reader(store: &Lmdb) -> Option<Holder> {
    fill(store, 2_000).unwrap();
    store.transact(|txn| txn.put(b"another", b"")).unwrap();
    let reader = Holder::start(store.path(), 1);
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    store.transact(|txn| txn.put(b"another", b"")).unwrap();
    Some(reader)
}

/// Deletes data that a reader in another process sees, and writes as much again. Kills the reader
/// within this transaction; if it were killed before, the writer would clear the slot. Returns how
/// often the transaction ran.
fn replace_all(store: &Lmdb) -> u32 {
    let mut reader = delete_beside_a_reader(store);
    let mut runs = 0;
    let put_all = |txn: &mut keyloom::lmdb::LmdbTransaction<'_>| {
        runs += 1;
        drop(reader.take().map(Holder::kill));
        (0..2_000u32).try_for_each(|n| txn.put(&n.to_be_bytes(), &[8; 1000]))
    };
    store.transact(put_all).unwrap();
    assert_eq!(store.statistics().unwrap().dead_readers, 1);
    runs
}

#[test]
fn full_map_clears_a_dead_reader_and_runs_again() {
    let directory = tempdir().unwrap();
    assert_eq!(replace_all(&with_max_map(directory.path(), 4 << 20)), 2);
}

#[test]
fn full_map_clears_a_dead_reader_before_it_grows() {
    let directory = tempdir().unwrap();
    let store = quick().map_bytes(4 << 20).max_readers(3).open(directory.path()).unwrap();
    assert_eq!(replace_all(&store), 2);
    assert_eq!(store.statistics().unwrap().map_bytes, 4 << 20);
}

#[test]
fn full_map_runs_bodies_with_errors_of_their_own_again() {
    let directory = tempdir().unwrap();
    let store = with_max_map(directory.path(), 4 << 20);
    let mut reader = delete_beside_a_reader(&store);
    let put = |txn: &mut keyloom::lmdb::LmdbTransaction<'_>, n: u32| {
        txn.put(&n.to_be_bytes(), &[8; 1000]).map_err(|error| Text(error.to_string()))
    };
    let put_all = |txn: &mut keyloom::lmdb::LmdbTransaction<'_>| {
        drop(reader.take().map(Holder::kill));
        (0..2_000u32).try_for_each(|n| put(txn, n))
    };
    store.try_transact(put_all).unwrap();
}

/// An error that has lost its source.
#[derive(Debug)]
struct Text(#[allow(dead_code)] String);

impl From<Error> for Text {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

#[test]
fn full_disk_clears_a_dead_reader_and_runs_again() {
    let directory = tempdir().unwrap();
    run_child(Child::DiskFullBesideDeadReader, directory.path());
}

/// Runs in a process with a file size limit of 4 MiB.
pub fn fill_disk(path: &Path) {
    let store = quick().max_readers(3).open(path).unwrap();
    assert_eq!(replace_all(&store), 2);
    let reader = store.snapshot().unwrap();
    let error = put_one_by_one(&store, 3_000).unwrap_err();
    assert!(
        matches!(error, Error::Storage(StorageError::DiskFull { .. })) && !error.is_retryable(),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains("this process") && text.contains(" ms and "), "{text}");
    drop(reader);
    put_one_by_one(&store, 3_000).unwrap();
}

#[test]
fn full_map_names_the_live_reader_of_another_process() {
    let directory = tempdir().unwrap();
    let store = with_max_map(directory.path(), 1 << 20);
    put_one_by_one(&store, 10).unwrap();
    let reader = Holder::start(store.path(), 1);
    // The first transactions run only once: nothing was cleared.
    let mut runs = 0;
    let error = (0..).find_map(|n: u32| {
        runs = 0;
        let put = |txn: &mut keyloom::lmdb::LmdbTransaction<'_>| {
            runs += 1;
            txn.put(&(n % 10).to_be_bytes(), &[1; 1000])
        };
        store.transact(put).err()
    });
    let error = error.unwrap();
    assert_eq!(runs, 1);
    assert!(
        matches!(error, Error::Lmdb(LmdbError::MapFull { .. })) && !error.is_retryable(),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains(&format!("process {}", reader.id())), "{text}");
    assert!(text.contains("commits old"), "{text}");
    let oldest = store.statistics().unwrap().oldest_reader.unwrap();
    assert_eq!((oldest.process, oldest.age), (reader.id(), None));
    assert!(oldest.commits > 10, "{oldest:?}");
    reader.kill();
    put_one_by_one(&store, 1_000).unwrap();
}

#[test]
fn full_map_names_the_age_of_a_reader_of_this_process() {
    let directory = tempdir().unwrap();
    let store = with_max_map(directory.path(), 1 << 20);
    put_one_by_one(&store, 10).unwrap();
    let reader = store.snapshot().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let error = put_one_by_one(&store, 1_000).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Lmdb(LmdbError::MapFull { .. })), "{error}");
    assert!(text.contains("this process") && text.contains(" ms and "), "{text}");
    let Some(OldestReader { process, age: Some(age), .. }) =
        store.statistics().unwrap().oldest_reader
    else {
        panic!("the reader is not counted");
    };
    assert_eq!(process, std::process::id());
    assert!(age >= Duration::from_millis(20));
    drop(reader);
    put_one_by_one(&store, 1_000).unwrap();
}

#[test]
fn taken_slots_of_dead_readers_are_free_for_the_next() {
    let directory = tempdir().unwrap();
    let store = quick().max_readers(3).open(directory.path()).unwrap();
    Holder::start(store.path(), 3).kill();
    let held: Vec<_> = (0..3).map(|_| store.snapshot().unwrap()).collect();
    assert_eq!(held.len(), 3);
    let error = store.snapshot().unwrap_err();
    assert!(matches!(error, Error::Lmdb(LmdbError::ReadersFull { max_readers: 3 })), "{error}");
}

#[test]
fn readers_full_names_the_slots_of_the_lock_file() {
    let directory = tempdir().unwrap();
    drop(quick().max_readers(5).open(directory.path()).unwrap());
    // The lock file keeps the size from the first open.
    let store = quick().max_readers(3).open(directory.path()).unwrap();
    let held: Vec<_> = (0..5).map(|_| store.snapshot().unwrap()).collect();
    let error = store.snapshot().unwrap_err();
    assert!(matches!(error, Error::Lmdb(LmdbError::ReadersFull { max_readers: 5 })), "{error}");
    drop(held);
}
