//! Work queue: how do producers hand work to consumers, so that each job is done even if consumers
//! fail?
//!
//! A producer enqueues a job in the transaction that causes the work. A consumer dequeues jobs: it
//! leases them for the *visibility time-out*, in which no other consumer gets them. The consumer
//! completes a job in the transaction that writes the results. If the consumer fails or its process
//! dies, the job is delivered again.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_locking::WorkQueue;
//! use keyloom_tables::Schema;
//! let store = Memory::new();
//! let schema = Schema::open(&store, "shop")?;
//! let mails = WorkQueue::<String>::open(&schema, "mail")?;
//! store.transact(|txn| mails.enqueue(txn, ("acme", "to Ada".to_owned())))?;
//!
//! for delivery in mails.dequeue(&store, 10)? {
//!     println!("sending {}", delivery.job.payload);
//!     store.transact(|txn| mails.complete(txn, &delivery))?;
//! }
//! assert_eq!(mails.counts(&store.snapshot()?, None)?, Default::default());
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! A queue `mail` consists of four tables of a [`Schema`] and their indexes:
//!
//! | data | key | value |
//! |---|---|---|
//! | table `mail.jobs` | job id, a UUID of version 7 | the [`StoredJob`]: tenant, state, attempts, token |
//! | its index `by_state`, waiting | 0, tenant, priority, time from which it can be delivered, job id | |
//! | leased | 1, tenant, 0, end of the lease, job id | |
//! | dead letter | 2, tenant, 0, time, job id | |
//! | its unique index `by_key` | tenant, key of the job | job id |
//! | table `mail.payloads` | job id | the payload |
//! | table `mail.tenants` | tenant | active since a time, with a random position; or sleeping until a time |
//! | its index `by_turn`, active | 0, position, tenant | |
//! | sleeping | 1, time, tenant | |
//! | table `mail.done`, which [expires](crate::expiry) | tenant, key of a completed job | job id, deadline |
//!
//! ```text
//!   tenants by turn                         jobs by state
//!   active:   ► globex ► acme ► initech ►   waiting: (acme, high, 10:00) (acme, normal, 9:58) …
//!   sleeping: hooli until 12:00             leased:  (acme, until 10:05)
//!                                           dead:    (globex, since 9:31)
//! ```
//!
//! The two levels make a delivery cheap: a consumer visits the next active tenants in turn, and
//! takes the first due jobs of each. It reads neither later jobs nor sleeping tenants.
//!
//! # Invariants
//!
//! 1. Each job has exactly one entry in the index by state: it is waiting, leased or dead.
//! 2. At most one consumer holds a job: the consumer whose token equals the job's token. Each
//!    delivery increments the token. A stale consumer cannot complete, extend or fail a job, since
//!    these operations check the token in their transaction. The token of a delivery also serves as
//!    a fencing token for other systems.
//! 3. The next job of each tenant can be found: the tenant is active, or sleeps no longer than
//!    until that job is due.
//! 4. A key of a job is unique per tenant until the job is deleted, or for
//!    [`dedup_window`](QueueOptions::dedup_window) after it was completed.
//! 5. Each job has a payload, and each payload has a job.
//!
//! [`check`](WorkQueue::check) verifies all invariants but the second, which stored data cannot
//! violate.
//!
//! # Delivery
//!
//! A job is delivered **at least once**. Its results are written **once** if the transaction that
//! writes them also completes the job. Effects outside of the store, such as a sent mail, can
//! happen twice. Pass the job id or the token along, so that the other system can detect a
//! repetition.
//!
//! The order is not strict: within a tenant, the first jobs of the most urgent priority are
//! delivered in random order (see [`QueueOptions::spread`]). Priorities hold within a tenant:
//! an urgent job does not overtake the jobs of other tenants.
//!
//! The clocks of consumers decide when a lease ends. A lease is respected for a [grace
//! period](QueueOptions::grace) after its end, so clocks may differ by that period. If clocks
//! differ by more, a job is delivered again too early or too late, but never completed twice.
//! [`work`](WorkQueue::work) extends the leases of its jobs during the work, so a job may take
//! longer than the visibility time-out.
//!
//! # Conflicts
//!
//! No key is written by all producers or by all consumers: ids are random, deliveries read and
//! write only the jobs that they deliver, and there is no counter. On an optimistic store:
//!
//! | concurrent transactions | conflict |
//! |---|---|
//! | two enqueues, an enqueue and a delivery, deliveries and answers of different jobs | no, in an active tenant |
//! | two enqueues with the same key of a job | yes: one of them returns the job of the other |
//! | deliveries of the same job | yes; the random choice makes it rare |
//! | enqueue to a tenant that sleeps or is new | with other such enqueues of this tenant, until one of them has activated the tenant |
//! | an enqueue, and a delivery that puts the tenant to sleep | one of the two conflicts |
//!
//! A tenant stays active for at least [`linger`](QueueOptions::linger), so the last two conflicts
//! are rare.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | [`enqueue`](WorkQueue::enqueue) | 3 gets, 3 keys written; if the tenant is not active, 2 gets and 2 keys more |
//! | the same, of a job with a key | 4 gets and 1 key more; 2 gets if the key exists |
//! | [`dequeue`](WorkQueue::dequeue) of n jobs | 3 gets, 3 ranges, and 5 ranges for each visited tenant; reads at most `spread` × n entries for each range, regardless of the length of the queue; then 3 gets and 3 keys written for each job |
//! | the same, if tenants wake or fall asleep | 1 more commit for all tenants that wake, with 2 gets and 3 keys written for each; 1 more commit for each tenant that falls asleep, with 5 gets, 5 ranges and at most 3 keys written |
//! | [`complete`](WorkQueue::complete) | 3 gets, 3 keys written; of a job with a key, 3 gets and 3 keys more; of a job that repeats, the same as `fail` |
//! | [`fail`](WorkQueue::fail), [`extend`](WorkQueue::extend), [`release`](WorkQueue::release) | 4 gets, 3 keys written |
//! | [`requeue`](WorkQueue::requeue) | 4 gets, 3 keys written |
//! | [`dead_letters`](WorkQueue::dead_letters) | as for an index query for records, and 1 get for each payload |
//! | [`peek`](WorkQueue::peek) of n jobs | 1 get, 5 ranges, which read at most n entries each, and 2 gets for each job |
//! | [`counts`](WorkQueue::counts) | 1 get, 3 ranges; reads the index entries of waiting and leased jobs |
//! | [`check`](WorkQueue::check), [`repair`](WorkQueue::repair) | as for four indexes, and a range over the jobs, a range over the payloads, and about 7 ranges for each tenant with jobs |
//!
//! Round trips to PostgreSQL, including the commits:
//!
//! | operation | round trips |
//! |---|---|
//! | enqueue in an active tenant; complete, fail, extend, release | 2 |
//! | enqueue of the first job of a tenant | 3 |
//! | enqueue of a job with a key | 4 |
//! | dequeue | 6 |
//! | dequeue, if no tenant has a due job | 3; 5 while a tenant lingers |
//!
//! The enqueue writes a payload once, and each delivery reads it: to extend or fail a job of 1 MB
//! costs no more than for a small job. A payload must fit into a value of the store, and an enqueue
//! into a transaction. On etcd, deliver fewer than 40 jobs at a time: a transaction that reads the
//! keys of more jobs conflicts with every deletion.
//!
//! # When not to use it
//!
//! When the order of jobs must be strict: use a [log](keyloom_tables::AppendLog) with one consumer
//! per partition. When each event has several readers: use the same log, with a position for each
//! reader. When there are more than some ten thousand tiny jobs a second: use a message broker,
//! which needs no transaction per job. When the work fits into the transaction that causes it: do
//! the work there.
//!
//! # Source
//!
//! K. Kulkarni et al., *QuiCK: A Queuing System in CloudKit* (SIGMOD 2021), on FoundationDB: two
//! levels, leases as vesting times, random choice among the first items, lazily removed pointers to
//! tenants. Here the pointers are records with an index, and a tenant that only has future jobs is
//! not visited. Visibility time-outs, receive counts and dead letters: Amazon SQS. `SELECT … FOR
//! UPDATE SKIP LOCKED` of PostgreSQL gives each consumer the first rows that no other consumer has
//! locked. The lock ends with the transaction, so the work must be done within that transaction.

