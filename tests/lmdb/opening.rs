//! Opening: refusals, and their error messages.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;

use super::*;

fn error_of(options: LmdbOptions, path: &Path) -> Error {
    options.open(path).map(drop).unwrap_err()
}

#[test]
fn names_what_is_missing() {
    let directory = tempdir().unwrap();
    let nowhere = directory.path().join("no/such");
    assert!(matches!(
        error_of(quick(), &nowhere),
        Error::Storage(StorageError::MissingDirectory { .. })
    ));
    let absent = directory.path().join("absent");
    assert!(matches!(
        error_of(quick().create(false), &absent),
        Error::Storage(StorageError::MissingDirectory { .. })
    ));
    fs::create_dir(&absent).unwrap();
    assert!(matches!(
        error_of(quick().create(false), &absent),
        Error::Storage(StorageError::MissingStore { .. })
    ));
    assert!(matches!(
        error_of(quick().read_only(true), &absent),
        Error::Storage(StorageError::MissingStore { .. })
    ));
    assert_eq!(fs::read_dir(&absent).unwrap().count(), 0, "asking leaves nothing behind");
    quick().open(&absent).unwrap();
    quick().create(false).open(&absent).unwrap();
}

#[test]
fn for_reading_only_reads_and_refuses_to_write() {
    let directory = tempdir().unwrap();
    fill(&quick().open(directory.path()).unwrap(), 10).unwrap();
    let store = quick().read_only(true).open(directory.path()).unwrap();
    assert_eq!(count(&store), 10);
    let error = store.transact(|txn| txn.put(b"a", b"")).unwrap_err();
    assert!(matches!(error, Error::ReadOnly), "{error}");
    assert!(matches!(store.flush(), Err(Error::ReadOnly)));
}

#[test]
fn refuses_names_that_the_engine_would_stumble_over() {
    let directory = tempdir().unwrap();
    for name in ["", "a\0b", "keyloom.meta", &"n".repeat(101)] {
        let error = error_of(quick().name(name), directory.path());
        assert!(matches!(error, Error::InvalidArgument { what: "the name", .. }), "{error}");
    }
    let error = error_of(quick().max_readers(0), directory.path());
    assert!(matches!(error, Error::InvalidArgument { what: "max_readers", .. }), "{error}");
}

#[test]
fn keeps_databases_of_different_names_apart() {
    let directory = tempdir().unwrap();
    for name in ["Zürich", "b", &"n".repeat(100)] {
        let store = quick().name(name).open(directory.path()).unwrap();
        assert_eq!(count(&store), 0);
        fill(&store, 3).unwrap();
    }
    for options in [quick().create(false), quick().read_only(true)] {
        assert!(options.name("a typo").open(directory.path()).is_err());
    }
}

#[test]
fn refuses_what_is_not_a_store() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "text").unwrap();
    assert!(matches!(error_of(quick(), &file), Error::Storage(StorageError::NotAStore { .. })));
    let others: [(&str, Vec<u8>); 4] = [
        ("text", b"Alice was beginning to get very tired".repeat(1000)),
        ("short", b"x".to_vec()),
        ("sqlite", [b"SQLite format 3\0".as_slice(), &[0x10; 9000]].concat()),
        ("zeros", vec![0; 20_000]),
    ];
    for (name, bytes) in others {
        let path = directory.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("data.mdb"), &bytes).unwrap();
        let error = error_of(quick(), &path);
        assert!(matches!(error, Error::Storage(StorageError::NotAStore { .. })), "{name}: {error}");
        assert_eq!(fs::read(path.join("data.mdb")).unwrap(), bytes, "{name} is left as it was");
    }
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::write(empty.join("data.mdb"), b"").unwrap();
    for options in [quick().create(false), quick().read_only(true)] {
        assert!(matches!(
            error_of(options, &empty),
            Error::Storage(StorageError::MissingStore { .. })
        ));
    }
    assert!(matches!(
        Lmdb::verify(&empty, |_, _| ()),
        Err(Error::Storage(StorageError::NotAStore { .. }))
    ));
    fill(&quick().open(&empty).unwrap(), 1).unwrap();
}

