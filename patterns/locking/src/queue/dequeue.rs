//! Delivery of jobs.

use std::sync::atomic::Ordering::Relaxed;

use keyloom::value::Codec;
use keyloom::{EntryPage, KeyRange, Reader, Result, Store, Writer};
use keyloom_kit::within;
use keyloom_tables::Index;
use keyloom_tables::index::Found;

use super::job::{Delivery, JobState, LEASED, Priority, StateParts, StoredJob, WAITING};
use super::{JobId, WorkQueue};

/// The most jobs of one call.
// One transaction leases all jobs, so more jobs make it larger and more likely to conflict.
const MOST_JOBS: usize = 1_000;
/// The most jobs without a further attempt that one transaction makes dead letters, if it leases
/// fewer.
// Each takes some five keys, so more of them exceed the 4,096 writes of etcd.
const MOST_BURIED: usize = 100;
/// The most active tenants that one step visits, and the most sleeping tenants that it visits and
/// wakes.
// A tenant has five ranges, so a step reads up to 640 ranges. With fewer tenants, a call needs more
// steps to pass tenants that have just run out of jobs.
const MOST_TENANTS: usize = 64;
/// The most steps of one call. Each step visits up to twice as many active tenants as the step
/// before, at most 64. So a call for one job visits 191 active tenants without a job before it
/// returns nothing.
const STEPS: usize = 8;

/// Jobs that were due in a snapshot, in the order in which they should be leased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    jobs: Vec<Candidate>,
    /// Sleeping tenants whose wake-up time has passed.
    due: Vec<String>,
    /// Tenants without a job to deliver that have been active for at least
    /// [`linger`](super::QueueOptions::linger).
    idle: Vec<String>,
    /// Whether no other tenant can have a due job, and no job was hidden after damaged entries.
    is_whole: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    id: JobId,
    /// The position after the tenant in the round, if the tenant is active.
    next: Option<u64>,
}

impl Candidates {
    /// The ids of the jobs.
    pub fn ids(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().map(|candidate| candidate.id)
    }
}

