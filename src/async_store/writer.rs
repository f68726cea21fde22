//! The thread that runs the transactions of all tasks.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::runtime::Handle;

use super::inside::Inside;
use super::submission::Submission;
use super::{Shared, Writers};
use crate::batched::job::{Jobs, run_together};
use crate::{Batched, Store};

type Boxed<S> = Box<dyn Submission<S>>;

/// The waiting transactions, and whether a thread runs them.
pub(super) struct Queue<S: Store>(Mutex<Waiting<S>>);

struct Waiting<S: Store> {
    submissions: VecDeque<Boxed<S>>,
    is_writing: bool,
}

impl<S: Store> Default for Queue<S> {
    fn default() -> Self {
        Self(Mutex::new(Waiting { submissions: VecDeque::new(), is_writing: false }))
    }
}

impl<S: Store> fmt::Debug for Queue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.lock().submissions.len()).finish()
    }
}

impl<S: Store> Queue<S> {
    // Every change is one step that cannot panic, so a poisoned lock can be used.
    fn lock(&self) -> MutexGuard<'_, Waiting<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a transaction. Returns whether the caller must start a thread.
    pub(super) fn push(&self, submission: Boxed<S>) -> bool {
        let mut waiting = self.lock();
        waiting.submissions.push_back(submission);
        !std::mem::replace(&mut waiting.is_writing, true)
    }

    /// Takes all waiting transactions with one lock, because a task that submits a transaction
    /// waits for the lock.
    fn take(&self) -> VecDeque<Boxed<S>> {
        std::mem::take(&mut self.lock().submissions)
    }

    /// Like [`take`](Queue::take). If no transaction waits, records that no thread runs
    /// transactions, so the calling thread must end.
    fn take_or_end(&self) -> VecDeque<Boxed<S>> {
        let mut waiting = self.lock();
        let all = std::mem::take(&mut waiting.submissions);
        waiting.is_writing = !all.is_empty();
        all
    }
}

/// The work of the thread, which lasts until no transaction waits.
pub(super) struct Writing<S: Store> {
    shared: Arc<Shared<S>>,
    runtime: Handle,
    /// The transactions that were taken from the queue and are not in a batch yet.
    taken: VecDeque<Boxed<S>>,
    is_over: bool,
}

impl<S: Store> Writing<S> {
    pub(super) fn new(shared: Arc<Shared<S>>, runtime: Handle) -> Self {
        Self { shared, runtime, taken: VecDeque::new(), is_over: false }
    }

    pub(super) fn start(self) {
        let runtime = self.runtime.clone();
        runtime.spawn_blocking(move || self.run());
    }

    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let Writers::Batched(queue) = &shared.writers else { return };
        let _inside = Inside::enter(&shared);
        loop {
            if self.taken.is_empty() {
                self.taken = queue.take_or_end();
            }
            let Some(first) = self.taken.pop_front() else { break };
            self.run_batch(&shared.store, queue, first);
        }
        self.is_over = true;
    }

    fn run_batch(&mut self, store: &Batched<S>, queue: &Queue<S>, first: Boxed<S>) {
        let mut jobs = Jobs::new(first, store.group().most());
        let taken = &mut self.taken;
        let ran = run_together(store, &mut jobs, |jobs| {
            if taken.is_empty() {
                *taken = queue.take();
            }
            while !jobs.is_full()
                && let Some(next) = taken.pop_front()
            {
                jobs.push(next);
            }
        });
        store.group().note(&ran, jobs.len());
        let mut settled: Vec<_> = jobs.into_jobs().collect();
        for late in settled.split_off(ran.settled).into_iter().rev() {
            self.taken.push_front(late);
        }
        for mut submission in settled {
            if submission.answer(store) {
                // Retries pause, and this thread has other work to do meanwhile.
                let shared = Arc::clone(&self.shared);
                self.runtime.spawn_blocking(move || {
                    let _inside = Inside::enter(&shared);
                    submission.run_alone(&shared.store);
                });
            }
        }
    }
}

impl<S: Store> Drop for Writing<S> {
    /// Handles an early end of the thread: the store panicked, or the runtime was shut down before
    /// the thread began.
    fn drop(&mut self) {
        let Writers::Batched(queue) = &self.shared.writers else { return };
        if self.is_over {
            return;
        }
        if thread::panicking() {
            let mut next = Self::new(Arc::clone(&self.shared), self.runtime.clone());
            next.taken = std::mem::take(&mut self.taken);
            return next.start();
        }
        let mut waiting = queue.lock();
        waiting.is_writing = false;
        // Each task receives an error, because its reply channel is dropped.
        let submissions = std::mem::take(&mut waiting.submissions);
        drop(waiting);
        drop(submissions);
    }
}
