//! FoundationDB's client runs one thread per process, which is started once and never again.

use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use foundationdb::api::{FdbApiBuilder, NetworkStop};

use crate::{BoxedError, Error, Result};

/// The thread, how to stop it, and the process that has it.
struct Network {
    running: Mutex<Option<(NetworkStop, JoinHandle<()>)>>,
    process: u32,
}

/// Why it does not run, for everybody who asks.
#[derive(Clone, Debug, thiserror::Error)]
#[error("FoundationDB's client does not start: {0}; it needs the library libfdb_c, 7.3 or newer")]
struct DoesNotStart(Box<str>);

static NETWORK: OnceLock<Result<Network, DoesNotStart>> = OnceLock::new();

/// Starts the thread, unless it runs.
pub(super) fn start() -> Result<()> {
    match NETWORK.get_or_init(|| boot().map_err(|error| DoesNotStart(error.to_string().into()))) {
        Ok(_) => Ok(()),
        Err(why) => Err(Error::Backend(why.clone().into())),
    }
}

fn boot() -> Result<Network, BoxedError> {
    let (runner, started) = FdbApiBuilder::default().build()?.build()?;
    let thread = thread::Builder::new().name("keyloom".into()).spawn(move || {
        // What it says when it ends, at the end of the process, helps nobody.
        // SAFETY: it is stopped before the process exits, by `stop` below.
        #[allow(unsafe_code, reason = "the client asks for a promise that `stop` keeps")]
        let _ = unsafe { runner.run() };
    })?;
    let stop_it = started.wait();
    // SAFETY: `stop` is a function without arguments that lives as long as the program.
    #[allow(unsafe_code, reason = "statics are never dropped, and the thread must end first")]
    unsafe {
        libc::atexit(stop);
    }
    Ok(Network { running: Mutex::new(Some((stop_it, thread))), process: process::id() })
}

extern "C" fn stop() {
    if let Some(Ok(network)) = NETWORK.get()
        // A fork has no such thread, and would wait for it for ever.
        && network.process == process::id()
        && let Some((stop_it, thread)) =
            network.running.lock().unwrap_or_else(PoisonError::into_inner).take()
    {
        let end = move || {
            if stop_it.stop().is_ok() {
                drop(thread.join());
            }
        };
        // By a thread of its own: what this one keeps for itself is gone by now, and the client's code would use it.
        drop(thread::Builder::new().spawn(end).map(JoinHandle::join));
    }
}
