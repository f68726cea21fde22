//! Concurrent changes.

use keyloom::{Reader, Result, Store, Transaction, Writer};
use keyloom_tables::Schema;
use keyloom_testing::optimistic_memory;

use super::fresh;

/// Each move alone is allowed; together they would create a cycle of two directories.
#[test]
fn two_moves_never_make_a_circle() {
    let store = optimistic_memory();
    let files = fresh(&store);
    store
        .transact(|txn| {
            files.create_directory(txn, "/a")?;
            files.create_directory(txn, "/b")?;
            files.create_directory(txn, "/b/c").map(drop)
        })
        .unwrap();
    let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
    files.rename(&mut one, "/a", "/b/c/a").unwrap();
    files.rename(&mut two, "/b", "/a/b").unwrap();
    one.commit().unwrap();
    let error = two.commit().unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let again = store.transact(|txn| files.rename(txn, "/b", "/a/b")).unwrap_err();
    assert!(again.to_string().contains("no entry \"a\""), "{again}");
}

/// A file cannot be written into a directory that is concurrently removed.
#[test]
fn a_file_is_not_lost_in_a_directory_that_is_removed() {
    let store = optimistic_memory();
    let files = fresh(&store);
    store.transact(|txn| files.create_directory(txn, "/a")).unwrap();
    let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
    files.write(&mut one, "/a/file", b"text").unwrap();
    files.remove(&mut two, "/a").unwrap();
    one.commit().unwrap();
    assert!(two.commit().unwrap_err().is_retryable());
    let again = store.transact(|txn| files.remove(txn, "/a")).unwrap_err();
    assert!(again.to_string().contains("has entries"), "{again}");
}

/// Each transaction allocates its id from a different shard.
#[test]
fn directories_created_side_by_side_do_not_conflict() {
    let store = optimistic_memory();
    let files = fresh(&store);
    let create = |path: &str| store.transact(|txn| files.create_directory(txn, path)).unwrap();
    create("/a");
    create("/b");
    // Each shard allocates its first block.
    let mut ids: Vec<u32> = (0..200).map(|n| create(&format!("/a/{n}"))).collect();
    let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
    ids.push(files.create_directory(&mut one, "/a/new").unwrap());
    ids.push(files.create_directory(&mut two, "/b/new").unwrap());
    assert_ne!(ids[200] / 256, ids[201] / 256, "two names of the same shard");
    one.commit().unwrap();
    two.commit().unwrap();
    // Enough files to exhaust several blocks.
    for some in (0..16 * 300).collect::<Vec<u32>>().chunks(400) {
        let paths = some.iter().map(|n| format!("/b/{n}"));
        let created = store.transact(|txn| {
            paths.clone().map(|path| files.create_directory(txn, &path)).collect::<Result<Vec<_>>>()
        });
        ids.extend(created.unwrap());
    }
    let many = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), many);
}

/// The files of an older store have consecutive ids, without shards.
#[test]
fn new_ids_are_after_those_of_an_older_store() {
    let store = keyloom_testing::memory();
    let files = fresh(&store);
    let schema = Schema::open(&store, "files").unwrap();
    let last = schema.table::<u8, u32>("last").unwrap().space().clone();
    let first = store.transact(|txn| files.create_directory(txn, "/a")).unwrap();
    store
        .transact(|txn| {
            let value = txn.get(&last.pack(&0_u8))?.unwrap().to_vec();
            txn.delete_range(last.range())?;
            txn.put(&last.pack(&0_u8), &value)
        })
        .unwrap();
    let next = store.transact(|txn| files.create_directory(txn, "/b")).unwrap();
    assert!(next >= first + 256, "{next} after {first}");
}
