//! FoundationDB's client runs one thread per process, which is started once and never again.

use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use foundationdb::api::{FdbApiBuilder, NetworkAutoStop};

use crate::{Error, Result};

/// The thread, and the process that has it.
struct Network {
    thread: Mutex<Option<NetworkAutoStop>>,
    process: u32,
}

/// Why it does not run, for everybody who asks.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "FoundationDB's client does not start: {0}; install the client library libfdb_c, 7.3 or newer"
)]
struct DoesNotStart(Box<str>);

static NETWORK: OnceLock<Result<Network, DoesNotStart>> = OnceLock::new();

/// Starts the thread, unless it runs.
pub(super) fn start() -> Result<()> {
    match NETWORK.get_or_init(|| boot().map_err(|error| DoesNotStart(error.to_string().into()))) {
        Ok(_) => Ok(()),
        Err(why) => Err(Error::Backend(why.clone().into())),
    }
}

fn boot() -> Result<Network, foundationdb::FdbError> {
    let network = FdbApiBuilder::default().build()?;
    // SAFETY: the thread is stopped before the process exits, by `stop` below.
    #[allow(unsafe_code, reason = "the client asks for a promise that `stop` keeps")]
    let thread = unsafe { network.boot()? };
    // SAFETY: `stop` is a function without arguments that lives as long as the program.
    #[allow(unsafe_code, reason = "statics are never dropped, and the thread must end first")]
    unsafe {
        libc::atexit(stop);
    }
    Ok(Network { thread: Mutex::new(Some(thread)), process: process::id() })
}

extern "C" fn stop() {
    if let Some(Ok(network)) = NETWORK.get()
        // A fork has no such thread, and would wait for it for ever.
        && network.process == process::id()
    {
        drop(network.thread.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
