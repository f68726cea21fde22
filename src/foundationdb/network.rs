//! FoundationDB's client runs one thread per process, which is started once and never again.

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
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
#[error(
    "FoundationDB's client does not start: {0}; it needs the library libfdb_c, 7.3 or newer, and must not run already, unless the option `network_runs` says so"
)]
struct DoesNotStart(Box<str>);

static NETWORK: OnceLock<Result<Network, DoesNotStart>> = OnceLock::new();
/// How many stores there are that use it.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// A store's part in the network.
#[derive(Debug)]
pub(super) struct User(());

impl User {
    /// Starts the thread, unless it runs.
    pub(super) fn start() -> Result<Self> {
        match NETWORK.get_or_init(|| boot().map_err(|error| DoesNotStart(error.to_string().into())))
        {
            Ok(Network { process: opened_by, .. }) if *opened_by != process::id() => {
                Err(Error::Forked {
                    path: "fdb:".into(),
                    opened_by: *opened_by,
                    here: process::id(),
                })
            }
            Ok(_) => {
                USERS.fetch_add(1, Relaxed);
                Ok(Self(()))
            }
            Err(why) => Err(Error::Backend(why.clone().into())),
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if USERS.fetch_sub(1, Relaxed) == 1 {
            // Once more, for what is registered last is done first: before what the client has made for itself
            // meanwhile, and its thread still uses, is destroyed.
            stop_at_exit();
        }
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
    stop_at_exit();
    Ok(Network { running: Mutex::new(Some((stop_it, thread))), process: process::id() })
}

fn stop_at_exit() {
    // SAFETY: `stop` is a function without arguments that lives as long as the program.
    #[allow(unsafe_code, reason = "statics are never dropped, and the thread must end first")]
    unsafe {
        libc::atexit(stop);
    }
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
