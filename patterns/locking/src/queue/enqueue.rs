//! Enqueueing, and the keys that make it idempotent.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Reader, Result, Store, Writer};
use keyloom_kit::{Progress, RepairOptions};
use serde::{Deserialize, Serialize};

use super::job::{Enqueued, NewJob, StoredJob};
use super::random::random;
use super::{JobId, WorkQueue};
use crate::clock::millis;

/// The key of a completed job, remembered for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DoneKey {
    id: u128,
    pub(super) until: u64,
}

impl<J: 'static, C: Codec<J>> WorkQueue<J, C> {
    /// Adds a job: a [`NewJob`], or a pair of tenant and payload. The job exists once the
    /// transaction commits.
    ///
    /// With a [key](NewJob::key) the operation is idempotent. If the tenant has a job with this key
    /// in any state, or completed such a job recently, nothing is written and the id of that job is
    /// returned. Give each job a key if the producer retries commits of unknown outcome.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::WorkQueue;
    /// use keyloom_locking::queue::{Enqueued, NewJob};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let mails = WorkQueue::<String>::open(&Schema::open(&store, "shop")?, "mail")?;
    /// let job = NewJob::new("acme", "to Ada".to_owned()).key("order 17");
    /// let first = store.transact(|txn| mails.enqueue(txn, job.clone()))?;
    /// let again = store.transact(|txn| mails.enqueue(txn, job.clone()))?;
    /// assert_eq!(again, Enqueued::Existing(first.id()));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a tenant or a key of more
    /// than 200 bytes, or a repetition interval of less than 1 ms; the errors of
    /// [`Table::put`](keyloom_tables::Table::put).
    pub fn enqueue(&self, txn: &mut impl Writer, job: impl Into<NewJob<J>>) -> Result<Enqueued> {
        let job = job.into();
        txn.guarded(|txn| {
            job.check()?;
            let now = self.now()?;
            let id = new_id(now);
            self.prefetch(txn, [], Some(&job.tenant), self.payloads.entry_key().cloned())?;
            if let Some(key) = &job.key
                && let Some(id) = self.known(txn, &job.tenant, key, now)?
            {
                return Ok(Enqueued::Existing(id));
            }
            let (job, payload) = job.into_job(now);
            // The payload is in a table of its own: in the record of the job, each lease, extension
            // and failure would write a payload of 1 MB again.
            self.payloads.put(txn, &id, &payload)?;
            // The id is new, so there is no record to read. PostgreSQL takes a predicate lock on
            // the index page of an absent key. So the read conflicted with every other enqueue
            // there: 0.7 conflicts for each job. Without the read, an enqueue is 3 to 5 times as
            // fast.
            self.jobs.replace(txn, &id, None, Some(&job))?;
            self.announce(txn, &job)?;
            Ok(Enqueued::New(id))
        })
    }

    /// The id of the job with this key, if the job exists or was completed recently.
    fn known(
        &self,
        reader: &impl Reader,
        tenant: &str,
        key: &str,
        now: u64,
    ) -> Result<Option<JobId>> {
        if let Some(found) = self.by_key.at(reader)?.get(reader, (tenant, key))? {
            return found.record_key().map(Some);
        }
        let done = self.done.get(reader, &(tenant.into(), key.into()), now)?;
        Ok(done.map(|done| JobId::from_u128(done.id)))
    }

    /// Remembers the key of a job that is being completed.
    pub(super) fn remember_key(
        &self,
        txn: &mut impl Writer,
        id: JobId,
        job: &StoredJob,
    ) -> Result<()> {
        let window = millis(self.options.dedup_window);
        match &job.key {
            Some(key) if window > 0 => {
                let until = self.now()?.saturating_add(window);
                let done = DoneKey { id: id.as_u128(), until };
                self.done.table().put(txn, &(job.tenant.clone(), key.clone()), &done)
            }
            _ => Ok(()),
        }
    }

    /// Removes the keys of completed jobs after the
    /// [`dedup_window`](super::QueueOptions::dedup_window). Any process may call `sweep` at any
    /// time; a consumer in [`work`](WorkQueue::work) calls it once a minute.
    ///
    /// # Errors
    /// The errors of [`Expiry::sweep`](crate::Expiry::sweep).
    pub fn sweep<S: Store>(&self, store: &S) -> Result<Progress> {
        self.sweep_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](WorkQueue::sweep) with options. Calls `progress` after each transaction and stops
    /// if `progress` breaks. The next sweep removes the rest, with or without the position.
    ///
    /// # Errors
    /// The errors of [`sweep`](WorkQueue::sweep).
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.done.sweep_with(store, self.now()?, options, progress)
    }
}

/// A UUID of version 7: jobs that are enqueued together are stored together. A counter is not used,
/// because all producers would write it.
fn new_id(now: u64) -> JobId {
    const MS_BITS: u64 = (1 << 48) - 1;
    let ms = u128::from(now & MS_BITS) << 80;
    let random = (u128::from(random()) << 64) | u128::from(random());
    let low = random & !((0xF << 76) | (0b11 << 62)) & ((1 << 80) - 1);
    JobId::from_u128(ms | (0x7 << 76) | (0b10 << 62) | low)
}
