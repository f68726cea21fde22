//! Priority for a build whose batches conflict with writers.
//!
//! On stores with concurrent writers, a batch of a build conflicts with each writer of the table:
//! the batch moves a position that the writer reads. The writer's transaction is shorter, so the
//! batch loses. After two losses the build writes a *fence* into the table's entry, which writers
//! read anyway: a time before which they must not write. A writer that finds a fence runs again
//! after a pause. So the next batch runs without concurrent writers.
//!
//! If writers did not read the position, the changes of a record would need an order that is
//! independent of the order of the transactions.

use std::error::Error as StdError;
use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use keyloom::{Error, Result, Store};
use keyloom_kit::BatchSize;

/// The maximum length of a fence, in milliseconds. A fence that ends further in the future is
/// ignored, because the clock of the program that raised it must be wrong.
// Four times the intended duration of a batch: a longer batch may lose against the first writers
// after its fence. After a crash of the build, writers pause for this long.
const LONGEST_MS: u64 = 2_000;
/// How long a writer pauses at a fence before it runs again.
// With a shorter pause, writers run in vain more often. A longer pause adds to their latency after
// the fence.
const PAUSE: Duration = Duration::from_millis(10);
/// The intended duration of a batch with a fence. Writers wait during such a batch, so it must be
/// short. But shorter batches visit fewer records per second: for a text index on PostgreSQL, 40
/// records in 200 ms, but 1,000 in 900 ms.
const BATCH: Duration = Duration::from_millis(500);
/// The number of losses of a batch after which a fence is raised.
// While no batch loses, writers need not wait at all. Each further loss wastes the work of one more
// batch.
const LOSSES: u32 = 2;
/// The number of batches with a fence before a batch without a fence is tried again.
// There may be fewer writers by then. More frequent trials lose more batches; rarer trials make
// writers wait for longer than necessary.
const FENCED: u32 = 8;
/// The number of losses of a batch after which the retry limit of the store applies.
const MOST_LOSSES: u32 = 20;

/// The end of a fence that begins now, in milliseconds since 1970.
pub(super) fn end() -> u64 {
    now_ms().saturating_add(LONGEST_MS)
}

/// Pauses if there is a fence with this end. Returns whether there was one.
pub(super) fn pause_at(end: u64) -> bool {
    let left = end.saturating_sub(now_ms());
    let is_up = (1..=LONGEST_MS).contains(&left);
    if is_up {
        sleep(PAUSE.min(Duration::from_millis(left)));
    }
    is_up
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A batch has lost against writers, and the store must not retry it.
#[derive(Debug)]
struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch of a build has lost against writers")
    }
}

impl StdError for Lost {}

/// Runs the batches of a build, and raises a fence once they lose.
pub(super) struct Batches {
    size: BatchSize,
    /// The number of items of the last run.
    items: usize,
    /// The number of further batches that begin with a fence.
    fenced: u32,
}

impl Batches {
    pub(super) fn new(items: usize) -> Self {
        Self { size: BatchSize::new(items), items, fenced: 0 }
    }

