//! Snapshots: their slots, threads and ages.

use super::*;

#[test]
fn belong_to_no_thread_and_end_in_any_order() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let mut snapshots = Vec::new();
    for n in 0..100u8 {
        store.transact(|txn| txn.put(&[n], b"")).unwrap();
        snapshots.push((u64::from(n) + 1, store.snapshot().unwrap()));
    }
    std::thread::scope(|scope| {
        for (expected, snapshot) in snapshots.drain(..).rev() {
            scope.spawn(move || {
                assert_eq!(snapshot.count(KeyRange::all()).unwrap(), expected);
            });
        }
    });
    assert_eq!(store.statistics().unwrap().oldest_reader_age, None);
}

#[test]
fn beyond_the_slots_are_an_error_with_a_remedy_until_one_ends() {
    let directory = tempdir().unwrap();
    let store = quick().max_readers(3).open(directory.path()).unwrap();
    let mut held: Vec<_> = (0..3).map(|_| store.snapshot().unwrap()).collect();
    let error = store.snapshot().unwrap_err();
    assert!(matches!(error, Error::Lmdb(LmdbError::ReadersFull { max_readers: 3 })), "{error}");
    assert!(error.to_string().contains("`max_readers`"));
    store.transact(|txn| txn.put(b"a", b"writers need no slot")).unwrap();
    held.pop();
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 1);
}

#[test]
fn of_a_process_that_died_do_not_hold_slots() {
    let directory = tempdir().unwrap();
    run_child(Child::DieWithSnapshots, directory.path());
    let store = quick().max_readers(3).open(directory.path()).unwrap();
    let held: Vec<_> = (0..3).map(|_| store.snapshot().unwrap()).collect();
    assert_eq!(held.len(), 3);
}

#[test]
fn show_their_age() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    assert_eq!(store.statistics().unwrap().oldest_reader_age, None);
    let old = store.snapshot().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let _young = store.snapshot().unwrap();
    let age = store.statistics().unwrap().oldest_reader_age.unwrap();
    assert!(age >= Duration::from_millis(20));
    drop(old);
    assert!(store.statistics().unwrap().oldest_reader_age.unwrap() < age);
}
