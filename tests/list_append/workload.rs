//! The workload: writers that share lists, and record their operations and results.
//!
//! Nearly every transaction is concurrent with others that use the same lists. At any moment only
//! few lists are in use, and the set advances so that lists stay short. So a checker that compares
//! whole lists stays fast, and lists that do not exist yet are also read, alone and in ranges.
//! Marks of some lists are set and deleted.
//!
//! Transactions are begun and committed explicitly, not by `transact`, because each attempt counts:
//! a write of an aborted attempt must never be read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use keyloom::{Error, KeyRange, Order, Reader, Result, ServerError, Store, Transaction, Writer};

use crate::elements::Elements;
use crate::history::{Attempt, End, History, Outcome};
use crate::keys::Keys;
use crate::steps::{Scribe, Step, perform_all, read_all};

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of transactions that end as committed or unknown. Aborted attempts do not count.
    pub transactions: usize,
    /// The number of threads that share the transactions.
    pub writers: usize,
    /// The seed of the random choices.
    pub seed: u64,
    /// How long one transaction is retried when it conflicts or the store cannot be reached: long
    /// enough for a killed server to restart.
    pub patience: Duration,
    /// The prefix of all keys, which must be used for nothing else. The keys are removed at the
    /// end, not at the start: a removal with an unknown outcome could be applied late, and remove
    /// new lists.
    pub prefix: Vec<u8>,
    /// Whether snapshots show commits in commit order, which in rare cases is not a serial order.
    pub snapshots_in_commit_order: bool,
    /// The number of processes that work on the store. Each has its own plan, and their
    /// [`attempts`] belong to one history.
    pub processes: usize,
    /// The number of this process.
    pub process: usize,
    /// The time in nanoseconds. Several processes need a common clock.
    pub clock: fn() -> u64,
}

/// A clock that is local to this process.
fn since_the_first_look() -> u64 {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(FIRST.elapsed().as_nanos()).unwrap()
}

impl Plan {
    pub fn new(transactions: usize, writers: usize) -> Self {
        Self {
            transactions,
            writers,
            seed: fastrand::u64(..),
            patience: Duration::from_secs(60),
            prefix: format!("isolation {:016x} ", fastrand::u64(..)).into_bytes(),
            snapshots_in_commit_order: false,
            processes: 1,
            process: 0,
            clock: since_the_first_look,
        }
    }
}

/// The state that the writers share.
struct Shared<'p> {
    plan: &'p Plan,
    keys: Keys,
    /// The remaining transactions.
    left: AtomicU64,
    elements: Elements,
    attempts: Mutex<Vec<Attempt>>,
}

/// Runs the workload on a store.
///
/// # Errors
/// The first error that persists after retries.
pub fn run<S: Store>(store: &S, plan: &Plan) -> Result<History> {
    Ok(History { attempts: attempts(store, plan)?, end: end(store, plan)? })
}

