//! Bodies that succeed, fail and panic in one batch: each has the same result as if it had run
//! alone.

use super::{batch, counts, occupy};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use keyloom::{
    Batched, BatchedTransaction, Error, Fault, Faulty, KeyRange, Limits, MAX_BATCH, Memory,
    Metered, Reader, Result, RetryPolicy, Store, Writer,
};

/// The action of a body after it has put its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    /// Fails before it puts its key.
    Refuses,
    Fails,
    Panics,
    /// Drops the error of a guarded write.
    Swallows,
    Nests,
    /// Returns its own conflict error in the first runs.
    ConflictsOnce,
}

const FATES: [Fate; 7] = [
    Fate::Good,
    Fate::Refuses,
    Fate::Fails,
    Fate::Panics,
    Fate::Swallows,
    Fate::Nests,
    Fate::ConflictsOnce,
];

#[derive(Debug, thiserror::Error)]
#[error("number {0} fails")]
struct Fails(usize);

fn key(number: usize) -> [u8; 3] {
    let [.., high, low] = number.to_be_bytes();
    [b'k', high, low]
}

fn body<S: Store>(
    store: &Batched<S>,
    txn: &mut BatchedTransaction<'_, S>,
    number: usize,
    fate: Fate,
    run: usize,
) -> Result<()> {
    let failure = || Err(Error::other(Fails(number)));
    if fate == Fate::Refuses {
        return failure();
    }
    txn.put(&key(number), b"")?;
    match fate {
        Fate::Good | Fate::Refuses => Ok(()),
        Fate::Fails => failure(),
        Fate::Panics => panic!("number {number} panics"),
        Fate::Swallows => {
            let _swallowed: Result<()> = txn.guarded(|_| failure());
            Ok(())
        }
        Fate::Nests => store.transact_batched(|txn| txn.put(b"nested", b"")),
        Fate::ConflictsOnce if run == 1 => Err(Error::Conflict { what: "its own".into() }),
        Fate::ConflictsOnce => Ok(()),
    }
}

/// The outcome of a call; `Err(None)` means a panic.
type Answer = Result<(), Option<Error>>;

/// Runs one body per fate in one batch, in order. Returns their outcomes and how often each ran. A
/// body before them occupies the store until all are waiting.
fn in_one_batch<S: Store>(store: &Batched<S>, fates: &[Fate]) -> Vec<(Answer, usize)> {
    let runs: Vec<_> = fates.iter().map(|_| AtomicUsize::new(0)).collect();
    let answers = batch(store, fates.len(), |number| {
        store.transact_batched(|txn| {
            let run = runs[number].fetch_add(1, Relaxed) + 1;
            body(store, txn, number, fates[number], run)
        })
    });
    let answers =
        answers.into_iter().map(|answer| answer.map_or(Err(None), |answer| answer.map_err(Some)));
    answers.zip(runs.into_iter().map(AtomicUsize::into_inner)).collect()
}

fn is_there(store: &impl Store, number: usize) -> bool {
    store.snapshot().unwrap().get(&key(number)).unwrap().is_some()
}

/// Compares the outcomes of a batch with those of each body alone.
fn each_is_as_if_alone<S: Store>(store: &Batched<S>, fates: &[Fate]) -> Vec<usize> {
    let answers = in_one_batch(store, fates);
    for (number, (fate, (answer, _))) in fates.iter().zip(&answers).enumerate() {
        let is_good = matches!(fate, Fate::Good | Fate::ConflictsOnce);
        assert_eq!(is_there(store, number), is_good, "{number}, {fate:?}: {answer:?}");
        let own = |error: &Error| error.downcast_ref::<Fails>().map(|Fails(of)| *of);
        match (fate, answer) {
            (Fate::Good | Fate::ConflictsOnce, Ok(())) | (Fate::Panics, Err(None)) => {}
            (Fate::Refuses | Fate::Fails, Err(Some(error))) => {
                assert_eq!(own(error), Some(number));
            }
            (Fate::Swallows, Err(Some(error))) => {
                assert!(matches!(error, Error::CommitRefused { .. }));
                assert_eq!(own(error), Some(number));
            }
            (Fate::Nests, Err(Some(Error::NestedTransaction))) => {}
            other => panic!("number {number}: {other:?}"),
        }
    }
    assert!(store.snapshot().unwrap().get(b"nested").unwrap().is_none());
    answers.into_iter().map(|(_, runs)| runs).collect()
}

