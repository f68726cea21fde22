//! Random histories of one queue, compared with the model after each step.

use std::time::Duration;

use fastrand::Rng;
use keyloom::{AnyStore, Fault, Faulty, Store};
use keyloom_locking::queue::{
    Delivery, Enqueued, Failed, Job, JobId, JobState, NewJob, Priority, QueueOptions, Repeat,
};
use keyloom_locking::{ManualClock, WorkQueue};
use keyloom_testing::ids::text;
use keyloom_testing::laws::clear;

use super::model::{Model, attempts, class};
use super::{START, VISIBILITY, assert_sound, open_with, options};

/// Tenant names that share prefixes and suffixes with each other and with the keys.
const TENANTS: [&str; 4] = ["", "a", "a\0", "\0a"];
const WINDOW_MS: u64 = 300_000;

struct History<'s> {
    rng: Rng,
    store: Faulty<AnyStore>,
    real: &'s AnyStore,
    queue: WorkQueue<u32>,
    clock: ManualClock,
    model: Model,
    spread: usize,
    deliveries: Vec<Delivery<u32>>,
    next: u32,
}

impl<'s> History<'s> {
    fn new(real: &'s AnyStore, seed: u64) -> Self {
        clear(real);
        fastrand::seed(seed);
        let mut rng = Rng::with_seed(seed);
        let clock = ManualClock::at(START);
        let spread = if rng.bool() { 1 } else { 16 };
        let linger = Duration::from_millis(if rng.bool() { 0 } else { 1_000 });
        let queue = open_with(real, QueueOptions { spread, linger, ..options(&clock) });
        let model = Model {
            now: START,
            jobs: Default::default(),
            done: Default::default(),
            max_attempts: 3,
            visibility: VISIBILITY.as_millis() as u64,
        };
        let store = Faulty::new(real.clone());
        Self { rng, store, real, queue, clock, model, spread, deliveries: Vec::new(), next: 0 }
    }

    fn step(&mut self) {
        match self.rng.u8(..20) {
            0..5 => self.enqueue(),
            5..9 => self.dequeue(),
            9..12 => self.answer(Self::complete),
            12..14 => self.answer(Self::fail),
            14 => self.answer(Self::extend),
            15 => self.answer(Self::release),
            16 => self.answer(Self::bury),
            17 => self.pick_up(),
            18 => self.advance(),
            _ => drop(self.queue.sweep(&self.store).unwrap()),
        }
    }

