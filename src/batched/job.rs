//! The bodies of one batch, in one transaction of the inner store.

use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::{BatchedTransaction, MAX_BATCH};
use crate::{Error, Result, SharedError, Store, Transaction as _, TransactionState, Writer as _};

/// How often a batch runs again without a body that failed, before the rest of it forms a batch of
/// its own. Without a limit, n bodies that fail after they have written would run n^2 / 2 others.
const MAX_RESTARTS: usize = 4;

/// How often a batch runs again after a conflict. Batches are large transactions, which lose
/// against small ones on a store with concurrent writers, and then their bodies run alone.
const MAX_CONFLICTS: usize = 2;

/// A body, and its result after the batch.
pub(crate) trait Job<S: Store>: Send {
    /// Runs the body together with others. Returns whether it succeeded, and then keeps its result.
    fn run(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool;

    /// [`run`](Job::run) for the only body of a transaction, which keeps its error, too, unless
    /// another run may succeed.
    fn run_only(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool;

    /// Replaces the result by an error.
    fn refuse(&mut self, error: Error);

    /// Drops the result, so that the body runs alone.
    fn forget(&mut self);
}

/// A body with the types of its caller.
pub(crate) struct Body<B, T, E> {
    body: B,
    is_retryable: fn(&E) -> bool,
    result: Option<Result<T, E>>,
}

impl<B, T, E> Body<B, T, E> {
    pub(crate) fn new(body: B, is_retryable: fn(&E) -> bool) -> Self {
        Self { body, is_retryable, result: None }
    }

    /// The result of a run that was committed, or [`Error::CommitUnknown`]. `None` if the body must
    /// run alone.
    pub(crate) fn take_result(&mut self) -> Option<Result<T, E>> {
        self.result.take()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn body(&mut self) -> &mut B {
        &mut self.body
    }
}

impl<S, B, T, E> Job<S> for Body<B, T, E>
where
    S: Store,
    B: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool {
        // A panic must not reach the thread that runs the body for its caller. It is not lost: the
        // body runs again on its own thread. What the panic left half done is rolled back.
        let result = catch_unwind(AssertUnwindSafe(|| (self.body)(txn)));
        // A write of a pattern may have failed, and the body may have dropped the error.
        self.result = result.ok().filter(|result| result.is_ok() && txn.state().check().is_ok());
        self.result.is_some()
    }

    fn run_only(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool {
        // The thread is that of the caller, so a panic may pass.
        let result = (self.body)(txn);
        let is_good = result.is_ok() && txn.state().check().is_ok();
        let must_restart = txn.must_restart() || txn.state().must_restart();
        let is_final = match &result {
            Ok(_) => is_good,
            Err(error) => !must_restart && !(self.is_retryable)(error),
        };
        self.result = Some(result).filter(|_| is_final);
        is_good
    }

    fn refuse(&mut self, error: Error) {
        self.result = Some(Err(error.into()));
    }

    fn forget(&mut self) {
        self.result = None;
    }
}

/// What became of a batch.
pub(crate) struct Ran {
    /// How many jobs, from the first on, have a result or must run alone. The others are to be run
    /// in another batch.
    pub(crate) settled: usize,
    /// The jobs whose writes were committed.
    pub(crate) committed: usize,
    /// How often the transaction began again.
    pub(crate) restarts: usize,
    /// The time that the commit took.
    pub(crate) commit_time: Duration,
}

/// The end of one run of a batch.
enum End {
    Committed(Duration),
    /// The body of this job failed after it had written.
    Failed(usize),
    Conflict,
    Unknown(SharedError),
    Refused,
}

/// The jobs of a batch.
pub(crate) struct Jobs<J> {
    jobs: Vec<Entered<J>>,
    /// How many of them run in this batch.
    most: usize,
}

struct Entered<J> {
    job: J,
    /// Whether it failed, and so runs alone after the batch.
    is_alone: bool,
}

impl<J> Jobs<J> {
    pub(crate) fn new(first: J) -> Self {
        Self { jobs: vec![Entered { job: first, is_alone: false }], most: MAX_BATCH }
    }

    pub(crate) fn push(&mut self, job: J) {
        self.jobs.push(Entered { job, is_alone: false });
    }

    pub(crate) fn is_full(&self) -> bool {
        self.jobs.len() >= self.most
    }

    /// The jobs in their order.
    #[cfg(feature = "tokio")]
    pub(crate) fn into_jobs(self) -> impl DoubleEndedIterator<Item = J> {
        self.jobs.into_iter().map(|Entered { job, .. }| job)
    }

    fn is_alone(&mut self, number: usize) {
        self.jobs.iter_mut().skip(number).take(1).for_each(|one| one.is_alone = true);
    }
}

/// Runs jobs in one transaction of `store`. Afterwards a job without a result must run alone.
///
/// `more` adds jobs to those that have run, and adds none when the batch is to be committed.
pub(crate) fn run_together<S: Store, J: DerefMut<Target: Job<S>>>(
    store: &S,
    jobs: &mut Jobs<J>,
    mut more: impl FnMut(&mut Jobs<J>),
) -> Ran {
    let (mut conflicts, mut restarts) = (0, 0);
    let end = loop {
        match run_once(store, jobs, &mut more) {
            End::Failed(job) => {
                jobs.is_alone(job);
                if restarts >= MAX_RESTARTS + conflicts {
                    jobs.most = job + 1;
                }
            }
            End::Conflict if conflicts < MAX_CONFLICTS => conflicts += 1,
            end => break end,
        }
        restarts += 1;
    };
    let (mut committed, mut commit_time) = (0, Duration::ZERO);
    for Entered { job, is_alone } in jobs.jobs.iter_mut().take(jobs.most) {
        match &end {
            _ if *is_alone => job.forget(),
            End::Committed(time) => (committed, commit_time) = (committed + 1, *time),
            End::Unknown(source) => job.refuse(Error::CommitUnknown { source: source.clone() }),
            End::Failed(_) | End::Conflict | End::Refused => job.forget(),
        }
    }
    Ran { settled: jobs.most.min(jobs.jobs.len()), committed, restarts, commit_time }
}

fn run_once<S: Store, J: DerefMut<Target: Job<S>>>(
    store: &S,
    jobs: &mut Jobs<J>,
    more: &mut impl FnMut(&mut Jobs<J>),
) -> End {
    let mut txn = match store.begin() {
        Ok(txn) => BatchedTransaction::new(txn, None),
        Err(error) if error.is_retryable() => return End::Conflict,
        // Each body runs alone and returns the error of its own run.
        Err(_) => return End::Refused,
    };
    let (mut number, mut has_any) = (0, false);
    loop {
        if number == jobs.jobs.len() && !jobs.is_full() {
            more(jobs);
        }
        let Some(Entered { job, is_alone }) =
            jobs.jobs.get_mut(number).filter(|_| number < jobs.most)
        else {
            break;
        };
        if !*is_alone {
            // What the last body has cached or failed at is no matter of this one.
            *txn.state() = TransactionState::default();
            txn.has_written = false;
            if job.run(&mut txn) {
                has_any = true;
            } else if txn.has_written || txn.must_restart() {
                return End::Failed(number);
            } else {
                *is_alone = true;
            }
        }
        number += 1;
    }
    if !has_any {
        return End::Refused;
    }
    *txn.state() = TransactionState::default();
    let began = Instant::now();
    match txn.commit() {
        Ok(()) => End::Committed(began.elapsed()),
        Err(Error::CommitUnknown { source }) => End::Unknown(source),
        Err(error) if error.maybe_committed() => End::Unknown(SharedError::from(error)),
        Err(error) if error.is_retryable() => End::Conflict,
        Err(_) => End::Refused,
    }
}

/// Runs one job in a transaction of its own. If it has no result afterwards, it must run again.
/// Returns the time of the commit if there was one.
pub(crate) fn run_only<S: Store>(store: &S, job: &mut (impl Job<S> + ?Sized)) -> Option<Duration> {
    let mut txn = BatchedTransaction::new(store.begin().ok()?, None);
    if !job.run_only(&mut txn) {
        return None;
    }
    let began = Instant::now();
    match txn.commit() {
        Ok(()) => return Some(began.elapsed()),
        Err(error) if error.is_retryable() => job.forget(),
        Err(error) => job.refuse(error),
    }
    None
}
