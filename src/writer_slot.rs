//! One writer at a time within a process, and a clear error instead of a thread that waits for
//! itself.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// How long somebody waits until nobody may come first who came later.
///
/// A thread that has just written and begins again finds the slot free, long before the one that waits has
/// woken up. Up to here that is welcome, since waking takes as long as many a transaction. Without a bound, a
/// thread that writes in a loop, such as one that builds an index, would keep all others from writing.
const PATIENCE: Duration = Duration::from_micros(250);

/// Held by the one transaction that may write.
#[derive(Debug, Default)]
pub(crate) struct WriterSlot(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    owner: Option<ThreadId>,
    /// Whoever waits, and since when, in the order in which they came. While the slot is free, the first
    /// of them has been told so.
    waiting: VecDeque<(Thread, Instant)>,
}

impl State {
    /// Takes a thread from those that wait.
    fn give_up(&mut self, thread: ThreadId) {
        self.waiting.retain(|(waiting, _)| waiting.id() != thread);
        if self.owner.is_none() {
            self.wake_first();
        }
    }

    fn wake_first(&self) {
        if let Some((first, _)) = self.waiting.front() {
            first.unpark();
        }
    }
}

/// The right to write, given back on drop. It stays with its thread: on another one, "this thread
/// writes already" would be asked of the wrong thread.
#[derive(Debug)]
pub(crate) struct WriterTurn<'s> {
    slot: &'s WriterSlot,
    _of_this_thread: PhantomData<MutexGuard<'s, ()>>,
}

impl WriterSlot {
    /// Waits for the writer before this one, and for those who have waited longer.
    ///
    /// # Errors
    /// [`Error::NestedTransaction`] when that writer is the calling thread.
    pub(crate) fn take(&self) -> Result<WriterTurn<'_>> {
        match self.take_within(|| None)? {
            Some(turn) => Ok(turn),
            // Not reached: there is no time-out.
            None => Err(Error::WriterBusy { holder: None, waited_ms: 0 }),
        }
    }

    /// As [`take`](Self::take), for as long as `left` returns. `None` when that is over.
    ///
    /// # Errors
    /// [`Error::NestedTransaction`] when that writer is the calling thread.
    pub(crate) fn take_within(
        &self,
        left: impl Fn() -> Option<Duration>,
    ) -> Result<Option<WriterTurn<'_>>> {
        let here = thread::current().id();
        let mut state = self.lock();
        if state.owner == Some(here) {
            return Err(Error::NestedTransaction);
        }
        let first_is_patient = |state: &State| {
            state.waiting.front().is_none_or(|(_, since)| since.elapsed() < PATIENCE)
        };
        if state.owner.is_some() || !first_is_patient(&state) {
            state.waiting.push_back((thread::current(), Instant::now()));
            let is_my_turn = |state: &State| {
                state.owner.is_none()
                    && state.waiting.front().is_some_and(|(first, _)| first.id() == here)
            };
            while !is_my_turn(&state) {
                let left = left();
                if left.is_some_and(|left| left.is_zero()) {
                    state.give_up(here);
                    return Ok(None);
                }
                drop(state);
                left.map_or_else(thread::park, thread::park_timeout);
                state = self.lock();
            }
            state.waiting.pop_front();
        }
        state.owner = Some(here);
        Ok(Some(WriterTurn { slot: self, _of_this_thread: PhantomData }))
    }

    // Every change of the state is one step that cannot panic half way, so a panic elsewhere does not
    // spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.owner = None;
        state.wake_first();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Without a bound, a thread that begins again at once comes before the one that must be woken.
    #[test]
    fn who_begins_again_at_once_comes_behind_one_that_waits() {
        let slot = WriterSlot::default();
        for round in 0..20 {
            let turn = slot.take().unwrap();
            let had_its_turn = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _turn = slot.take().unwrap();
                    had_its_turn.store(true, Relaxed);
                });
                while slot.lock().waiting.is_empty() {
                    thread::yield_now();
                }
                thread::sleep(PATIENCE);
                drop(turn);
                let _again = slot.take().unwrap();
                assert!(had_its_turn.load(Relaxed), "it was passed over in round {round}");
            });
        }
    }

    #[test]
    fn turns_come_in_the_order_of_those_who_wait() {
        let slot = WriterSlot::default();
        let order = Mutex::new(Vec::new());
        let first = slot.take().unwrap();
        thread::scope(|scope| {
            for number in 0..5 {
                let (slot, order) = (&slot, &order);
                scope.spawn(move || {
                    let _turn = slot.take().unwrap();
                    order.lock().unwrap().push(number);
                });
                while slot.lock().waiting.len() <= number {
                    thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    }
}
