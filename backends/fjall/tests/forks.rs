//! A child that forks from a program with an open store.
#![cfg(unix)]
#![allow(clippy::unwrap_used, unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use keyloom::{Error, Reader, Store, Writer};
use keyloom_fjall::Fjall;

/// The files of the store, with their bytes.
fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if path.is_file() {
        return [(path.to_owned(), std::fs::read(path).unwrap())].into();
    }
    let entries = std::fs::read_dir(path).unwrap();
    entries.flat_map(|entry| files(&entry.unwrap().path())).collect()
}

#[test]
fn a_forked_child_is_refused_and_does_not_close_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Fjall::options().open(&path).unwrap();
    store.transact(|txn| txn.put(b"before", b"1")).unwrap();
    let before = files(&path);
    // SAFETY: the child touches the store, prints nothing and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child if it waits for a thread that only its parent has.
        unsafe { libc::alarm(20) };
        let refuses = matches!(store.snapshot(), Err(Error::Forked { .. }))
            && matches!(store.begin(), Err(Error::Forked { .. }))
            && matches!(store.flush(), Err(Error::Forked { .. }));
        drop(store);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!refuses)) };
    }
    let mut status = -1;
    // SAFETY: waits for the child that was just created.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child was not refused, or did not end");
    assert!(files(&path) == before, "the child wrote to the files");
    store.transact(|txn| txn.put(b"after", b"2")).unwrap();
    drop(store);
    let store = Fjall::options().open(&path).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(
        snapshot.get(b"before").unwrap().is_some() && snapshot.get(b"after").unwrap().is_some()
    );
}
