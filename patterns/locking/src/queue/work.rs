//! The loop of a consumer.

use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use keyloom::backend::ChangeListener;
use keyloom::value::Codec;
use keyloom::{Error, Result, Store};

use super::error::QueueError;
use super::job::{Delivery, Failed};
use super::{JobId, Stop, WorkQueue};

/// The deliveries that a consumer holds. Its heartbeat extends their leases until the end of the
/// work.
#[derive(Default)]
struct Held {
    deliveries: Mutex<Vec<(JobId, u64)>>,
    end: Stop,
}

impl Held {
    fn deliveries(&self) -> MutexGuard<'_, Vec<(JobId, u64)>> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set<J>(&self, delivered: &[Delivery<J>]) {
        *self.deliveries() = delivered.iter().map(|one| (one.id, one.token)).collect();
    }

    fn remove(&self, id: JobId) {
        self.deliveries().retain(|(held, _)| *held != id);
    }

    /// Waits for `interval`, and returns the deliveries held then; `None` at the end.
    fn after(&self, interval: Duration) -> Option<Vec<(JobId, u64)>> {
        self.end.wait(interval);
        (!self.end.is_requested()).then(|| self.deliveries().clone())
    }
}

/// Ends the heartbeat, even if the work panics.
struct EndOnDrop<'h>(&'h Held);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end.request();
    }
}

/// The options of [`work`](WorkQueue::work).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkOptions {
    /// The most jobs of one delivery. A job counts an attempt when its work begins. This takes one
    /// additional transaction for each job after the first. Default: 1.
    pub batch: usize,
    /// The first pause after a delivery without jobs. Each further pause is twice as long. Default:
    /// 10 ms.
    pub first_pause: Duration,
    /// The longest pause. An idle consumer finds a job this late if the store does not
    /// [notify](WorkQueue::work) it, or if the time of the job comes meanwhile. Default: 1 s.
    pub longest_pause: Duration,
}

impl Default for WorkOptions {
    fn default() -> Self {
        let [first_pause, longest_pause] = [10, 1_000].map(Duration::from_millis);
        Self { batch: 1, first_pause, longest_pause }
    }
}

/// The answer of a consumer to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// [Complete](WorkQueue::complete) it.
    Complete,
    /// Do nothing: the consumer has completed the job, or given it back, in a transaction of its
    /// own.
    Answered,
    /// [Fail](WorkQueue::fail) it with this error, for another attempt.
    Retry(String),
    /// [Bury](WorkQueue::bury) it with this error.
    Bury(String),
}

impl<E: Display> From<std::result::Result<(), E>> for Answer {
    /// `Ok` completes the job, an error fails it.
    fn from(result: std::result::Result<(), E>) -> Self {
        result.map_or_else(|error| Self::Retry(error.to_string()), |()| Self::Complete)
    }
}

/// The result of [`work`](WorkQueue::work).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkReport {
    /// Completed jobs.
    pub completed: u64,
    /// Jobs that the consumer answered itself.
    pub answered: u64,
    /// Failed jobs that are tried again.
    pub retried: u64,
    /// Failed and buried jobs that became dead letters.
    pub dead: u64,
    /// Jobs that this consumer lost before their work began, and jobs whose answer was not accepted
    /// or had a commit of unknown outcome. Such a job may be delivered again.
    pub stale: u64,
}

/// The first and the longest pause of a consumer after a wake-up without a job: another consumer
/// has got the job, or the store has notified the consumer of a commit of other keys. Each pause is
/// twice as long as the last.
// Without these pauses, each of n idle consumers would query the queue at once for each new job. On
// LMDB, where commits of other keys notify too, this would be a hundred times a second. Longer
// pauses delay the jobs that arrive during a pause.
const FIRST_AFTER_OTHERS: Duration = Duration::from_millis(10);
const LONGEST_AFTER_OTHERS: Duration = Duration::from_millis(160);

/// The waits of a consumer without jobs.
struct Idle<'o> {
    options: &'o WorkOptions,
    /// Listens for new jobs since the first wait.
    listener: Option<ChangeListener>,
    /// The length of the next wait.
    pause: Duration,
    /// Whether a commit ended the last wait. If the next delivery is empty, this commit brought no
    /// job for this consumer.
    was_woken: bool,
    /// The pause after the next wake-up without a job.
    after_others: Duration,
}

