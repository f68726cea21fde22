//! Jobs, their states, and their index entries.

use std::time::Duration;

use keyloom::{Error, Result, pack};
use keyloom_tables::{IndexEntries, entry};
use serde::{Deserialize, Serialize};

use crate::clock::millis;

/// The id of a job: a UUID of version 7.
pub type JobId = keyloom_tables::sequence::Uuid;

/// The priority of a job within its tenant.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Priority {
    /// Before all other jobs.
    Urgent,
    /// Before normal jobs.
    High,
    /// The default.
    #[default]
    Normal,
    /// After all other jobs.
    Low,
}

impl Priority {
    /// All priorities, in the order in which jobs are delivered.
    pub const ALL: [Self; 4] = [Self::Urgent, Self::High, Self::Normal, Self::Low];

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Urgent => 0,
            Self::High => 1,
            Self::Normal => 2,
            Self::Low => 3,
        }
    }
}

/// The state of a job. Times are in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// The job can be delivered from this time on.
    Waiting {
        /// The time.
        from: u64,
    },
    /// A consumer has the job. If the consumer does not complete, extend or fail the job, it is
    /// delivered again after this time and the [grace period](super::QueueOptions::grace).
    Leased {
        /// The time.
        until: u64,
    },
    /// The job is a dead letter and is not delivered.
    Dead {
        /// When the job became a dead letter.
        since: u64,
        /// Whether the job became a dead letter because the lease of its last attempt ended. Then
        /// the consumer of that attempt can still answer.
        timed_out: bool,
    },
}

pub(super) const WAITING: u8 = 0;
pub(super) const LEASED: u8 = 1;
pub(super) const DEAD: u8 = 2;

/// A job as it is stored, without its payload. The payload is in a table of its own, so that a
/// change of the state does not write the payload again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredJob {
    /// The tenant. Each tenant has a line of jobs of its own.
    pub tenant: String,
    /// The priority within the tenant.
    pub priority: Priority,
    /// The state.
    pub state: JobState,
    /// See [`Job::attempts`].
    pub attempts: u32,
    /// See [`Job::token`].
    pub token: u64,
    /// When the job was enqueued.
    pub enqueued_at: u64,
    /// The key that prevents duplicates, if any.
    pub key: Option<String>,
    /// The error of the last failed attempt, cut to at most 1,000 bytes.
    pub last_error: Option<String>,
    /// See [`NewJob::max_attempts`].
    pub max_attempts: Option<u32>,
    /// See [`NewJob::repeat_every`].
    pub repeat: Option<Repeat>,
}

/// The times of a job that repeats, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The time between two runs.
    pub every: u64,
    /// The scheduled time of the current run, since 1970. Retries and late runs do not move it.
    pub due: u64,
}

impl Repeat {
    /// The next scheduled time after `now`. Missed times are skipped.
    pub(super) fn after(self, now: u64) -> Self {
        let missed = now.saturating_sub(self.due) / self.every;
        let runs = missed.saturating_add(1);
        Self { due: self.due.saturating_add(self.every.saturating_mul(runs)), ..self }
    }
}

/// A job with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job<J> {
    /// The tenant. Each tenant has a line of jobs of its own.
    pub tenant: String,
    /// The content.
    pub payload: J,
    /// The priority within the tenant.
    pub priority: Priority,
    /// The state.
    pub state: JobState,
    /// The deliveries since the job was enqueued or requeued. In a batch of
    /// [`work`](super::WorkQueue::work), a delivery counts when its work begins.
    pub attempts: u32,
    /// The number of leases granted so far, which is the fencing token of the last lease. It never
    /// decreases.
    pub token: u64,
    /// When the job was enqueued.
    pub enqueued_at: u64,
    /// The key that prevents duplicates, if any.
    pub key: Option<String>,
    /// The error of the last failed attempt, cut to at most 1,000 bytes.
    pub last_error: Option<String>,
    /// See [`NewJob::max_attempts`].
    pub max_attempts: Option<u32>,
    /// See [`NewJob::repeat_every`].
    pub repeat: Option<Repeat>,
}

