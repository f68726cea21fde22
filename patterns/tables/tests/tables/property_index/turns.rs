//! Threads that run one at a time, each from one store operation to the next, in an order that the
//! caller chooses.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use keyloom::{Error, Result};

thread_local! {
    static WORKER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The largest number of workers of a run.
const MOST: usize = 8;

#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    /// Notifies the scheduler that a worker waits or has ended.
    back: Condvar,
    /// Notify each worker of its turn.
    begin: [Condvar; MOST],
}

#[derive(Default)]
struct State {
    live: usize,
    waiting: BTreeSet<usize>,
    turn: Option<usize>,
    /// The number of operations until a worker dies.
    left: Vec<Option<usize>>,
    step: usize,
}

/// The work of a worker.
pub type Work<'w> = Box<dyn FnOnce() + Send + 'w>;

impl Turns {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Called at each operation. Waits for the turn of the worker, and fails after the worker has
    /// died. In other threads, returns at once.
    pub fn operation(&self) -> Result<()> {
        let Some(me) = WORKER.get() else { return Ok(()) };
        let mut state = self.wait_for_turn(me);
        match &mut state.left[me] {
            Some(0) => Err(Error::other("the worker died")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn wait_for_turn(&self, me: usize) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.waiting.insert(me);
        self.back.notify_one();
        while state.turn != Some(me) {
            state = self.begin[me].wait(state).unwrap();
        }
        state.turn = None;
        state
    }

    /// The number of turns so far.
    pub fn step(&self) -> usize {
        self.lock().step
    }

    /// Runs the workers to their ends. Between two turns, when all workers wait, `pick` receives
    /// the waiting workers and returns the next one. `pick` is called once more at the end.
    pub fn run(
        &self,
        workers: Vec<(Option<usize>, Work<'_>)>,
        mut pick: impl FnMut(&BTreeSet<usize>) -> usize,
    ) {
        let (left, works): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
        *self.lock() = State { live: left.len(), left, ..State::default() };
        thread::scope(|scope| {
            for (me, work) in works.into_iter().enumerate() {
                scope.spawn(move || {
                    WORKER.set(Some(me));
                    let _gone = Gone(self);
                    drop(self.wait_for_turn(me));
                    work();
                });
            }
            while self.all_wait() {
                let waiting = self.lock().waiting.clone();
                let next = pick(&waiting);
                let mut state = self.lock();
                assert!(state.waiting.remove(&next));
                state.turn = Some(next);
                state.step += 1;
                self.begin[next].notify_one();
            }
            pick(&BTreeSet::new());
        });
    }

    /// Blocks until every worker waits. Returns whether any worker is left.
    fn all_wait(&self) -> bool {
        let mut state = self.lock();
        while state.waiting.len() < state.live {
            state = self.back.wait(state).unwrap();
        }
        state.live > 0
    }
}

/// Unregisters a worker, also after a panic.
struct Gone<'t>(&'t Turns);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.lock().live -= 1;
        self.0.back.notify_one();
    }
}
