//! `transact` commits once, or not at all.

use std::thread;

use super::compare::{Model, agree, blob, ensure, found, get, plant, same};
use super::serializable::{Meeting, insist};
use super::{Finding, Outcome};
use keyloom::{Error, KeyRange, Reader, Store, Transaction, Writer};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sold out of {0}")]
struct SoldOut(u32);

pub(super) fn what_the_body_returns_comes_back<S: Store>(store: &S) -> Outcome {
    let value = store.transact(|txn| {
        txn.put(b"a", b"1")?;
        Ok(txn.get(b"a")?.map(|value| value.to_vec()))
    })?;
    same("the value", &value, &Some(b"1".to_vec()))?;
    agree("the store", &store.snapshot()?, &Model::from([(blob(b"a"), blob(b"1"))]))
}

pub(super) fn an_error_of_the_body_rolls_back_and_comes_back_unchanged<S: Store>(
    store: &S,
) -> Outcome {
    let model = plant(store, &[b"a", b"b"])?;
    let mut runs = 0;
    let answer = store.transact(|txn| -> keyloom::Result<()> {
        runs += 1;
        txn.put(b"a", b"changed")?;
        txn.delete_range(KeyRange::starting_at(b"b"))?;
        Err(Error::other(SoldOut(7)))
    });
    let error = answer.as_ref().err().and_then(Error::downcast_ref::<SoldOut>);
    same("the error", &error, &Some(&SoldOut(7)))?;
    same("runs of the body", &runs, &1)?;
    agree("the store", &store.snapshot()?, &model)
}

/// An error of the body, or of the store.
#[derive(Debug)]
enum Booking {
    SoldOut(SoldOut),
    Store(Error),
}

impl From<Error> for Booking {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

pub(super) fn an_error_type_of_the_body_comes_back_unchanged<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &[b"a"])?;
    let answer = store.try_transact(|txn| -> Result<(), Booking> {
        txn.put(b"a", b"changed")?;
        Err(Booking::SoldOut(SoldOut(9)))
    });
    match answer {
        Err(Booking::SoldOut(SoldOut(9))) => {}
        Err(Booking::Store(error)) => return Err(error.into()),
        other => return found(format!("the error came back as {other:?}")),
    }
    agree("the store", &store.snapshot()?, &model)?;
    let answer = store.try_transact(|txn| -> Result<(), Booking> { Ok(txn.put(b"", b"")?) });
    ensure(
        matches!(answer, Err(Booking::Store(Error::EmptyKey))),
        &format!("an error of the store came back as {answer:?}"),
    )
}

/// Two threads change the same key, so that on a store with conflicts one transaction is retried.
/// Every run writes a mark of its own, and only the marks of the last runs may be stored.
pub(super) fn a_body_that_runs_again_leaves_only_its_last_run<S: Store>(store: &S) -> Outcome {
    const ROUNDS: u8 = 5;
    for round in 0..ROUNDS {
        let meeting = Meeting::new(2);
        let work = |thread: u8| -> Outcome<u8> {
            let mut run = 0;
            insist(|| {
                store.transact(|txn| {
                    run += 1;
                    let seen = txn.counter(b"n")?;
                    txn.put(&[b'm', round, thread, run], b"")?;
                    meeting.wait();
                    txn.put(b"n", &(seen + 1).to_le_bytes())?;
                    Ok(run)
                })
            })
        };
        let last = thread::scope(|scope| {
            let other = scope.spawn(|| work(1));
            let mine = work(0);
            let other = other.join().unwrap_or_else(|_| found("a writer panicked"));
            Ok::<_, Finding>([mine?, other?])
        })?;
        let snapshot = store.snapshot()?;
        for (thread, run) in (0..).zip(last) {
            let prefix = [b'm', round, thread];
            let marks = snapshot.count(KeyRange::prefix(&prefix))?;
            same("marks that a transaction left", &marks, &1)?;
            let mark = get(&snapshot, &[b'm', round, thread, run])?;
            ensure(mark.is_some(), "the mark of the last run is not there")?;
        }
    }
    same("the counter", &store.snapshot()?.counter(b"n")?, &(2 * i64::from(ROUNDS)))
}

/// A store with one writer at a time must refuse the inner transaction, because the thread would
/// wait for itself.
pub(super) fn a_transaction_within_a_transaction_works_or_is_refused<S: Store>(
    store: &S,
) -> Outcome {
    let mut outer = store.begin()?;
    outer.put(b"outer", b"1")?;
    let mut model = Model::from([(blob(b"outer"), blob(b"1"))]);
    match store.begin() {
        Err(Error::NestedTransaction) => {}
        Err(error) => return found(format!("the inner transaction: error {error}")),
        Ok(mut inner) => {
            ensure(get(&inner, b"outer")?.is_none(), "it sees what the outer one wrote")?;
            inner.put(b"inner", b"2")?;
            inner.commit()?;
            model.insert(blob(b"inner"), blob(b"2"));
        }
    }
    outer.commit()?;
    agree("after the commits", &store.snapshot()?, &model)
}