/// The parts of the index by state: state, tenant, priority (0 unless waiting), time.
pub(super) type StateParts = (u8, String, u8, u64);

impl StoredJob {
    /// The job with its payload.
    pub(super) fn with<J>(self, payload: J) -> Job<J> {
        Job {
            tenant: self.tenant,
            payload,
            priority: self.priority,
            state: self.state,
            attempts: self.attempts,
            token: self.token,
            enqueued_at: self.enqueued_at,
            key: self.key,
            last_error: self.last_error,
            max_attempts: self.max_attempts,
            repeat: self.repeat,
        }
    }

    /// The one entry of a job in the index by state.
    pub(super) fn state_entry(&self) -> IndexEntries<StateParts> {
        match self.state {
            JobState::Waiting { from } => {
                entry((WAITING, &self.tenant, self.priority.code(), from))
            }
            JobState::Leased { until } => entry((LEASED, &self.tenant, 0_u8, until)),
            JobState::Dead { since, .. } => entry((DEAD, &self.tenant, 0_u8, since)),
        }
    }

    /// The entry of a job with a key in the unique index.
    pub(super) fn key_entry(&self) -> IndexEntries<(String, String)> {
        self.key.as_ref().map_or_else(IndexEntries::none, |key| entry((&self.tenant, key)))
    }

    /// When the job can be delivered, `grace` after the end of a lease; `None` for a dead letter.
    pub(super) fn available_from(&self, grace: u64) -> Option<u64> {
        match self.state {
            JobState::Waiting { from } => Some(from),
            JobState::Leased { until } => Some(until.saturating_add(grace)),
            JobState::Dead { .. } => None,
        }
    }

    pub(super) fn is_due(&self, now: u64, grace: u64) -> bool {
        self.available_from(grace).is_some_and(|from| from <= now)
    }

    /// Whether the consumer of the last delivery has not answered it.
    pub(super) fn is_unanswered(&self) -> bool {
        match self.state {
            JobState::Leased { .. } => true,
            JobState::Dead { timed_out, .. } => timed_out,
            JobState::Waiting { .. } => false,
        }
    }

    /// Whether the job has used all its attempts. `default` is the number of attempts that the
    /// queue sets.
    pub(super) fn is_exhausted(&self, default: u32) -> bool {
        self.attempts >= self.max_attempts.unwrap_or(default).max(1)
    }

    pub(super) fn set_error(&mut self, error: &str) {
        // A short text, because each later change of the job writes the text again.
        const MOST: usize = 1_000;
        let end = (0..=error.len().min(MOST)).rev().find(|end| error.is_char_boundary(*end));
        self.last_error = error.get(..end.unwrap_or_default()).map(Into::into);
    }
}

/// A job to enqueue. A pair of tenant and payload converts to a `NewJob`.
///
/// ```
/// use keyloom_locking::queue::{NewJob, Priority};
/// use std::time::Duration;
/// let job = NewJob::new("acme", "mail to Ada")
///     .priority(Priority::High)
///     .delay(Duration::from_secs(60))
///     .key("order 17");
/// ```
#[derive(Clone, Debug)]
pub struct NewJob<J> {
    pub(super) tenant: String,
    pub(super) payload: J,
    pub(super) priority: Priority,
    pub(super) delay: u64,
    pub(super) key: Option<String>,
    max_attempts: Option<u32>,
    every: Option<Duration>,
}

impl<J> NewJob<J> {
    /// A job of normal priority that runs once, without a delay or a key.
    pub fn new(tenant: impl Into<String>, payload: J) -> Self {
        Self {
            tenant: tenant.into(),
            payload,
            priority: Priority::Normal,
            delay: 0,
            key: None,
            max_attempts: None,
            every: None,
        }
    }

