//! The threads that form batches: one leads, the others wait.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::BatchedTransaction;
use super::job::{Body, Job, Jobs, Ran, run_only, run_together};
use crate::{Error, Result, Store};

/// The part of the time of a commit for which the next batch may wait for more bodies.
///
/// Sixteen threads that put one record each take turns in two halves without this wait, since those
/// of one batch come back while the other half commits.
const GATHERING: u32 = 2;

/// What a [`Batched`](super::Batched) store has committed together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// Commits of batches of two bodies or more.
    pub batches: u64,
    /// Bodies that these commits contained.
    pub together: u64,
    /// Bodies that ran alone: no other was waiting, or they failed in a batch.
    pub alone: u64,
    /// How often a batch ran again, after a conflict or without a body that had failed.
    pub restarts: u64,
}

/// The threads that use one [`Batched`](super::Batched) store.
pub(crate) struct Group<S: Store> {
    state: Mutex<State<S>>,
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
    /// The bodies that the last batch had, and those that were waiting when it was committed: the
    /// expected size of the next one.
    expected: usize,
    /// The time of the last commit of a batch.
    commit_time: Duration,
    /// The threads that have a transaction of the store.
    owners: Vec<ThreadId>,
}

/// A body that waits, and how to wake its thread.
struct Member<S: Store> {
    job: *mut (dyn Job<S> + 'static),
    turn: Arc<Turn>,
}

// SAFETY: a job is `Send`. The pointer is used by one thread at a time: by the thread that leads
// the batch, until the caller's thread is woken.
#[allow(unsafe_code)]
unsafe impl<S: Store> Send for Member<S> {}

/// What a waiting thread is woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// To lead the next batch, with its own body as the first.
    Lead,
    /// Its body has a result, or must run alone.
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

impl<S: Store> State<S> {
    /// Refuses a thread with a transaction: it would wait for a batch that waits for the thread.
    fn refuse_owner(&self) -> Result<()> {
        match self.owners.contains(&thread::current().id()) {
            true => Err(Error::NestedTransaction),
            false => Ok(()),
        }
    }
}

impl<S: Store> Default for State<S> {
    fn default() -> Self {
        Self {
            is_led: false,
            waiting: VecDeque::new(),
            expected: 0,
            commit_time: Duration::ZERO,
            owners: Vec::new(),
        }
    }
}

impl<S: Store> Default for Group<S> {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self {
            state: Mutex::default(),
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

    /// Notes what a batch did.
    pub(crate) fn count(&self, ran: &Ran) {
        match ran.committed {
            0 => {}
            1 => _ = self.alone.fetch_add(1, Relaxed),
            many => {
                self.batches.fetch_add(1, Relaxed);
                self.together.fetch_add(many as u64, Relaxed);
            }
        }
        self.restarts.fetch_add(ran.restarts as u64, Relaxed);
    }

    /// Notes a body that ran alone.
    pub(crate) fn count_alone(&self) {
        self.alone.fetch_add(1, Relaxed);
    }

    /// Notes that the calling thread has a transaction, until the owner is dropped.
    pub(crate) fn note_owner(&self) -> Owner<'_, S> {
        self.own(&mut lock(&self.state))
    }

    fn own(&self, state: &mut State<S>) -> Owner<'_, S> {
        let thread = thread::current().id();
        state.owners.push(thread);
        Owner { group: self, thread }
    }

    /// Runs `body` in a batch. Returns its result if it was committed, or if the outcome is
    /// unknown; `None` if the body must run alone.
    ///
    /// # Errors
    /// [`Error::NestedTransaction`] if the thread has a transaction of the store.
    pub(super) fn join<T, E, B>(
        &self,
        store: &S,
        body: &mut B,
        is_retryable: fn(&E) -> bool,
    ) -> Result<Option<Result<T, E>>>
    where
        B: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send,
        T: Send,
        E: From<Error> + Send,
    {
        let mut job = Body::new(body, is_retryable);
        let turn = {
            let mut state = lock(&self.state);
            state.refuse_owner()?;
            match std::mem::replace(&mut state.is_led, true) {
                false => None,
                true => Some(self.enter(&mut state, &mut job)),
            }
        };
        if turn.is_none_or(|turn| turn.wait() == Call::Lead) {
            self.lead().run(store, &mut job);
        }
        let result = job.take_result();
        if result.is_none() {
            self.count_alone();
        }
        Ok(result)
    }

