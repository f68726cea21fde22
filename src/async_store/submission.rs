//! A transaction that a task waits for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use tokio::sync::oneshot;

use crate::batched::job::{Body, Job, Verdict};
use crate::retry::{Attempt, Failed, Retries};
use crate::{Batched, BatchedTransaction, Error, Result, Store};

use super::stopped;

/// The message to the task: the result, or the panic of the body.
type Reply<T, E> = oneshot::Sender<thread::Result<Result<T, E>>>;

pub(super) struct Submitted<F, T, E> {
    body: Body<F, T, E>,
    retries: Retries<E>,
    /// The failed first attempt of the transaction outside a batch, if another attempt may succeed.
    failed: Option<Failed<E>>,
    reply: Option<Reply<T, E>>,
}

/// A [`Submitted`] transaction of any type.
pub(super) trait Submission<S: Store>: Job<S> {
    /// Sends the result if there is one; otherwise runs the transaction alone once. Returns whether
    /// the transaction must run again.
    fn answer(&mut self, store: &Batched<S>) -> bool;

    /// Runs the transaction alone until it is committed or has failed, and sends the result.
    fn run_alone(&mut self, store: &Batched<S>);
}

impl<F, T, E: From<Error>> Submitted<F, T, E> {
    pub(super) fn new(body: F, retries: Retries<E>, reply: Reply<T, E>) -> Self {
        Self { body: Body::new(body), retries, failed: None, reply: Some(reply) }
    }

    /// Whether the task has received its result or has dropped its future.
    fn is_answered(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn send(&mut self, result: thread::Result<Result<T, E>>) {
        // The task may have dropped its future.
        let _ = self.reply.take().map(|reply| reply.send(result));
    }
}

impl<S, F, T, E> Job<S> for Submitted<F, T, E>
where
    S: Store,
    F: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, txn: &mut BatchedTransaction<'_, S>) -> bool {
        !self.is_answered() && self.body.run(txn)
    }

    fn settle(&mut self, verdict: Verdict) {
        Job::<S>::settle(&mut self.body, verdict);
    }
}

impl<S, F, T, E> Submission<S> for Submitted<F, T, E>
where
    S: Store,
    F: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn answer(&mut self, store: &Batched<S>) -> bool {
        if let Some(result) = self.body.take_result() {
            self.send(Ok(result));
        } else if !self.is_answered() {
            store.group().count_alone();
            let (retries, body) = (self.retries, self.body.body());
            match catch_unwind(AssertUnwindSafe(|| retries.first(store, body))) {
                Ok(Attempt::Done(result)) => self.send(Ok(result)),
                Ok(Attempt::InVain(failed)) => {
                    self.failed = Some(failed);
                    return true;
                }
                Err(panic) => self.send(Err(panic)),
            }
        }
        false
    }

    fn run_alone(&mut self, store: &Batched<S>) {
        if self.is_answered() {
            return;
        }
        let Self { body, retries, failed, reply } = self;
        let is_cancelled = || reply.as_ref().is_none_or(oneshot::Sender::is_closed);
        let body = body.body();
        let body = |txn: &mut BatchedTransaction<'_, S>| {
            if is_cancelled() { Err(stopped().into()) } else { body(txn) }
        };
        let result = catch_unwind(AssertUnwindSafe(|| match failed.take() {
            Some(failed) => retries.resume(store, body, failed),
            None => retries.run(store, body),
        }));
        self.send(result);
    }
}
