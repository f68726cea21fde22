//! The connections of a store.
//!
//! A pool for async programs would need a runtime for its time-outs.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Connection;
use crate::{Error, Result};

/// At most so many connections, of which some are idle.
#[derive(Debug)]
pub(super) struct Pool {
    state: Mutex<State>,
    returned: Condvar,
    max_connections: usize,
    patience: Duration,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Connection>,
    /// Connections that are idle, in use, or being opened.
    open: usize,
}

impl Pool {
    pub(super) fn new(max_connections: usize, patience: Duration) -> Self {
        let max_connections = max_connections.max(1);
        Self { state: Mutex::default(), returned: Condvar::new(), max_connections, patience }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An idle connection that the server has not closed, or a new one.
    pub(super) fn take(&self, open: impl FnOnce() -> Result<Connection>) -> Result<Connection> {
        loop {
            match self.turn()? {
                Some(idle) if idle.is_closed() => self.close(idle),
                Some(idle) => return Ok(idle),
                None => return open().inspect_err(|_| self.forget()),
            }
        }
    }

    /// An idle connection, or `None` if the caller may open one more.
    fn turn(&self) -> Result<Option<Connection>> {
        let started = Instant::now();
        let mut state = self.state();
        loop {
            if let Some(idle) = state.idle.pop() {
                return Ok(Some(idle));
            }
            if state.open < self.max_connections {
                state.open += 1;
                return Ok(None);
            }
            let waited = started.elapsed();
            if waited >= self.patience {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                let max_connections = self.max_connections;
                return Err(Error::ConnectionsBusy { max_connections, waited_ms });
            }
            let waiting = self.returned.wait_timeout(state, self.patience - waited);
            state = waiting.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns a connection without a transaction.
    pub(super) fn give_back(&self, connection: Connection) {
        self.state().idle.push(connection);
        self.returned.notify_one();
    }

    /// Closes a connection that was taken.
    pub(super) fn close(&self, connection: Connection) {
        drop(connection);
        self.forget();
    }

    fn forget(&self) {
        self.state().open -= 1;
        self.returned.notify_one();
    }
}
