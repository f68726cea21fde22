//! The bodies of one batch, in one transaction of the store.

use std::marker::PhantomData;
use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::{Batched, BatchedTransaction};
use crate::{Error, Result, SharedError, Store, Transaction as _, Writer as _};

/// How often a batch runs again to leave out a body that failed. After that, the rest forms another
/// batch. Without a limit, n bodies that fail after a write would cause n^2 / 2 runs of other
/// bodies.
const MAX_RESTARTS: usize = 4;

/// How often a batch runs again after a conflict. Batches are large transactions, so on a store
/// with concurrent writers they lose conflicts against small ones. After one more conflict the
/// bodies run alone.
const MAX_CONFLICTS: usize = 2;

/// A body, and its result after the batch.
pub(crate) trait Job<S: Store>: Send {
    /// Runs the body. If it succeeds, keeps its result and returns `true`. Never panics.
    fn run(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool;

    /// Sets the verdict on the result. Runs no code of the caller, so that it cannot panic.
    fn settle(&mut self, verdict: Verdict);
}

/// The outcome of a batch for one body.
#[derive(Clone, Debug, Default)]
pub(crate) enum Verdict {
    /// The body must run alone.
    #[default]
    Alone,
    /// The last run was committed: the call returns the result of that run.
    Committed,
    /// [`Error::CommitUnknown`]: the writes may be in the store.
    Unknown(SharedError),
}

/// The [`Job`] of a body: the body, and the result of its last run.
pub(crate) struct Body<B, T, E> {
    body: B,
    /// The value that the last run returned, committed or not.
    value: Option<T>,
    verdict: Verdict,
    _error: PhantomData<fn() -> E>,
}

impl<B, T, E: From<Error>> Body<B, T, E> {
    pub(crate) fn new(body: B) -> Self {
        Self { body, value: None, verdict: Verdict::default(), _error: PhantomData }
    }

    /// The result of a run that was committed, or [`Error::CommitUnknown`]. `None` if the body must
    /// run alone.
    pub(crate) fn take_result(&mut self) -> Option<Result<T, E>> {
        match std::mem::take(&mut self.verdict) {
            Verdict::Alone => None,
            Verdict::Committed => self.value.take().map(Ok),
            Verdict::Unknown(source) => Some(Err(Error::CommitUnknown { source }.into())),
        }
    }

