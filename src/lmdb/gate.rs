//! Counts open snapshots and transactions with their ages, and waits until none is open.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::{Error, LmdbError, Result};

/// Counts open snapshots and transactions. LMDB's map may be resized only while none is open.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_ticket: u64,
    /// Tickets are numbered in order of time, so the first one is the oldest.
    open: BTreeMap<u64, (Holder, Instant)>,
    closed: bool,
}

/// The holder of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Snapshot,
    Transaction,
    /// A call that reads the map while it runs.
    Call,
}

/// Each open snapshot, transaction and call holds a ticket. Dropping the ticket decrements the
/// count.
#[derive(Debug)]
pub(super) struct Ticket<'g> {
    gate: &'g Gate,
    number: u64,
}

/// Opens the gate when dropped, even if the resizing panics: otherwise all later calls would wait.
struct Closed<'g> {
    gate: &'g Gate,
    state: MutexGuard<'g, State>,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.state.closed = false;
        self.gate.changed.notify_all();
    }
}

impl Gate {
    /// Waits while the map is being resized, then counts one more holder.
    ///
    /// # Errors
    /// [`LmdbError::MapHeld`] if an open snapshot or transaction delays the resizing for too long.
    pub(super) fn enter(&self, holder: Holder, deadline: &Deadline<'_>) -> Result<Ticket<'_>> {
        let mut state = self.wait_until(self.lock(), deadline, |state| !state.closed);
        if state.closed {
            return Err(held(&state, deadline));
        }
        let number = state.next_ticket;
        state.next_ticket += 1;
        state.open.insert(number, (holder, Instant::now()));
        Ok(Ticket { gate: self, number })
    }

    /// Waits until no snapshot, transaction or call is open, and runs `work` before another one can
    /// be opened.
    ///
    /// # Errors
    /// [`LmdbError::MapHeld`] if a snapshot or transaction stayed open; and the errors of `work`.
    pub(super) fn alone<T>(
        &self,
        deadline: &Deadline<'_>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut state = self.wait_until(self.lock(), deadline, |state| !state.closed);
        if state.closed {
            return Err(held(&state, deadline));
        }
        state.closed = true;
        let state = self.wait_until(state, deadline, |state| state.open.is_empty());
        let closed = Closed { gate: self, state };
        if closed.state.open.is_empty() { work() } else { Err(held(&closed.state, deadline)) }
    }

    /// The age of the oldest open snapshot, transaction or call.
    pub(super) fn oldest_age(&self) -> Option<Duration> {
        self.lock().open.first_key_value().map(|(_, (_, since))| since.elapsed())
    }

    /// The age of the oldest snapshot.
    pub(super) fn oldest_snapshot_age(&self) -> Option<Duration> {
        let state = self.lock();
        let mut holders = state.open.values();
        holders.find(|(holder, _)| *holder == Holder::Snapshot).map(|(_, since)| since.elapsed())
    }

    /// Waits until the state satisfies the condition, or until the deadline has passed.
    fn wait_until<'g>(
        &self,
        state: MutexGuard<'g, State>,
        deadline: &Deadline<'_>,
        is_ready: impl Fn(&State) -> bool,
    ) -> MutexGuard<'g, State> {
        if is_ready(&state) {
            return state;
        }
        let (state, _) = self
            .changed
            .wait_timeout_while(state, deadline.left(), |state| !is_ready(state))
            .unwrap_or_else(PoisonError::into_inner);
        state
    }

    // Each change of the state is one step that cannot panic, so a poisoned lock can be used.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn held(state: &State, deadline: &Deadline<'_>) -> Error {
    Error::Lmdb(LmdbError::MapHeld { open: state.open.len(), waited_ms: deadline.waited_ms() })
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.open.remove(&self.number);
        if state.closed && state.open.is_empty() {
            self.gate.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    /// The waiting calls and the resizing thread wake at the same time, in any order, so the test
    /// repeats.
    #[test]
    fn waiting_calls_enter_as_soon_as_the_resizing_ends() {
        // Far longer than the whole test, and than its waits below.
        let patience = || Deadline::new(Duration::from_secs(3_600));
        for _ in 0..50 {
            let gate = &Gate::default();
            let (entered, was_entered) = channel();
            thread::scope(|scope| {
                let ticket = gate.enter(Holder::Call, &patience()).unwrap();
                scope.spawn(|| gate.alone(&patience(), || Ok(())).unwrap());
                while !gate.lock().closed {
                    thread::yield_now();
                }
                for _ in 0..4 {
                    let entered = entered.clone();
                    scope.spawn(move || {
                        entered.send(gate.enter(Holder::Call, &patience()).map(drop)).unwrap();
                    });
                }
                assert!(was_entered.recv_timeout(Duration::from_millis(2)).is_err());
                drop(ticket);
                let outcomes = [(); 4].map(|()| was_entered.recv_timeout(Duration::from_secs(60)));
                // A call that still sleeps would keep the test from ending.
                gate.changed.notify_all();
                for outcome in outcomes {
                    outcome.unwrap().unwrap();
                }
            });
        }
    }

    #[test]
    fn a_resizing_that_panics_opens_the_gate() {
        let gate = Gate::default();
        let patience = || Deadline::new(Duration::ZERO);
        let work = || -> Result<()> { std::panic::resume_unwind(Box::new("the work panics")) };
        let resizing = std::panic::AssertUnwindSafe(|| gate.alone(&patience(), work));
        assert!(std::panic::catch_unwind(resizing).is_err());
        gate.enter(Holder::Call, &patience()).unwrap();
        gate.alone(&patience(), || Ok(())).unwrap();
    }

    #[test]
    fn the_resizing_begins_as_soon_as_the_last_one_is_gone() {
        let patience = || Deadline::new(Duration::from_secs(3_600));
        let gate = Gate::default();
        let (done, was_done) = channel();
        let tickets = [0, 1].map(|_| gate.enter(Holder::Snapshot, &patience()).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| done.send(gate.alone(&patience(), || Ok(()))).unwrap());
            let [one, other] = tickets;
            drop(one);
            assert!(was_done.recv_timeout(Duration::from_millis(50)).is_err());
            drop(other);
            let outcome = was_done.recv_timeout(Duration::from_secs(60));
            gate.changed.notify_all();
            outcome.unwrap().unwrap();
        });
    }
}
