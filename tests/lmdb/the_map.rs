//! The memory map: its growth, and its limits.

use super::*;

fn small() -> LmdbOptions {
    quick().map_bytes(256 << 10).grow_patience(Duration::from_millis(50))
}

#[test]
fn grows_by_running_the_transaction_again() {
    let directory = tempdir().unwrap();
    let store = small().open(directory.path()).unwrap();
    let mut runs = 0;
    store
        .transact(|txn| {
            runs += 1;
            (0..5_000u32).try_for_each(|n| txn.put(&n.to_be_bytes(), &[7; 1000]))
        })
        .unwrap();
    assert!(runs > 1, "5 MB do not fit into 256 KiB");
    assert_eq!(count(&store), 5_000);
    assert!(store.statistics().unwrap().map_bytes > 5_000_000);
}

#[test]
fn grows_for_custom_errors_and_for_manual_transactions() {
    let directory = tempdir().unwrap();
    let store = small().open(directory.path()).unwrap();
    let outcome = store.try_transact(|txn| {
        // An error converted to text loses its variant, but the transaction still knows the cause.
        for n in 0..1_000u32 {
            txn.put(&n.to_be_bytes(), &[7; 1000]).map_err(|error| Text(error.to_string()))?;
        }
        Ok(())
    });
    assert_eq!(outcome, Ok::<_, Text>(()));
    let by_hand = || {
        let mut txn = store.begin()?;
        (0..9_000u32).try_for_each(|n| txn.put(&n.to_be_bytes(), &[8; 1000]))?;
        txn.commit()
    };
    let mut attempts = 0;
    while let Err(error) = by_hand() {
        assert!(error.is_retryable(), "{error}");
        attempts += 1;
    }
    assert!(attempts > 0);
    assert_eq!(count(&store), 9_000);
}

/// A custom error of the program that has lost its source.
#[derive(Debug, PartialEq)]
struct Text(String);

impl From<Error> for Text {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

#[test]
fn stays_full_for_the_rest_of_the_transaction() {
    let directory = tempdir().unwrap();
    let store = small().open(directory.path()).unwrap();
    let mut txn = store.begin().unwrap();
    let error = (0..1_000u32).find_map(|n| txn.put(&n.to_be_bytes(), &[7; 1000]).err()).unwrap();
    assert!(matches!(error, Error::Lmdb(LmdbError::MapFull { .. })), "{error}");
    assert!(txn.must_restart());
    let later = [txn.put(b"a", b"").unwrap_err(), txn.delete(b"a").unwrap_err()];
    assert!(
        later.iter().all(|error| matches!(error, Error::Lmdb(LmdbError::MapFull { .. }))),
        "{later:?}"
    );
    assert!(matches!(txn.commit(), Err(Error::Lmdb(LmdbError::MapFull { .. }))));
    assert_eq!(count(&store), 0);
}

#[test]
fn has_a_bound_and_what_was_committed_before_stays() {
    let directory = tempdir().unwrap();
    let store = small().max_map_bytes(1 << 20).open(directory.path()).unwrap();
    fill(&store, 100).unwrap();
    let mut runs = 0;
    let error = store
        .transact(|txn| {
            runs += 1;
            (0..5_000u32).try_for_each(|n| txn.put(&n.to_be_bytes(), &[7; 1000]))
        })
        .unwrap_err();
    assert!(
        matches!(error, Error::Lmdb(LmdbError::MapFull { map_bytes: 1_048_576, .. })),
        "{error}"
    );
    assert_eq!(runs, 3, "with 256 KiB, 512 KiB and 1 MiB; then there is no more to try");
    assert!(!error.is_retryable(), "it cannot grow any more");
    assert!(error.to_string().contains("max_map_bytes"), "{error}");
    assert_eq!(count(&store), 100);
    // No growth is needed, so an open snapshot does not block the next writer.
    let _held = store.snapshot().unwrap();
    assert!(fill(&store, 5_000).is_err());
    fill(&store, 200).unwrap();
}

#[test]
fn that_the_system_refuses_to_enlarge_stays_as_it_was() {
    let directory = tempdir().unwrap();
    run_child(Child::NoAddressSpace, directory.path());
}

#[test]
fn that_the_system_refuses_at_all_is_reported_with_its_remedy() {
    let directory = tempdir().unwrap();
    run_child(Child::NoAddressSpaceToOpen, directory.path());
}

#[test]
fn waits_for_snapshots_but_not_for_ever() {
    let directory = tempdir().unwrap();
    let store = small().open(directory.path()).unwrap();
    let held = store.snapshot().unwrap();
    let error = fill(&store, 1_000).unwrap_err();
    assert!(matches!(error, Error::Lmdb(LmdbError::MapHeld { open: 1, waited_ms: 50 })), "{error}");
    // A transaction that needs no more space does not wait for the growth.
    store.transact(|txn| txn.put(b"small", b"")).unwrap();
    assert_eq!(held.count(KeyRange::all()).unwrap(), 0);
    drop(held);
    fill(&store, 1_000).unwrap();
}

#[test]
fn grows_under_readers_and_writers_on_many_threads() {
    let directory = tempdir().unwrap();
    let store = quick().map_bytes(256 << 10).open(directory.path()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    // The flush reads the meta page through the map.
                    store.flush().unwrap();
                    let snapshot = store.snapshot().unwrap();
                    assert_eq!(snapshot.count(KeyRange::all()).unwrap() % 10, 0);
                }
            });
        }
        let writers: Vec<_> = (0..4u8)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..100u8 {
                        let put = |txn: &mut keyloom::lmdb::LmdbTransaction<'_>| {
                            (0..10).try_for_each(|n| txn.put(&[writer, round, n], &[7; 2_000]))
                        };
                        store.transact(put).unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Relaxed);
    });
    assert_eq!(count(&store), 4_000);
}

#[test]
fn that_another_process_made_larger_is_taken_over() {
    let directory = tempdir().unwrap();
    let store = small().open(directory.path()).unwrap();
    fill(&store, 10).unwrap();
    run_child(Child::Grow, directory.path());
    assert_eq!(count(&store), 5_000);
    fill(&store, 10).unwrap();
}

#[test]
fn larger_map_of_another_process_is_taken_over_by_a_transaction() {
    let directory = tempdir().unwrap();
    let store = small().open(directory.path()).unwrap();
    fill(&store, 10).unwrap();
    run_child(Child::Grow, directory.path());
    let mut txn = store.begin().unwrap();
    assert_eq!(txn.count(KeyRange::all()).unwrap(), 5_000);
    txn.put(b"one more", b"").unwrap();
    txn.commit().unwrap();
    assert_eq!(count(&store), 5_001);
}

/// Found by the campaign `kill`: a store could not be opened while another process enlarged it.
#[test]
fn enlarged_by_another_process_during_opening_is_adopted() {
    let directory = tempdir().unwrap();
    let store = quick().map_bytes(64 << 20).open(directory.path()).unwrap();
    let mut txn = store.begin().unwrap();
    (0..5_000u32).try_for_each(|n| txn.put(&n.to_be_bytes(), &[7; 1000])).unwrap();
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| run_child(Child::OpenSmall, directory.path()));
        // The process maps the small file that it sees, then waits for the writer. If this time is
        // too short, it sees the large file instead, which is not harder to open.
        std::thread::sleep(Duration::from_millis(500));
        txn.commit().unwrap();
        opening.join().unwrap();
    });
}
