//! Work in many transactions: commits before a fault remain, and the work continues.

use std::ops::ControlFlow;

use fastrand::Rng;
use keyloom::{Fault, Memory, Result, Store, Subspace};
use keyloom_patterns::derived::{RepairOptions, RepairPosition};
use keyloom_patterns::{BatchSize, Index, Maintained, Table};

use super::trial::{Part, Trial, Verdict, clear, reported};
use crate::Mix;

const FAULTS: [Fault; 4] =
    [Fault::Error, Fault::Conflict, Fault::UnknownAndLost, Fault::UnknownButCommitted];

/// The number of workload transactions, or of records of a repair, per transaction of the work.
const BATCH: usize = 2;

/// The maximum number of workload transactions.
const ITEMS: usize = 5;

const RECORDS: u16 = 5;

impl<S: Store> Trial<'_, S> {
    /// [`BatchSize::transact_all`] over a history, with a fault at each operation in turn.
    pub fn batches(&mut self, history: &[u64]) -> Verdict {
        let items: Vec<(u64, u64)> = (0..).zip(history.iter().copied()).take(ITEMS).collect();
        let mut oracle = self.mix.oracle();
        let mut wanted = vec![oracle.rebuilt().map_err(reported)?];
        for (_, transaction) in &items {
            oracle.imitate(*transaction);
            wanted.push(oracle.rebuilt().map_err(reported)?);
        }
        for fault in FAULTS {
            for n in 0.. {
                if !self.batch(&items, &wanted, fault, n)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs a batch with a fault at operation `n`. Returns whether there was such an operation.
    fn batch(
        &mut self,
        items: &[(u64, u64)],
        wanted: &[Memory],
        fault: Fault,
        n: u64,
    ) -> Verdict<bool> {
        self.restore(&Memory::new())?;
        let (done, was_hit) = self.with_fault(n, fault, |trial| trial.work_off(items));
        let far = self.progress()?;
        // The store must contain complete batches, whatever happened.
        let whole = wanted.get(far).filter(|_| far % BATCH == 0 || far == items.len());
        let whole = whole.ok_or_else(|| format!("{fault:?} at operation {n} leaves {far} done"))?;
        self.holds(whole, n, fault)?;
        match done {
            Ok(()) if far < items.len() => {
                return Err(format!("all is done, after {fault:?} at operation {n}, says a half"));
            }
            Err(error) if fault == Fault::Conflict => {
                return Err(format!("a conflict at operation {n} is not retried: {error}"));
            }
            Ok(()) => {}
            Err(error) => {
                clear(&error, n)?;
                self.work_off(items).map_err(reported)?;
            }
        }
        wanted.last().map_or(Ok(()), |all| self.holds(all, n, fault))?;
        Ok(was_hit)
    }

    fn progress(&self) -> Verdict<usize> {
        let far = self.faulty.inner().snapshot().and_then(|snapshot| Mix::progress(&snapshot));
        Ok(usize::try_from(far.map_err(reported)?).unwrap_or(usize::MAX))
    }

    fn work_off(&self, items: &[(u64, u64)]) -> Result<()> {
        BatchSize::new(BATCH).transact_all(self.faulty, items, |txn, batch| {
            batch.iter().try_for_each(|(number, transaction)| {
                self.mix.perform_once(*transaction, *number, txn)
            })
        })
    }

    /// The repair of an index, stopped by a fault at each operation in turn, and resumed.
    pub fn repairs(&mut self, history: &[u64]) -> Verdict {
        let mut rng = Rng::with_seed(history.first().copied().unwrap_or_default());
        let words = Words::new();
        let [damaged, whole] = words.damaged(&mut rng).map_err(reported)?;
        for fault in FAULTS {
            for n in 0.. {
                if !self.repair(&words, [&damaged, &whole], fault, n)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn repair(
        &mut self,
        words: &Words,
        [damaged, whole]: [&Memory; 2],
        fault: Fault,
        n: u64,
    ) -> Verdict<bool> {
        self.restore(damaged)?;
        let ((done, reported_last), was_hit) =
            self.with_fault(n, fault, |trial| words.repair(trial.faulty, None));
        match done {
            Err(error) if fault == Fault::Conflict => {
                return Err(format!("a conflict at operation {n} is not retried: {error}"));
            }
            Err(error) => {
                clear(&error, n)?;
                if self.careless != Some(Part::LongWork) {
                    // Half of the repairs resume at the reported position, and half start again.
                    let resume = reported_last.filter(|_| n.is_multiple_of(2));
                    words.repair(self.faulty, resume).0.map_err(reported)?;
                }
            }
            Ok(()) => {}
        }
        self.holds(whole, n, fault).map_err(|what| format!("in a repair, {what}"))?;
        Ok(was_hit)
    }
}

/// Words, and an index of their letters.
struct Words {
    table: Table<u16, String>,
    by_letter: Index<u16, String, String>,
}

impl Words {
    fn new() -> Self {
        let space = Subspace::new("words");
        let by_letter = Index::new(&space.child("by_letter"), |_, word: &String| {
            word.chars().map(String::from).collect()
        });
        Self { table: Table::new(&space.child("table")).with(&by_letter), by_letter }
    }

    /// A store whose index does not match its records, and the same store as it should be.
    fn damaged(&self, rng: &mut Rng) -> Result<[Memory; 2]> {
        let (damaged, whole) = (Memory::new(), Memory::new());
        let without_index = Table::<u16, String>::new(self.table.space());
        for id in 0..RECORDS {
            let word = |rng: &mut Rng| (0..rng.usize(1..4)).map(|_| rng.char('a'..='f')).collect();
            let (old, new): (String, String) = (word(rng), word(rng));
            let is_known = rng.bool();
            damaged.transact(|txn| {
                if is_known {
                    self.table.put(txn, &id, &old)?;
                }
                without_index.put(txn, &id, &new)
            })?;
            whole.transact(|txn| self.table.put(txn, &id, &new))?;
        }
        // Also an entry whose record was deleted.
        damaged.transact(|txn| {
            self.table.put(txn, &RECORDS, &"gone".into())?;
            without_index.delete(txn, &RECORDS).map(drop)
        })?;
        Ok([damaged, whole])
    }

    /// Repairs the index. Also returns the last reported position.
    fn repair(
        &self,
        store: &impl Store,
        resume: Option<RepairPosition>,
    ) -> (Result<()>, Option<RepairPosition>) {
        let mut last = None;
        let options = RepairOptions { batch: BATCH, resume };
        let done = self.by_letter.repair_with(store, &self.table, &options, |progress| {
            last = Some(progress.position.clone());
            ControlFlow::Continue(())
        });
        (done.map(drop), last)
    }
}
