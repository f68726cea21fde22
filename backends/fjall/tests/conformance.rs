//! fjall satisfies the laws of the store, and errors of its directory are mapped to variants.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;

use keyloom::{
    AnyStore, BoxedError, Error, KeyRange, Order, Reader, StorageError, Store, Transaction, Writer,
};
use keyloom_conformance::{Reopening, With};
use keyloom_fjall::{Durability, Fjall};
use tempfile::TempDir;

type Temporary<S> = Result<With<S, TempDir>, BoxedError>;

/// A temporary directory, in `/dev/shm` if the system has it.
fn scratch() -> std::io::Result<TempDir> {
    let memory = std::path::Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir())
}

fn fjall(durability: Durability) -> Temporary<Fjall> {
    let directory = scratch()?;
    let options = Fjall::options().durability(durability).cache_bytes(1 << 24);
    Ok(With(options.open(directory.path().join("store"))?, directory))
}

#[test]
fn fjall_keeps_the_laws() {
    keyloom_conformance::check(|| {
        Reopening::open(scratch()?, |directory| {
            let options = Fjall::options().durability(Durability::MayLoseCommits);
            Ok(options.cache_bytes(1 << 24).open(directory.path().join("store"))?)
        })
    });
}

#[test]
fn fjall_with_full_durability_keeps_the_laws() {
    keyloom_conformance::check(|| fjall(Durability::Full));
}

#[test]
fn a_reopened_store_has_the_commits_of_both_durabilities() {
    for durability in [Durability::Full, Durability::MayLoseCommits] {
        let With(store, directory) = fjall(durability).unwrap();
        store.transact(|txn| txn.put(b"a", b"1")).unwrap();
        let path = directory.path().join("store");
        drop(store);
        let store = Fjall::options().create(false).open(path).unwrap();
        assert_eq!(store.snapshot().unwrap().get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    }
}

/// Copies the directory while the store is open, which gives the state after a crash of the
/// program.
#[test]
fn a_copy_of_an_open_directory_has_the_commits() {
    let With(store, directory) = fjall(Durability::Full).unwrap();
    for n in 0..1_000_u32 {
        store.transact(|txn| txn.put(&n.to_be_bytes(), &[7; 100])).unwrap();
    }
    let copy = directory.path().join("copy");
    copy_all(store.path(), &copy);
    let copy = Fjall::open(copy).unwrap();
    assert_eq!(copy.snapshot().unwrap().count(KeyRange::all()).unwrap(), 1_000);
}

fn copy_all(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match source.is_dir() {
            true => copy_all(&source, &target),
            false => drop(fs::copy(source, target).unwrap()),
        }
    }
}

/// The order also holds after the memtables were flushed to files and compacted.
#[test]
fn many_writes_are_read_in_order_from_files_and_memory() {
    let With(store, _directory) = fjall(Durability::MayLoseCommits).unwrap();
    let value = [7; 10_000];
    for n in (0..8_000_u32).map(|n| n.wrapping_mul(2_654_435_761)) {
        store.transact(|txn| txn.put(&n.to_be_bytes(), &value)).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let (mut last, mut count) = (None, 0);
    for entry in snapshot.range(KeyRange::all(), Order::Ascending).unwrap() {
        let (key, found) = entry.unwrap();
        assert!(last.as_deref() < Some(&key[..]) && found[..] == value);
        last = Some(key.to_vec());
        count += 1;
    }
    assert_eq!(count, 8_000);
}

#[test]
fn writers_of_different_keys_do_not_conflict() {
    let With(store, _directory) = fjall(Durability::MayLoseCommits).unwrap();
    let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
    one.put(b"a", b"1").unwrap();
    assert_eq!(two.get(b"b").unwrap(), None);
    two.put(b"c", b"2").unwrap();
    one.commit().unwrap();
    two.commit().unwrap();

    let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
    two.delete_range(KeyRange::prefix(b"a")).unwrap();
    one.put(b"ab", b"1").unwrap();
    one.commit().unwrap();
    assert!(matches!(two.commit(), Err(Error::Conflict { .. })));
}

#[test]
fn a_second_open_of_the_directory_is_refused() {
    let With(store, _directory) = fjall(Durability::Full).unwrap();
    let again = Fjall::open(store.path());
    assert!(matches!(again, Err(Error::Storage(StorageError::InUse { .. }))), "{again:?}");
}

#[test]
fn a_missing_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        |name: &str, create| Fjall::options().create(create).open(directory.path().join(name));
    assert!(matches!(open("store", false), Err(Error::Storage(StorageError::MissingStore { .. }))));
    assert!(matches!(
        open("no/store", true),
        Err(Error::Storage(StorageError::MissingDirectory { .. }))
    ));
    assert!(!directory.path().join("store").exists());
}

#[test]
fn what_is_not_a_store_is_refused_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    fs::write(&text, "a text of another program").unwrap();
    for path in [&text, directory.path()] {
        let opened = Fjall::open(path);
        assert!(
            matches!(opened, Err(Error::Storage(StorageError::NotAStore { .. }))),
            "{opened:?}"
        );
    }
    assert_eq!(fs::read_to_string(&text).unwrap(), "a text of another program");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);

    let other = directory.path().join("other");
    let database = fjall::Database::builder(&other).open().unwrap();
    let numbers = database.keyspace("numbers", fjall::KeyspaceCreateOptions::default).unwrap();
    numbers.insert("one", "1").unwrap();
    drop((numbers, database));
    let opened = Fjall::open(&other);
    assert!(matches!(opened, Err(Error::Storage(StorageError::NotAStore { .. }))), "{opened:?}");
}

#[test]
fn an_empty_directory_becomes_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = Fjall::open(directory.path()).unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
}

#[test]
fn creating_a_store_leaves_one_directory() {
    let directory = tempfile::tempdir().unwrap();
    let _store = Fjall::open(directory.path().join("store")).unwrap();
    let files: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["store"]);
}

/// Each thread creates the store and opens it. One of them succeeds, and its commit is stored.
#[test]
fn of_threads_that_create_one_store_one_opens_it() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let create = || match Fjall::open(&path) {
            Ok(store) => {
                store.transact(|txn| txn.add(b"opened", 1)).unwrap();
                true
            }
            Err(Error::Storage(StorageError::InUse { .. })) => false,
            Err(other) => panic!("{other}"),
        };
        let opened = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
            let opened = threads.into_iter().map(|thread| thread.join().unwrap());
            opened.filter(|opened| *opened).count()
        });
        let store = Fjall::open(&path).unwrap();
        assert!(opened > 0);
        assert_eq!(store.snapshot().unwrap().counter(b"opened").unwrap(), opened as i64);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }
}

#[test]
fn a_newer_format_is_refused() {
    let With(store, directory) = fjall(Durability::Full).unwrap();
    drop(store);
    let path = directory.path().join("store");
    let database = fjall::Database::builder(&path).open().unwrap();
    let meta = database.keyspace("keyloom.meta", fjall::KeyspaceCreateOptions::default).unwrap();
    meta.insert("format", 2_u32.to_be_bytes()).unwrap();
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    drop((meta, database));
    let opened = Fjall::open(&path);
    assert!(matches!(opened, Err(Error::NewerFormat { found: 2, supported: 1, .. })), "{opened:?}");
}

#[test]
fn an_address_that_is_not_of_fjall_is_refused() {
    for address in ["lmdb:store", "fjall:", "fjall"] {
        let opened: Result<AnyStore, _> = Fjall::open_address(address);
        assert!(matches!(opened, Err(Error::InvalidArgument { .. })), "{address}");
    }
}