/// Opens the file like another program, and writes to a database with this name.
fn as_another_program(path: &Path, database: &str, key: &[u8], value: &[u8]) {
    use heed::types::Bytes;
    // SAFETY: the file is open nowhere else.
    let env =
        unsafe { heed::EnvOpenOptions::new().map_size(1 << 20).max_dbs(4).open(path) }.unwrap();
    let txn = env.write_txn().unwrap();
    let outcome = env.create_databases_and_commit(txn, |opener, txn| {
        let mut options = opener.database_options().types::<Bytes, Bytes>();
        let created = options.name(database).create(txn)?;
        created.put(txn, key, value)?;
        Ok::<_, heed::Error>(heed::CommitOrAbort::<_, ()>::Commit((created,)))
    });
    assert!(outcome.is_ok());
}

#[test]
fn refuses_the_lmdb_file_of_another_program_and_leaves_it_alone() {
    let directory = tempdir().unwrap();
    as_another_program(directory.path(), "theirs", b"k", b"v");
    let before = fs::read(directory.path().join("data.mdb")).unwrap();
    for options in [quick(), quick().read_only(true)] {
        let error = error_of(options, directory.path());
        assert!(matches!(error, Error::Storage(StorageError::NotAStore { .. })), "{error}");
    }
    assert_eq!(fs::read(directory.path().join("data.mdb")).unwrap(), before);
}

#[test]
fn refuses_a_format_newer_than_the_program() {
    let directory = tempdir().unwrap();
    drop(quick().open(directory.path()).unwrap());
    as_another_program(directory.path(), "keyloom.meta", b"format", &2u32.to_be_bytes());
    for options in [quick(), quick().read_only(true)] {
        let error = error_of(options, directory.path());
        assert!(matches!(error, Error::NewerFormat { found: 2, supported: 1, .. }), "{error}");
        assert!(error.to_string().contains("upgrade"));
    }
}

#[test]
fn refuses_a_file_that_was_cut_off_and_would_kill_the_program() {
    let directory = tempdir().unwrap();
    fill(&quick().open(directory.path()).unwrap(), 1_000).unwrap();
    let data = directory.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    for percent in [5, 30, 60, 99] {
        fs::write(&data, &whole[..whole.len() * percent / 100]).unwrap();
        let error = error_of(quick(), directory.path());
        assert!(
            matches!(error, Error::Storage(StorageError::Damaged { .. })),
            "{percent} %: {error}"
        );
        assert!(error.to_string().contains("restore it from a copy"), "{error}");
        assert!(!Lmdb::verify(directory.path(), |_, _| ()).unwrap().is_sound());
    }
    fs::write(&data, &whole[..100]).unwrap();
    assert!(matches!(
        error_of(quick(), directory.path()),
        Error::Storage(StorageError::NotAStore { .. })
    ));
    fs::write(&data, &whole).unwrap();
    assert_eq!(count(&quick().open(directory.path()).unwrap()), 1_000);
    assert!(Lmdb::verify(directory.path(), |_, _| ()).unwrap().is_sound());
}

#[test]
fn takes_a_file_that_is_short_and_sound() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    // Creates free pages at the front, for the list of free pages itself.
    (1..=10).for_each(|count| fill(&store, count).unwrap());
    // Pages that one transaction allocates and frees are never written, not even at the end of the
    // file.
    store
        .transact(|txn| {
            txn.put(b"large", &[7; 1_000_000])?;
            txn.delete(b"large")
        })
        .unwrap();
    drop(store);
    let data = directory.path().join("data.mdb");
    let found = keyloom::lmdb::file::quick_check(&data).unwrap();
    let is_short = matches!(found, keyloom::lmdb::file::QuickCheck::Short { .. });
    assert!(is_short, "the case is still one: {found:?}");
    assert_eq!(count(&quick().open(directory.path()).unwrap()), 10);
}