mod answers;
mod dequeue;
mod enqueue;
mod error;
mod inspect;
mod job;
mod options;
mod random;
mod tenants;
mod work;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, Reader, Result, Store};
use keyloom_tables::{Attached, Index, Schema, Table};

pub use dequeue::Candidates;
pub use error::{QueueError, Stale};
pub use inspect::QueueCounts;
pub use job::{
    Delivery, Enqueued, Failed, Job, JobId, JobState, NewJob, Priority, Repeat, StoredJob,
};
pub use options::{Backoff, QueueOptions};
pub use work::{Answer, WorkOptions, WorkReport};

pub use crate::stop::Stop;

use crate::clock::millis;
use crate::expiry::Expiry;
use enqueue::DoneKey;
use job::StateParts;
use random::random;
use tenants::Tenants;

/// A work queue of jobs with payloads `J`; see the [module](self).
///
/// Cheap to clone: clones share the round of the tenants.
pub struct WorkQueue<J: 'static, C = Postcard> {
    jobs: Table<JobId, StoredJob>,
    by_state: Attached<Index<JobId, StoredJob, StateParts>>,
    by_key: Attached<Index<JobId, StoredJob, (String, String)>>,
    payloads: Table<JobId, J, C>,
    tenants: Tenants,
    done: Expiry<(String, String), DoneKey>,
    options: Arc<QueueOptions>,
    /// The position in the round of active tenants where the next delivery begins.
    turn: Arc<AtomicU64>,
}

