//! Backups: of one moment, whole, and nobody else's file.

use super::*;

#[test]
fn are_stores_as_of_one_moment_and_smaller_when_compacted() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path().join("store")).unwrap();
    fill(&store, 5_000).unwrap();
    let middle = KeyRange::half_open(&[0, 0, 0, 0], &[0, 0, 0x10, 0]);
    store.transact(|txn| txn.delete_range(middle.clone())).unwrap();
    let whole = count(&store);
    for (name, compaction) in [("off", Compaction::Off), ("on", Compaction::On)] {
        let path = directory.path().join(name);
        std::thread::scope(|scope| {
            // Pairs of keys that are there together or not at all.
            scope.spawn(|| {
                for n in 0..50u8 {
                    let pair = [[0xEE, n, 0], [0xEE, n, 1]];
                    store.transact(|txn| pair.iter().try_for_each(|k| txn.put(k, b""))).unwrap();
                }
            });
            store.backup(&path, compaction).unwrap();
        });
        let copy = quick().create(false).open(&path).unwrap();
        assert!(count(&copy) >= whole && count(&copy).is_multiple_of(2) == whole.is_multiple_of(2));
    }
    let bytes =
        |name: &str| fs::metadata(directory.path().join(name).join("data.mdb")).unwrap().len();
    assert!(bytes("on") * 2 < bytes("off"), "{} < {}", bytes("on"), bytes("off"));
}

#[test]
fn within_a_transaction_of_the_same_thread_are_refused_and_do_not_hang() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path().join("store")).unwrap();
    let _open = store.begin().unwrap();
    let copy = directory.path().join("copy");
    let error = store.backup(&copy, Compaction::Off).unwrap_err();
    assert!(matches!(error, Error::NestedTransaction), "{error}");
    assert!(!copy.exists(), "nothing is left behind");
    store.backup(&copy, Compaction::On).unwrap();
}

#[test]
fn have_no_name_before_they_are_whole() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path().join("store")).unwrap();
    fill(&store, 10).unwrap();
    let copy = directory.path().join("copy");
    std::thread::scope(|scope| {
        let txn = store.begin().unwrap();
        // Waits for the transaction.
        let backup = scope.spawn(|| store.backup(&copy, Compaction::Off));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!backup.is_finished() && !copy.join("data.mdb").exists());
        assert!(quick().create(false).open(&copy).is_err());
        drop(txn);
        backup.join().unwrap().unwrap();
    });
    assert_eq!(count(&quick().create(false).open(&copy).unwrap()), 10);
    let names = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut left: Vec<_> = fs::read_dir(&copy).unwrap().map(names).collect();
    left.sort();
    assert_eq!(left, ["data.mdb", "lock.mdb"]);
}

#[test]
fn take_over_a_map_that_another_process_made_larger() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = quick().map_bytes(256 << 10).open(&path).unwrap();
    run_child(Child::Grow, &path);
    store.backup(directory.path().join("copy"), Compaction::On).unwrap();
    drop(store);
    assert_eq!(count(&quick().open(directory.path().join("copy")).unwrap()), 5_000);
}

#[test]
fn never_overwrite_a_store() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path().join("store")).unwrap();
    let error = store.backup(directory.path().join("store"), Compaction::On).unwrap_err();
    assert!(matches!(error, Error::BadOption { .. }), "{error}");
    let error = store.backup(directory.path().join("no/such"), Compaction::On).unwrap_err();
    assert!(matches!(error, Error::MissingDirectory { .. }), "{error}");
    fill(&store, 1).unwrap();
}
