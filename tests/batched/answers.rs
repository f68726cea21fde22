//! The result of a call is true, whichever other body fails, panics or is slow.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use keyloom::key::Versionstamp;
use keyloom::{
    Batched, BatchedTransaction, Error, Fault, Faulty, KeyRange, Limits, Memory, Reader, Result,
    RetryPolicy, Store, Transaction, VersionstampedKey, Writer,
};

use super::hooked::Hooked;
use super::{batch, counts};

fn key(number: usize) -> [u8; 2] {
    [b'k', number as u8]
}

fn is_there(store: &impl Store, number: usize) -> bool {
    store.snapshot().unwrap().get(&key(number)).unwrap().is_some()
}

/// The write of each successful call is in the store. The write of a failed call is not, unless its
/// outcome is unknown.
fn no_call_lies<T, E>(
    store: &impl Store,
    answers: &[thread::Result<Result<T, E>>],
    is_unknown: impl Fn(&E) -> bool,
) {
    for (number, answer) in answers.iter().enumerate() {
        match answer {
            Ok(Ok(_)) => assert!(is_there(store, number), "{number} is lost"),
            Ok(Err(error)) => assert!(is_unknown(error) || !is_there(store, number), "{number}"),
            // The call panicked, so its outcome is unknown to its thread.
            Err(_) => {}
        }
    }
}

#[test]
fn after_a_panic_in_the_commit_the_outcome_is_unknown() {
    // The first commit belongs to the transaction before the batch.
    let panics = |commit| if commit == 1 { panic!("the store panics") } else { Ok(()) };
    let store = Batched::new(Hooked::new(|_| Ok(()), panics));
    let answers = batch(&store, 5, |n| store.transact_batched(|txn| txn.put(&key(n), b"")));
    no_call_lies(&store, &answers, Error::maybe_committed);
    assert!(answers[0].is_err(), "the panic is that of the thread that led the batch");
    for answer in &answers[1..] {
        assert!(matches!(answer, Ok(Err(Error::CommitUnknown { .. }))), "{answer:?}");
    }
    store.transact_batched(|txn| txn.put(b"after", b"")).unwrap();
}

#[test]
fn after_a_panic_in_begin_the_others_are_committed() {
    let panics = |begin| if begin == 1 { panic!("the store panics") } else { Ok(()) };
    let store = Batched::new(Hooked::new(panics, |_| Ok(())));
    let answers = batch(&store, 5, |n| store.transact_batched(|txn| txn.put(&key(n), b"")));
    no_call_lies(&store, &answers, |_| false);
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1);
    store.transact_batched(|txn| txn.put(b"after", b"")).unwrap();
}

/// Panics on its first drop.
#[derive(Debug)]
struct Bomb(AtomicBool);

impl Bomb {
    fn new(is_live: bool) -> Self {
        Self(AtomicBool::new(is_live))
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0.swap(false, Relaxed) && !thread::panicking() {
            panic!("a value panics when it is dropped");
        }
    }
}

#[test]
fn a_value_that_panics_when_dropped_harms_no_other_call() {
    let memory = Memory::new();
    let store = Batched::new(memory.clone());
    let answers = batch(&store, 5, |number| {
        let mut run = 0;
        let put = store.transact_batched(|txn| {
            run += 1;
            if number == 0 && run == 1 {
                // The first results are dropped, since the batch is retried.
                memory.conflict_next(1);
            }
            txn.put(&key(number), b"")?;
            Ok(Bomb::new(number == 1 && run == 1))
        });
        put.map(std::mem::forget)
    });
    no_call_lies(&store, &answers, |_| false);
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(())))), "{answers:?}");
}

#[test]
fn a_panic_whose_payload_panics_harms_no_other_call() {
    let store = Batched::new(Memory::new());
    let answers = batch(&store, 5, |number| {
        store.transact_batched(|txn| {
            txn.put(&key(number), b"")?;
            if number == 3 {
                std::panic::panic_any(Bomb::new(true));
            }
            Ok(())
        })
    });
    no_call_lies(&store, &answers, |_| false);
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.is_ok(), number != 3);
        std::mem::forget(answer);
    }
}

#[derive(Debug)]
struct Picky;

impl From<Error> for Picky {
    fn from(error: Error) -> Self {
        assert!(!error.maybe_committed(), "no error of this kind");
        Self
    }
}

#[test]
fn a_conversion_that_panics_is_that_of_its_own_call() {
    let unknown = || Error::CommitUnknown { source: Error::ReadOnly.into() };
    let commits = move |commit| if commit == 1 { Err(unknown()) } else { Ok(()) };
    let store = Batched::new(Hooked::new(|_| Ok(()), commits));
    let answers = batch(&store, 5, |number| {
        store.try_transact_batched(|txn| Ok::<_, Picky>(txn.put(&key(number), b"")?))
    });
    assert!(answers.iter().all(Result::is_err), "each call panics");
    store.transact_batched(|txn| txn.put(b"after", b"")).unwrap();
}