impl<J: 'static, C> Clone for WorkQueue<J, C> {
    fn clone(&self) -> Self {
        Self {
            jobs: self.jobs.clone(),
            by_state: self.by_state.clone(),
            by_key: self.by_key.clone(),
            payloads: self.payloads.clone(),
            tenants: self.tenants.clone(),
            done: self.done.clone(),
            options: Arc::clone(&self.options),
            turn: Arc::clone(&self.turn),
        }
    }
}

impl<J: 'static, C> fmt::Debug for WorkQueue<J, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("jobs", &self.jobs)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<J: 'static> WorkQueue<J> {
    /// Opens the queue `name`, which need not exist, with default [options](QueueOptions). Its
    /// tables begin with `name`.
    ///
    /// # Errors
    /// The errors of [`Schema::table`] and [`Schema::index`].
    pub fn open<S: Store>(schema: &Schema<'_, S>, name: &str) -> Result<Self>
    where
        Postcard: Codec<J>,
    {
        Self::open_with(schema, name, QueueOptions::default())
    }
}

impl<J: 'static, C: Codec<J>> WorkQueue<J, C> {
    /// [`open`](WorkQueue::open) with options, and with payloads encoded by the codec `C`. The
    /// options are not stored: they apply to this program only.
    ///
    /// ```
    /// use keyloom::Memory;
    /// use keyloom_locking::WorkQueue;
    /// use keyloom_locking::queue::QueueOptions;
    /// use keyloom_tables::Schema;
    /// use std::time::Duration;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let visibility = Duration::from_secs(300);
    /// let options = QueueOptions { visibility, ..QueueOptions::default() };
    /// let queue = WorkQueue::<String>::open_with(&schema, "mail", options)?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`open`](WorkQueue::open);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a visibility time-out of
    /// less than 1 ms.
    pub fn open_with<S: Store>(
        schema: &Schema<'_, S>,
        name: &str,
        options: QueueOptions,
    ) -> Result<Self> {
        options.check()?;
        let jobs = schema.table::<JobId, StoredJob>(&format!("{name}.jobs"))?;
        let by_state = schema.index(&jobs, "by_state", 1, |_, job| job.state_entry())?;
        let by_key = schema.unique_index(&jobs, "by_key", 1, |_, job| job.key_entry())?;
        let payloads = schema.table_with::<JobId, J, C>(&format!("{name}.payloads"), 1)?;
        let tenants = Tenants::open(schema, name)?;
        let done = schema.table::<(String, String), DoneKey>(&format!("{name}.done"))?;
        let done = Expiry::new(schema, &done, "by_deadline", 1, |_, key| Some(key.until))?;
        let (options, turn) = (Arc::new(options), Arc::new(AtomicU64::new(random())));
        Ok(Self { jobs, by_state, by_key, payloads, tenants, done, options, turn })
    }

    /// The table of the jobs without their payloads. A program may derive indexes and totals from
    /// it. Do not write through it.
    pub fn jobs(&self) -> &Table<JobId, StoredJob> {
        &self.jobs
    }

    /// The table of the payloads, for a migration of their type. Do not write through it, and
    /// derive nothing from it: a completed job is removed without reading its payload.
    pub fn payloads(&self) -> &Table<JobId, J, C> {
        &self.payloads
    }

    /// Fetches the keys that an operation on these jobs reads in one round trip: the jobs, the
    /// state of `tenant` if given, and `others`.
    fn prefetch(
        &self,
        reader: &impl Reader,
        ids: impl IntoIterator<Item = JobId>,
        tenant: Option<&str>,
        others: impl IntoIterator<Item = KeyBuf>,
    ) -> Result<()> {
        if reader.prefetched() == 0 {
            return Ok(());
        }
        let mut keys: Vec<KeyBuf> = ids.into_iter().map(|id| self.jobs.space().pack(&id)).collect();
        keys.extend(tenant.map(|tenant| self.tenants.packed(tenant)));
        keys.extend(self.jobs.entry_key().cloned());
        keys.extend(others);
        reader.prefetch(&keys.iter().map(|key| &**key).collect::<Vec<_>>())
    }

    /// The key whose listeners a new job wakes. It is never written.
    fn bell(&self) -> &[u8] {
        self.jobs.space().prefix()
    }

    /// Fetches the schema entries of the tables in one round trip.
    fn prefetch_entries(&self, reader: &impl Reader) -> Result<()> {
        let entries = [self.jobs.entry_key(), self.tenants.entry_key()];
        reader.prefetch(&entries.into_iter().flatten().map(|key| &**key).collect::<Vec<_>>())
    }
}

impl<J: 'static, C> WorkQueue<J, C> {
    fn now(&self) -> Result<u64> {
        self.options.clock.now()
    }

    fn visibility(&self) -> u64 {
        millis(self.options.visibility)
    }

    fn grace(&self) -> u64 {
        millis(self.options.grace)
    }

    fn linger(&self) -> u64 {
        millis(self.options.linger)
    }
}
