//! Reads of a queue without delivery, and the check and repair of a queue.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, KeyRange, Order, Reader, Result, Snapshots, Store, Subspace, Writer};
use keyloom_kit::derived::unless_undecodable;
use keyloom_kit::{Inconsistency, Progress, RepairOptions, Rule, Select, Stages};
use keyloom_tables::index::Found;

use super::dequeue::due_ranges;
use super::job::{DEAD, Job, LEASED, StateParts, StoredJob, WAITING};
use super::{JobId, WorkQueue};

/// The number of jobs in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Jobs that can be delivered now: waiting jobs that are due, and jobs whose lease has ended.
    pub ready: u64,
    /// Jobs that wait for a later time.
    pub delayed: u64,
    /// Jobs that consumers hold.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
}

impl<J: 'static, C: Codec<J>> WorkQueue<J, C> {
    /// The job with this id, in any state. Costs two gets; the second reads the payload. Returns
    /// `None` for a job without a payload, which the check reports.
    ///
    /// # Errors
    /// The errors of [`Table::get`](keyloom_tables::Table::get).
    pub fn get(&self, reader: &impl Reader, id: JobId) -> Result<Option<Job<J>>> {
        let Some(job) = self.jobs.get(reader, &id)? else { return Ok(None) };
        Ok(self.payloads.get(reader, &id)?.map(|payload| job.with(payload)))
    }

    /// The next jobs of a tenant that can be delivered, at most `limit`, without leasing them.
    ///
    /// # Errors
    /// The errors of [`Attached::at`](keyloom_tables::Attached::at) and of
    /// [`Table::get`](keyloom_tables::Table::get).
    pub fn peek(
        &self,
        reader: &impl Reader,
        tenant: &str,
        limit: usize,
    ) -> Result<Vec<(JobId, Job<J>)>> {
        let index = self.by_state.at(reader)?;
        let ranges = due_ranges(index, tenant, self.now()?, self.grace());
        let entries = reader.range_many(&ranges, limit.max(1))?.into_iter();
        let entries = entries.flat_map(|page| page.entries);
        let ids = entries
            .map(|entry| Found::<_, JobId, StateParts>::new(index.space(), entry)?.record_key())
            .filter_map(Result::ok)
            .take(limit);
        let ids: Vec<JobId> = ids.collect();
        let jobs = self.jobs.find_many(reader, &ids)?;
        let payloads = self.payloads.find_many(reader, &ids)?;
        let all = ids.into_iter().zip(jobs.into_iter().zip(payloads));
        // As with a delivery, a job that cannot be read does not hide the jobs after it.
        Ok(all
            .filter_map(|(id, (job, payload))| Some((id, job.ok()??.with(payload.ok()??))))
            .collect())
    }

    /// The number of jobs of a tenant, or of all tenants, in each state.
    ///
    /// Reads the index entries of all waiting and leased jobs, and counts the entries of dead
    /// letters. No counter is kept, since all writers of a tenant would change it.
    ///
    /// # Errors
    /// The errors of [`Attached::at`](keyloom_tables::Attached::at).
    pub fn counts(&self, reader: &impl Reader, tenant: Option<&str>) -> Result<QueueCounts> {
        let index = self.by_state.at(reader)?;
        let now = self.now()?;
        let space = index.space();
        let (mut counts, mut leased) = (QueueCounts::default(), QueueCounts::default());
        count_due(reader, space, state_range(space, WAITING, tenant), now, &mut counts)?;
        let ended = now.saturating_sub(self.grace());
        count_due(reader, space, state_range(space, LEASED, tenant), ended, &mut leased)?;
        counts.ready += leased.ready;
        counts.leased = leased.delayed;
        counts.dead = reader.count(state_range(space, DEAD, tenant))?;
        Ok(counts)
    }

    /// Reports every inconsistency: faults of the four indexes of the queue, jobs without a
    /// payload, payloads that have no job or do not decode, and tenants whose jobs would not be
    /// found.
    ///
    /// # Errors
    /// The errors of [`Attached::check`](keyloom_tables::Attached::check).
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut faults = self.by_state.check(reader)?;
        faults.extend(self.by_key.check(reader)?);
        faults.extend(self.damaged_payloads(reader)?.into_iter().map(|(key, rule)| {
            let fault = Inconsistency::new(key, rule);
            match rule {
                Rule::Missing => {
                    fault.with_text("is missing: a job has no payload; a repair removes the job")
                }
                Rule::Dangling => fault.with_text("is the payload of no job; a repair removes it"),
                _ => fault,
            }
        }));
        faults.extend(self.done.index().check(reader)?);
        faults.extend(self.tenants.by_turn().check(reader)?);
        faults.extend(self.lost_tenants(reader)?.into_iter().map(|(tenant, rule)| {
            let text = "does not lead to the next job of the tenant; repair the queue";
            Inconsistency::new(self.tenants.packed(&tenant), rule).with_text(text)
        }));
        Ok(faults)
    }

    /// Fixes what [`check`](WorkQueue::check) reports, in bounded transactions, concurrently with
    /// producers and consumers. A job without a payload is removed, since it cannot be delivered. A
    /// payload that does not decode stays, since another program may have its type.
    ///
    /// # Errors
    /// The errors of [`Attached::repair`](keyloom_tables::Attached::repair).
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](WorkQueue::repair) with options. Calls `progress` after each transaction and
    /// stops if `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](WorkQueue::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut stages = Stages::new(options, progress);
        // The removal of a job deletes its entries, so they must decode.
        stages.run(|options, progress| self.by_state.repair_with(store, options, progress))?;
        stages.run(|options, progress| self.by_key.repair_with(store, options, progress))?;
        stages.run(|_, progress| self.remove_all_unpaired(store, progress))?;
        stages.run(|options, progress| self.done.index().repair_with(store, options, progress))?;
        stages.run(|options, progress| {
            self.tenants.by_turn().repair_with(store, options, progress)
        })?;
        stages.run(|_, progress| self.announce_lost(store, progress))?;
        stages.end()
    }

    /// Removes jobs without a payload, and payloads without a job, one per transaction.
    fn remove_all_unpaired(
        &self,
        store: &impl Store,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let damaged = self.damaged_payloads(&Snapshots::lasting(store))?.into_iter();
        let unpaired = damaged.filter(|(_, rule)| *rule != Rule::Undecodable);
        one_by_one(unpaired, progress, |(key, _), done| {
            done.removed += u64::from(store.transact(|txn| self.remove_unpaired(txn, &key))?);
            Ok(())
        })
    }

    /// Announces the next jobs of lost tenants, one tenant per transaction.
    fn announce_lost(
        &self,
        store: &impl Store,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let lost = self.lost_tenants(&Snapshots::lasting(store))?;
        one_by_one(lost, progress, |(tenant, _), done| {
            store.transact(|txn| match self.next_of(txn, &tenant)? {
                Some(at) => self.tenants.announce(txn, &tenant, at, self.now()?),
                None => Ok(()),
            })?;
            done.written += 1;
            Ok(())
        })
    }

    /// The keys of faulty payloads: payloads that a job lacks, payloads without a job, and payloads
    /// that do not decode. Reads all jobs and payloads once, in the order of their ids.
    fn damaged_payloads(&self, reader: &impl Reader) -> Result<Vec<(KeyBuf, Rule)>> {
        let space = self.payloads.space();
        let is_job = |value: &[u8]| <Postcard as Codec<StoredJob>>::decode(value).is_ok();
        let mut jobs = below(reader, self.jobs.space(), is_job)?;
        let mut payloads = below(reader, space, |value| C::decode(value).is_ok())?;
        let (mut job, mut payload) = (jobs.next().transpose()?, payloads.next().transpose()?);
        let mut found = Vec::new();
        loop {
            let (order, rule) = match (&job, &payload) {
                (None, None) => return Ok(found),
                (Some((job, _)), Some((payload, decodes))) if job == payload => {
                    (Ordering::Equal, (!decodes).then_some((payload, Rule::Undecodable)))
                }
                (Some((job, _)), Some((payload, _))) if job > payload => {
                    (Ordering::Greater, Some((payload, Rule::Dangling)))
                }
                // A job that does not decode is a fault of its own.
                (Some((job, decodes)), _) => {
                    (Ordering::Less, decodes.then_some((job, Rule::Missing)))
                }
                (None, Some((payload, _))) => (Ordering::Greater, Some((payload, Rule::Dangling))),
            };
            found.extend(
                rule.map(|(id, rule)| (KeyBuf::from_vec([space.prefix(), id].concat()), rule)),
            );
            if order.is_le() {
                job = jobs.next().transpose()?;
            }
            if order.is_ge() {
                payload = payloads.next().transpose()?;
            }
        }
    }

    /// Removes the payload at `key` if it has no job, or the job if it has no payload. Returns
    /// whether something was removed.
    fn remove_unpaired(&self, txn: &mut impl Writer, key: &[u8]) -> Result<bool> {
        txn.guarded(|txn| {
            let (is_there, id) = (txn.get(key)?.is_some(), self.payloads.space().unpack(key));
            let job = match &id {
                Ok(id) => unless_undecodable(self.jobs.get(txn, id))?,
                Err(_) => Some(None),
            };
            match (job, id) {
                (Some(None), _) if is_there => txn.delete(key).map(|()| true),
                (Some(Some(_)), Ok(id)) if !is_there => self.jobs.delete(txn, &id),
                // A job that does not decode is left alone: another program may have its type.
                _ => Ok(false),
            }
        })
    }

    /// Tenants whose state would let their next job be missed or delivered late.
    fn lost_tenants(&self, reader: &impl Reader) -> Result<Vec<(String, Rule)>> {
        let mut lost = Vec::new();
        for tenant in self.tenants_with_jobs(reader)? {
            let Some(at) = self.next_of(reader, &tenant)? else { continue };
            match self.tenants.get(reader, &tenant)? {
                None => lost.push((tenant, Rule::Missing)),
                Some(state) if state.misses(at) => lost.push((tenant, Rule::Wrong)),
                Some(_) => {}
            }
        }
        Ok(lost)
    }

    /// The tenants with waiting or leased jobs. Costs a range per tenant and state.
    fn tenants_with_jobs(&self, reader: &impl Reader) -> Result<BTreeSet<String>> {
        let space = self.by_state.at(reader)?.space();
        let mut tenants = BTreeSet::new();
        for state in [WAITING, LEASED] {
            let all = state_range(space, state, None);
            let mut rest = all.clone();
            while let Some(entry) = reader.first(rest)? {
                let key = keyloom::KeyBuf::from_slice(&entry.0);
                let found = Found::<_, JobId, StateParts>::new(space, entry);
                rest = match found.and_then(|found| found.owned_parts()) {
                    Ok((_, tenant, ..)) => {
                        let behind = KeyRange::behind(&space.pack(&(state, &tenant)));
                        tenants.insert(tenant);
                        all.clone().intersect(behind)
                    }
                    // The check reports this entry as a fault of the index.
                    Err(_) => all.clone().resume(Order::Ascending, &key).into_owned(),
                };
            }
        }
        Ok(tenants)
    }
}

