//! The options of a work queue.

use std::sync::Arc;
use std::time::Duration;

use keyloom::{Error, Result};

use crate::clock::{Clock, SystemClock, millis};

/// The options of a [`WorkQueue`](super::WorkQueue).
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// How long a consumer holds a job before the job is delivered again. Default: 30 s.
    pub visibility: Duration,
    /// How long a lease is respected after its end. Must exceed the largest difference between the
    /// clocks of two consumers, and be the same in all programs: then a consumer whose clock is
    /// ahead does not take the jobs of others. Default: 2 s.
    pub grace: Duration,
    /// How many times a job is delivered before it becomes a dead letter; at least 1.
    /// [`NewJob::max_attempts`](super::NewJob::max_attempts) overrides it. Default: 5.
    pub max_attempts: u32,
    /// The pauses between a failure and the next delivery.
    pub backoff: Backoff,
    /// For each wanted job, a delivery draws at random from this many of the first jobs. With 1,
    /// jobs are delivered in the order of their times, and concurrent consumers compete for the
    /// same jobs. Default: 16.
    pub spread: usize,
    /// The minimum time that a tenant stays active. A longer time means fewer conflicts between the
    /// first and the last jobs of a tenant, but more deliveries visit tenants without jobs.
    /// Default: 1 s.
    pub linger: Duration,
    /// How long the key of a completed job is remembered. It must cover the retries of a producer
    /// after a commit of unknown outcome. Default: 5 minutes.
    pub dedup_window: Duration,
    /// The clock. Default: the clock of the operating system.
    pub clock: Arc<dyn Clock>,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            visibility: Duration::from_secs(30),
            grace: Duration::from_secs(2),
            max_attempts: 5,
            backoff: Backoff::default(),
            spread: 16,
            linger: Duration::from_secs(1),
            dedup_window: Duration::from_secs(300),
            clock: Arc::new(SystemClock),
        }
    }
}

impl QueueOptions {
    pub(super) fn check(&self) -> Result<()> {
        refuse_short(self.visibility)
    }
}

pub(super) fn refuse_short(visibility: Duration) -> Result<()> {
    match millis(visibility) {
        0 => Err(Error::InvalidArgument {
            what: "the visibility time-out",
            value: format!("{visibility:?}"),
            why: "it takes at least 1 ms, so that one consumer at a time has a job",
        }),
        _ => Ok(()),
    }
}

/// Exponential back-off with jitter. The bound doubles with each attempt up to `longest`, and the
/// pause is drawn at random from the upper half below the bound. So jobs that failed together are
/// not retried together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The bound of the pause after the first attempt. Default: 1 s.
    pub first: Duration,
    /// The longest pause. Default: 1 hour.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(3_600) }
    }
}

impl Backoff {
    /// The longest pause after `attempts` attempts.
    pub fn bound(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }

    /// A pause after `attempts` attempts: at least half of the [bound](Backoff::bound), and at most
    /// the bound.
    pub fn pause(&self, attempts: u32) -> Duration {
        let bound = self.bound(attempts);
        bound / 2 + (bound - bound / 2).mul_f64(fastrand::f64()).min(bound / 2)
    }
}
