//! The network thread of FoundationDB's client: one per process, started only once.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use foundationdb::{FdbError, FdbResult};
use foundationdb_sys as client;

use keyloom::{Error, Result};

/// The network thread until it is stopped, and the process that it belongs to.
pub(super) struct Network {
    pub(super) thread: Option<JoinHandle<()>>,
    pub(super) process: u32,
}

/// The reason why the thread does not run. Stored, because the client cannot be started again.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum DoesNotStart {
    #[error("the program has already started FoundationDB's network")]
    RunsAlready,
    #[error(
        "FoundationDB's client does not start: {0}; it needs the library libfdb_c, 7.3 or newer"
    )]
    Refused(FdbError),
    #[error("FoundationDB's client does not start: the system cannot start a thread: {0}")]
    NoThread(Box<str>),
}

/// `None` until the first store is opened. Locked while the thread starts, so that an exit waits
/// for the start: an exit destroys statics that the thread uses.
pub(super) static NETWORK: Mutex<Option<Result<Network, DoesNotStart>>> = Mutex::new(None);
/// The process that starts or has started the thread; 0 before the start.
pub(super) static STARTED_BY: AtomicU32 = AtomicU32::new(0);
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

pub(super) fn lock() -> MutexGuard<'static, Option<Result<Network, DoesNotStart>>> {
    NETWORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process has started the thread, or is starting it.
pub(super) fn is_started() -> bool {
    STARTED_BY.load(Relaxed) == process::id()
}

/// Returns an error once the process is exiting, because the client is destroying its state.
pub(super) fn refuse_exit() -> Result<()> {
    #[derive(Debug, thiserror::Error)]
    #[error("the process exits, and FoundationDB's client has stopped")]
    struct Exits;
    match IS_STOPPED.load(Relaxed) {
        true => Err(Error::Backend(Exits.into())),
        false => Ok(()),
    }
}

pub(super) fn checked(code: client::fdb_error_t) -> FdbResult<()> {
    match code {
        0 => Ok(()),
        code => Err(FdbError::from_code(code)),
    }
}

/// Stops the thread and waits for its end. Further calls do nothing.
pub(super) fn stop() {
    // A forked child has no such thread, and would wait forever for the thread or for the lock.
    if !is_started() {
        return;
    }
    let mut network = lock();
    IS_STOPPED.store(true, Relaxed);
    if let Some(Ok(Network { thread, .. })) = &mut *network
        && let Some(thread) = thread.take()
    {
        let end = move || {
            // SAFETY: the network is set up, and stopped once.
            #[allow(unsafe_code, reason = "the client's functions are C")]
            if checked(unsafe { client::fdb_stop_network() }).is_ok() {
                drop(thread.join());
            }
        };
        // Stops on a new thread: the thread-locals of this thread are already destroyed, and the
        // client uses thread-locals.
        drop(thread::Builder::new().spawn(end).map(JoinHandle::join));
    }
}
