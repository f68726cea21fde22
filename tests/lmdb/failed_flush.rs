//! A failed sync. The system reports it only once, so the store must remember it.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use super::*;

/// The descriptors with which the engine writes and syncs the data of `store`. It has two, and
/// either may have the lower number, because other tests open and close files at the same time.
fn data_descriptors(store: &Lmdb) -> Vec<RawFd> {
    let data = store.path().join("data.mdb");
    let open = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let of_data = open.filter(|link| fs::read_link(link).is_ok_and(|to| to == data));
    of_data.map(|link| link.file_name().unwrap().to_str().unwrap().parse().unwrap()).collect()
}

/// Runs `work` while `descriptors` refer to a file that cannot be synced.
fn with_failing_sync<T>(descriptors: &[RawFd], work: impl FnOnce() -> T) -> T {
    let unwaitable = File::open("/proc/self/status").unwrap();
    // SAFETY: the descriptors are restored before anything else can use them.
    unsafe {
        let replace = |&descriptor: &RawFd| {
            let saved = libc::dup(descriptor);
            assert!(saved >= 0 && libc::dup2(unwaitable.as_raw_fd(), descriptor) == descriptor);
            (descriptor, saved)
        };
        let replaced: Vec<_> = descriptors.iter().map(replace).collect();
        let outcome = work();
        for (descriptor, saved) in replaced {
            assert!(libc::dup2(saved, descriptor) == descriptor && libc::close(saved) == 0);
        }
        outcome
    }
}

fn fail_flush(durability: Durability) -> (tempfile::TempDir, Lmdb) {
    let directory = tempdir().unwrap();
    let store = Lmdb::options().durability(durability).open(directory.path()).unwrap();
    fill(&store, 10).unwrap();
    let error = with_failing_sync(&data_descriptors(&store), || store.flush().unwrap_err());
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
