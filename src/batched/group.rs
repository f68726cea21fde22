//! The threads that form batches: one leads, the others wait.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::job::{Body, Job, Jobs, Ran, run_together};
use super::{Batched, BatchedTransaction, MAX_BATCH};
use crate::backend::Process;
use crate::retry::{Attempt, Retries};
use crate::{Error, Result, Store};

/// A batch waits for more bodies for at most the time of a commit, divided by this number.
///
/// Without this wait, sixteen threads that put one record each form batches of eight, since the
/// threads of one batch return while the other eight commit. With a wait of half a commit the
/// batches have 15 bodies, with a quarter 12.
const GATHERING: u64 = 2;

/// The longest wait for more bodies. The transaction of the batch has already begun, so all other
/// writers wait too. Also, after commits of a second, the next wait must not last half a second.
const MAX_GATHERING: Duration = Duration::from_millis(5);

/// After this time a batch takes no more bodies, so that slow bodies do not add up. Without this
/// limit, the first of a thousand bodies of 10 ms would wait ten seconds for its commit.
const MAX_RUNNING: Duration = Duration::from_millis(20);

/// The number of batches of a [`Batched`] store, and of the bodies in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchCounts {
    /// Commits of batches of two bodies or more.
    pub batches: u64,
    /// Bodies that these commits contained.
    pub together: u64,
    /// Calls whose bodies ran alone, because no other body was waiting, or because their batch
    /// failed or left them out.
    pub alone: u64,
    /// How often a batch ran again: after a conflict, to leave out a body that had failed, or with
    /// fewer bodies because the transaction was too large.
    pub restarts: u64,
}

/// The threads that use one [`Batched`] store.
pub(crate) struct Group<S: Store> {
    state: Mutex<State<S>>,
    /// The process that made the group. In a child of `fork` the leading thread does not exist.
    process: Process,
    /// The largest number of bodies that the store accepts in a batch, as far as is known.
    most: AtomicUsize,
    /// The time of the last commit in nanoseconds, and the shorter of the last two commit times.
    last_commit: AtomicU64,
    commit_time: AtomicU64,
    batches: AtomicU64,
    together: AtomicU64,
    alone: AtomicU64,
    restarts: AtomicU64,
}

struct State<S: Store> {
    /// Whether a thread runs bodies, or was woken to do so.
    is_led: bool,
    /// The bodies of the next batch, in order of arrival.
    waiting: VecDeque<Member<S>>,
    /// The number of bodies of the last batch, plus those that were waiting when it was committed.
    /// This is the expected size of the next batch.
    expected: usize,
    /// The threads that have a transaction of the store.
    owners: Vec<ThreadId>,
}

/// A waiting body, and the means to wake its thread.
struct Member<S: Store> {
    job: *mut (dyn Job<S> + 'static),
    turn: Arc<Turn>,
}

// SAFETY: a job is `Send`. Only one thread at a time uses the pointer: the thread that leads the
// batch, until it wakes the caller's thread.
#[allow(unsafe_code)]
unsafe impl<S: Store> Send for Member<S> {}

/// Why a waiting thread wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// To lead the next batch, with its own body as the first.
    Lead,
    /// The body of the thread has a verdict.
    Settled,
}

#[derive(Debug, Default)]
struct Turn {
    call: Mutex<Option<Call>>,
    called: Condvar,
}

impl Turn {
    fn call(&self, call: Call) {
        *lock(&self.call) = Some(call);
        self.called.notify_one();
    }

    fn wait(&self) -> Call {
        let mut call = lock(&self.call);
        loop {
            match call.take() {
                Some(call) => return call,
                None => call = self.called.wait(call).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

// Every change of a state is one step that cannot panic, so a poisoned lock can be used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Store> Default for Group<S> {
    fn default() -> Self {
        let state =
            State { is_led: false, waiting: VecDeque::new(), expected: 0, owners: Vec::new() };
        let zero = AtomicU64::default;
        Self {
            state: Mutex::new(state),
            process: Process::current(),
            most: AtomicUsize::new(MAX_BATCH),
            last_commit: zero(),
            commit_time: zero(),
            batches: zero(),
            together: zero(),
            alone: zero(),
            restarts: zero(),
        }
    }
}

impl<S: Store> fmt::Debug for Group<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.counts()).finish()
    }
}