    /// Adds a job to the next batch. The caller must wait until it is called.
    #[allow(unsafe_code)]
    fn enter<'j>(&self, state: &mut State<S>, job: &'j mut (dyn Job<S> + 'j)) -> Arc<Turn> {
        let turn = Arc::new(Turn::default());
        // SAFETY: only the lifetime changes. `join` keeps the job until its turn is called, and
        // nothing that can panic is between this and the wait. The thread that calls the turn has
        // removed the member from the queue or the batch, and does not use the job afterwards.
        let job = unsafe {
            std::mem::transmute::<*mut (dyn Job<S> + 'j), *mut (dyn Job<S> + 'static)>(job)
        };
        state.waiting.push_back(Member { job, turn: Arc::clone(&turn) });
        turn
    }

    /// A batch that the calling thread leads.
    fn lead(&self) -> Batch<'_, S> {
        let mut state = lock(&self.state);
        let owner = self.own(&mut state);
        // One of the expected bodies is that of the leader.
        let expected = state.expected.saturating_sub(1).max(state.waiting.len());
        Batch {
            owner,
            members: VecDeque::with_capacity(expected),
            expected,
            until: (expected > 0).then(|| Instant::now() + state.commit_time / GATHERING),
            commit_time: Duration::ZERO,
        }
    }
}

/// The members of a batch beside its leader. Those without a result when it is dropped run alone,
/// also after a panic of the store.
struct Batch<'g, S: Store> {
    owner: Owner<'g, S>,
    members: VecDeque<Member<S>>,
    /// The expected number of members, and until when the leader waits for them.
    expected: usize,
    until: Option<Instant>,
    commit_time: Duration,
}

impl<S: Store> Batch<'_, S> {
    /// Runs `first` and the bodies that arrive in time.
    fn run(mut self, store: &S, first: &mut dyn Job<S>) {
        let group = self.owner.group;
        let Some(until) = self.until else {
            if let Some(time) = run_only(store, first) {
                self.commit_time = time;
                group.count_alone();
            }
            return;
        };
        let mut jobs = Jobs::new(first);
        let ran = run_together(store, &mut jobs, |jobs| self.gather(until, jobs));
        self.commit_time = ran.commit_time;
        group.count(&ran);
        // Those that did not have a turn wait for the next batch.
        let rest = self.members.split_off((ran.settled - 1).min(self.members.len()));
        let mut state = lock(&group.state);
        rest.into_iter().rev().for_each(|member| state.waiting.push_front(member));
    }

    /// Takes the bodies that are waiting, or waits for one if more are expected.
    #[allow(unsafe_code)]
    fn gather<'j>(&mut self, until: Instant, jobs: &mut Jobs<&'j mut (dyn Job<S> + 'j)>)
    where
        S: 'j,
    {
        let group = self.owner.group;
        let mut state = lock(&group.state);
        // Each arrival could notify a condition variable instead. With 64 threads on two cores a
        // transaction then took 2.05 times as long as without threads, and takes 1.50 so.
        while state.waiting.is_empty()
            && self.members.len() < self.expected
            && Instant::now() < until
        {
            drop(state);
            thread::yield_now();
            state = lock(&group.state);
        }
        while !jobs.is_full()
            && let Some(member) = state.waiting.pop_front()
        {
            // SAFETY: the thread of the member waits until its turn is called, which `Drop` does
            // after the last use of the jobs, and each member is in one batch. So the job is alive,
            // and this is its only use.
            jobs.push(unsafe { &mut *member.job });
            self.members.push_back(member);
        }
    }
}

impl<S: Store> Drop for Batch<'_, S> {
    fn drop(&mut self) {
        let next = {
            let mut state = lock(&self.owner.group.state);
            state.expected = 1 + self.members.len() + state.waiting.len();
            state.commit_time = self.commit_time;
            let next = state.waiting.pop_front();
            state.is_led = next.is_some();
            next
        };
        // First the next leader: it has work to do.
        if let Some(next) = next {
            next.turn.call(Call::Lead);
        }
        self.members.drain(..).for_each(|member| member.turn.call(Call::Settled));
    }
}

/// Names the thread of a transaction until it ends.
pub(crate) struct Owner<'g, S: Store> {
    group: &'g Group<S>,
    thread: ThreadId,
}

impl<S: Store> Drop for Owner<'_, S> {
    fn drop(&mut self) {
        let mut state = lock(&self.group.state);
        if let Some(at) = state.owners.iter().position(|owner| *owner == self.thread) {
            state.owners.swap_remove(at);
        }
    }
}