impl<J: 'static, C: Codec<J>> WorkQueue<J, C> {
    /// Delivers up to `n` jobs, at most 1,000: leases them for the visibility time-out. Until the
    /// lease ends, no other consumer gets these jobs.
    ///
    /// Tenants take turns. Within a tenant, jobs whose lease has ended come first, then the other
    /// jobs by priority, then by age. To keep concurrent consumers apart, a delivery reads
    /// [`spread`](super::QueueOptions::spread) jobs of equal rank for each wanted job, and draws
    /// from these at random.
    ///
    /// A job whose lease has ended after its last attempt becomes a dead letter instead.
    ///
    /// The jobs are selected in a snapshot, and leased in a transaction that reads only these jobs.
    /// So that transaction conflicts only with a transaction that writes one of these jobs. Returns
    /// fewer than `n` jobs, or none, if there are no more or other consumers were faster. If many
    /// active tenants have just run out of jobs, a call does not visit all of them; the next call
    /// continues after the last visited tenant.
    ///
    /// # Errors
    /// The errors of the [clock](crate::Clock) and of
    /// [`Attached::at`](keyloom_tables::Attached::at); any error of the store. After a commit of
    /// unknown outcome, jobs may be leased but not returned: they are delivered again after their
    /// time-out.
    pub fn dequeue<S: Store>(&self, store: &S, n: usize) -> Result<Vec<Delivery<J>>> {
        self.dequeue_counting(store, n, n)
    }

    /// Delivers up to `n` jobs. The first `counted` of them count an attempt.
    pub(super) fn dequeue_counting<S: Store>(
        &self,
        store: &S,
        n: usize,
        counted: usize,
    ) -> Result<Vec<Delivery<J>>> {
        let n = n.min(MOST_JOBS);
        if n == 0 {
            return Ok(Vec::new());
        }
        let (mut tenants, mut jobs) = (n.min(MOST_TENANTS), n);
        let mut step = 0;
        while step < STEPS {
            let candidates = self.some_candidates(&store.snapshot()?, jobs, tenants)?;
            self.wake(store, &candidates)?;
            self.settle(store, &candidates)?;
            let (delivered, buried) = match candidates.jobs.is_empty() {
                true => (Vec::new(), 0),
                false => store.transact(|txn| self.lease_counting(txn, &candidates, n, counted))?,
            };
            if !delivered.is_empty() {
                return Ok(delivered);
            }
            if buried > 0 {
                // The next snapshot does not have these jobs any more.
                continue;
            }
            step += 1;
            if candidates.is_whole && candidates.jobs.is_empty() {
                break;
            }
            tenants = (tenants * 2).min(MOST_TENANTS);
            // Jobs that do not decode must not hide the jobs after them.
            jobs = (jobs * 4).min(MOST_JOBS);
        }
        Ok(Vec::new())
    }

    /// The jobs from which [`dequeue`](WorkQueue::dequeue) of `n` jobs would choose in this
    /// snapshot. Pass them to [`lease`](WorkQueue::lease) in a transaction of the caller. Advances
    /// the round of the tenants.
    ///
    /// # Errors
    /// The errors of [`dequeue`](WorkQueue::dequeue).
    pub fn candidates(&self, reader: &impl Reader, n: usize) -> Result<Candidates> {
        self.some_candidates(reader, n.min(MOST_JOBS), n.clamp(1, MOST_TENANTS))
    }

    fn some_candidates(
        &self,
        reader: &impl Reader,
        n: usize,
        tenants: usize,
    ) -> Result<Candidates> {
        let (now, grace) = (self.now()?, self.grace());
        self.prefetch_entries(reader)?;
        let next = self.tenants.next(reader, self.turn.load(Relaxed), tenants, now)?;
        let mut found =
            Candidates { due: next.due, is_whole: next.is_whole, ..Candidates::default() };
        let mut idle = Vec::new();
        // Woken tenants come after the round, so that they do not starve active tenants.
        let round = next.round.into_iter().map(|(tenant, position)| (tenant, Some(position)));
        let woken = found.due.iter().map(|tenant| (tenant.clone(), None));
        let visited: Vec<_> = round.chain(woken).collect();
        let mut lines = Vec::with_capacity(visited.len());
        let index = self.by_state.at(reader)?;
        let window = self.window(n, visited.len());
        let ranges: Vec<_> =
            visited.iter().flat_map(|(tenant, _)| due_ranges(index, tenant, now, grace)).collect();
        let mut pages = reader.range_many(&ranges, window)?.into_iter();
        for (tenant, position) in visited {
            let (line, is_read) = line(index, pages.by_ref().take(RANGES), self.options.spread > 1);
            found.is_whole &= is_read;
            let next = position.map(|position: u64| position.wrapping_add(1));
            if line.is_empty() && next.is_some() {
                // The next call begins after this tenant, even if this call delivers nothing.
                self.advance_to(next);
                idle.push(tenant);
            }
            lines.push(line.into_iter().map(move |id| Candidate { id, next }));
        }
        found.jobs = interleave(lines);
        found.idle = self.tenants.active_for(reader, idle, now, self.linger())?;
        Ok(found)
    }

    fn advance_to(&self, next: Option<u64>) {
        if let Some(next) = next {
            self.turn.store(next, Relaxed);
        }
    }

    /// How many jobs of each range are read.
    fn window(&self, n: usize, tenants: usize) -> usize {
        n.div_ceil(tenants.max(1)).saturating_mul(self.options.spread.max(1)).max(1)
    }

    /// Leases up to `n` of the candidates in the transaction `txn`, and returns those that are
    /// still due.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::WorkQueue;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let queue = WorkQueue::<u32>::open(&Schema::open(&store, "app")?, "jobs")?;
    /// store.transact(|txn| queue.enqueue(txn, ("acme", 7)))?;
    /// let candidates = queue.candidates(&store.snapshot()?, 1)?;
    /// let taken = store.transact(|txn| queue.lease(txn, &candidates, 1))?;
    /// assert_eq!(taken[0].job.payload, 7);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`dequeue`](WorkQueue::dequeue).
    pub fn lease(
        &self,
        txn: &mut impl Writer,
        candidates: &Candidates,
        n: usize,
    ) -> Result<Vec<Delivery<J>>> {
        self.lease_counting(txn, candidates, n, n).map(|(leased, _)| leased)
    }

    /// Leases up to `n` of the candidates, and returns them with the number of jobs that became
    /// dead letters. The first `counted` of the leased jobs count an attempt.
    fn lease_counting(
        &self,
        txn: &mut impl Writer,
        candidates: &Candidates,
        n: usize,
        counted: usize,
    ) -> Result<(Vec<Delivery<J>>, usize)> {
        txn.guarded(|txn| {
            let (now, mut leased, mut changed) = (self.now()?, Vec::new(), Vec::new());
            let mut rest = &candidates.jobs[..];
            let payloads = candidates.ids().take(n).map(|id| self.payloads.space().pack(&id));
            self.prefetch(txn, candidates.ids().take(n), None, payloads)?;
            let most = n.max(MOST_BURIED);
            while leased.len() < n && changed.len() < most && !rest.is_empty() {
                let next = (n - leased.len()).min(most - changed.len());
                let (some, later) = rest.split_at(next.min(rest.len()));
                rest = later;
                for (candidate, job, payload) in self.due(txn, some, now)? {
                    let id = candidate.id;
                    let job = self.granted(job, now, leased.len() < counted);
                    if let JobState::Leased { until } = job.state {
                        // A job whose payload cannot be read must not block the jobs after it; the
                        // check reports it.
                        let Some(payload) = payload else { continue };
                        let (token, job) = (job.token, job.clone().with(payload));
                        leased.push(Delivery { id, token, until, job });
                        self.advance_to(candidate.next);
                    }
                    changed.push((id, job));
                }
            }
            if !changed.is_empty() {
                self.jobs.put_many(txn, &changed)?;
            }
            let buried = changed.len() - leased.len();
            Ok((leased, buried))
        })
    }

    /// The candidates that are still due, with their payloads if these can be read.
    fn due<'c>(
        &self,
        reader: &impl Reader,
        some: &'c [Candidate],
        now: u64,
    ) -> Result<Vec<(&'c Candidate, StoredJob, Option<J>)>> {
        let jobs = self.jobs.find_many(reader, some.iter().map(|one| &one.id))?;
        let jobs = some.iter().zip(jobs).filter_map(|(one, job)| Some((one, job.ok()??)));
        let due: Vec<_> = jobs.filter(|(_, job)| job.is_due(now, self.grace())).collect();
        let payloads = self.payloads.find_many(reader, due.iter().map(|(one, _)| &one.id))?;
        let due = due.into_iter().zip(payloads);
        Ok(due.map(|((one, job), payload)| (one, job, payload.ok().flatten())).collect())
    }

    /// The job after its next delivery, or as a dead letter if no attempts are left.
    fn granted(&self, mut job: StoredJob, now: u64, counts: bool) -> StoredJob {
        if job.is_exhausted(self.options.max_attempts) {
            if job.last_error.is_none() {
                job.set_error("the lease of the last attempt ended without an answer");
            }
            let timed_out = matches!(job.state, JobState::Leased { .. });
            job.state = JobState::Dead { since: now, timed_out };
            return job;
        }
        job.state = JobState::Leased { until: now.saturating_add(self.visibility()) };
        // In a batch, only jobs whose work begins count an attempt. Otherwise a job that crashes
        // its consumer would use up the attempts of the others.
        job.attempts += u32::from(counts);
        job.token += 1;
        job
    }

    /// Activates the sleeping tenants whose time has come.
    fn wake<S: Store>(&self, store: &S, candidates: &Candidates) -> Result<()> {
        let (now, due) = (self.now()?, &candidates.due);
        match due.is_empty() {
            true => Ok(()),
            false => store.transact(|txn| txn.guarded(|txn| self.tenants.wake(txn, due, now))),
        }
    }

    /// Puts idle tenants to sleep that have been active for at least the linger time.
    fn settle<S: Store>(&self, store: &S, candidates: &Candidates) -> Result<()> {
        let (now, linger) = (self.now()?, self.linger());
        for tenant in &candidates.idle {
            store.transact(|txn| {
                txn.guarded(|txn| {
                    self.prefetch(txn, [], Some(tenant), None)?;
                    let next = |txn: &S::Transaction<'_>| self.next_of(txn, tenant);
                    self.tenants.settle(txn, tenant, now, linger, next)
                })
            })?;
        }
        Ok(())
    }

    /// The time from which the next job of a tenant can be delivered.
    pub(super) fn next_of(&self, reader: &impl Reader, tenant: &str) -> Result<Option<u64>> {
        let index = self.by_state.at(reader)?;
        let pages = reader.range_many(&due_ranges(index, tenant, u64::MAX, 0), 1)?;
        let mut next = None;
        for entry in pages.into_iter().flat_map(|page| page.entries) {
            let found = Found::<_, JobId, StateParts>::new(index.space(), entry);
            // A damaged entry counts as due: the tenant stays active, and the check reports the
            // entry.
            let at = found.and_then(|found| {
                let (state, _, _, at) = found.owned_parts()?;
                Ok(if state == LEASED { at.saturating_add(self.grace()) } else { at })
            });
            let at = at.unwrap_or(0);
            next = Some(next.map_or(at, |next: u64| next.min(at)));
        }
        Ok(next)
    }
}