/// A second commit would be invisible with puts, but not with additions.
#[test]
fn an_unknown_commit_is_not_run_again() {
    for fault in [Fault::UnknownButCommitted, Fault::UnknownAndLost] {
        for operation in 0..40 {
            let inner = Faulty::new(Memory::new());
            let store = Batched::new(inner.clone());
            inner.fail_at(operation + 2, fault);
            let answers = batch(&store, 6, |_| store.transact_batched(|txn| txn.add(b"n", 1)));
            inner.clear_fault();
            let is_unknown = |answer: &thread::Result<Result<()>>| matches!(answer, Ok(Err(error)) if error.maybe_committed());
            let good = answers.iter().filter(|answer| matches!(answer, Ok(Ok(())))).count() as i64;
            let unknown = answers.iter().filter(|answer| is_unknown(answer)).count() as i64;
            let counted = store.snapshot().unwrap().counter(b"n").unwrap();
            let expected = match fault {
                Fault::UnknownButCommitted => good + unknown,
                _ => good,
            };
            assert_eq!(counted, expected, "{fault:?} at {operation}: {answers:?}");
        }
    }
}

#[test]
fn bodies_run_in_order_of_arrival() {
    let store = Batched::new(Memory::new());
    let answers = batch(&store, 50, |number| {
        store.transact_batched(|txn| {
            let before = txn.counter(b"n")?;
            txn.add(b"n", 1)?;
            if number % 7 == 3 { Err(Error::EmptyKey) } else { Ok(before) }
        })
    });
    let order: Vec<i64> = answers.into_iter().filter_map(|answer| answer.unwrap().ok()).collect();
    assert!(order.is_sorted() && order.len() > 40, "{order:?}");
}

type Write<S> = fn(&mut BatchedTransaction<'_, S>) -> Result<()>;

/// A body that fails after any kind of write is rolled back.
#[test]
fn each_kind_of_write_is_undone() {
    let writes: [Write<Memory>; 8] = [
        |txn| txn.put(b"new", b""),
        |txn| txn.put_sorted(&[(b"new", b""), (b"other", b"")]),
        |txn| txn.delete(b"old"),
        |txn| txn.delete_range(KeyRange::prefix(b"o")),
        |txn| txn.add(b"number", 1),
        |txn| txn.append_if_fits(b"old", b"er"),
        |txn| txn.compare_and_clear(b"old", b"value"),
        |txn| {
            let prefix = [&b"s"[..], &[Versionstamp::TYPE_CODE]].concat();
            let key = VersionstampedKey { prefix: &prefix, suffix: b"", clock: b"clock" };
            txn.put_versionstamped(&key, b"")
        },
    ];
    for write in writes {
        let store = Batched::new(Memory::new());
        store.transact(|txn| txn.put(b"old", b"value")).unwrap();
        let answers = batch(&store, 5, |number| {
            store.transact_batched(|txn| {
                if number == 2 {
                    write(txn)?;
                    return Err(Error::ReadOnly);
                }
                txn.put(&key(number), b"")
            })
        });
        no_call_lies(&store, &answers, |_| false);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.get(b"old").unwrap(), Some(&b"value"[..]));
        assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 5, "four keys, and the old one");
        assert_eq!(counts(&store), [1, 4, 2, 1]);
    }
}

#[test]
fn a_body_has_no_state_of_the_one_before() {
    let store = Batched::new(Memory::new());
    let answers = batch(&store, 4, |number| {
        store.transact_batched(|txn| match number {
            // Drops the error of a guarded write that has written nothing.
            0 => Ok(txn.guarded(|_| Err::<(), _>(Error::ReadOnly)).is_err()),
            1 => {
                txn.state().remember(b"cached", None);
                Ok(true)
            }
            2 => {
                txn.put(b"cached", b"")?;
                Ok(txn.state().remembered(b"cached").is_none())
            }
            _ => Ok(txn.state().remembered(b"cached").is_none()),
        })
    });
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.unwrap()).collect();
    assert!(matches!(answers[0], Err(Error::CommitRefused { .. })), "{answers:?}");
    assert!(answers[1..].iter().all(|answer| matches!(answer, Ok(true))), "{answers:?}");
    assert_eq!(counts(&store), [1, 3, 2, 0]);
}

