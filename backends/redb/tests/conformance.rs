//! redb satisfies the laws of the store, and errors of its file are mapped to variants.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;

use keyloom::{
    AnyStore, BoxedError, Error, Faulty, KeyRange, Metered, Order, Reader, StorageError, Store,
    Transaction, Writer,
};
use keyloom_conformance::{Reopening, With};
use keyloom_redb::{Durability, Redb};
use tempfile::TempDir;

type Temporary<S> = Result<With<S, TempDir>, BoxedError>;

fn redb(durability: Durability) -> Temporary<Redb> {
    let directory = tempfile::tempdir()?;
    let options = Redb::options().durability(durability).cache_bytes(1 << 24);
    Ok(With(options.open(directory.path().join("store"))?, directory))
}

fn wrapped<S: Store>(wrap: impl Fn(Redb) -> S) -> Temporary<S> {
    let With(store, directory) = redb(Durability::MayLoseCommits)?;
    Ok(With(wrap(store), directory))
}

#[test]
fn redb_keeps_the_laws() {
    keyloom_conformance::check(|| {
        Reopening::open(tempfile::tempdir()?, |directory| {
            let options = Redb::options().durability(Durability::MayLoseCommits);
            Ok(options.cache_bytes(1 << 24).open(directory.path().join("store"))?)
        })
    });
}

#[test]
fn redb_with_full_durability_keeps_the_laws() {
    keyloom_conformance::check(|| redb(Durability::Full));
}

#[test]
fn metered_redb_keeps_the_laws() {
    keyloom_conformance::check(|| wrapped(Metered::new));
}

#[test]
fn faulty_redb_without_a_fault_keeps_the_laws() {
    keyloom_conformance::check(|| wrapped(Faulty::new));
}

#[test]
fn redb_as_any_store_keeps_the_laws() {
    keyloom_conformance::check(|| wrapped(|store| AnyStore::other("redb:", store)));
}

#[test]
fn a_reopened_store_has_the_commits_of_both_durabilities() {
    for durability in [Durability::Full, Durability::MayLoseCommits] {
        let With(store, directory) = redb(durability).unwrap();
        store.transact(|txn| txn.put(b"a", b"1")).unwrap();
        let path = directory.path().join("store");
        drop(store);
        let store = Redb::options().create(false).open(path).unwrap();
        assert_eq!(store.snapshot().unwrap().get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    }
}

/// Copies the file while the store is open, which gives the state after a crash of the program.
#[test]
fn a_copy_of_an_open_file_has_durable_commits_only() {
    let found_in_copy = |flush: bool| {
        let With(store, directory) = redb(Durability::MayLoseCommits).unwrap();
        store.transact(|txn| txn.put(b"a", b"1")).unwrap();
        if flush {
            store.flush().unwrap();
        }
        let copy = directory.path().join("copy");
        fs::copy(store.path(), &copy).unwrap();
        let copy = Redb::open(copy).unwrap();
        let snapshot = copy.snapshot().unwrap();
        snapshot.get(b"a").unwrap().is_some()
    };
    assert!(!found_in_copy(false));
    assert!(found_in_copy(true));
}

#[test]
fn a_value_read_in_a_transaction_is_a_slice_of_its_page() {
    let With(store, _directory) = redb(Durability::MayLoseCommits).unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    let txn = store.begin().unwrap();
    let (one, two) = (txn.get(b"a").unwrap().unwrap(), txn.get(b"a").unwrap().unwrap());
    assert_eq!(one.as_ptr(), two.as_ptr());
    let snapshot = store.snapshot().unwrap();
    let (one, two) = (snapshot.get(b"a").unwrap().unwrap(), snapshot.get(b"a").unwrap().unwrap());
    assert_eq!(one.as_ptr(), two.as_ptr());
}

#[test]
fn the_count_of_all_keys_is_that_of_a_walk() {
    let With(store, _directory) = redb(Durability::MayLoseCommits).unwrap();
    let mut txn = store.begin().unwrap();
    for key in 0..300_u16 {
        txn.put(&key.to_be_bytes(), b"").unwrap();
    }
    txn.delete_range(KeyRange::prefix(&[0])).unwrap();
    assert_eq!(txn.count(KeyRange::all()).unwrap(), 44);
    assert_eq!(txn.range(KeyRange::all(), Order::Descending).unwrap().count(), 44);
    txn.commit().unwrap();
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 44);
}

