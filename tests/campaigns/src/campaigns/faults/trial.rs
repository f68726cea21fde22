//! One history on one store, with a fault at every operation of every kind of work.

use keyloom::{
    Error, Fault, Faulty, KeyRange, Memory, Order, Reader, Result, Store, Transaction, Writer,
};

use super::careless::Careless;
use crate::mix::first_difference;
use crate::{Mix, Oracle};

/// A result whose error is the violation found.
pub type Verdict<T = ()> = std::result::Result<T, String>;

/// A part of the work, in which a control ignores errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The transactions of the workloads.
    Writing,
    /// The queries of the workloads.
    Reading,
    /// Work in many transactions.
    LongWork,
}

/// A store under faults.
pub struct Trial<'t, S> {
    pub faulty: &'t Faulty<S>,
    pub mix: &'t Mix,
    /// Whether a transaction can commit while another transaction is open.
    pub side_by_side: bool,
    pub careless: Option<Part>,
    /// The number of injected faults.
    pub faults: u64,
}

/// A transaction, with the contents of the store before and after it.
struct Step {
    transaction: u64,
    number: u64,
    before: Memory,
    after: Memory,
}

impl<S: Store> Trial<'_, S> {
    /// Runs every part with every fault.
    pub fn all(&mut self, history: &[u64]) -> Verdict {
        self.transactions(history)?;
        self.batches(history)?;
        self.repairs(history)
    }

    /// Each transaction fails in every way before it succeeds. At the end, every query fails in the
    /// same way.
    fn transactions(&mut self, history: &[u64]) -> Verdict {
        self.restore(&Memory::new())?;
        let mut oracle = self.mix.oracle();
        for (number, &transaction) in (0..).zip(history) {
            let before = oracle.rebuilt().map_err(reported)?;
            oracle.imitate(transaction);
            let after = oracle.rebuilt().map_err(reported)?;
            let step = Step { transaction, number, before, after };
            self.transaction(&step).map_err(|what| format!("transaction {number}: {what}"))?;
            if let Some(wrong) = oracle.judge(self.faulty.inner()).first() {
                return Err(format!("after transaction {number}: {wrong}"));
            }
        }
        self.questions(&oracle)
    }

    fn transaction(&mut self, step: &Step) -> Verdict {
        let operations = self.errors(step)?;
        self.conflicts(step, operations)?;
        // Before the first transaction, there is nothing to read.
        if self.side_by_side && step.number > 0 {
            self.conflict_of_the_store(step)?;
        }
        self.unknown(step, operations, Fault::UnknownAndLost)?;
        self.unknown(step, operations, Fault::UnknownButCommitted)
    }

    /// An error at each operation in turn. Returns the number of operations.
    fn errors(&mut self, step: &Step) -> Verdict<u64> {
        for n in 0.. {
            let (done, was_hit) = self.with_fault(n, Fault::Error, |trial| trial.run(step));
            match done {
                // An operation that returns `Ok` must be complete.
                Ok(()) => {
                    self.holds(&step.after, n, Fault::Error)?;
                    self.restore(&step.before)?;
                    if !was_hit {
                        return Ok(n);
                    }
                }
                Err(error) => {
                    clear(&error, n)?;
                    self.holds(&step.before, n, Fault::Error)?;
                }
            }
        }
        Ok(0)
    }

    /// A conflict at each operation in turn.
    fn conflicts(&mut self, step: &Step, operations: u64) -> Verdict {
        for n in 0..operations {
            let (done, _) = self.with_fault(n, Fault::Conflict, |trial| trial.run(step));
            done.map_err(|error| format!("a conflict at operation {n} is not retried: {error}"))?;
            self.holds(&step.after, n, Fault::Conflict)?;
            self.restore(&step.before)?;
        }
        Ok(())
    }

    /// A conflict that the store itself detects at the commit.
    fn conflict_of_the_store(&mut self, step: &Step) -> Verdict {
        let store = self.faulty.inner();
        let mut txn = store.begin().map_err(reported)?;
        self.body(step, &mut txn).map_err(reported)?;
        // Another transaction overwrites a key that the body has read, with the same value.
        store.transact(|other| Mix::touch(other)).map_err(reported)?;
        let done = txn.commit();
        if !done.as_ref().is_err_and(Error::is_retryable) {
            return Err(format!("a commit that must conflict came to {done:?}"));
        }
        self.faults += 1;
        self.holds(&step.before, 0, Fault::Conflict)
    }

    /// The outcome of the commit is unknown, and the transaction is retried.
    fn unknown(&mut self, step: &Step, operations: u64, fault: Fault) -> Verdict {
        // These faults are special only at the commit, which comes last; elsewhere they are
        // ordinary errors.
        let Some(n) = operations.checked_sub(1) else { return Ok(()) };
        self.restore(&step.before)?;
        let (done, _) = self.with_fault(n, fault, |trial| trial.run(step));
        match done {
            Err(error) if error.maybe_committed() => clear(&error, n)?,
            other => return Err(format!("{fault:?} at operation {n} came to {other:?}")),
        }
        let wanted = if fault == Fault::UnknownAndLost { &step.before } else { &step.after };
        self.holds(wanted, n, fault)?;
        self.run(step)
            .map_err(|error| format!("it does not run again after {fault:?}: {error}"))?;
        self.holds(&step.after, n, fault)
    }

    fn run(&self, step: &Step) -> Result<()> {
        self.faulty.transact(|txn| self.body(step, txn))
    }

    /// Runs the transaction, which first checks whether it was committed before.
    fn body(&self, step: &Step, txn: &mut impl Writer) -> Result<()> {
        if self.careless == Some(Part::Writing) {
            return self.mix.perform(step.transaction, step.number, &mut Careless(txn));
        }
        self.mix.perform_once(step.transaction, step.number, txn)
    }

    /// Each query of the workloads returns the right result or an error.
    fn questions(&mut self, oracle: &Oracle) -> Verdict {
        for n in 0.. {
            let (found, was_hit) = self.with_fault(n, Fault::Error, |trial| trial.ask(oracle));
            match found {
                Ok(wrong) => {
                    if let Some(wrong) = wrong.first() {
                        return Err(format!("an error at read {n} is a wrong answer: {wrong}"));
                    }
                    if !was_hit {
                        break;
                    }
                }
                Err(error) => clear(&error, n)?,
            }
        }
        Ok(())
    }

    fn ask(&self, oracle: &Oracle) -> Result<Vec<String>> {
        let mut txn = self.faulty.begin()?;
        match self.careless {
            Some(Part::Reading) => oracle.findings(&mut Careless(&mut txn)),
            _ => oracle.findings(&mut txn),
        }
    }

    /// Runs `work` with a fault at operation `n`. Also returns whether this operation was reached.
    pub fn with_fault<T>(&mut self, n: u64, fault: Fault, work: impl Fn(&Self) -> T) -> (T, bool) {
        self.faulty.fail_at(n, fault);
        let done = work(self);
        let was_hit = self.faulty.operations() > n;
        self.faulty.clear_fault();
        self.faults += u64::from(was_hit);
        (done, was_hit)
    }

    pub fn holds(&self, wanted: &Memory, n: u64, fault: Fault) -> Verdict {
        let compare = || first_difference(&self.faulty.inner().snapshot()?, &wanted.snapshot()?);
        match compare().map_err(reported)? {
            Some(key) => Err(format!("{fault:?} at operation {n} leaves {key} as it must not be")),
            None => Ok(()),
        }
    }

    /// Gives the store the contents of another one.
    pub fn restore(&self, wanted: &Memory) -> Verdict {
        copy(wanted, self.faulty.inner()).map_err(reported)
    }
}

fn copy(from: &Memory, to: &impl Store) -> Result<()> {
    let snapshot = from.snapshot()?;
    to.transact(|txn| {
        txn.delete_range(KeyRange::all())?;
        snapshot.range(KeyRange::all(), Order::Ascending)?.try_for_each(|entry| {
            let (key, value) = entry?;
            txn.put(key, value)
        })
    })
}

/// The text of an error that was not injected.
pub fn reported(error: Error) -> String {
    format!("an operation that should work failed: {error}")
}

/// Checks that an error names the failed operation, however the error was wrapped.
pub fn clear(error: &Error, n: u64) -> Verdict {
    let text = error.to_string();
    if !text.contains(&format!("operation {n} was made to fail")) {
        return Err(format!("the error at operation {n} does not say so: {text}"));
    }
    if error.is_retryable() {
        return Err(format!("the error at operation {n} must not ask for another run: {text}"));
    }
    Ok(())
}