/// The number of ranges that can hold due jobs of a tenant.
const RANGES: usize = 5;
/// The states and priorities of these ranges, in the order of delivery.
const KINDS: [(u8, Priority); RANGES] = [
    (LEASED, Priority::Urgent), // Leased jobs are not in the order of priorities.
    (WAITING, Priority::Urgent),
    (WAITING, Priority::High),
    (WAITING, Priority::Normal),
    (WAITING, Priority::Low),
];

/// The ranges of the jobs of a tenant that are due at `now`, in the order of delivery; leased ones
/// are due `grace` after the end of their lease.
pub(super) fn due_ranges(
    index: &Index<JobId, StoredJob, StateParts>,
    tenant: &str,
    now: u64,
    grace: u64,
) -> [KeyRange<'static>; RANGES] {
    KINDS.map(|(state, priority)| {
        let at = |time: u64| (state, tenant, priority.code(), time);
        let last = if state == LEASED { now.saturating_sub(grace) } else { now };
        within(at(0)..=at(last)).key_range(index.space())
    })
}

/// The jobs of one tenant, in the order of its ranges, and in random order within each range if
/// `is_random`. Also returns whether no further jobs are hidden after damaged entries.
fn line<'p, B: std::ops::Deref<Target = [u8]> + 'p>(
    index: &Index<JobId, StoredJob, StateParts>,
    pages: impl Iterator<Item = EntryPage<B>>,
    is_random: bool,
) -> (Vec<JobId>, bool) {
    let (mut line, mut is_cut, mut is_read) = (Vec::new(), false, true);
    for page in pages {
        // Jobs of a lower priority must not come before the rest of a range.
        if is_cut {
            continue;
        }
        let from = line.len();
        for entry in page.entries {
            // A damaged entry must not block the jobs after it; the check reports the entry.
            let found = Found::<_, JobId, StateParts>::new(index.space(), entry);
            line.extend(found.and_then(|found| found.record_key()));
        }
        if is_random {
            fastrand::shuffle(line.get_mut(from..).unwrap_or_default());
        }
        is_cut = page.last.is_some() && line.len() > from;
        is_read &= page.last.is_none() || is_cut;
    }
    (line, is_read)
}

/// Takes one candidate of each line in turn, until all lines are empty.
fn interleave(lines: Vec<impl Iterator<Item = Candidate>>) -> Vec<Candidate> {
    let (mut lines, mut all) = (lines, Vec::new());
    while !lines.is_empty() {
        lines.retain_mut(|line| match line.next() {
            Some(candidate) => {
                all.push(candidate);
                true
            }
            None => false,
        });
    }
    all
}