impl<'o> Idle<'o> {
    fn new(options: &'o WorkOptions) -> Self {
        let (pause, after_others) = (options.first_pause, FIRST_AFTER_OTHERS);
        Self { options, listener: None, pause, was_woken: false, after_others }
    }

    /// Begins again with the first pause, after a delivery.
    fn reset(&mut self) {
        *self = Self { listener: self.listener.take(), ..Self::new(self.options) };
    }

    /// Waits for a new job, at most for the pause, or until `stop` is requested.
    fn wait(&mut self, listen: impl FnOnce() -> ChangeListener, stop: &Stop) {
        let Some(listener) = &mut self.listener else {
            // Does not wait yet: a job may have come before the consumer listened.
            let mut listener = listen();
            listener.wait(Duration::ZERO);
            self.listener = Some(listener);
            return;
        };
        if self.was_woken {
            stop.wait(jittered(self.after_others));
            self.after_others = (self.after_others * 2).min(LONGEST_AFTER_OTHERS);
        }
        self.was_woken = stop.wait_for(listener, jittered(self.pause));
        if !self.was_woken {
            self.after_others = FIRST_AFTER_OTHERS;
            self.pause = self.pause.saturating_mul(2).min(self.options.longest_pause);
        }
    }
}

/// A pause of half the length to the full length, so that consumers do not poll together.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + 0.5 * fastrand::f64())
}

/// The interval at which a consumer removes outdated keys of completed jobs.
// With a shorter interval, consumers read and write more; with a longer one, more outdated keys
// accumulate.
const SWEEP_EVERY_MS: u64 = 60_000;

