//! One history on one store, with a fault at every operation of everything that is done.

use keyloom::{
    Error, Fault, Faulty, KeyRange, Memory, Order, Reader, Result, Store, Transaction, Writer,
};

use super::careless::Careless;
use crate::mix::first_difference;
use crate::{Mix, Oracle};

/// What was wrong, if anything was.
pub type Verdict<T = ()> = std::result::Result<T, String>;

/// A part of the work, which a control does without a look at errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The transactions of the workloads.
    Writing,
    /// What the workloads ask of the store.
    Reading,
    /// Work in many transactions.
    LongWork,
}

/// A store under faults.
pub struct Trial<'t, S> {
    pub faulty: &'t Faulty<S>,
    pub mix: &'t Mix,
    /// Whether a transaction can commit while another one is open.
    pub side_by_side: bool,
    pub careless: Option<Part>,
    /// How many operations were made to fail.
    pub faults: u64,
}

/// A transaction, and what the store holds before and after it.
struct Step {
    transaction: u64,
    number: u64,
    before: Memory,
    after: Memory,
}

impl<S: Store> Trial<'_, S> {
    /// Everything, with every fault.
    pub fn all(&mut self, history: &[u64]) -> Verdict {
        self.transactions(history)?;
        self.batches(history)?;
        self.repairs(history)
    }

    /// Each transaction fails in every way before it succeeds, and at the end every question too.
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
        // The first has nothing to look at yet.
        if self.side_by_side && step.number > 0 {
            self.conflict_of_the_store(step)?;
        }
        self.unknown(step, operations, Fault::UnknownAndLost)?;
        self.unknown(step, operations, Fault::UnknownButCommitted)
    }

    /// An error at each operation in turn; how many operations there are.
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

    /// A conflict that the store itself reports at commit.
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

    /// The commit's outcome is unknown, and the transaction runs again.
    fn unknown(&mut self, step: &Step, operations: u64, fault: Fault) -> Verdict {
        // Elsewhere than at the commit, which comes last, these faults are errors like others.
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

    /// The transaction, which looks first whether it has happened.
    fn body(&self, step: &Step, txn: &mut impl Writer) -> Result<()> {
        if self.careless == Some(Part::Writing) {
            return self.mix.perform(step.transaction, step.number, &mut Careless(txn));
        }
        self.mix.perform_once(step.transaction, step.number, txn)
    }

    /// What the workloads ask is answered rightly or not at all.
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

    /// Runs `work` with a fault at operation `n`. Returns also whether it reached that operation.
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

    /// Makes the store hold what another one does.
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

/// Whether an error says what failed: the operation is named, however it was wrapped.
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