    /// Sets the priority.
    #[must_use]
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Delivers the job after this time at the earliest.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay: millis(delay), ..self }
    }

    /// Sets a key that is unique within the tenant: enqueueing the same key again returns the
    /// existing job.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Sets how many times the job is delivered before it becomes a dead letter, in place of
    /// [`QueueOptions::max_attempts`](super::QueueOptions::max_attempts); at least 1.
    #[must_use]
    pub fn max_attempts(self, attempts: u32) -> Self {
        Self { max_attempts: Some(attempts), ..self }
    }

    /// Repeats the job: when the job is completed, it waits for its next time, with the same id and
    /// payload and with all its attempts. The first time is now, or after the
    /// [delay](NewJob::delay); the next times follow at intervals of `every`. Times that pass while
    /// no consumer works, or while the job runs, are skipped, so two runs never overlap. After its
    /// last attempt the job is a dead letter and does not repeat until it is
    /// [requeued](super::WorkQueue::requeue).
    ///
    /// Give the job a [key](NewJob::key): then a program may enqueue it at each start. To end the
    /// job, or to change its times, [delete](super::WorkQueue::delete) it.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::WorkQueue;
    /// use keyloom_locking::queue::NewJob;
    /// use keyloom_tables::Schema;
    /// use std::time::Duration;
    /// let store = Memory::new();
    /// let queue = WorkQueue::<String>::open(&Schema::open(&store, "shop")?, "reports")?;
    /// let report = NewJob::new("acme", "sales of the day".to_owned());
    /// let report = report.repeat_every(Duration::from_secs(86_400)).key("daily");
    /// store.transact(|txn| queue.enqueue(txn, report.clone()))?;
    ///
    /// let today = queue.dequeue(&store, 1)?.remove(0);
    /// store.transact(|txn| queue.complete(txn, &today))?;
    /// assert!(queue.dequeue(&store, 1)?.is_empty(), "it waits for tomorrow");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn repeat_every(self, every: Duration) -> Self {
        Self { every: Some(every), ..self }
    }

    /// Refuses names that do not fit in the keys of the indexes, and a repetition interval of zero.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(every) = self.every.filter(|every| millis(*every) == 0) {
            return Err(Error::InvalidArgument {
                what: "the time after which a job repeats",
                value: format!("{every:?}"),
                why: "it is at least 1 ms",
            });
        }
        check_name("the tenant", &self.tenant)?;
        self.key.as_ref().map_or(Ok(()), |key| check_name("the key of the job", key))
    }

    /// The job as it is stored, and its payload.
    pub(super) fn into_job(self, now: u64) -> (StoredJob, J) {
        let due = now.saturating_add(self.delay);
        let job = StoredJob {
            tenant: self.tenant,
            priority: self.priority,
            state: JobState::Waiting { from: due },
            attempts: 0,
            token: 0,
            enqueued_at: now,
            key: self.key,
            last_error: None,
            max_attempts: self.max_attempts,
            repeat: self.every.map(|every| Repeat { every: millis(every), due }),
        };
        (job, self.payload)
    }
}

impl<T: Into<String>, J> From<(T, J)> for NewJob<J> {
    fn from((tenant, payload): (T, J)) -> Self {
        Self::new(tenant, payload)
    }
}

fn check_name(what: &'static str, name: &str) -> Result<()> {
    const MOST: usize = 202; // Two of them, an id and a prefix make a key of at most 511 bytes.
    match pack(&name).len() > MOST {
        false => Ok(()),
        true => Err(Error::InvalidArgument {
            what,
            value: name.into(),
            why: "it has more than 200 bytes (NUL counts twice): shorten it, or take a hash of it",
        }),
    }
}

/// The outcome of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// The job was added.
    New(JobId),
    /// A job with the same key exists, or was completed recently. Nothing was written.
    Existing(JobId),
}

impl Enqueued {
    /// The id of the job.
    pub fn id(self) -> JobId {
        match self {
            Self::New(id) | Self::Existing(id) => id,
        }
    }
}

/// A job that was delivered to a consumer. The consumer holds it until the visibility time-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<J> {
    /// The id of the job.
    pub id: JobId,
    /// The fencing token of this delivery: later deliveries of the same job have larger tokens.
    pub token: u64,
    /// When the lease ends, in milliseconds since 1970.
    pub until: u64,
    /// The job, as of the delivery.
    pub job: Job<J>,
}

/// The state of a job after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The job is delivered again from this time on, in milliseconds since 1970.
    RetryAt(u64),
    /// That was the last attempt: the job is a dead letter.
    Dead,
}
