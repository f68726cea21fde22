//! The answers of a consumer to a delivery, and dead letters.

use std::time::Duration;

use keyloom::value::Codec;
use keyloom::{Reader, Result, Writer};
use keyloom_kit::{Continuation, Page};

use super::error::{QueueError, Stale};
use super::job::{DEAD, Delivery, Failed, Job, JobState, StoredJob};
use super::options::refuse_short;
use super::{JobId, WorkQueue};
use crate::clock::millis;

impl<J: 'static, C: Codec<J>> WorkQueue<J, C> {
    /// Removes a job whose work is done. A job that [repeats](super::NewJob::repeat_every) waits
    /// for its next time instead.
    ///
    /// Complete the job in the transaction that writes the results of the work. `complete` checks
    /// the token of the delivery in the same transaction. So if the job was delivered to another
    /// consumer in the meantime, this transaction does not commit, and the results are written
    /// once.
    ///
    /// A lease that has ended is still valid until the job is delivered again. If the job became a
    /// dead letter because the lease of its last attempt ended, the delivery is valid until the job
    /// is [requeued](Self::requeue) or deleted. The same holds for the other answers.
    ///
    /// # Errors
    /// [`QueueError::Stale`], after which the transaction does not commit; the errors of
    /// [`Table::delete`](keyloom_tables::Table::delete).
    pub fn complete(&self, txn: &mut impl Writer, delivery: &Delivery<J>) -> Result<()> {
        txn.guarded(|txn| {
            let repeats = delivery.job.repeat.is_some();
            let tenant = repeats.then_some(delivery.job.tenant.as_str());
            let mut job = self.held(txn, delivery, tenant)?;
            let Some(repeat) = job.repeat else {
                self.remember_key(txn, delivery.id, &job)?;
                return self.remove(txn, delivery.id).map(drop);
            };
            let next = repeat.after(self.now()?);
            job.state = JobState::Waiting { from: next.due };
            (job.repeat, job.attempts, job.last_error) = (Some(next), 0, None);
            self.write(txn, delivery.id, &job)
        })
    }

    /// Extends the lease of a delivery to `visibility` from now, and returns the new end of the
    /// lease in milliseconds since 1970.
    ///
    /// # Errors
    /// [`QueueError::Stale`]; [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a
    /// `visibility` of less than 1 ms; the errors of [`Table::put`](keyloom_tables::Table::put).
    pub fn extend(
        &self,
        txn: &mut impl Writer,
        delivery: &Delivery<J>,
        visibility: Duration,
    ) -> Result<u64> {
        refuse_short(visibility)?;
        txn.guarded(|txn| {
            let mut job = self.held(txn, delivery, Some(&delivery.job.tenant))?;
            let until = self.now()?.saturating_add(millis(visibility));
            job.state = JobState::Leased { until };
            self.write(txn, delivery.id, &job)?;
            Ok(until)
        })
    }

    /// Returns a job whose work failed to the queue. The job is delivered again after a pause that
    /// grows with its attempts. After its last attempt it becomes a dead letter with the error.
    ///
    /// # Errors
    /// [`QueueError::Stale`]; the errors of [`Table::put`](keyloom_tables::Table::put).
    pub fn fail(
        &self,
        txn: &mut impl Writer,
        delivery: &Delivery<J>,
        error: &str,
    ) -> Result<Failed> {
        txn.guarded(|txn| {
            let mut job = self.held(txn, delivery, Some(&delivery.job.tenant))?;
            let now = self.now()?;
            job.set_error(error);
            let outcome = match job.is_exhausted(self.options.max_attempts) {
                true => Failed::Dead,
                false => {
                    let pause = self.options.backoff.pause(job.attempts);
                    Failed::RetryAt(now.saturating_add(millis(pause)))
                }
            };
            job.state = match outcome {
                Failed::Dead => JobState::Dead { since: now, timed_out: false },
                Failed::RetryAt(from) => JobState::Waiting { from },
            };
            self.write(txn, delivery.id, &job)?;
            Ok(outcome)
        })
    }

    /// Returns an unprocessed job to the queue, for example at a shutdown. The job can be delivered
    /// again at once, and the attempt does not count.
    ///
    /// # Errors
    /// [`QueueError::Stale`]; the errors of [`Table::put`](keyloom_tables::Table::put).
    pub fn release(&self, txn: &mut impl Writer, delivery: &Delivery<J>) -> Result<()> {
        self.give_back(txn, delivery, 1)
    }

    /// Returns a job to the queue and takes back the `attempts` attempts that its delivery counted.
    pub(super) fn give_back(
        &self,
        txn: &mut impl Writer,
        delivery: &Delivery<J>,
        attempts: u32,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let mut job = self.held(txn, delivery, Some(&delivery.job.tenant))?;
            job.state = JobState::Waiting { from: self.now()? };
            job.attempts = job.attempts.saturating_sub(attempts);
            self.write(txn, delivery.id, &job)
        })
    }

    /// Counts an attempt for a delivery that was made without counting one, and extends its lease.
    /// Returns the job without its payload, and the end of the lease.
    pub(super) fn begin(
        &self,
        txn: &mut impl Writer,
        delivery: &Delivery<J>,
    ) -> Result<(StoredJob, u64)> {
        txn.guarded(|txn| {
            let mut job = self.held(txn, delivery, Some(&delivery.job.tenant))?;
            let until = self.now()?.saturating_add(self.visibility());
            job.state = JobState::Leased { until };
            job.attempts += 1;
            self.write(txn, delivery.id, &job)?;
            Ok((job, until))
        })
    }

    /// Extends the leases of the jobs that are still held with these tokens.
    pub(super) fn extend_held(&self, txn: &mut impl Writer, held: &[(JobId, u64)]) -> Result<()> {
        txn.guarded(|txn| {
            let until = self.now()?.saturating_add(self.visibility());
            let jobs = self.jobs.get_many(txn, held.iter().map(|(id, _)| id))?;
            for ((id, token), job) in held.iter().zip(jobs) {
                let is_held = |job: &StoredJob| job.token == *token && job.is_unanswered();
                if let Some(mut job) = job.filter(is_held) {
                    job.state = JobState::Leased { until };
                    self.write(txn, *id, &job)?;
                }
            }
            Ok(())
        })
    }

    /// Turns a job into a dead letter at once, for an error that no retry can fix.
    ///
    /// # Errors
    /// [`QueueError::Stale`]; the errors of [`Table::put`](keyloom_tables::Table::put).
    pub fn bury(&self, txn: &mut impl Writer, delivery: &Delivery<J>, error: &str) -> Result<()> {
        txn.guarded(|txn| {
            let mut job = self.held(txn, delivery, None)?;
            job.set_error(error);
            job.state = JobState::Dead { since: self.now()?, timed_out: false };
            self.write(txn, delivery.id, &job)
        })
    }

    /// The dead letters of a tenant, or of all tenants, with at most `limit` on a page: sorted by
    /// tenant, then the oldest first. A dead letter without a payload is left out; the check
    /// reports it.
    ///
    /// # Errors
    /// The errors of [`IndexQuery::records_with`](keyloom_tables::IndexQuery::records_with).
    pub fn dead_letters(
        &self,
        reader: &impl Reader,
        tenant: Option<&str>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(JobId, Job<J>)>> {
        let query = self.by_state.query().limit(limit).after(after);
        let query = match tenant {
            Some(tenant) => query.prefix((DEAD, tenant)),
            None => query.prefix(DEAD),
        };
        query.records_with(reader, &self.payloads, |id, job, payload| {
            payload.map(|payload| (id, job.with(payload)))
        })
    }

    /// Returns a dead letter to the queue: it can be delivered at once, with all its attempts.
    ///
    /// # Errors
    /// [`QueueError::NotDead`]; the errors of [`Table::put`](keyloom_tables::Table::put).
    pub fn requeue(&self, txn: &mut impl Writer, id: JobId) -> Result<()> {
        txn.guarded(|txn| {
            let not_dead = |state| QueueError::NotDead { id, state };
            let job = self.jobs.get(txn, &id)?;
            let mut job = job.ok_or_else(|| not_dead("does not exist"))?;
            match job.state {
                JobState::Dead { .. } => {}
                JobState::Waiting { .. } => return Err(not_dead("waits").into()),
                JobState::Leased { .. } => return Err(not_dead("is leased").into()),
            }
            job.state = JobState::Waiting { from: self.now()? };
            job.attempts = 0;
            self.write(txn, id, &job)
        })
    }

    /// Deletes a job in any state, such as a dead letter, and returns whether it existed. A
    /// consumer that holds the job can no longer complete it. The key of the job can be enqueued
    /// again.
    ///
    /// # Errors
    /// The errors of [`Table::delete`](keyloom_tables::Table::delete).
    pub fn delete(&self, txn: &mut impl Writer, id: JobId) -> Result<bool> {
        txn.guarded(|txn| self.remove(txn, id))
    }

    /// Removes a job and its payload, without reading the payload.
    pub(super) fn remove(&self, txn: &mut impl Writer, id: JobId) -> Result<bool> {
        let existed = self.jobs.delete(txn, &id)?;
        self.payloads.delete_without_derived(txn, &id)?;
        Ok(existed)
    }

    /// The job of a delivery, if the consumer still holds it. If `tenant` is given, since the job
    /// will wait again, fetches the state of the tenant in the same round trip.
    fn held(
        &self,
        reader: &impl Reader,
        delivery: &Delivery<J>,
        tenant: Option<&str>,
    ) -> Result<StoredJob> {
        let Delivery { id, token, .. } = *delivery;
        self.prefetch(reader, [id], tenant, None)?;
        let stale = |reason| QueueError::Stale { id, token, reason };
        let job = self.jobs.get(reader, &id)?.ok_or_else(|| stale(Stale::Gone))?;
        match () {
            () if job.token != token => {
                Err(stale(Stale::DeliveredAgain { token: job.token }).into())
            }
            () if job.is_unanswered() => Ok(job),
            () => Err(stale(Stale::GivenBack).into()),
        }
    }

    /// Writes a changed job, and makes sure that deliveries find it.
    pub(super) fn write(&self, txn: &mut impl Writer, id: JobId, job: &StoredJob) -> Result<()> {
        self.jobs.put(txn, &id, job)?;
        self.announce(txn, job)
    }

    /// Makes sure that deliveries find a changed job, and wakes idle consumers if it is due.
    pub(super) fn announce(&self, txn: &mut impl Writer, job: &StoredJob) -> Result<()> {
        let Some(at) = job.available_from(self.grace()) else { return Ok(()) };
        let now = self.now()?;
        if at <= now {
            txn.wake(self.bell());
        }
        self.tenants.announce(txn, &job.tenant, at, now)
    }
}
