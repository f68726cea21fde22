//! What LMDB does to those who do not know it, and that keyloom does know it: one test per pitfall.
#![cfg(feature = "lmdb")]
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "lmdb/child.rs"]
mod child;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use child::{Child, run_child};
use keyloom::lmdb::{Compaction, Durability, LmdbOptions};
use keyloom::{Error, KeyRange, Lmdb, MAX_KEY_BYTES, Order, Reader, Store, Transaction, Writer};
use tempfile::tempdir;

fn quick() -> LmdbOptions {
    Lmdb::options().durability(Durability::MayLoseStore)
}

fn count(store: &Lmdb) -> u64 {
    store.snapshot().unwrap().count(KeyRange::all()).unwrap()
}

/// Puts `count` values of 1,000 bytes in one transaction.
fn fill(store: &Lmdb, count: u32) -> keyloom::Result<()> {
    store.transact(|txn| (0..count).try_for_each(|n| txn.put(&n.to_be_bytes(), &[7; 1000])))
}

mod snapshots {
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
        assert!(matches!(error, Error::ReadersFull { max_readers: 3 }), "{error}");
        assert!(error.to_string().contains("more slots"));
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
    fn tell_their_age() {
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
}

mod the_map {
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
    fn grows_for_bodies_with_errors_of_their_own_and_for_those_that_begin_by_hand() {
        let directory = tempdir().unwrap();
        let store = small().open(directory.path()).unwrap();
        let outcome = store.try_transact(|txn| {
            // An error turned into text says nothing any more; the transaction still knows.
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

    /// An error of the program's own that has forgotten where it came from.
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
        let error =
            (0..1_000u32).find_map(|n| txn.put(&n.to_be_bytes(), &[7; 1000]).err()).unwrap();
        assert!(matches!(error, Error::MapFull { .. }), "{error}");
        assert!(txn.must_restart());
        let later = [txn.put(b"a", b"").unwrap_err(), txn.delete(b"a").unwrap_err()];
        assert!(later.iter().all(|error| matches!(error, Error::MapFull { .. })), "{later:?}");
        assert!(matches!(txn.commit(), Err(Error::MapFull { .. })));
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
        assert!(matches!(error, Error::MapFull { map_bytes: 1_048_576, .. }), "{error}");
        assert_eq!(runs, 3, "with 256 KiB, 512 KiB and 1 MiB; then there is no more to try");
        assert!(!error.is_retryable(), "it cannot grow any more");
        assert!(error.to_string().contains("max_map_bytes"), "{error}");
        assert_eq!(count(&store), 100);
        // There is nothing to wait for, so an open snapshot does not hold up the next writer.
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
    fn waits_for_snapshots_but_not_for_ever() {
        let directory = tempdir().unwrap();
        let store = small().open(directory.path()).unwrap();
        let held = store.snapshot().unwrap();
        let error = fill(&store, 1_000).unwrap_err();
        assert!(matches!(error, Error::MapHeld { open: 1, waited_ms: 50 }), "{error}");
        // Who needs no more room does not wait for it.
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
                        // It reads the meta page through the map.
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
}

mod one_handle {
    use super::*;

    fn refused(path: &Path) {
        let error = quick().open(path).unwrap_err();
        assert!(matches!(error, Error::AlreadyOpen { .. }), "{error}");
        assert!(error.to_string().contains("clone the handle"));
    }

    #[test]
    fn per_file_however_it_is_called() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("store");
        let store = quick().open(&path).unwrap();
        refused(&path);
        refused(&directory.path().join("store/../store"));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        refused(&link);
        let hard = directory.path().join("hard");
        fs::create_dir(&hard).unwrap();
        fs::hard_link(path.join("data.mdb"), hard.join("data.mdb")).unwrap();
        refused(&hard);
        let clone = store.clone();
        drop(store);
        refused(&path);
        drop(clone);
        quick().open(&path).unwrap();
    }

    #[test]
    fn and_one_transaction_per_thread() {
        let directory = tempdir().unwrap();
        let store = quick().open(directory.path()).unwrap();
        let _open = store.begin().unwrap();
        let error = store.transact(|txn| txn.put(b"a", b"")).unwrap_err();
        assert!(matches!(error, Error::NestedTransaction), "{error}");
    }

    #[test]
    fn is_not_usable_after_a_fork() {
        let directory = tempdir().unwrap();
        run_child(Child::Fork, directory.path());
        run_child(Child::ForkWhileAnotherThreadWrites, directory.path());
    }
}

mod opening {
    use super::*;

    fn error_of(options: LmdbOptions, path: &Path) -> Error {
        options.open(path).map(drop).unwrap_err()
    }

    #[test]
    fn names_what_is_missing() {
        let directory = tempdir().unwrap();
        let nowhere = directory.path().join("no/such");
        assert!(matches!(error_of(quick(), &nowhere), Error::MissingDirectory { .. }));
        let absent = directory.path().join("absent");
        assert!(matches!(error_of(quick().create(false), &absent), Error::MissingDirectory { .. }));
        fs::create_dir(&absent).unwrap();
        assert!(matches!(error_of(quick().create(false), &absent), Error::MissingStore { .. }));
        assert!(matches!(error_of(quick().read_only(true), &absent), Error::MissingStore { .. }));
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
            assert!(matches!(error, Error::BadOption { what: "the name", .. }), "{error}");
        }
        let error = error_of(quick().max_readers(0), directory.path());
        assert!(matches!(error, Error::BadOption { what: "max_readers", .. }), "{error}");
    }

    #[test]
    fn keeps_databases_of_different_names_apart() {
        let directory = tempdir().unwrap();
        for name in ["Zürich", "b"] {
            let store = quick().name(name).open(directory.path()).unwrap();
            assert_eq!(count(&store), 0);
            fill(&store, 3).unwrap();
        }
        for options in [quick().create(false), quick().read_only(true)] {
            assert!(options.name("a typo").open(directory.path()).is_err());
        }
    }

    #[test]
    fn refuses_what_is_no_store() {
        let directory = tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "text").unwrap();
        assert!(matches!(error_of(quick(), &file), Error::NotAStore { .. }));
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
            assert!(matches!(error, Error::NotAStore { .. }), "{name}: {error}");
            assert_eq!(fs::read(path.join("data.mdb")).unwrap(), bytes, "{name} is left as it was");
        }
        let empty = directory.path().join("empty");
        fs::create_dir(&empty).unwrap();
        fs::write(empty.join("data.mdb"), b"").unwrap();
        for options in [quick().create(false), quick().read_only(true)] {
            assert!(matches!(error_of(options, &empty), Error::MissingStore { .. }));
        }
        assert!(matches!(Lmdb::verify(&empty, |_, _| ()), Err(Error::NotAStore { .. })));
        fill(&quick().open(&empty).unwrap(), 1).unwrap();
    }