#[test]
fn bodies_that_wait_are_committed_together() {
    let inner = Metered::new(Memory::new());
    let store = Batched::new(inner.clone());
    assert_eq!(each_is_as_if_alone(&store, &[Fate::Good; 20]), [1; 20]);
    assert_eq!(counts(&store), [1, 20, 1, 0]);
    let cost = inner.cost();
    assert_eq!((cost.commits, cost.keys_written, cost.gets), (2, 20, 21));
}

#[test]
fn a_batch_has_a_largest_size() {
    let store = Batched::new(Memory::new());
    each_is_as_if_alone(&store, &vec![Fate::Good; MAX_BATCH + 5]);
    let counts = store.counts();
    assert_eq!((counts.batches, counts.together), (2, MAX_BATCH as u64 + 5));
}

#[test]
fn a_body_that_fails_before_it_writes_restarts_nothing() {
    let store = Batched::new(Memory::new());
    let mut fates = [Fate::Good; 9];
    fates[4] = Fate::Refuses;
    let runs = each_is_as_if_alone(&store, &fates);
    assert_eq!(runs, [1, 1, 1, 1, 2, 1, 1, 1, 1]);
    assert_eq!(counts(&store), [1, 8, 2, 0]);
}

#[test]
fn a_body_that_fails_is_undone_and_the_others_are_not() {
    for fate in FATES {
        for place in [0, 4, 8] {
            let store = Batched::new(Memory::new());
            let mut fates = [Fate::Good; 9];
            fates[place] = fate;
            each_is_as_if_alone(&store, &fates);
        }
    }
}

#[test]
fn all_bodies_of_a_batch_may_fail() {
    for fate in FATES {
        let store = Batched::new(Memory::new());
        each_is_as_if_alone(&store, &[fate; 12]);
    }
}

/// Without a limit of restarts, the good bodies would run once for each failing body.
#[test]
fn many_bodies_that_fail_do_not_multiply_the_runs() {
    let store = Batched::new(Memory::new());
    let fates: Vec<_> =
        (0..600).map(|n| if n % 2 == 0 { Fate::Good } else { Fate::Fails }).collect();
    let runs: usize = each_is_as_if_alone(&store, &fates).iter().sum();
    assert!(runs < 600 * 8, "{runs} runs of 600 bodies");
}

#[test]
fn random_batches_are_as_if_each_body_ran_alone() {
    let mut random = fastrand::Rng::with_seed(46);
    for round in 0..120 {
        let fates: Vec<_> =
            (0..random.usize(1..30)).map(|_| *random.choice(&FATES).unwrap()).collect();
        let is_optimistic = round % 2 == 0;
        let store = Batched::new(Memory::builder().optimistic(is_optimistic).build());
        each_is_as_if_alone(&store, &fates);
        #[cfg(feature = "lmdb")]
        if round % 10 == 0 {
            let directory = tempfile::tempdir().unwrap();
            let store = Batched::new(keyloom::Lmdb::open(directory.path()).unwrap());
            each_is_as_if_alone(&store, &fates);
        }
    }
}

#[test]
fn a_batch_that_is_too_large_runs_one_by_one() {
    let limits = Limits::default().with_max_transaction(Some(64), None);
    let store = Batched::new(Memory::builder().limits(limits).build());
    each_is_as_if_alone(&store, &[Fate::Good; 40]);
}