/// Calls `work` with each item, until `progress` breaks.
fn one_by_one<T>(
    items: impl IntoIterator<Item = T>,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    mut work: impl FnMut(T, &mut Progress) -> Result<()>,
) -> Result<Progress> {
    let mut done = Progress::default();
    let mut items = items.into_iter().peekable();
    done.finished = items.peek().is_none();
    while let Some(item) = items.next() {
        work(item, &mut done)?;
        done.finished = items.peek().is_none();
        if progress(&done).is_break() {
            break;
        }
    }
    Ok(done)
}

/// The keys of a table without its prefix, and the result of `read` for each value.
fn below<'r, T>(
    reader: &'r impl Reader,
    space: &Subspace,
    read: impl Fn(&[u8]) -> T + 'r,
) -> Result<impl Iterator<Item = Result<(Vec<u8>, T)>> + 'r> {
    let prefix = space.prefix().len();
    let entries = reader.range(space.range(), Order::Ascending)?;
    Ok(entries.map(move |entry| {
        let (key, value) = entry?;
        Ok((key.get(prefix..).unwrap_or_default().to_vec(), read(&value)))
    }))
}

fn state_range(space: &Subspace, state: u8, tenant: Option<&str>) -> KeyRange<'static> {
    match tenant {
        Some(tenant) => Select::<StateParts>::key_range(&(state, tenant), space),
        None => Select::<StateParts>::key_range(&state, space),
    }
}

/// Counts the due entries of `range` as ready, and the others as delayed.
fn count_due(
    reader: &impl Reader,
    space: &Subspace,
    range: KeyRange<'_>,
    now: u64,
    counts: &mut QueueCounts,
) -> Result<()> {
    for entry in reader.range(range, Order::Ascending)? {
        let found = Found::<_, JobId, StateParts>::new(space, entry?);
        // A damaged entry is not counted; the check reports it.
        if let Ok((.., at)) = found.and_then(|found| found.owned_parts()) {
            match at <= now {
                true => counts.ready += 1,
                false => counts.delayed += 1,
            }
        }
    }
    Ok(())
}