    pub(crate) fn body(&mut self) -> &mut B {
        &mut self.body
    }
}

impl<S, B, T, E> Job<S> for Body<B, T, E>
where
    S: Store,
    B: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send,
    T: Send,
{
    fn run(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool {
        let Self { body, value, .. } = self;
        // A panic must not reach the thread that runs the body for its caller. The panic is not
        // lost, because the body runs again on its own thread. The values are dropped in here,
        // since their destructors are code of the caller too.
        let run = catch_unwind(AssertUnwindSafe(|| {
            *value = None;
            *value = body(txn).ok();
        }));
        if let Err(panic) = run {
            txn.note_panic();
            // The panic payload may itself panic when it is dropped.
            std::mem::forget(panic);
        }
        // A write of a pattern may have failed, and the body may have dropped the error.
        self.value.is_some() && txn.state().check().is_ok()
    }

    fn settle(&mut self, verdict: Verdict) {
        self.verdict = verdict;
    }
}

/// The outcome of a batch.
pub(crate) struct Ran {
    /// The number of jobs, from the first on, that have a verdict. The other jobs are left to
    /// another batch.
    pub(crate) settled: usize,
    /// The number of jobs whose writes were committed.
    pub(crate) committed: usize,
    /// How often the transaction began again.
    pub(crate) restarts: usize,
    /// Whether the store did not accept all jobs in one transaction.
    pub(crate) is_too_large: bool,
}

/// The end of one run of a batch.
enum End {
    Committed,
    /// This job failed after a write or after an error of the store, so the transaction must begin
    /// again without the job.
    Failed(usize),
    /// The transaction has no room or no time left for this job and the jobs after it.
    TooLarge(usize),
    Conflict,
    Unknown(SharedError),
    /// The store panicked in the commit.
    Panicked(Box<dyn std::any::Any + Send>),
    Refused,
}

/// The jobs of a batch.
pub(crate) struct Jobs<J> {
    jobs: Vec<Entered<J>>,
    /// The largest number of jobs that run in this batch.
    most: usize,
}

struct Entered<J> {
    job: J,
    /// Whether the job failed and so runs alone after the batch.
    is_alone: bool,
}

impl<J> Jobs<J> {
    /// A batch of `most` jobs at most.
    pub(crate) fn new(first: J, most: usize) -> Self {
        Self { jobs: vec![Entered { job: first, is_alone: false }], most }
    }

    pub(crate) fn push(&mut self, job: J) {
        self.jobs.push(Entered { job, is_alone: false });
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.jobs.len() >= self.most
    }

    /// The jobs in their order.
    #[cfg(feature = "tokio")]
    pub(crate) fn into_jobs(self) -> impl Iterator<Item = J> {
        self.jobs.into_iter().map(|Entered { job, .. }| job)
    }

    fn leave_out(&mut self, number: usize) {
        self.jobs.iter_mut().skip(number).take(1).for_each(|one| one.is_alone = true);
    }
}

/// Runs jobs in one transaction of `store`.
///
/// `more` adds jobs after those that have run. If it adds none, the batch is committed.
pub(crate) fn run_together<S: Store, J: DerefMut<Target: Job<S>>>(
    store: &Batched<S>,
    jobs: &mut Jobs<J>,
    mut more: impl FnMut(&mut Jobs<J>),
) -> Ran {
    let (mut conflicts, mut restarts, mut is_too_large) = (0, 0, false);
    let end = loop {
        match run_once(store, jobs, &mut more) {
            End::Failed(job) => {
                jobs.leave_out(job);
                if restarts >= MAX_RESTARTS {
                    jobs.most = job + 1;
                }
            }
            End::TooLarge(job) if job > 0 => (jobs.most, is_too_large) = (job, true),
            End::Conflict if conflicts < MAX_CONFLICTS => conflicts += 1,
            end => break end,
        }
        restarts += 1;
    };
    let verdict = match &end {
        End::Committed => Verdict::Committed,
        End::Unknown(source) => Verdict::Unknown(source.clone()),
        End::Panicked(_) => Verdict::Unknown("the store panicked while it committed".into()),
        End::Failed(_) | End::TooLarge(_) | End::Conflict | End::Refused => Verdict::Alone,
    };
    let mut together = 0;
    for Entered { job, is_alone } in jobs.jobs.iter_mut().take(jobs.most) {
        together += usize::from(!*is_alone);
        job.settle(if *is_alone { Verdict::Alone } else { verdict.clone() });
    }
    if let End::Panicked(panic) = end {
        resume_unwind(panic);
    }
    let committed = if matches!(verdict, Verdict::Committed) { together } else { 0 };
    Ran { settled: jobs.most.min(jobs.len()), committed, restarts, is_too_large }
}

fn run_once<S: Store, J: DerefMut<Target: Job<S>>>(
    store: &Batched<S>,
    jobs: &mut Jobs<J>,
    more: &mut impl FnMut(&mut Jobs<J>),
) -> End {
    let Ok(mut txn) = store.begin() else {
        // All waiting bodies run alone and concurrently, and return the errors of their own runs.
        // If this thread began a transaction for each of them in turn, the n-th body would wait for
        // n time-outs.
        more(jobs);
        return End::Refused;
    };
    let (mut number, mut has_any) = (0, false);
    loop {
        if number == jobs.len() && !jobs.is_full() {
            more(jobs);
        }
        let Some(Entered { job, is_alone }) =
            jobs.jobs.get_mut(number).filter(|_| number < jobs.most)
        else {
            break;
        };
        if !*is_alone {
            // Cached values and failed writes of the previous body must not affect this one.
            txn.state().begin_body();
            txn.check_reads(true);
            txn.begin_body();
            let is_good = job.run(&mut txn);
            // The size is checked first, because a body can drop the error and succeed. A body that
            // is too large here may fit into a transaction of its own.
            if txn.is_too_large() && has_any {
                return End::TooLarge(number);
            } else if is_good {
                has_any = true;
            } else if txn.is_changed() || txn.must_restart() {
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
    txn.state().begin_body();
    match catch_unwind(AssertUnwindSafe(|| txn.commit())) {
        Ok(Ok(())) => End::Committed,
        Ok(Err(Error::CommitUnknown { source })) => End::Unknown(source),
        Ok(Err(error)) if error.maybe_committed() => End::Unknown(error.into()),
        Ok(Err(error)) if error.is_retryable() => End::Conflict,
        Ok(Err(error)) if error.is_batch_too_large() => End::TooLarge(number / 2),
        Ok(Err(_)) => End::Refused,
        Err(panic) => End::Panicked(panic),
    }
}
