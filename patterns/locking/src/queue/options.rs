//! The options of a work queue.

use std::sync::Arc;
use std::time::Duration;

use keyloom::{Error, Result};

use crate::clock::{Clock, SystemClock, millis};

/// The options of a [`WorkQueue`](super::WorkQueue).
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// How long a consumer has a job before it is delivered again. Default: 30 s.
    pub visibility: Duration,
    /// How long a lease is respected after its end. Must be longer than the clocks of two consumers
    /// differ, and the same in all programs: a consumer whose clock is ahead by less takes no jobs
    /// of others. Default: 2 s.
    pub grace: Duration,
    /// How often a job is delivered before it becomes a dead letter, unless it says otherwise
    /// ([`NewJob::max_attempts`](super::NewJob::max_attempts)); at least 1. Default: 5.
    pub max_attempts: u32,
    /// The pauses between a failure and the next delivery.
    pub backoff: Backoff,
    /// From how many of the first jobs, for each wanted one, a delivery draws at random. With 1 the
    /// order is that of the times, and concurrent consumers compete for the same jobs. Default: 16.
    pub spread: usize,
    /// How long a tenant stays active at least, once it has become so. The longer, the fewer
    /// conflicts between the first and the last jobs of a tenant, and the more deliveries visit
    /// tenants without jobs. Default: 1 s.
    pub linger: Duration,
    /// How long the key of a completed job is remembered. It must cover the retries of a producer
    /// after a commit of unknown outcome. Default: 5 minutes.
    pub dedup_window: Duration,
    /// The clock. Default: that of the system.
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

/// Exponential back-off: the pause doubles with each attempt up to a bound, and is drawn at random
/// from its upper half, so that jobs that failed together are not tried together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest pause after the first attempt. Default: 1 s.
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