#[test]
fn a_second_open_of_the_file_is_refused() {
    let With(store, _directory) = redb(Durability::Full).unwrap();
    assert!(matches!(Redb::open(store.path()), Err(Error::Storage(StorageError::InUse { .. }))));
}

#[test]
fn a_missing_file_or_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        |name: &str, create| Redb::options().create(create).open(directory.path().join(name));
    assert!(matches!(open("store", false), Err(Error::Storage(StorageError::MissingStore { .. }))));
    assert!(matches!(
        open("no/store", true),
        Err(Error::Storage(StorageError::MissingDirectory { .. }))
    ));
    assert!(!directory.path().join("store").exists());
}

#[test]
fn a_file_of_another_kind_is_not_a_store_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    fs::write(&text, "a text of another program".repeat(1_000)).unwrap();
    assert!(matches!(Redb::open(&text), Err(Error::Storage(StorageError::NotAStore { .. }))));
    assert!(fs::read_to_string(&text).unwrap().starts_with("a text"));

    let other = directory.path().join("other");
    let database = redb::Database::create(&other).unwrap();
    let txn = database.begin_write().unwrap();
    let table = redb::TableDefinition::<u64, u64>::new("numbers");
    txn.open_table(table).unwrap().insert(1, 2).unwrap();
    txn.commit().unwrap();
    drop(database);
    assert!(matches!(Redb::open(&other), Err(Error::Storage(StorageError::NotAStore { .. }))));
}

#[test]
fn an_empty_file_is_not_a_store_and_stays_empty() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    fs::write(&path, "").unwrap();
    assert!(matches!(Redb::open(&path), Err(Error::Storage(StorageError::NotAStore { .. }))));
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
}

#[test]
fn creating_a_store_leaves_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let _store = Redb::open(directory.path().join("store")).unwrap();
    let files: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["store"]);
}

/// Each thread creates the store and opens it. One of them succeeds, and its commit is stored.
#[test]
fn of_threads_that_create_one_store_one_opens_it() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let create = || match Redb::open(&path) {
            Ok(store) => {
                store.transact(|txn| txn.add(b"opened", 1)).unwrap();
                true
            }
            Err(Error::Storage(StorageError::InUse { .. })) => false,
            Err(other) => panic!("{other}"),
        };
        let opened = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .filter(|opened| *opened)
                .count()
        });
        let store = Redb::open(&path).unwrap();
        assert!(opened > 0);
        assert_eq!(store.snapshot().unwrap().counter(b"opened").unwrap(), opened as i64);
    }
}

#[test]
fn a_newer_format_is_refused() {
    let With(store, directory) = redb(Durability::Full).unwrap();
    drop(store);
    let path = directory.path().join("store");
    let database = redb::Database::open(&path).unwrap();
    let txn = database.begin_write().unwrap();
    let meta = redb::TableDefinition::<&str, u32>::new("keyloom.meta");
    txn.open_table(meta).unwrap().insert("format", 2).unwrap();
    txn.commit().unwrap();
    drop(database);
    assert!(matches!(Redb::open(&path), Err(Error::NewerFormat { found: 2, supported: 1, .. })));
}

#[test]
fn a_nested_transaction_is_refused() {
    let With(store, _directory) = redb(Durability::Full).unwrap();
    let _txn = store.begin().unwrap();
    assert!(matches!(store.clone().begin(), Err(Error::NestedTransaction)));
    assert!(matches!(store.flush(), Err(Error::NestedTransaction)));
}

#[test]
fn an_address_that_is_not_of_redb_is_refused() {
    for address in ["lmdb:store", "redb:", "redb"] {
        assert!(
            matches!(Redb::open_address(address), Err(Error::InvalidArgument { .. })),
            "{address}"
        );
    }
}
