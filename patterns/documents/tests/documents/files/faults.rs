//! Injects a fault into every operation of a change.

use std::cell::RefCell;

use keyloom::{Error, Fault, Faulty, Store, Transaction};
use keyloom_documents::files::Files;
use keyloom_testing::laws;
use keyloom_text::Query;

use super::open;

fn prepare(store: &keyloom_testing::AnyStore) -> Files {
    let files = open(store);
    store
        .transact(|txn| {
            files.create_directory(txn, "/a")?;
            files.create_directory(txn, "/b")?;
            files.write(txn, "/a/file", b"some words")
        })
        .unwrap();
    files
}

#[test]
fn changes_happen_as_a_whole_or_not_at_all() {
    let (store, files) = (keyloom_testing::memory(), RefCell::new(None));
    laws::faults_leave_nothing_half_done(
        &store,
        |store| *files.borrow_mut() = Some(prepare(store)),
        |txn| {
            let files = files.borrow();
            let files = files.as_ref().unwrap();
            files.rename(txn, "/a", "/b/c")?;
            files.write(txn, "/b/c/file", b"other words")?;
            files.write(txn, "/b/new", b"new words")?;
            files.rename_over(txn, "/b/new", "/b/c/file")?;
            files.remove(txn, "/b/c/file")
        },
        |store| {
            let faults = files.borrow().as_ref().unwrap().check(&store.snapshot().unwrap());
            faults.unwrap().iter().map(ToString::to_string).collect()
        },
    );
}

/// An error may occur between the entry of a file and its pieces.
#[test]
fn a_swallowed_error_leaves_the_file_as_it_was() {
    let store = keyloom_testing::memory();
    for n in 0.. {
        laws::clear(&store);
        let files = prepare(&store);
        let before = laws::dump_all(&store);
        let faulty = Faulty::new(store.clone());
        let mut txn = faulty.begin().unwrap();
        faulty.fail_at(n, Fault::Error);
        let written = files.write(&mut txn, "/a/file", &[b'x'; 100_000]);
        let was_hit = faulty.operations() > n;
        faulty.clear_fault();
        let committed = txn.commit();
        if !was_hit {
            written.unwrap();
            assert!(n > 5, "{n} operations");
            return committed.map(drop).unwrap();
        }
        assert!(matches!(committed, Err(Error::CommitRefused { .. })), "{n}: {committed:?}");
        assert_eq!(laws::dump_all(&store), before);
    }
}

#[test]
fn a_removal_that_was_stopped_is_completed() {
    let store = keyloom_testing::memory();
    prepare(&store).remove_all(&store, "/a").unwrap();
    let complete = laws::dump_all(&store);
    for n in 0.. {
        let faulty = Faulty::new(store.clone());
        laws::clear(&store);
        let files = prepare(&store);
        faulty.fail_at(n, Fault::Error);
        let removed = files.remove_all(&faulty, "/a");
        let snapshot = store.snapshot().unwrap();
        let is_there = files.get(&snapshot, "/a").unwrap().is_some();
        let query = files.search(Query::term("contents", "words"));
        let found = query.page(&snapshot).unwrap().items.len();
        assert_eq!(found, usize::from(is_there));
        drop(snapshot);
        let left = files.sweep(&store).unwrap().removed;
        match removed {
            Ok(removed) => {
                assert_eq!((removed.removed, left, is_there), (3, 0, false));
                break;
            }
            Err(error) => {
                assert!(error.to_string().contains("made to fail"), "{error}");
                // Not begun, partly removed, or complete except for the last transaction, which
                // finds nothing.
                assert!(left == 0 || (left == 3 && !is_there), "{left} records left");
                if !is_there {
                    assert_eq!(laws::dump_all(&store), complete);
                }
            }
        }
        assert_eq!(files.check(&store.snapshot().unwrap()).unwrap(), []);
    }
}
