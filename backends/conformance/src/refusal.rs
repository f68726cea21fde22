//! After a failed write of a pattern the transaction does not commit.

use super::Outcome;
use super::compare::{Model, agree, blob, ensure, plant, same};
use keyloom::{DynWriter, Error, Result, Store, Transaction, Writer};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for {0}")]
struct NoRoom(u32);

/// A write of a pattern that fails half way.
fn fail_half_way(txn: &mut impl Writer, error: Error) -> Result<()> {
    txn.guarded(|txn| {
        txn.put(b"half", b"done")?;
        Err(error)
    })
}

pub(super) fn a_failed_write_of_a_pattern_is_not_committed<S: Store>(store: &S) -> Outcome {
    let mut model = plant(store, &[b"a", b"b"])?;
    for is_erased in [false, true] {
        let mut txn = store.begin()?;
        let failed = match is_erased {
            true => fail_half_way(&mut DynWriter::new(&mut txn), Error::other(NoRoom(1))),
            false => fail_half_way(&mut txn, Error::other(NoRoom(1))),
        };
        ensure(failed.is_err(), "the write that fails reported success")?;
        txn.put(b"a", b"changed")?;
        ensure(
            matches!(txn.commit(), Err(Error::CommitRefused { .. })),
            "the commit was not refused",
        )?;
        agree("after the refused commit", &store.snapshot()?, &model)?;
    }
    store.transact(|txn| txn.put(b"a", b"changed"))?;
    model.insert(blob(b"a"), blob(b"changed"));
    agree("after the next transaction", &store.snapshot()?, &model)
}

pub(super) fn a_refused_commit_has_the_first_error_as_its_source<S: Store>(store: &S) -> Outcome {
    let mut runs = 0;
    let refused = store.transact(|txn| {
        runs += 1;
        let _first = fail_half_way(txn, Error::other(NoRoom(1)).at(b"half"));
        let _second = fail_half_way(txn, Error::other(NoRoom(2)));
        Ok(())
    });
    let error = refused.as_ref().err().and_then(Error::downcast_ref::<NoRoom>);
    same("the first error", &error, &Some(&NoRoom(1)))?;
    same("runs of the body", &runs, &1)?;
    agree("the store", &store.snapshot()?, &Model::new())
}

pub(super) fn a_refused_commit_is_run_again_when_its_source_calls_for_it<S: Store>(
    store: &S,
) -> Outcome {
    let mut runs = 0;
    store.transact(|txn| {
        runs += 1;
        if runs == 1 {
            let _swallowed = fail_half_way(txn, Error::Conflict { what: "on demand".into() });
            return Ok(());
        }
        txn.put(b"a", b"1")
    })?;
    same("runs of the body", &runs, &2)?;
    agree("the store", &store.snapshot()?, &Model::from([(blob(b"a"), blob(b"1"))]))
}

/// A write that the store refuses changes nothing, and does not prevent the commit.
pub(super) fn a_write_that_the_store_refuses_is_no_refusal<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| {
        let _refused = txn.put(b"", b"");
        txn.guarded(|txn| txn.put(b"a", b"1"))
    })?;
    agree("the store", &store.snapshot()?, &Model::from([(blob(b"a"), blob(b"1"))]))
}