impl<S: Store> Group<S> {
    pub(super) fn counts(&self) -> BatchCounts {
        let Self { batches, together, alone, restarts, .. } = self;
        BatchCounts {
            batches: batches.load(Relaxed),
            together: together.load(Relaxed),
            alone: alone.load(Relaxed),
            restarts: restarts.load(Relaxed),
        }
    }

    pub(super) fn waiting(&self) -> usize {
        lock(&self.state).waiting.len()
    }

    /// The largest number of bodies that the store accepts in a batch.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    /// Counts the outcome of a batch of `jobs` jobs, and adjusts the largest size of a batch.
    pub(crate) fn note(&self, ran: &Ran, jobs: usize) {
        match ran.committed {
            0 => {}
            1 => self.count_alone(),
            many => {
                self.batches.fetch_add(1, Relaxed);
                self.together.fetch_add(many as u64, Relaxed);
            }
        }
        self.restarts.fetch_add(ran.restarts as u64, Relaxed);
        if ran.is_too_large {
            self.most.store(ran.settled.max(1), Relaxed);
        } else if ran.committed > 0 && jobs >= self.most() {
            self.most.store(self.most().saturating_mul(2).min(MAX_BATCH), Relaxed);
        }
    }

    /// Counts a call whose body ran alone.
    pub(crate) fn count_alone(&self) {
        self.alone.fetch_add(1, Relaxed);
    }

    /// Records that the calling thread has a transaction, until the [`Owner`] is dropped.
    pub(super) fn note_owner(&self) -> Owner<'_, S> {
        let thread = thread::current().id();
        lock(&self.state).owners.push(thread);
        Owner { group: self, thread, _of_this_thread: PhantomData }
    }

    /// Runs `body` in a batch, or alone.
    pub(super) fn transact<T, E, B>(
        &self,
        store: &Batched<S>,
        mut body: B,
        retries: Retries<E>,
    ) -> Result<T, E>
    where
        B: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send,
        T: Send,
        E: From<Error> + Send,
    {
        if self.process != Process::current() {
            // This is a child of `fork`, which has no thread of the batch. The inner store returns
            // its error, or works in the child.
            return retries.run(store, body);
        }
        let mut job = Body::new(&mut body);
        let turn = self.enter(&mut job)?;
        if turn.is_none_or(|turn| turn.wait() == Call::Lead) {
            let batch = self.lead();
            if batch.expected == 0 {
                let first = retries.first(store, job.body());
                // Other threads may write during the pauses of the retries.
                drop(batch);
                self.count_alone();
                return match first {
                    Attempt::Done(result) => result,
                    Attempt::InVain(failed) => retries.resume(store, body, failed),
                };
            }
            batch.run(store, &mut job);
        }
        job.take_result().unwrap_or_else(|| {
            self.count_alone();
            retries.run(store, body)
        })
    }

    /// Adds a job to the next batch. Returns the turn for which the caller must wait, or `None` if
    /// the caller must lead.
    ///
    /// # Errors
    /// [`Error::NestedTransaction`] if the thread has a transaction of the store: the thread would
    /// wait for a batch that waits for the end of that transaction.
    #[allow(unsafe_code)]
    fn enter<'j>(&self, job: &'j mut (dyn Job<S> + 'j)) -> Result<Option<Arc<Turn>>> {
        let mut state = lock(&self.state);
        if state.owners.contains(&thread::current().id()) {
            return Err(Error::NestedTransaction);
        }
        if !std::mem::replace(&mut state.is_led, true) {
            return Ok(None);
        }
        let turn = Arc::new(Turn::default());
        // SAFETY: only the lifetime changes. `transact` keeps the job alive until its turn is
        // called. No code between this line and the wait can panic. The thread that calls the turn
        // has removed the member from the queue or the batch, and does not use the job afterwards.
        let job = unsafe {
            std::mem::transmute::<*mut (dyn Job<S> + 'j), *mut (dyn Job<S> + 'static)>(job)
        };
        state.waiting.push_back(Member { job, turn: Arc::clone(&turn) });
        Ok(Some(turn))
    }

    /// Begins a batch that the calling thread leads.
    fn lead(&self) -> Batch<'_, S> {
        let state = lock(&self.state);
        // One of the expected bodies is the leader's own.
        let expected = state.expected.saturating_sub(1).max(state.waiting.len());
        let members = VecDeque::with_capacity(expected.min(MAX_BATCH));
        Batch { group: self, members, expected, began: None }
    }
}

