//! The connections of a store.
//!
//! The pools for async programs are not used, because their time-outs need a runtime.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Connection;
use keyloom::{Error, Result, ServerError};

/// A bounded number of connections. Some of them are idle.
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
            let turn = self.turn()?;
            let slot = Slot(self);
            let connection = match turn {
                Some(idle) if idle.is_closed() => continue,
                Some(idle) => idle,
                None => open()?,
            };
            std::mem::forget(slot);
            return Ok(connection);
        }
    }

    /// An idle connection, or `None` if the caller may open another one.
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
                return Err(Error::Server(ServerError::ConnectionsBusy {
                    max_connections,
                    waited_ms,
                }));
            }
            let waiting = self.returned.wait_timeout(state, self.patience - waited);
            state = waiting.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives a connection without an open transaction back to the pool.
    pub(super) fn give_back(&self, connection: Connection) {
        self.state().idle.push(connection);
        self.returned.notify_one();
    }

    /// Closes a connection of the pool, and frees its slot.
    pub(super) fn close(&self, connection: Connection) {
        let _slot = Slot(self);
        connection.close();
    }

    /// Closes the connections that are not in use.
    pub(super) fn close_idle(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        idle.into_iter().for_each(|connection| self.close(connection));
    }
}

/// The slot of a connection in the pool. It is freed on drop, even after a panic.
struct Slot<'p>(&'p Pool);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.state().open -= 1;
        self.0.returned.notify_one();
    }
}
