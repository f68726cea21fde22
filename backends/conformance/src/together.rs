//! `transact_batched` commits each body once or not at all, regardless of the other bodies in the
//! batch.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::Outcome;
use super::compare::{Model, agree, blob, ensure, found, get, same};
use super::serializable::{insist, on_threads};
use keyloom::{Error, KeyRange, Reader, Store, Writer};

const THREADS: u8 = 3;
const ROUNDS: u8 = 10;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sold out of {0}")]
struct SoldOut(u8);

pub(super) fn what_a_batched_body_returns_comes_back<S: Store>(store: &S) -> Outcome {
    on_threads(THREADS, |thread| {
        for round in 0..ROUNDS {
            let value = insist(|| {
                store.transact_batched(|txn| {
                    txn.put(&[thread], &[round])?;
                    Ok(txn.get(&[thread])?.map(|value| blob(&*value)))
                })
            })?;
            same("the value", &value, &Some(blob([round])))?;
            let stored = get(&store.snapshot()?, &[thread])?;
            same("the value after the call", &stored, &Some(blob([round])))?;
        }
        Ok(())
    })?;
    let model: Model = (0..THREADS).map(|thread| (blob([thread]), blob([ROUNDS - 1]))).collect();
    agree("at the end", &store.snapshot()?, &model)
}

/// Each body increments and returns a number that it has read, so no two bodies may return the same
/// number.
pub(super) fn batched_bodies_see_each_other_in_order<S: Store>(store: &S) -> Outcome {
    let numbers = Mutex::new(Vec::new());
    on_threads(THREADS, |_| {
        for _ in 0..ROUNDS {
            let number = insist(|| {
                store.transact_batched(|txn| {
                    let number = txn.counter(b"n")?;
                    txn.put(b"n", &(number + 1).to_le_bytes())?;
                    Ok(number)
                })
            })?;
            numbers.lock().map_err(|_| Error::ReadOnly)?.push(number);
        }
        Ok(())
    })?;
    let numbers = numbers.into_inner().unwrap_or_default();
    let distinct: BTreeSet<i64> = numbers.iter().copied().collect();
    let all = i64::from(THREADS) * i64::from(ROUNDS);
    same("the numbers", &distinct, &(0..all).collect())?;
    same("how many numbers", &numbers.len(), &distinct.len())
}

/// What the body of a thread does after its first write.
fn fate(thread: u8, round: u8) -> u8 {
    (thread + round) % 4
}

pub(super) fn a_batched_body_that_fails_leaves_the_others_whole<S: Store>(store: &S) -> Outcome {
    on_threads(THREADS, |thread| {
        for round in 0..ROUNDS {
            attempt(store, thread, round)?;
        }
        Ok(())
    })?;
    let all = (0..THREADS).flat_map(|thread| (0..ROUNDS).map(move |round| (thread, round)));
    let good = all.filter(|(thread, round)| fate(*thread, *round) == 0);
    let model: Model = good
        .flat_map(|(thread, round)| [b'a', b'b'].map(|key| (blob([key, thread, round]), blob(b""))))
        .collect();
    agree("the writes of the bodies that succeeded", &store.snapshot()?, &model)
}

/// Runs one body, which writes two keys, or fails before, between or after the two writes.
fn attempt<S: Store>(store: &S, thread: u8, round: u8) -> Outcome {
    let (one, two, fate) = ([b'a', thread, round], [b'b', thread, round], fate(thread, round));
    let answer = insist(|| {
        store
            .transact_batched(|txn| {
                if fate == 1 {
                    return Err(Error::other(SoldOut(round)));
                }
                txn.put(&one, b"")?;
                match fate {
                    2 => return Err(Error::other(SoldOut(round))),
                    // The body ignores the error of a pattern's write.
                    3 => _ = txn.guarded(|_| Err::<(), _>(Error::other(SoldOut(round)))),
                    _ => {}
                }
                txn.put(&two, b"")?;
                // The error is an error of the body, so `insist` must not retry it.
                Ok(())
            })
            .map_or_else(
                |error| if error.is_retryable() { Err(error) } else { Ok(Err(error)) },
                |()| Ok(Ok(())),
            )
    })?;
    match (fate, answer) {
        (0, Ok(())) => Ok(()),
        (0, Err(error)) => Err(error.into()),
        (_, Ok(())) => found(format!("body {fate} failed, and its call reported success")),
        (_, Err(error)) => {
            same("the error", &error.downcast_ref(), &Some(&SoldOut(round)))?;
            let is_refused = matches!(error, Error::CommitRefused { .. });
            same("is a refused commit", &is_refused, &(fate == 3))
        }
    }
}

pub(super) fn a_batched_body_that_runs_again_leaves_only_its_last_run<S: Store>(
    store: &S,
) -> Outcome {
    on_threads(THREADS, |thread| {
        for round in 0..ROUNDS {
            let mut run = 0_u32;
            let last = insist(|| {
                store.transact_batched(|txn| {
                    run += 1;
                    let seen = txn.counter(b"n")?;
                    txn.put(b"n", &(seen + 1).to_le_bytes())?;
                    let key = [&[b'm', thread, round][..], &run.to_be_bytes()].concat();
                    txn.put(&key, b"")?;
                    Ok(key)
                })
            })?;
            let snapshot = store.snapshot()?;
            let marks = snapshot.count(KeyRange::prefix(&[b'm', thread, round]))?;
            same("marks that a transaction left", &marks, &1)?;
            ensure(snapshot.get(&last)?.is_some(), "the mark of the last run is not there")?;
        }
        Ok(())
    })?;
    let all = i64::from(THREADS) * i64::from(ROUNDS);
    same("the counter", &store.snapshot()?.counter(b"n")?, &all)
}

pub(super) fn an_error_type_of_a_batched_body_comes_back_unchanged<S: Store>(store: &S) -> Outcome {
    #[derive(Debug)]
    enum Booking {
        SoldOut,
        Store(Error),
    }
    impl From<Error> for Booking {
        fn from(error: Error) -> Self {
            Self::Store(error)
        }
    }
    let book = |seat: u8, is_last: bool| {
        store.try_transact_batched(|txn| {
            txn.put(&[seat], b"taken")?;
            if is_last { Err(Booking::SoldOut) } else { Ok(seat) }
        })
    };
    on_threads(THREADS, |seat| {
        for round in 0..ROUNDS {
            match book(seat, round > 0) {
                Ok(booked) if round == 0 => same("the seat", &booked, &seat)?,
                Err(Booking::SoldOut) if round > 0 => {}
                Err(Booking::Store(error)) if error.is_retryable() => {}
                Err(Booking::Store(Error::RetriesExhausted { .. })) => {}
                other => return found(format!("round {round} returned {other:?}")),
            }
        }
        Ok(())
    })?;
    let taken = store.snapshot()?.count(KeyRange::all())?;
    ensure(taken <= u64::from(THREADS), "more seats than bodies that succeeded")
}