    /// Runs a transaction that may conflict or fail. Returns `None` if it failed without effect.
    fn transact<T>(
        &mut self,
        body: impl Fn(&WorkQueue<u32>, &mut Txn<'_>) -> keyloom::Result<T>,
    ) -> Option<T> {
        let fault = if self.rng.bool() { Fault::Error } else { Fault::Conflict };
        if self.rng.u8(..4) == 0 {
            self.store.fail_at(self.rng.u64(..12), fault);
        }
        let queue = self.queue.clone();
        let outcome = self.store.transact(|txn| body(&queue, &mut keyloom::DynWriter::new(txn)));
        self.store.clear_fault();
        match outcome {
            Ok(done) => Some(done),
            Err(error) if error.to_string().contains("made to fail") => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn enqueue(&mut self) {
        let tenant = TENANTS[self.rng.usize(..4)];
        let priority = Priority::ALL[self.rng.usize(..4)];
        let delay = if self.rng.bool() { 0 } else { self.rng.u64(..60_000) };
        let key = (self.rng.u8(..3) == 0).then(|| text(self.rng.usize(..3)));
        let every = (self.rng.u8(..4) == 0).then(|| self.rng.u64(1..90_000));
        let max_attempts = (self.rng.u8(..3) == 0).then(|| self.rng.u32(..5));
        let mut job = NewJob::new(tenant, self.next).priority(priority);
        if let Some(every) = every {
            job = job.repeat_every(Duration::from_millis(every));
        }
        if let Some(attempts) = max_attempts {
            job = job.max_attempts(attempts);
        }
        job = job.delay(Duration::from_millis(delay));
        if let Some(key) = &key {
            job = job.key(key.as_str());
        }
        let Some(enqueued) = self.transact(|queue, txn| queue.enqueue(txn, job.clone())) else {
            return;
        };
        let known = key.as_ref().and_then(|key| self.model.known(tenant, key));
        match (enqueued, known) {
            (Enqueued::Existing(id), Some(known)) => assert_eq!(id, known),
            (Enqueued::New(id), None) => {
                let job = Job {
                    tenant: tenant.into(),
                    payload: self.next,
                    priority,
                    state: JobState::Waiting { from: self.model.now + delay },
                    attempts: 0,
                    token: 0,
                    enqueued_at: self.model.now,
                    key,
                    last_error: None,
                    max_attempts,
                    repeat: every.map(|every| Repeat { every, due: self.model.now + delay }),
                };
                assert!(self.model.jobs.insert(id, job).is_none());
                self.next += 1;
            }
            other => panic!("{other:?}"),
        }
    }

    fn dequeue(&mut self) {
        let n = self.rng.usize(1..6);
        let delivered = self.queue.dequeue(&self.store, n).unwrap();
        assert!(delivered.len() <= n);
        let is_any = self.model.jobs.values().any(|job| self.model.can_be_delivered(job));
        assert_eq!(!delivered.is_empty(), is_any, "{:?}", self.model);
        TENANTS.iter().for_each(|tenant| self.check_order(tenant, &delivered));
        for delivery in &delivered {
            let until = self.model.now + self.model.visibility;
            let job = self.model.jobs.get_mut(&delivery.id).unwrap();
            (job.state, job.attempts) = (JobState::Leased { until }, job.attempts + 1);
            job.token += 1;
            assert_eq!((&delivery.job, delivery.token, delivery.until), (&*job, job.token, until));
        }
        self.deliveries.extend(delivered);
        self.bury_visited();
    }

    /// The delivered jobs of a tenant are its first jobs. With a spread, they are the first jobs of
    /// their classes.
    fn check_order(&self, tenant: &str, delivered: &[Delivery<u32>]) {
        let is_whole = |id: &JobId| self.model.can_be_delivered(&self.model.jobs[id]);
        let line: Vec<JobId> = self.model.line(tenant).into_iter().filter(is_whole).collect();
        let of = delivered.iter().filter(|one| one.job.tenant == tenant);
        let ids: Vec<JobId> = of.map(|one| one.id).collect();
        assert!(ids.iter().all(|id| line.contains(id)), "{ids:?} of {line:?}");
        if self.spread == 1 {
            assert_eq!(ids, line[..ids.len()]);
        }
        let classes = |ids: &[JobId]| -> Vec<u8> {
            ids.iter().map(|id| class(&self.model.jobs[id])).collect()
        };
        assert_eq!(classes(&ids), classes(&line[..ids.len()]));
    }

    /// Jobs become dead letters when a delivery visits them after their last attempt.
    fn bury_visited(&mut self) {
        let snapshot = self.real.snapshot().unwrap();
        let now = self.model.now;
        let default = self.model.max_attempts;
        for (id, job) in &mut self.model.jobs {
            let JobState::Leased { until } = job.state else { continue };
            if job.attempts < attempts(job, default) || until > now {
                continue;
            }
            let stored = self.queue.get(&snapshot, *id).unwrap().unwrap();
            if stored.state != job.state {
                job.state = JobState::Dead { since: now, timed_out: true };
                job.last_error = job.last_error.take().or(stored.last_error.clone());
            }
        }
    }

    /// Answers an earlier delivery, and expects an error if it is stale.
    fn answer(&mut self, answer: fn(&mut Self, &Delivery<u32>) -> bool) {
        if self.deliveries.is_empty() {
            return;
        }
        let at = self.rng.usize(..self.deliveries.len());
        let delivery = self.deliveries[at].clone();
        if self.model.is_held(&delivery) {
            answer(self, &delivery);
            return;
        }
        self.store.clear_fault();
        let error = self.store.transact(|txn| self.queue.complete(txn, &delivery)).unwrap_err();
        assert!(error.to_string().contains("is stale"), "{error}");
        self.deliveries.swap_remove(at);
    }

    fn complete(&mut self, delivery: &Delivery<u32>) -> bool {
        let done = self.transact(|queue, txn| queue.complete(txn, delivery)).is_some();
        if done {
            let now = self.model.now;
            let job = self.model.jobs.get_mut(&delivery.id).unwrap();
            if let Some(repeat) = &mut job.repeat {
                while repeat.due <= now {
                    repeat.due += repeat.every;
                }
                job.state = JobState::Waiting { from: repeat.due };
                (job.attempts, job.last_error) = (0, None);
                return true;
            }
            let job = self.model.jobs.remove(&delivery.id).unwrap();
            if let Some(key) = job.key {
                let until = self.model.now + WINDOW_MS;
                self.model.done.insert((job.tenant, key), (delivery.id, until));
            }
        }
        done
    }

    fn fail(&mut self, delivery: &Delivery<u32>) -> bool {
        let failed = self.transact(|queue, txn| queue.fail(txn, delivery, "no"));
        let now = self.model.now;
        let most = attempts(&self.model.jobs[&delivery.id], self.model.max_attempts);
        let job = self.model.jobs.get_mut(&delivery.id).unwrap();
        match failed {
            None => return false,
            Some(Failed::Dead) => {
                assert!(job.attempts >= most);
                job.state = JobState::Dead { since: now, timed_out: false };
            }
            Some(Failed::RetryAt(from)) => {
                let bound = 2_000 << (job.attempts - 1);
                assert!(job.attempts < most && (bound / 2..=bound).contains(&(from - now)));
                job.state = JobState::Waiting { from };
            }
        }
        job.last_error = Some("no".into());
        true
    }

    fn extend(&mut self, delivery: &Delivery<u32>) -> bool {
        let by = self.rng.u64(..60_000);
        let extended =
            self.transact(|queue, txn| queue.extend(txn, delivery, Duration::from_millis(by)));
        let Some(until) = extended else { return false };
        assert_eq!(until, self.model.now + by);
        self.model.jobs.get_mut(&delivery.id).unwrap().state = JobState::Leased { until };
        true
    }

    fn release(&mut self, delivery: &Delivery<u32>) -> bool {
        let done = self.transact(|queue, txn| queue.release(txn, delivery)).is_some();
        if done {
            let job = self.model.jobs.get_mut(&delivery.id).unwrap();
            job.state = JobState::Waiting { from: self.model.now };
            job.attempts -= 1;
        }
        done
    }

    fn bury(&mut self, delivery: &Delivery<u32>) -> bool {
        let done = self.transact(|queue, txn| queue.bury(txn, delivery, "bad")).is_some();
        if done {
            let job = self.model.jobs.get_mut(&delivery.id).unwrap();
            job.state = JobState::Dead { since: self.model.now, timed_out: false };
            job.last_error = Some("bad".into());
        }
        done
    }

    /// Requeues a dead letter, or deletes a job.
    fn pick_up(&mut self) {
        let is_dead = |job: &Job<u32>| matches!(job.state, JobState::Dead { .. });
        let jobs = &self.model.jobs;
        let dead: Vec<JobId> =
            jobs.iter().filter(|(_, job)| is_dead(job)).map(|(id, _)| *id).collect();
        if let Some(id) = self.rng.choice(&dead).copied() {
            if self.transact(|queue, txn| queue.requeue(txn, id)).is_some() {
                let job = self.model.jobs.get_mut(&id).unwrap();
                (job.state, job.attempts) = (JobState::Waiting { from: self.model.now }, 0);
            }
            return;
        }
        let all: Vec<JobId> = self.model.jobs.keys().copied().collect();
        if let Some(id) = self.rng.choice(&all).copied()
            && self.transact(|queue, txn| queue.delete(txn, id)) == Some(true)
        {
            self.model.jobs.remove(&id);
        }
    }

    fn advance(&mut self) {
        let by = self.rng.u64(..40_000);
        self.clock.advance(Duration::from_millis(by));
        self.model.now += by;
    }

    fn compare(&self) {
        let snapshot = self.real.snapshot().unwrap();
        for (id, job) in &self.model.jobs {
            assert_eq!(self.queue.get(&snapshot, *id).unwrap().as_ref(), Some(job));
        }
        assert_eq!(self.queue.counts(&snapshot, None).unwrap(), self.model.counts());
        for tenant in TENANTS {
            let peeked = self.queue.peek(&snapshot, tenant, 100).unwrap();
            let peeked: Vec<_> = peeked.into_iter().map(|(id, _)| id).collect();
            assert_eq!(peeked, self.model.line(tenant));
        }
        assert_sound(self.real, &self.queue);
    }
}

type Txn<'t> = keyloom::DynWriter<'t>;

pub fn random_histories_agree_with_the_model(store: &AnyStore) {
    let histories = std::env::var("KEYLOOM_HISTORIES").map_or(25, |n| n.parse().unwrap());
    let (mut delivered, mut buried) = (0, 0);
    for seed in 0..histories {
        let mut history = History::new(store, seed);
        for step in 0..80 {
            history.step();
            if step % 4 == 0 {
                history.compare();
            }
        }
        history.compare();
        delivered += history.model.jobs.values().map(|job| job.token).sum::<u64>();
        buried += history.model.counts().dead;
    }
    assert!(delivered > 20 && buried > 5, "{delivered} {buried}");
}