impl<J: 'static, C: Codec<J>> WorkQueue<J, C> {
    /// Works on jobs until `stop` is requested: dequeues, calls `work` for each job, and answers.
    ///
    /// During the work, a thread extends the leases of the jobs every third of the visibility
    /// time-out. So the work may take longer than the time-out, which only decides how soon a job
    /// is delivered again after the process has died. A job that never ends is held until the
    /// process ends: bound its time in `work`. On an optimistic store, a transaction of `work` that
    /// completes its job conflicts with a concurrent extension. So that transaction must take less
    /// than a third of the visibility time-out.
    ///
    /// While there are no jobs, the consumer pauses with jitter: each pause is twice as long as the
    /// last, up to the longest pause. A pause ends with the commit of a new job where the store can
    /// [wake](keyloom::Writer::wake) its listeners: in memory, on PostgreSQL, on LMDB, and within
    /// one process on redb and fjall. On LMDB, commits of other keys may end a pause, too. If a
    /// wake-up brings no job for this consumer, the consumer waits 5 to 160 ms, each time longer,
    /// so that many idle consumers cost little. If `work` panics, the panic propagates to the
    /// caller, and the job is delivered again after its time-out. At the end, delivered jobs whose
    /// work has not begun are released.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::WorkQueue;
    /// use keyloom_locking::queue::{Answer, Stop, WorkOptions};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let queue = WorkQueue::<u32>::open(&Schema::open(&store, "app")?, "jobs")?;
    /// store.transact(|txn| (1..=3).try_for_each(|n| queue.enqueue(txn, ("acme", n)).map(drop)))?;
    /// let (stop, mut sum) = (Stop::new(), 0);
    /// let report = queue.work(&store, &stop, &WorkOptions::default(), |delivery| {
    ///     sum += delivery.job.payload;
    ///     if sum == 6 {
    ///         stop.request();
    ///     }
    ///     Answer::Complete
    /// })?;
    /// assert_eq!((sum, report.completed), (6, 3));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`dequeue`](WorkQueue::dequeue) and of the answers. After stale deliveries,
    /// conflicts, and commits of unknown outcome, the consumer continues.
    pub fn work<S: Store, A: Into<Answer>>(
        &self,
        store: &S,
        stop: &Stop,
        options: &WorkOptions,
        work: impl FnMut(&Delivery<J>) -> A,
    ) -> Result<WorkReport> {
        let held = Held::default();
        thread::scope(|scope| {
            let _end = EndOnDrop(&held);
            let beat = thread::Builder::new().name("leases of a consumer".into());
            beat.spawn_scoped(scope, || self.extend_until_end(store, &held))
                .map_err(Error::other)?;
            self.work_holding(store, stop, options, &held, work)
        })
    }

    /// Extends the leases of the held deliveries until the end.
    fn extend_until_end<S: Store>(&self, store: &S, held: &Held) {
        let interval = (self.options.visibility / 3).max(Duration::from_millis(1));
        while let Some(held) = held.after(interval) {
            if !held.is_empty() {
                // If the extension fails, the lease is still valid for a while, and the next
                // extension may succeed. If the job is delivered again after all, its answer is
                // refused.
                let _retried = store.transact(|txn| self.extend_held(txn, &held));
            }
        }
    }

    fn work_holding<S: Store, A: Into<Answer>>(
        &self,
        store: &S,
        stop: &Stop,
        options: &WorkOptions,
        held: &Held,
        mut work: impl FnMut(&Delivery<J>) -> A,
    ) -> Result<WorkReport> {
        let mut report = WorkReport::default();
        let mut idle = Idle::new(options);
        let mut swept_at = self.now()?;
        while !stop.is_requested() {
            let batch = options.batch.max(1);
            let delivered = unless_passing(self.dequeue_counting(store, batch, 1))?;
            let delivered = delivered.unwrap_or_default();
            if delivered.is_empty() {
                swept_at = self.sweep_if_due(store, swept_at)?;
                idle.wait(|| store.listen(self.bell()), stop);
                continue;
            }
            idle.reset();
            held.set(&delivered);
            for (n, mut delivery) in delivered.into_iter().enumerate() {
                let (id, attempts) = (delivery.id, u32::from(n == 0));
                if stop.is_requested() {
                    held.remove(id);
                    let give = store.transact(|txn| self.give_back(txn, &delivery, attempts));
                    unless_passing(give)?;
                    continue;
                }
                if n > 0 {
                    let begun = store.transact(|txn| self.begin(txn, &delivery));
                    let Some((job, until)) = unless_passing(begun)? else {
                        held.remove(id);
                        report.stale += 1;
                        continue;
                    };
                    delivery = Delivery { until, job: job.with(delivery.job.payload), ..delivery };
                }
                let answer = work(&delivery).into();
                held.remove(id);
                self.answer(store, &delivery, answer, &mut report)?;
            }
            swept_at = self.sweep_if_due(store, swept_at)?;
        }
        Ok(report)
    }

    fn answer<S: Store>(
        &self,
        store: &S,
        delivery: &Delivery<J>,
        answer: Answer,
        report: &mut WorkReport,
    ) -> Result<()> {
        let outcome = match answer {
            Answer::Answered => {
                report.answered += 1;
                return Ok(());
            }
            Answer::Complete => store.transact(|txn| self.complete(txn, delivery)).map(|()| None),
            Answer::Retry(error) => {
                store.transact(|txn| self.fail(txn, delivery, &error)).map(Some)
            }
            Answer::Bury(error) => {
                let buried = store.transact(|txn| self.bury(txn, delivery, &error));
                buried.map(|()| Some(Failed::Dead))
            }
        };
        match unless_passing(outcome)? {
            None => report.stale += 1,
            Some(None) => report.completed += 1,
            Some(Some(Failed::RetryAt(_))) => report.retried += 1,
            Some(Some(Failed::Dead)) => report.dead += 1,
        }
        Ok(())
    }

    fn sweep_if_due<S: Store>(&self, store: &S, swept_at: u64) -> Result<u64> {
        let now = self.now()?;
        if now.saturating_sub(swept_at) < SWEEP_EVERY_MS {
            return Ok(swept_at);
        }
        unless_passing(self.sweep(store))?;
        Ok(now)
    }
}

/// Returns `None` for an error after which a consumer can continue, since the job is delivered
/// again.
fn unless_passing<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(done) => Ok(Some(done)),
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_passing(error: &Error) -> bool {
    error.is_retryable()
        || error.maybe_committed()
        || matches!(error, Error::RetriesExhausted { .. })
        || matches!(error.downcast_ref(), Some(QueueError::Stale { .. }))
}
