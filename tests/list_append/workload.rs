//! The workload: writers that share lists, and write down what they do and see.
//!
//! Nearly every transaction meets others. There are few lists at any moment, and the set moves on
//! so that lists stay short: a checker that compares whole lists stays quick, and lists that are
//! not there yet are read too, alone and in ranges. Marks come and go beside some of the lists.
//!
//! Transactions are begun and committed by hand, not by `transact`, because each attempt counts:
//! what an aborted one wrote must never be seen.

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

/// How much to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many transactions come to an end, committed or unknown. Attempts that were aborted come
    /// on top.
    pub transactions: usize,
    /// How many threads share them.
    pub writers: usize,
    /// What the random choices begin with.
    pub seed: u64,
    /// How long one transaction is tried again, when it conflicts or the store cannot be reached:
    /// long enough for a server that is killed to come back.
    pub patience: Duration,
    /// The lists lie behind this prefix, where nothing else may be. What is there is removed at the
    /// end, not before: a removal whose outcome is unknown could come late, and take new lists
    /// along.
    pub prefix: Vec<u8>,
    /// Whether snapshots show commits in their order, which in rare cases is no serial order.
    pub snapshots_in_commit_order: bool,
    /// How many processes work on the store, each with a plan of its own, [`attempts`] of which
    /// belong into one history.
    pub processes: usize,
    /// The number of this one.
    pub process: usize,
    /// The time in nanoseconds. Several processes need a clock that they share.
    pub clock: fn() -> u64,
}

/// A clock of this process.
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

/// What the writers share.
struct Shared<'p> {
    plan: &'p Plan,
    keys: Keys,
    /// The transactions that are still to be done.
    left: AtomicU64,
    elements: Elements,
    attempts: Mutex<Vec<Attempt>>,
}

/// Runs the workload on a store.
///
/// # Errors
/// The first error that neither a new attempt nor patience repairs.
pub fn run<S: Store>(store: &S, plan: &Plan) -> Result<History> {
    Ok(History { attempts: attempts(store, plan)?, end: end(store, plan)? })
}

/// Runs the writers of one process. Returns their attempts, with reads and writes.
///
/// # Errors
/// As [`run`].
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

/// What is there when all writers have ended. Removes it.
///
/// # Errors
/// As [`run`].
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

    /// One writer: does transactions while there are some left.
    fn writer<S: Store>(&self, store: &S, writer: usize) -> Result<()> {
        let mut rng = Rng::with_seed(self.plan.seed.wrapping_add(writer as u64));
        let mut attempts = Vec::new();
        let take = || {
            let less = |left: u64| left.checked_sub(1);
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        };
        while take().is_ok() {
            self.transaction(store, writer, &mut rng, &mut attempts).inspect_err(|_| {
                // The others need not go on.
                self.left.store(0, Ordering::Relaxed);
            })?;
        }
        self.attempts.lock().unwrap().append(&mut attempts);
        Ok(())
    }

    /// Tries one transaction until it commits, or may have.
    fn transaction<S: Store>(
        &self,
        store: &S,
        writer: usize,
        rng: &mut Rng,
        attempts: &mut Vec<Attempt>,
    ) -> Result<()> {
        let steps = Step::choose(rng, self.elements.position());
        // Some are given up at first, without any need: what they wrote must never be seen.
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

    /// Waits before the next attempt, or gives up.
    fn pause(&self, error: Error, started: Instant, tries: u32, rng: &mut Rng) -> Result<()> {
        let pause = match &error {
            error if may_be_away(error) => Duration::from_millis(1),
            error if error.is_retryable() => Duration::from_micros(100),
            _ => return Err(error),
        };
        if started.elapsed() > self.plan.patience {
            return Err(error);
        }
        // Longer and longer, and never as long as the others.
        thread::sleep(pause.mul_f64(f64::from(1 << tries.min(7)) * rng.f64()));
        Ok(())
    }

    /// Does what may be done twice, until it succeeds.
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

    /// What is there at the end.
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

/// What a transaction ends with that is dropped on purpose.
fn given_up() -> Error {
    Error::Conflict { what: "nothing: it was given up on purpose".into() }
}

/// Whether a server may have gone, and may come back. A store has no name of its own for that.
fn may_be_away(error: &Error) -> bool {
    match error {
        Error::Backend(_)
        | Error::CommitUnknown { .. }
        | Error::Server(ServerError::ConnectionLost { .. }) => true,
        Error::At { source, .. } => may_be_away(source),
        _ => false,
    }
}
