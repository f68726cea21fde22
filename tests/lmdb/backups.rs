//! Backups: consistent, complete, and never mixed up with the file of another process.

use std::os::unix::fs::PermissionsExt;

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
            // Pairs of keys that must both exist or both be absent.
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
fn in_a_transaction_of_the_same_thread_are_refused() {
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
        // The backup waits for the transaction.
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
fn let_writers_write_while_pages_are_copied() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = quick().open(&path).unwrap();
    let entries: Vec<_> = (0..4_000_u32).map(|n| (n.to_be_bytes(), [7; 8_000])).collect();
    store.transact(|txn| entries.iter().try_for_each(|(key, value)| txn.put(key, value))).unwrap();
    let whole = fs::metadata(path.join("data.mdb")).unwrap().len();
    let is_being_copied = |copy: &Path| {
        let files = fs::read_dir(copy).into_iter().flatten().flatten();
        let lengths = files.filter_map(|file| file.metadata().ok()).map(|data| data.len());
        lengths.max().is_some_and(|bytes| bytes > 0 && bytes < whole)
    };
    let has_written_meanwhile = (0..20).any(|round| {
        let copy = &directory.path().join(round.to_string());
        std::thread::scope(|scope| {
            let backup = scope.spawn(|| store.backup(copy, Compaction::Off).unwrap());
            let mut has_written = false;
            while !backup.is_finished() {
                let begins_meanwhile = is_being_copied(copy);
                store.transact(|txn| txn.put(b"a", b"1")).unwrap();
                has_written |= begins_meanwhile && is_being_copied(copy);
            }
            has_written
        })
    });
    assert!(has_written_meanwhile, "writers wait until the copy is whole");
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
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    let error = store.backup(directory.path().join("no/such"), Compaction::On).unwrap_err();
    assert!(matches!(error, Error::Storage(StorageError::MissingDirectory { .. })), "{error}");
    fill(&store, 1).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn backup_keeps_the_modes_of_the_store_and_its_directory() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("store");
    let store = quick().open(&path).unwrap();
    assert_eq!(mode(&path.join("data.mdb")), 0o600, "what the engine makes");
    for (of_file, of_directory) in [(0o600, 0o700), (0o640, 0o750), (0o664, 0o1777), (0o400, 0o500)]
    {
        fs::set_permissions(path.join("data.mdb"), PermissionsExt::from_mode(of_file)).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(of_directory)).unwrap();
        let copy = directory.path().join(format!("copy {of_file:o}"));
        store.backup(&copy, Compaction::On).unwrap();
        assert_eq!(format!("{:o}", mode(&copy.join("data.mdb"))), format!("{of_file:o}"));
        // The owner must be able to create the file there.
        assert_eq!(format!("{:o}", mode(&copy)), format!("{:o}", of_directory | 0o700));
        // An existing directory is not changed.
        let kept = directory.path().join(format!("kept {of_file:o}"));
        fs::create_dir(&kept).unwrap();
        let before = mode(&kept);
        store.backup(&kept, Compaction::On).unwrap();
        assert_eq!((mode(&kept), mode(&kept.join("data.mdb"))), (before, of_file));
    }
    // Restores the mode, so that the test can remove the directory.
    fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn concurrent_backups_into_one_directory_leave_one_whole_store() {
    const ROUNDS: usize = 24;
    const AT_ONCE: usize = 3;
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path().join("store")).unwrap();
    fill(&store, 2_000).unwrap();
    for round in 0..ROUNDS {
        let copy = directory.path().join(format!("copy {round}"));
        let at_once = std::sync::Barrier::new(AT_ONCE);
        let compaction = |n: usize| [Compaction::Off, Compaction::On][(n + round) % 2];
        let back_up = |n| {
            at_once.wait();
            store.backup(&copy, compaction(n))
        };
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let back_up = &back_up;
            let running: Vec<_> = (0..AT_ONCE).map(|n| scope.spawn(move || back_up(n))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
        for error in outcomes.into_iter().filter_map(Result::err) {
            assert!(error.to_string().contains("it already contains a store"), "{error}");
        }
        let report = Lmdb::verify(&copy, |_, _| ()).unwrap();
        assert!(report.is_sound(), "round {round}: {report:?}");
        assert_eq!(fs::read_dir(&copy).unwrap().count(), 1, "no part is left behind");
        assert_eq!(count(&quick().create(false).open(&copy).unwrap()), 2_000);
    }
}

#[test]
fn backup_leaves_the_part_of_a_crashed_backup_alone() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path().join("store")).unwrap();
    fill(&store, 10).unwrap();
    let copy = directory.path().join("copy");
    fs::create_dir(&copy).unwrap();
    // Names that this process would use; an earlier process may have had the same id.
    let part = |n: u32| copy.join(format!("data.mdb.partial.{}.{n}", std::process::id()));
    (0..1_000).for_each(|n| fs::write(part(n), "a part").unwrap());
    store.backup(&copy, Compaction::Off).unwrap();
    (0..1_000).for_each(|n| assert_eq!(fs::read(part(n)).unwrap(), b"a part"));
    assert_eq!(count(&quick().create(false).open(&copy).unwrap()), 10);
}

#[test]
#[cfg(target_os = "linux")]
fn backup_syncs_its_file_before_naming_it_then_the_names() {
    let directory = tempdir().unwrap();
    let parent = directory.path().canonicalize().unwrap();
    let store = quick().open(parent.join("store")).unwrap();
    fill(&store, 10).unwrap();
    for (name, compaction) in [("off", Compaction::Off), ("on", Compaction::On)] {
        let copy = parent.join(name);
        let data = copy.join("data.mdb");
        let synced = synced::synced(&data, || store.backup(&copy, compaction).unwrap());
        let [(file, false), names @ ..] = &synced[..] else { panic!("{synced:?}") };
        let file = file.file_name().unwrap().to_str().unwrap();
        assert!(file.starts_with("data.mdb.partial"), "{synced:?}");
        assert_eq!(names, [(copy, true), (parent.clone(), true)], "{synced:?}");
    }
}
