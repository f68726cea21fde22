//! Determines which transactions of several threads share a commit.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// The commits of a [`Batched`](keyloom::Batched) store, as its bodies see them.
#[derive(Default)]
pub(super) struct Commits(Mutex<Option<Run>>);

/// One run of a body.
struct Run {
    /// The thread on which the body ran.
    thread: ThreadId,
    /// The number of its transaction, counted from 0.
    number: u64,
    /// The number of transactions in the store before the commit.
    committed: u64,
}

impl Commits {
    /// Returns the number of transactions in the store before the commit that contains transaction
    /// `number`, counted from 0. The calling body performs this transaction for the thread
    /// `caller`.
    pub(super) fn before(&self, caller: ThreadId, number: u64) -> u64 {
        self.before_run(thread::current().id(), caller, number)
    }

    fn before_run(&self, thread: ThreadId, caller: ThreadId, number: u64) -> u64 {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The bodies of a commit run on one thread, with consecutive numbers. The leader's own body
        // is the first one on its thread.
        let continues =
            |last: &&Run| thread != caller && thread == last.thread && number == last.number + 1;
        let committed = last.as_ref().filter(continues).map_or(number, |last| last.committed);
        *last = Some(Run { thread, number, committed });
        committed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn each_body_of_a_batch_has_the_number_of_its_first() {
        let one = thread::current().id();
        let other = thread::spawn(|| thread::current().id()).join().unwrap();
        let commits = Commits::default();
        let before = |thread, caller, number| commits.before_run(thread, caller, number);
        // A batch fails in its third body and is retried without the first.
        assert_eq!([before(one, one, 5), before(one, other, 6), before(one, other, 7)], [5; 3]);
        assert_eq!([before(one, other, 5), before(one, other, 6)], [5; 2]);
        // A single body, twice, and a batch that another thread leads.
        assert_eq!([before(one, one, 7), before(one, one, 8)], [7, 8]);
        assert_eq!([before(other, other, 9), before(other, one, 10)], [9; 2]);
    }
}