#[derive(Debug, thiserror::Error)]
enum Booking {
    #[error("sold out")]
    SoldOut,
    #[error(transparent)]
    Store(#[from] Error),
}

#[test]
fn bodies_with_errors_of_their_own_are_batched() {
    let store = Batched::new(Memory::new());
    let answers = batch(&store, 9, |number| {
        store.try_transact_batched(|txn| {
            txn.put(&key(number), b"")?;
            if number == 4 { Err(Booking::SoldOut) } else { Ok(()) }
        })
    });
    no_call_lies(&store, &answers, |_| false);
    assert!(matches!(answers[4], Ok(Err(Booking::SoldOut))));
    assert_eq!(counts(&store), [1, 8, 2, 1]);
}

/// A conflict is recognized even if the body wraps it in its own error.
#[test]
fn a_conflict_in_a_body_runs_it_again() {
    for is_batch in [false, true] {
        let store = Batched::new(Memory::new());
        let attempt = |number: usize| {
            let mut run = 0;
            store.try_transact_batched(|txn| {
                run += 1;
                txn.guarded(|txn| match run {
                    1 | 2 => Err(Error::Conflict { what: "of a pattern".into() }),
                    _ => txn.put(&key(number), b""),
                })?;
                Ok::<_, Booking>(())
            })
        };
        match is_batch {
            true => no_call_lies(&store, &batch(&store, 5, attempt), |_| false),
            false => attempt(0).unwrap(),
        }
        assert!(is_there(&store, 0));
    }
}

#[test]
fn a_lone_body_runs_as_often_as_the_policy_says() {
    for max_attempts in [1, 2, 5] {
        let mut hooked = Hooked::new(|_| Ok(()), |_| Err(Error::Conflict { what: "a key".into() }));
        hooked.policy = RetryPolicy { max_attempts, ..RetryPolicy::default() };
        let store = Batched::new(hooked);
        let mut runs = 0;
        let answer = store.transact_batched(|txn| {
            runs += 1;
            txn.put(b"k", b"")
        });
        assert!(
            matches!(answer, Err(Error::RetriesExhausted { attempts, .. }) if attempts == runs)
        );
        assert_eq!(runs, max_attempts);
    }
}

/// Each call waits for one failing begin, and for its own begin.
#[test]
fn a_store_that_cannot_begin_fails_all_at_once() {
    let begins = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&begins);
    let slow = move |begin| {
        if begin == 0 {
            return Ok(());
        }
        counted.fetch_add(1, Relaxed);
        thread::sleep(Duration::from_millis(20));
        Err(Error::ReadOnly)
    };
    let store = Batched::new(Hooked::new(slow, |_| Ok(())));
    let answers = batch(&store, 20, |n| store.transact_batched(|txn| txn.put(&key(n), b"")));
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Err(Error::ReadOnly)))));
    // One begin for the batch and one for each call. If the calls failed one after the other, there
    // would be twice as many.
    assert_eq!(begins.load(Relaxed), 21);
}

/// A batch that does not fit is split, and the next batches are no larger than what fits.
#[test]
fn batches_learn_how_much_fits() {
    let limits = Limits::default().with_max_transaction(None, Some(30));
    let store = Batched::new(Memory::builder().limits(limits).build());
    let runs = AtomicUsize::new(0);
    let answers = batch(&store, 200, |number| {
        store.transact_batched(|txn| {
            runs.fetch_add(1, Relaxed);
            txn.put(&key(number), b"")
        })
    });
    no_call_lies(&store, &answers, |_| false);
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(())))));
    let runs = runs.into_inner();
    assert!(runs < 450, "{runs} runs of 200 bodies");
    let [batches, together, ..] = counts(&store);
    assert!(batches < 20 && together > 190, "{:?}", store.counts());
}

/// A body ignores the error of a write that did not fit; alone, the body would fit.
#[test]
fn a_body_that_ignores_a_full_transaction_runs_in_another() {
    let limits = Limits::default().with_max_transaction(None, Some(5));
    let store = Batched::new(Memory::builder().limits(limits).build());
    let answers = batch(&store, 20, |number| {
        store.transact_batched(|txn| Ok(txn.put(&key(number), b"").is_ok()))
    });
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(true)))), "{answers:?}");
    assert!((0..20).all(|number| is_there(&store, number)));
}

/// On some servers, a failed read ends the transaction.
#[test]
fn a_body_whose_read_ends_the_transaction_is_left_out() {
    let store = Batched::new(Hooked::new(|_| Ok(()), |_| Ok(())));
    let runs = AtomicUsize::new(0);
    let answers = batch(&store, 40, |number| {
        store.transact_batched(|txn| {
            runs.fetch_add(1, Relaxed);
            if number == 3 {
                txn.get(b"poison")?;
            }
            txn.put(&key(number), b"")
        })
    });
    no_call_lies(&store, &answers, |_| false);
    assert!(matches!(answers[3], Ok(Err(Error::ReadOnly))));
    assert_eq!((counts(&store), runs.into_inner()), ([1, 39, 2, 1], 4 + 39 + 1));
}

#[test]
fn a_thread_with_a_transaction_is_refused() {
    let store = Batched::new(Memory::new());
    let put = || store.transact_batched(|txn| txn.put(b"a", b""));
    let txn = store.begin().unwrap();
    assert!(matches!(put(), Err(Error::NestedTransaction)));
    txn.commit().unwrap();
    put().unwrap();
    assert!(matches!(store.transact(|_| put()), Err(Error::NestedTransaction)));
    assert!(matches!(store.transact_batched(|_| put()), Err(Error::NestedTransaction)));
    put().unwrap();
}
