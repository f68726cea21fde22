//! The end of a wait, requested by another thread.

use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use keyloom::backend::ChangeListener;

/// A request to stop, shared by its clones: a [consumer](crate::WorkQueue::work) stops after its
/// current job, and a [wait for locks](crate::Session::lock_within) ends.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    requested: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_requested: bool,
    /// The threads in [`Stop::wait_for`].
    waiting: Vec<Thread>,
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Stop {
    /// A new `Stop`, not requested yet.
    pub fn new() -> Self {
        Self::default()
    }

    // Every change of the state is one step, so a poisoned lock holds a valid state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the stop. Also wakes the threads that wait.
    pub fn request(&self) {
        let mut state = self.state();
        state.is_requested = true;
        state.waiting.iter().for_each(Thread::unpark);
        drop(state);
        self.0.requested.notify_all();
    }

    /// Whether the stop was requested, through this value or a clone of it.
    ///
    /// ```
    /// use keyloom_locking::Stop;
    /// let stop = Stop::default();
    /// let of_the_handler = stop.clone();
    /// assert!(!stop.is_requested());
    /// of_the_handler.request();
    /// assert!(stop.is_requested());
    /// ```
    pub fn is_requested(&self) -> bool {
        self.state().is_requested
    }

    /// Waits until the stop is requested, at most for `most`.
    pub(crate) fn wait(&self, most: Duration) {
        let is_waiting = |state: &mut State| !state.is_requested;
        drop(self.0.requested.wait_timeout_while(self.state(), most, is_waiting));
    }

    /// Waits until the stop is requested, or until the listener is notified, at most for `most`.
    /// Returns whether the listener was notified.
    // A thread cannot wait for two condition variables. So it is parked, and each of the two wakes
    // it.
    pub(crate) fn wait_for(&self, listener: &mut ChangeListener, most: Duration) -> bool {
        let began = Instant::now();
        self.state().waiting.push(thread::current());
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut changed = pin!(listener.changed());
        let is_notified = loop {
            if changed.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                break true;
            }
            let left = most.saturating_sub(began.elapsed());
            if left.is_zero() || self.is_requested() {
                break false;
            }
            thread::park_timeout(left);
        };
        let mut state = self.state();
        let this = thread::current().id();
        if let Some(place) = state.waiting.iter().position(|thread| thread.id() == this) {
            state.waiting.swap_remove(place);
        }
        is_notified
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyloom::backend::CommitSignal;

    const LONG: Duration = Duration::from_secs(30);

    /// Runs `wake` while a thread waits, and returns whether the listener was notified.
    fn woken_by(wake: impl FnOnce(&Stop, &CommitSignal)) -> bool {
        let (stop, signal) = (Stop::new(), CommitSignal::default());
        let mut listener = signal.listen(b"bell").unnotified();
        thread::scope(|scope| {
            let began = Instant::now();
            let waits = scope.spawn(|| stop.wait_for(&mut listener, LONG));
            while stop.state().waiting.is_empty() && !waits.is_finished() {
                thread::yield_now();
            }
            wake(&stop, &signal);
            let is_notified = waits.join().unwrap_or_default();
            assert!(began.elapsed() < LONG && stop.state().waiting.is_empty());
            is_notified
        })
    }

    fn ring(signal: &CommitSignal) {
        let mut changed = signal.changed_keys();
        changed.note(b"bell");
        signal.notify(changed);
    }

    #[test]
    fn a_wait_ends_with_a_stop_and_with_a_notification() {
        assert!(!woken_by(|stop, _| stop.request()));
        assert!(woken_by(|_, signal| ring(signal)));
        // A thread that is unparked without a stop or a notification waits further.
        assert!(woken_by(|stop, signal| {
            stop.state().waiting.iter().for_each(Thread::unpark);
            ring(signal);
        }));
    }

    #[test]
    fn a_wait_ends_with_its_time_and_misses_no_earlier_notification() {
        let (stop, signal) = (Stop::new(), CommitSignal::default());
        let mut listener = signal.listen(b"bell").unnotified();
        assert!(!stop.wait_for(&mut listener, Duration::from_millis(1)));
        ring(&signal);
        assert!(stop.wait_for(&mut listener, LONG));
        assert!(!stop.wait_for(&mut listener, Duration::ZERO));
        stop.request();
        assert!(!stop.wait_for(&mut listener, LONG));
    }
}