/// The members of a batch besides its leader. Members without a verdict when the batch is dropped
/// run alone, for example after a panic of the store before the commit.
struct Batch<'g, S: Store> {
    group: &'g Group<S>,
    members: VecDeque<Member<S>>,
    /// The expected number of members.
    expected: usize,
    /// The time when the batch first took members. Its transaction had begun by then, perhaps after
    /// a long wait.
    began: Option<Instant>,
}

impl<S: Store> Batch<'_, S> {
    /// Runs `first` and the bodies that arrive in time.
    fn run(mut self, store: &Batched<S>, first: &mut dyn Job<S>) {
        let group = self.group;
        let commit_time = group.commit_time.load(Relaxed);
        let wait = Duration::from_nanos(commit_time / GATHERING).min(MAX_GATHERING);
        let mut jobs = Jobs::new(first, group.most());
        let ran = run_together(store, &mut jobs, |jobs| self.gather(wait, jobs));
        group.note(&ran, jobs.len());
        if ran.committed > 1 {
            crate::trace::batch(ran.committed, ran.restarts);
        }
        // Members without a verdict wait for the next batch.
        let rest = self.members.split_off((ran.settled - 1).min(self.members.len()));
        let mut state = lock(&group.state);
        rest.into_iter().rev().for_each(|member| state.waiting.push_front(member));
    }

    /// Takes the bodies that are waiting. If no body is waiting but more bodies are expected, waits
    /// for a body first.
    #[allow(unsafe_code)]
    fn gather<'j>(&mut self, wait: Duration, jobs: &mut Jobs<&'j mut (dyn Job<S> + 'j)>)
    where
        S: 'j,
    {
        let began = *self.began.get_or_insert_with(Instant::now);
        if began.elapsed() > MAX_RUNNING {
            return;
        }
        let mut state = lock(&self.group.state);
        // Each arrival could notify a condition variable instead. With 64 threads on two cores, a
        // transaction then took 2.05 times as long as without threads; with this loop it takes 1.50
        // times as long.
        while state.waiting.is_empty()
            && self.members.len() < self.expected
            && began.elapsed() < wait
        {
            drop(state);
            thread::yield_now();
            state = lock(&self.group.state);
        }
        while !jobs.is_full()
            && let Some(member) = state.waiting.pop_front()
        {
            let job = member.job;
            self.members.push_back(member);
            // SAFETY: the thread of the member owns the job, and waits until `Drop` calls its turn,
            // after the last use of the jobs. Each member is in only one batch. So the pointer is
            // valid, and no other reference to the job exists.
            jobs.push(unsafe { &mut *job });
        }
    }
}

impl<S: Store> Drop for Batch<'_, S> {
    fn drop(&mut self) {
        let next = {
            let mut state = lock(&self.group.state);
            state.expected = 1 + self.members.len() + state.waiting.len();
            let next = state.waiting.pop_front();
            state.is_led = next.is_some();
            next
        };
        // Wakes the next leader first, since the other threads only return.
        if let Some(next) = next {
            next.turn.call(Call::Lead);
        }
        self.members.drain(..).for_each(|member| member.turn.call(Call::Settled));
    }
}

/// Records the thread of a transaction until the transaction ends. It is not `Send`: after a move,
/// calls from the wrong thread would be refused.
pub(super) struct Owner<'g, S: Store> {
    group: &'g Group<S>,
    thread: ThreadId,
    _of_this_thread: PhantomData<MutexGuard<'g, ()>>,
}

impl<S: Store> Owner<'_, S> {
    /// Records the time that a commit took.
    pub(super) fn note_commit(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let before = self.group.last_commit.swap(nanos, Relaxed);
        self.group.commit_time.store(nanos.min(before), Relaxed);
    }
}

impl<S: Store> Drop for Owner<'_, S> {
    fn drop(&mut self) {
        let mut state = lock(&self.group.state);
        if let Some(at) = state.owners.iter().position(|owner| *owner == self.thread) {
            state.owners.swap_remove(at);
        }
    }
}