/// A success is in the store and an error is not, whichever operation of the inner store fails.
#[test]
fn a_fault_at_any_operation_makes_no_call_lie() {
    use Fault::{Conflict, UnknownAndLost, UnknownButCommitted};
    let fates = [Fate::Good, Fate::Fails, Fate::Good, Fate::Refuses, Fate::Good];
    for fault in [Fault::Error, Conflict, UnknownButCommitted, UnknownAndLost] {
        for operation in 0..60 {
            let inner = Faulty::new(Memory::new());
            let store = Batched::new(inner.clone());
            // The first transaction begins and commits: two operations that are not under test.
            inner.fail_at(operation + 2, fault);
            let answers = in_one_batch(&store, &fates);
            inner.clear_fault();
            for (number, (answer, _)) in answers.iter().enumerate() {
                let is_unknown = matches!(answer, Err(Some(error)) if error.maybe_committed());
                assert!(
                    is_unknown || is_there(&store, number) == answer.is_ok(),
                    "{number} with {fault:?} at {operation}: {answer:?}"
                );
            }
        }
    }
}

#[test]
fn conflicts_of_the_inner_store_run_the_batch_again() {
    let inner = Memory::builder().optimistic(true).build();
    for conflicts in 0..8 {
        let store = Batched::new(inner.clone());
        let (runs, is_occupied) = (AtomicUsize::new(0), AtomicBool::new(false));
        let count = || {
            store.transact_batched(|txn| {
                // A run in the batch, not in the transaction before it.
                if runs.fetch_add(1, Relaxed) == 0 {
                    inner.conflict_next(conflicts);
                }
                txn.add(b"n", 1)
            })
        };
        thread::scope(|scope| {
            scope.spawn(|| occupy(&store, 5, &is_occupied).unwrap());
            while !is_occupied.load(Relaxed) {
                thread::yield_now();
            }
            (0..5).for_each(|_| drop(scope.spawn(|| count().unwrap())));
        });
        let runs = runs.into_inner();
        assert!((5..60).contains(&runs), "{runs} runs");
    }
    assert_eq!(inner.snapshot().unwrap().counter(b"n").unwrap(), 5 * 8);
}

#[test]
fn a_lone_body_runs_once_and_may_panic() {
    let store = Batched::new(Memory::new());
    for fate in [Fate::Refuses, Fate::Fails, Fate::Nests] {
        let mut runs = 0;
        let answer = store.transact_batched(|txn| {
            runs += 1;
            body(&store, txn, 0, fate, runs)
        });
        assert!(answer.is_err() && runs == 1, "{fate:?}: {runs} runs");
    }
    let call = || store.transact_batched(|txn| body(&store, txn, 0, Fate::Panics, 1));
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    assert!(!is_there(&store, 0));
    store.transact_batched(|txn| body(&store, txn, 1, Fate::Good, 1)).unwrap();
    assert!(is_there(&store, 1));
}

/// Many threads, all kinds of bodies, and the retry policy of the inner store.
#[test]
fn many_threads_with_all_fates_agree_with_their_answers() {
    let policy = RetryPolicy { max_attempts: 50, ..RetryPolicy::default() };
    let memory = Memory::builder().optimistic(true).retry_policy(policy).build();
    let store = Batched::new(memory);
    thread::scope(|scope| {
        for thread in 0..16_usize {
            let store = &store;
            scope.spawn(move || {
                for round in 0..60 {
                    let (number, mut run) = (thread * 100 + round, 0);
                    let fate = FATES[(thread + round) % FATES.len()];
                    let call = || {
                        store.transact_batched(|txn| {
                            run += 1;
                            txn.add(b"all", 1)?;
                            body(store, txn, number, fate, run)
                        })
                    };
                    let answer = catch_unwind(AssertUnwindSafe(call));
                    let is_good = matches!(answer, Ok(Ok(())));
                    assert_eq!(is_there(store, number), is_good, "{number}: {answer:?}");
                }
            });
        }
    });
    let keys = store.snapshot().unwrap().count(KeyRange::prefix(b"k")).unwrap();
    assert_eq!(store.snapshot().unwrap().counter(b"all").unwrap(), i64::try_from(keys).unwrap());
}
