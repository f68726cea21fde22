//! A transaction that a task waits for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use tokio::sync::oneshot;

use crate::batched::job::{Body, Job, run_only};
use crate::{Batched, BatchedTransaction, Error, Result, Store};

/// Runs a body alone, as often as the retry policy allows, until the task is gone.
pub(super) type Alone<S, F, T, E> = fn(&Batched<S>, &mut F, &dyn Fn() -> bool) -> Result<T, E>;

/// What the task receives: the result, or the panic of the body.
type Reply<T, E> = oneshot::Sender<thread::Result<Result<T, E>>>;

pub(super) struct Submitted<S: Store, F, T, E> {
    body: Body<F, T, E>,
    alone: Alone<S, F, T, E>,
    reply: Option<Reply<T, E>>,
}

/// A [`Submitted`] transaction of any type.
pub(super) trait Submission<S: Store>: Job<S> {
    /// Sends the result, if there is one, or runs alone once. Returns whether it must run again.
    fn settle(&mut self, store: &Batched<S>) -> bool;

    /// Runs alone until it is committed or has failed, and sends the result.
    fn run_alone(&mut self, store: &Batched<S>);
}

impl<S: Store, F, T, E> Submitted<S, F, T, E> {
    pub(super) fn new(body: F, is_retryable: fn(&E) -> bool, alone: Alone<S, F, T, E>) -> Self {
        Self { body: Body::new(body, is_retryable), alone, reply: None }
    }

    pub(super) fn reply_to(&mut self, reply: Reply<T, E>) {
        self.reply = Some(reply);
    }

    /// Whether the task has dropped its future, or has its answer.
    fn is_settled(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn send(&mut self, result: thread::Result<Result<T, E>>) {
        // The task may be gone.
        let _ = self.reply.take().map(|reply| reply.send(result));
    }
}

impl<S, F, T, E> Job<S> for Submitted<S, F, T, E>
where
    S: Store,
    F: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool {
        !self.is_settled() && self.body.run(txn)
    }

    fn run_only(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool {
        !self.is_settled() && self.body.run_only(txn)
    }

    fn refuse(&mut self, error: Error) {
        Job::<S>::refuse(&mut self.body, error);
    }

    fn forget(&mut self) {
        Job::<S>::forget(&mut self.body);
    }
}

impl<S, F, T, E> Submission<S> for Submitted<S, F, T, E>
where
    S: Store,
    F: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn settle(&mut self, store: &Batched<S>) -> bool {
        if let Some(result) = self.body.take_result() {
            self.send(Ok(result));
        } else if !self.is_settled() {
            store.group().count_alone();
            match catch_unwind(AssertUnwindSafe(|| run_only(store.inner(), self))) {
                Ok(_) => match self.body.take_result() {
                    Some(result) => self.send(Ok(result)),
                    None => return true,
                },
                Err(panic) => self.send(Err(panic)),
            }
        }
        false
    }

    fn run_alone(&mut self, store: &Batched<S>) {
        if self.is_settled() {
            return;
        }
        let Self { body, alone, reply } = self;
        let is_cancelled = || reply.as_ref().is_none_or(oneshot::Sender::is_closed);
        let run = || alone(store, body.body(), &is_cancelled);
        let result = catch_unwind(AssertUnwindSafe(run));
        self.send(result);
    }
}