/// Runs the writers of one process. Returns their attempts, with reads and writes.
///
/// # Errors
/// The errors of [`run`].
pub fn attempts<S: Store>(store: &S, plan: &Plan) -> Result<Vec<Attempt>> {
    let shared = Shared::new(plan);
    thread::scope(|scope| {
        let shared = &shared;
        let write = |writer| move || shared.writer(store, writer);
        let first = plan.process * plan.writers;
        let writers: Vec<_> =
            (first..first + plan.writers).map(|writer| scope.spawn(write(writer))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().unwrap())
    })?;
    Ok(shared.attempts.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Reads the final state after all writers have ended, and removes it.
///
/// # Errors
/// The errors of [`run`].
pub fn end<S: Store>(store: &S, plan: &Plan) -> Result<End> {
    let shared = Shared::new(plan);
    let end = shared.patiently(|| shared.end(&store.begin()?))?;
    shared.patiently(|| {
        let mut txn = store.begin()?;
        txn.delete_range(KeyRange::prefix(&plan.prefix))?;
        txn.commit()
    })?;
    Ok(end)
}

impl<'p> Shared<'p> {
    fn new(plan: &'p Plan) -> Self {
        Self {
            plan,
            keys: Keys::new(&plan.prefix),
            left: AtomicU64::new(plan.transactions as u64),
            elements: Elements::new(plan.process, plan.processes),
            attempts: Mutex::default(),
        }
    }

    /// One writer: runs transactions while there are any left.
    fn writer<S: Store>(&self, store: &S, writer: usize) -> Result<()> {
        let mut rng = Rng::with_seed(self.plan.seed.wrapping_add(writer as u64));
        let mut attempts = Vec::new();
        let take = || {
            let less = |left: u64| left.checked_sub(1);
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        };
        while take().is_ok() {
            self.transaction(store, writer, &mut rng, &mut attempts).inspect_err(|_| {
                // The other writers can stop.
                self.left.store(0, Ordering::Relaxed);
            })?;
        }
        self.attempts.lock().unwrap().append(&mut attempts);
        Ok(())
    }

    /// Tries one transaction until it is committed, or may be.
    fn transaction<S: Store>(
        &self,
        store: &S,
        writer: usize,
        rng: &mut Rng,
        attempts: &mut Vec<Attempt>,
    ) -> Result<()> {
        let steps = Step::choose(rng, self.elements.position());
        // Some transactions are first rolled back for no reason: their writes must never be read.
        let mut is_given_up = rng.u8(..16) == 0;
        let reads_only = steps.iter().all(Step::reads_only);
        let by_snapshot = reads_only && rng.bool();
        let started = Instant::now();
        for tries in 0.. {
            let mut operations = Vec::new();
            let mut scribe = Scribe {
                keys: &self.keys,
                elements: &self.elements,
                operations: &mut operations,
                rng,
            };
            let began = (self.plan.clock)();
            let done = if by_snapshot {
                store.snapshot().and_then(|snapshot| read_all(&steps, &snapshot, &mut scribe))
            } else {
                store.begin().and_then(|mut txn| {
                    perform_all(&steps, &mut txn, &mut scribe)?;
                    if std::mem::take(&mut is_given_up) { Err(given_up()) } else { txn.commit() }
                })
            };
            let ended = (self.plan.clock)();
            let outcome = match &done {
                Ok(()) => Outcome::Committed,
                Err(error) if error.maybe_committed() => Outcome::Unknown,
                Err(_) => Outcome::Aborted,
            };
            attempts.push(Attempt { writer, began, ended, operations, outcome, by_snapshot });
            match done {
                Err(error) if outcome == Outcome::Aborted => {
                    self.pause(error, started, tries, rng)?
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Waits before the next attempt, or returns the error.
    fn pause(&self, error: Error, started: Instant, tries: u32, rng: &mut Rng) -> Result<()> {
        let pause = match &error {
            error if may_be_away(error) => Duration::from_millis(1),
            error if error.is_retryable() => Duration::from_micros(100),
            _ => return Err(error),
        };
        if started.elapsed() > self.plan.patience {
            return Err(error);
        }
        // The pauses grow, and differ between the writers.
        thread::sleep(pause.mul_f64(f64::from(1 << tries.min(7)) * rng.f64()));
        Ok(())
    }

    /// Repeats idempotent work until it succeeds.
    fn patiently<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        let started = Instant::now();
        let mut rng = Rng::with_seed(self.plan.seed);
        for tries in 0.. {
            match work() {
                Ok(done) => return Ok(done),
                Err(error) => self.pause(error, started, tries, &mut rng)?,
            }
        }
        unreachable!("patience ends before the tries do")
    }

    /// Reads the final state.
    fn end(&self, reader: &impl Reader) -> Result<End> {
        let mut end = End::default();
        for entry in reader.range(self.keys.all_lists(), Order::Ascending)? {
            let (key, value) = entry?;
            end.lists.insert(self.keys.list_of(&key), Keys::elements(&value));
        }
        for entry in reader.range(self.keys.all_marks(), Order::Ascending)? {
            let (key, value) = entry?;
            end.marks.insert(self.keys.list_of(&key), Keys::mark(&value));
        }
        Ok(end)
    }
}

/// The error of a transaction that is rolled back on purpose.
fn given_up() -> Error {
    Error::Conflict { what: "nothing: it was given up on purpose".into() }
}

/// Whether a server may be down and may come back. There is no separate error variant for this.
fn may_be_away(error: &Error) -> bool {
    match error {
        Error::Backend(_)
        | Error::CommitUnknown { .. }
        | Error::Server(ServerError::ConnectionLost { .. }) => true,
        Error::At { source, .. } => may_be_away(source),
        _ => false,
    }
}
