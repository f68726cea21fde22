//! One handle per file, one transaction per thread, one process per handle.

use super::*;

fn refused(path: &Path) {
    let error = quick().open(path).unwrap_err();
    assert!(matches!(error, Error::Lmdb(LmdbError::AlreadyOpen { .. })), "{error}");
    assert!(error.to_string().contains("clone that handle"));
}

#[test]
fn per_file_however_it_is_called() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = quick().open(&path).unwrap();
    refused(&path);
    refused(&directory.path().join("store/../store"));
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    refused(&link);
    let hard = directory.path().join("hard");
    fs::create_dir(&hard).unwrap();
    fs::hard_link(path.join("data.mdb"), hard.join("data.mdb")).unwrap();
    refused(&hard);
    let clone = store.clone();
    drop(store);
    refused(&path);
    drop(clone);
    quick().open(&path).unwrap();
}

#[test]
fn and_one_transaction_per_thread() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let _open = store.begin().unwrap();
    let error = store.transact(|txn| txn.put(b"a", b"")).unwrap_err();
    assert!(matches!(error, Error::NestedTransaction), "{error}");
}

#[test]
fn is_not_usable_after_a_fork() {
    let directory = tempdir().unwrap();
    run_child(Child::Fork, directory.path());
    run_child(Child::ForkWhileAnotherThreadWrites, directory.path());
    run_child(Child::CommitInAFork, directory.path());
}
