//! One writer at a time within a process.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// The time for which later threads may overtake a waiting thread.
///
/// A thread that has just written and begins again finds the slot free, long before the waiting
/// thread has woken up. Up to this limit overtaking is faster, since waking a thread takes as long
/// as many transactions. Without the limit, a thread that writes in a loop (to build an index, say)
/// would starve all others.
const PATIENCE: Duration = Duration::from_micros(250);

/// Lets the threads of a process write one after the other, in order of arrival. As an exception, a
/// thread may take a free slot while the first waiting thread has waited for less than 250 µs.
///
/// An engine with one writer at a time makes a second writer wait. So a thread that begins a
/// transaction inside another one would wait forever. The slot returns an error instead. A store
/// holds one slot, shared by its clones. A transaction holds the [`WriterTurn`] in a field after
/// the engine's own transaction, so that the engine's transaction ends first.
///
/// ```
/// use keyloom::Error;
/// use keyloom::backend::WriterSlot;
/// let slot = WriterSlot::default();
/// let turn = slot.take()?;
/// assert!(matches!(slot.take(), Err(Error::NestedTransaction)));
/// drop(turn);
/// assert!(slot.take().is_ok());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Default)]
pub struct WriterSlot(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    owner: Option<ThreadId>,
    /// The waiting threads, in order of arrival, with the times at which they began to wait. While
    /// the slot is free, the first of them has been woken.
    waiting: VecDeque<(Thread, Instant)>,
}

impl State {
    /// Removes a thread from the queue. Wakes the first thread if the slot is free.
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

/// The right to write, released on drop.
///
/// A turn is not `Send`: after a move, the wrong thread would receive [`Error::NestedTransaction`].
#[derive(Debug)]
#[must_use = "the slot is free again once the turn is dropped"]
pub struct WriterTurn<'s> {
    slot: &'s WriterSlot,
    _of_this_thread: PhantomData<MutexGuard<'s, ()>>,
}

impl WriterSlot {
    /// Waits for the current writer, and for the threads that began to wait earlier. Takes a free
    /// slot at once if the first of these threads has waited for less than 250 µs.
    ///
    /// # Errors
    /// [`Error::NestedTransaction`] if the calling thread is the current writer.
    pub fn take(&self) -> Result<WriterTurn<'_>> {
        match self.take_within(|| None)? {
            Some(turn) => Ok(turn),
            // Unreachable: there is no time-out.
            None => Err(Error::WriterBusy { holder: None, waited_ms: 0 }),
        }
    }

    /// [`take`](Self::take) with a time limit. Before each wait, `left` returns the remaining time,
    /// or `None` for no limit. Returns `Ok(None)` if no time is left.
    ///
    /// # Errors
    /// [`Error::NestedTransaction`] if the calling thread is the current writer.
    pub fn take_within(
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

    // Every change of the state is one step that cannot panic, so a poisoned lock can be used.
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

    /// Without the limit, a thread that begins again at once would overtake the thread that must be
    /// woken.
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
