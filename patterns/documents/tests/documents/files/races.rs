//! Changes side by side.

use keyloom::{Store, Transaction};
use keyloom_testing::optimistic_memory;

use super::fresh;

/// Each move alone is allowed; together they would put two directories into each other.
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

/// A file cannot be written into a directory that is removed at the same time.
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