/// Found by the campaign `kill`: a process waited for another one that was killed while it opened
/// the store. The waiting process then used the half-initialized locks of the engine, and lost
/// commits.
#[test]
fn waits_until_another_process_has_opened_or_died() {
    let directory = tempdir().unwrap();
    let store = directory.path().join("store");
    fs::create_dir(&store).unwrap();
    // The lock of a process that is opening the store.
    let opening = fs::File::open(&store).unwrap();
    opening.lock().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let opened = quick().open(&store).unwrap();
            assert!(is_over.load(Relaxed), "it has not waited");
            fill(&opened, 10).unwrap();
        });
        std::thread::sleep(Duration::from_millis(200));
        is_over.store(true, Relaxed);
        drop(opening);
        second.join().unwrap();
    });
    // An open store does not prevent another process from opening it.
    let _store = quick().open(&store).unwrap();
    fs::File::open(&store).unwrap().try_lock().unwrap();
}

#[test]
fn says_which_permission_is_missing() {
    let directory = tempdir().unwrap();
    fill(&quick().open(directory.path()).unwrap(), 10).unwrap();
    run_child(Child::NoPermission, directory.path());
}

#[test]
fn names_the_file_at_which_the_system_failed() {
    run_child(Child::NoFiles, tempdir().unwrap().path());
}

#[test]
fn opening_waits_for_the_holder_of_the_lock_on_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let holder = std::fs::File::open(directory.path()).unwrap();
    holder.lock().unwrap();
    let is_released = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let store = Lmdb::open(directory.path()).unwrap();
            assert!(is_released.load(Ordering::SeqCst), "it was opened under somebody's lock");
            store.transact(|txn| txn.put(b"a", b"1")).unwrap();
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!directory.path().join("data.mdb").exists());
        is_released.store(true, Ordering::SeqCst);
        holder.unlock().unwrap();
        opening.join().unwrap();
    });
    // The store does not keep the lock.
    holder.try_lock().unwrap();
}

#[test]
fn read_only_without_a_writable_lock_file_is_refused() {
    let directory = tempdir().unwrap();
    let store = directory.path().join("store");
    fill(&quick().open(&store).unwrap(), 10).unwrap();
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    run_child(Child::NoWritableLockFile, &store);
    // Restores the mode, so that the test can remove the directory.
    fs::set_permissions(&store, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn assume_no_writer_beside_another_process_is_refused() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    fill(&store, 10).unwrap();
    run_child(Child::OpenBesideAWriter, directory.path());
    drop(store);
    run_child(Child::OpenAssumingNoWriter, directory.path());
    let error = error_of(quick().assume_no_writer(true), directory.path());
    assert!(matches!(error, Error::InvalidArgument { what: "assume_no_writer", .. }), "{error}");
}

#[test]
fn assume_no_writer_keeps_writers_from_opening() {
    let directory = tempdir().unwrap();
    fill(&quick().open(directory.path()).unwrap(), 10).unwrap();
    fs::remove_file(directory.path().join("lock.mdb")).unwrap();
    let options = quick().read_only(true).assume_no_writer(true);
    let store = options.open(directory.path()).unwrap();
    assert_eq!((count(&store), store.statistics().unwrap().reader_slots), (10, 0));
    assert!(matches!(store.begin().map(drop), Err(Error::ReadOnly)));
    assert!(!directory.path().join("lock.mdb").exists());
    // Other readers of this kind may open the store, and this process is refused at once.
    run_child(Child::OpenAssumingNoWriter, directory.path());
    assert!(matches!(
        error_of(quick(), directory.path()),
        Error::Lmdb(LmdbError::AlreadyOpen { .. })
    ));
    // Each open that may write takes this lock.
    let opening = fs::File::open(directory.path()).unwrap();
    assert!(matches!(opening.try_lock(), Err(fs::TryLockError::WouldBlock)));
    drop(store);
    opening.try_lock().unwrap();
    drop(opening);
    fill(&quick().open(directory.path()).unwrap(), 20).unwrap();
}