    /// Runs one batch. `raise` raises a fence, which the batch removes.
    ///
    /// # Errors
    /// The errors of [`BatchSize::transact`] and of `raise`.
    pub(super) fn next<S: Store, T>(
        &mut self,
        store: &S,
        raise: impl Fn() -> Result<()>,
        mut batch: impl FnMut(&mut S::Transaction<'_>, usize) -> Result<T>,
    ) -> Result<T> {
        for losses in 1..=MOST_LOSSES {
            let is_fenced = self.fenced > 0;
            if is_fenced {
                raise()?;
            }
            let begun = Instant::now();
            let outcome = self.run(store, &mut batch);
            let took = begun.elapsed();
            if outcome.as_ref().is_err_and(|error| error.downcast_ref::<Lost>().is_some()) {
                self.shrink(took, is_fenced);
                if losses == LOSSES {
                    self.fenced = FENCED;
                }
                continue;
            }
            if is_fenced {
                self.fenced -= 1;
                self.size.set(if took < BATCH / 2 {
                    self.items.saturating_mul(2)
                } else {
                    self.items
                });
                // Writers get the same amount of time as the build.
                sleep(took.min(Duration::from_millis(LONGEST_MS)));
            }
            return outcome;
        }
        self.size.transact(store, batch)
    }

    /// Runs a batch once.
    fn run<S: Store, T>(
        &mut self,
        store: &S,
        mut batch: impl FnMut(&mut S::Transaction<'_>, usize) -> Result<T>,
    ) -> Result<T> {
        let (size, tried) = (&mut self.size, &mut self.items);
        let mut runs = 0;
        size.transact(store, |txn, items| {
            runs += 1;
            if runs > 1 {
                return Err(Error::other(Lost));
            }
            *tried = items;
            batch(txn, items)
        })
    }

    /// After a loss, reduces the size so that a batch takes no longer than intended.
    fn shrink(&mut self, took: Duration, is_fenced: bool) {
        let share = BATCH.as_secs_f64() / took.as_secs_f64().max(f64::MIN_POSITIVE);
        let items = match is_fenced {
            // At least halve the size: the batch may lose within its fence, if the store reports
            // false conflicts.
            true => self.items as f64 * share.min(0.5),
            false => self.items as f64 * share.min(1.0),
        };
        self.size.set(items as usize);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use keyloom::{Memory, Reader, Transaction, Writer};

    use super::*;
    use crate::index::entry;
    use crate::{Attached, Index, Schema, Table};

    #[test]
    fn only_a_fence_of_the_next_two_seconds_holds() {
        let now = now_ms();
        assert!(pause_at(now + 500));
        assert!(!pause_at(now));
        assert!(!pause_at(0));
        assert!(!pause_at(now + 5_000), "a clock that is ahead");
        assert!(!pause_at(u64::MAX));
    }

    fn filled(store: &Memory) -> (Table<u32, u32>, Attached<Index<u32, u32, u32>>) {
        let schema = Schema::open(store, "app").unwrap();
        let numbers = schema.table::<u32, u32>("numbers").unwrap();
        store.transact(|txn| numbers.put_many(txn, (0..9).map(|n| (n, n)))).unwrap();
        let index = schema.index(&numbers, "by_number", 1, |_, n: &u32| entry(n)).unwrap();
        store.transact(|txn| index.build_batch(txn, 3).map(drop)).unwrap();
        (numbers, index)
    }

    /// The items of the two runs of a batch of 1,000 that takes some time, and loses once.
    fn items_of_runs(takes: Duration) -> [usize; 2] {
        let store = Memory::builder().optimistic(true).build();
        let (mut batches, mut items) = (Batches::new(1_000), Vec::new());
        let batch = |txn: &mut <Memory as Store>::Transaction<'_>, size| {
            items.push(size);
            txn.get(b"read")?;
            txn.put(b"written", &[])?;
            if items.len() == 1 {
                sleep(takes);
                store.transact(|other| other.put(b"read", &[]))?;
            }
            Ok(())
        };
        batches.next(&store, || Ok(()), batch).unwrap();
        items.try_into().unwrap()
    }

    #[test]
    fn a_long_batch_that_conflicts_becomes_smaller() {
        assert_eq!(items_of_runs(Duration::ZERO), [1_000, 1_000]);
        let [first, second] = items_of_runs(BATCH + BATCH / 2);
        assert!(first == 1_000 && (1..=667).contains(&second), "{second}");
    }

    /// The build was killed after it had raised the fence.
    #[test]
    fn writers_run_again_until_the_fence_ends() {
        let store = Memory::builder().optimistic(true).build();
        let (numbers, index) = filled(&store);
        for with_own_error in [false, true] {
            store.transact(|txn| index.raise_fence(txn)).unwrap();
            let mut runs = 0;
            let written = match with_own_error {
                false => store.transact(|txn| {
                    runs += 1;
                    numbers.put(txn, &1, &runs)
                }),
                true => store.try_transact(|txn| {
                    runs += 1;
                    numbers.put(txn, &1, &runs)
                }),
            };
            written.unwrap();
            assert!(runs > 1, "{runs} runs");
        }
        index.build(&store).unwrap();
        assert!(index.check(&store.snapshot().unwrap()).unwrap().is_empty());
    }

    #[test]
    fn a_batch_removes_the_fence() {
        let store = Memory::builder().optimistic(true).build();
        let (numbers, index) = filled(&store);
        store.transact(|txn| index.raise_fence(txn)).unwrap();
        let mut txn = store.begin().unwrap();
        let refused = numbers.put(&mut txn, &1, &1).unwrap_err();
        assert!(refused.to_string().contains("numbers.by_number"), "{refused}");
        assert!(refused.is_retryable() && txn.commit().is_err());
        store.transact(|txn| index.build_batch(txn, 3).map(drop)).unwrap();
        let mut txn = store.begin().unwrap();
        numbers.put(&mut txn, &1, &1).unwrap();
        txn.commit().unwrap();
    }
}
