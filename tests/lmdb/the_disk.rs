//! The disk: when it is full, and durability.

use super::*;

#[test]
fn that_is_full_is_an_error_and_the_store_continues() {
    let directory = tempdir().unwrap();
    run_child(Child::DiskFull, directory.path());
    let store = quick().create(false).open(directory.path()).unwrap();
    assert_eq!(count(&store), 101);
}

/// If a page of the lock file could not be allocated on a full disk, the process would be killed.
#[test]
#[cfg(target_os = "linux")]
fn holds_the_whole_lock_file_before_a_slot_is_taken() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempdir().unwrap();
    let _store = quick().max_readers(5_000).open(directory.path()).unwrap();
    let file = fs::metadata(directory.path().join("lock.mdb")).unwrap();
    assert!(file.len() > 5_000 * 64 - 64 && file.blocks() * 512 >= file.len(), "{file:?}");
}

#[test]
fn gets_what_each_durability_says_and_everything_after_a_flush() {
    for durability in [Durability::Full, Durability::MayLoseLastCommit, Durability::MayLoseStore] {
        let directory = tempdir().unwrap();
        let store = Lmdb::options().durability(durability).open(directory.path()).unwrap();
        assert_eq!(store.durability(), durability);
        fill(&store, 10).unwrap();
        store.flush().unwrap();
        drop(store);
        assert_eq!(count(&Lmdb::open(directory.path()).unwrap()), 10);
    }
    assert_eq!(Durability::default(), Durability::Full);
}
