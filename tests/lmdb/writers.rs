//! Waiting for the previous writer, in this process and in others.

use std::time::Instant;

use super::*;
use crate::child::Holder;

const PATIENCE: Duration = Duration::from_millis(100);
/// Much longer than any wait here should take.
const LONG: Duration = Duration::from_secs(30);

fn impatient() -> LmdbOptions {
    quick().max_readers(3).begin_patience(PATIENCE)
}

fn put(store: &Lmdb) -> keyloom::Result<()> {
    store.transact(|txn| txn.put(b"a", b"1"))
}

/// Checks that `work` ends after the time-out with an error that names the writer.
fn assert_busy<T>(process: u32, work: impl FnOnce() -> keyloom::Result<T>) {
    let begun = Instant::now();
    let error = work().map(drop).unwrap_err();
    let waited = begun.elapsed();
    let Error::WriterBusy { holder, waited_ms } = error else { panic!("{error}") };
    assert_eq!((holder, waited_ms), (Some(process), 100), "{error}");
    assert!(!error.is_retryable());
    assert!(waited >= PATIENCE && waited < LONG, "{waited:?}");
}

#[test]
fn begin_times_out_beside_a_writer_of_another_process() {
    let directory = tempdir().unwrap();
    let store = impatient().open(directory.path()).unwrap();
    let writer = Holder::of(Child::HoldTransaction, directory.path());
    assert_busy(writer.id(), || store.begin());
    assert_busy(writer.id(), || put(&store));
    let copy = directory.path().join("copy");
    assert_busy(writer.id(), || store.backup(&copy, Compaction::Off));
    assert_eq!(count(&store), 0, "reading goes on");
    writer.kill();
    put(&store).unwrap();
    assert_eq!(count(&store), 1);
}

#[test]
fn open_times_out_beside_a_writer_of_another_process() {
    let directory = tempdir().unwrap();
    let writer = Holder::of(Child::HoldTransaction, directory.path());
    assert_busy(writer.id(), || impatient().open(directory.path()));
    writer.kill();
    put(&impatient().open(directory.path()).unwrap()).unwrap();
}

#[test]
fn begin_times_out_beside_a_writer_of_this_process() {
    let directory = tempdir().unwrap();
    let store = impatient().open(directory.path()).unwrap();
    let txn = store.begin().unwrap();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| assert_busy(std::process::id(), || store.begin())))
            .collect();
        waiting.into_iter().for_each(|waiting| waiting.join().unwrap());
    });
    drop(txn);
    // Later writers do not wait for a thread that gave up.
    std::thread::scope(|scope| scope.spawn(|| put(&store)).join().unwrap()).unwrap();
    put(&store).unwrap();
}

#[test]
fn begin_continues_after_a_kill_although_a_fork_lives() {
    let directory = tempdir().unwrap();
    let store = quick().max_readers(3).begin_patience(LONG).open(directory.path()).unwrap();
    let writer = Holder::of(Child::HoldTransactionAndFork, directory.path());
    let input_of_fork = writer.kill();
    put(&store).unwrap();
    drop(input_of_fork);
}

/// Reported by a user: a thread that waited to write prevented the map from being adopted.
#[test]
fn snapshot_takes_over_a_map_while_a_thread_waits_to_write() {
    let directory = tempdir().unwrap();
    let options = quick().max_readers(3).map_bytes(256 << 10);
    let options = options.begin_patience(LONG).grow_patience(Duration::from_millis(500));
    let store = options.open(directory.path()).unwrap();
    let writer = Holder::of(Child::HoldTransactionOfLargeMap, directory.path());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| put(&store));
        std::thread::sleep(PATIENCE);
        assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 5_000);
        writer.kill();
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn snapshots_that_wait_for_the_map_share_one_patience() {
    const THREADS: u32 = 6;
    let patience = Duration::from_millis(400);
    let directory = tempdir().unwrap();
    let options = quick().map_bytes(256 << 10).grow_patience(patience);
    let store = options.open(directory.path()).unwrap();
    let held = store.snapshot().unwrap();
    run_child(Child::Grow, directory.path());
    let longest = std::thread::scope(|scope| {
        let wait = || {
            let begun = Instant::now();
            let error = store.snapshot().map(drop).unwrap_err();
            assert!(
                matches!(error, Error::Lmdb(LmdbError::MapHeld { waited_ms: 400, .. })),
                "{error}"
            );
            begun.elapsed()
        };
        let waiting: Vec<_> = (0..THREADS).map(|_| scope.spawn(wait)).collect();
        waiting.into_iter().map(|waiting| waiting.join().unwrap()).max().unwrap()
    });
    assert!(longest >= patience && longest < patience * (THREADS - 1), "{longest:?}");
    drop(held);
    assert_eq!(count(&store), 5_000);
}

#[test]
fn process_that_writes_in_a_loop_lets_others_write() {
    let directory = tempdir().unwrap();
    let store = quick().max_readers(3).begin_patience(LONG).open(directory.path()).unwrap();
    let writer = Holder::of(Child::WriteOn, directory.path());
    let wait = || {
        // Then the other process is in its next transaction.
        std::thread::sleep(Duration::from_millis(5));
        let begun = Instant::now();
        put(&store).unwrap();
        begun.elapsed()
    };
    let waited: Duration = (0..20).map(|_| wait()).sum();
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    writer.kill();
}

/// The engine's own lock still excludes programs that do not take keyloom's.
#[test]
fn begin_waits_for_a_program_that_uses_the_engine_alone() {
    let directory = tempdir().unwrap();
    let store = quick().begin_patience(LONG).open(directory.path()).unwrap();
    let writer = Holder::of(Child::HoldTransactionOfEngine, directory.path());
    let had_its_turn = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            put(&store).unwrap();
            had_its_turn.store(true, Relaxed);
        });
        std::thread::sleep(PATIENCE);
        assert!(!had_its_turn.load(Relaxed));
        writer.kill();
    });
    assert!(had_its_turn.load(Relaxed));
}

/// A backup that copies raw pages waits for its turn, at most for the time-out.
#[test]
fn backup_never_waits_for_the_writer_after_it() {
    let directory = tempdir().unwrap();
    let store = impatient().open(directory.path().join("store")).unwrap();
    put(&store).unwrap();
    for round in 0..50 {
        let copy = directory.path().join(round.to_string());
        let (store, txn) = (&store, store.begin().unwrap());
        std::thread::scope(|scope| {
            let (report, done) = std::sync::mpsc::channel();
            scope.spawn(move || drop(report.send(store.backup(copy, Compaction::Off))));
            std::thread::sleep(Duration::from_millis(2));
            let writer = scope.spawn(move || {
                let _txn = store.begin();
                done.recv_timeout(LONG)
            });
            std::thread::sleep(Duration::from_millis(2));
            drop(txn);
            let done = writer.join().unwrap().unwrap_or_else(|_| panic!("{round}: no time-out"));
            // By chance, the backup may come after the writer.
            assert!(matches!(done, Ok(()) | Err(Error::WriterBusy { .. })), "{done:?}");
        });
    }
}