    /// Opens the file as another program would, and lets it write to a database of this name.
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
            assert!(matches!(error, Error::NotAStore { .. }), "{error}");
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
            assert!(matches!(error, Error::Damaged { .. }), "{percent} %: {error}");
            assert!(error.to_string().contains("restore it from a copy"), "{error}");
            assert!(!Lmdb::verify(directory.path(), |_, _| ()).unwrap().is_sound());
        }
        fs::write(&data, &whole[..100]).unwrap();
        assert!(matches!(error_of(quick(), directory.path()), Error::NotAStore { .. }));
        fs::write(&data, &whole).unwrap();
        assert_eq!(count(&quick().open(directory.path()).unwrap()), 1_000);
        assert!(Lmdb::verify(directory.path(), |_, _| ()).unwrap().is_sound());
    }

    #[test]
    fn takes_a_file_that_is_short_and_sound() {
        let directory = tempdir().unwrap();
        let store = quick().open(directory.path()).unwrap();
        // Some free pages at the front, for the list of free pages itself.
        (1..=10).for_each(|count| fill(&store, count).unwrap());
        // Pages that one transaction takes and gives back are never written, not even at the end.
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

    #[test]
    fn says_which_permission_is_missing() {
        let directory = tempdir().unwrap();
        fill(&quick().open(directory.path()).unwrap(), 10).unwrap();
        run_child(Child::NoPermission, directory.path());
    }
}

mod the_disk {
    use super::*;

    #[test]
    fn that_is_full_is_an_error_and_the_store_goes_on() {
        let directory = tempdir().unwrap();
        run_child(Child::DiskFull, directory.path());
        let store = quick().create(false).open(directory.path()).unwrap();
        assert_eq!(count(&store), 101);
    }

    #[test]
    fn gets_what_each_durability_says_and_everything_after_a_flush() {
        for durability in
            [Durability::Full, Durability::MayLoseLastCommit, Durability::MayLoseStore]
        {
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
}

mod backups {
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
                        store
                            .transact(|txn| pair.iter().try_for_each(|k| txn.put(k, b"")))
                            .unwrap();
                    }
                });
                store.backup(&path, compaction).unwrap();
            });
            let copy = quick().create(false).open(&path).unwrap();
            assert!(
                count(&copy) >= whole && count(&copy).is_multiple_of(2) == whole.is_multiple_of(2)
            );
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
}

#[test]
fn statistics_count_what_is_there() {
    let directory = tempdir().unwrap();
    let store = quick().map_bytes(64 << 20).open(directory.path()).unwrap();
    fill(&store, 1_000).unwrap();
    store.transact(|txn| txn.put(b"large", &[7; 100_000])).unwrap();
    let statistics = store.statistics().unwrap();
    assert_eq!(statistics.entries, 1_001);
    assert_eq!(statistics.map_bytes, 64 << 20);
    // A value of n bytes takes (16 + n) / 4096 pages, rounded up.
    let expected = (100_000 + 16u64).div_ceil(u64::from(statistics.page_bytes));
    assert_eq!(statistics.overflow_pages, expected);
    let pages = statistics.branch_pages + statistics.leaf_pages + statistics.overflow_pages;
    let tree_bytes = pages * u64::from(statistics.page_bytes);
    assert!(statistics.file_bytes >= tree_bytes && tree_bytes > 1_000 * 1_000);
    assert!(statistics.depth >= 2 && statistics.last_transaction >= 3);
}

#[test]
fn the_longest_key_is_stored_and_one_byte_more_is_refused_and_not_absent() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let longest = vec![7; MAX_KEY_BYTES];
    store.transact(|txn| txn.put(&longest, b"")).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(snapshot.get(&longest).unwrap().is_some());
    let longer = vec![7; MAX_KEY_BYTES + 1];
    assert!(matches!(snapshot.get(&longer), Err(Error::KeyTooLong { bytes: 512, .. })));
    let from_longer = snapshot.range(KeyRange::starting_at(&longer), Order::Ascending).unwrap();
    assert_eq!(from_longer.count(), 0);
    let up_to_longer = KeyRange::all().before(&longer);
    assert_eq!(snapshot.range(up_to_longer, Order::Descending).unwrap().count(), 1);
}
