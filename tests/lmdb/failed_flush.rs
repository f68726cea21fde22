//! A failed sync. The system reports it only once, so the store must remember it.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use super::*;

/// The descriptor with which the engine syncs the data of `store`.
fn data_descriptor(store: &Lmdb) -> RawFd {
    let data = store.path().join("data.mdb");
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let mut found = descriptors.filter(|link| fs::read_link(link).is_ok_and(|to| to == data));
    let name = found.next().unwrap();
    name.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Runs `work` while `descriptor` refers to a file that cannot be synced.
fn with_failing_sync<T>(descriptor: RawFd, work: impl FnOnce() -> T) -> T {
    let unwaitable = File::open("/proc/self/status").unwrap();
    // SAFETY: the descriptor is restored before anything else can use it.
    unsafe {
        let saved = libc::dup(descriptor);
        assert!(saved >= 0 && libc::dup2(unwaitable.as_raw_fd(), descriptor) == descriptor);
        let outcome = work();
        assert!(libc::dup2(saved, descriptor) == descriptor && libc::close(saved) == 0);
        outcome
    }
}

fn fail_flush(durability: Durability) -> (tempfile::TempDir, Lmdb) {
    let directory = tempdir().unwrap();
    let store = Lmdb::options().durability(durability).open(directory.path()).unwrap();
    fill(&store, 10).unwrap();
    let error = with_failing_sync(data_descriptor(&store), || store.flush().unwrap_err());
    assert!(matches!(error, Error::Storage(StorageError::Io { .. })), "{error:?}");
    (directory, store)
}

#[test]
fn failed_flush_is_remembered_by_lax_modes() {
    for durability in [Durability::MayLoseLastCommit, Durability::MayLoseStore] {
        let (directory, store) = fail_flush(durability);
        // The disk works again, but the lost data stays lost.
        let refused = [store.flush().unwrap_err(), store.begin().map(drop).unwrap_err()];
        let is_unusable =
            |error: &Error| matches!(error, Error::Storage(StorageError::Unusable { .. }));
        assert!(refused.iter().all(is_unusable), "{durability:?}: {refused:?}");
        assert_eq!(count(&store), 10, "reading goes on");
        drop(store);
        let store = Lmdb::options().durability(durability).open(directory.path()).unwrap();
        fill(&store, 20).unwrap();
        store.flush().unwrap();
    }
}

#[test]
fn failed_flush_is_no_loss_where_each_commit_waits() {
    let (_directory, store) = fail_flush(Durability::Full);
    fill(&store, 20).unwrap();
    store.flush().unwrap();
    assert_eq!(count(&store), 20);
}
