//! The start of the network thread, by the first store that is opened.

use std::process;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use foundationdb_sys as client;
use keyloom::{Error, Result};

use super::at_exit;
use super::network::{DoesNotStart, Network, STARTED_BY, checked, lock, refuse_exit};

/// A reference of a store to the network.
#[derive(Debug)]
pub(super) struct User(());

impl User {
    /// Starts the thread if it is not running.
    pub(super) fn start() -> Result<Self> {
        let mut network = lock();
        refuse_exit()?;
        match network.get_or_insert_with(boot) {
            Ok(network) if network.process != process::id() => Err(Error::Forked {
                path: "fdb:".into(),
                opened_by: network.process,
                here: process::id(),
                remedy: super::AFTER_FORK,
            }),
            Ok(_) => Ok(Self(())),
            Err(DoesNotStart::RunsAlready) => Err(Error::InvalidArgument {
                what: "the option `network_runs`",
                value: "false".into(),
                why: "the program has already started FoundationDB's network; set it to true",
            }),
            Err(why) => Err(Error::Backend(why.clone().into())),
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        at_exit::move_last();
    }
}

/// Starts the network with the functions of the C client: `FdbApiBuilder` panics if the network is
/// already running.
#[allow(unsafe_code, reason = "the client's functions are C")]
fn boot() -> Result<Network, DoesNotStart> {
    const API_VERSION_ALREADY_SET: i32 = 2201;
    let version = client::FDB_API_VERSION.cast_signed();
    // SAFETY: the function takes two numbers, and refuses a second call.
    checked(unsafe { client::fdb_select_api_version_impl(version, version) }).map_err(|error| {
        match error.code() {
            API_VERSION_ALREADY_SET => DoesNotStart::RunsAlready,
            _ => DoesNotStart::Refused(error),
        }
    })?;
    STARTED_BY.store(process::id(), Relaxed);
    at_exit::register();
    // SAFETY: the version is selected, and `NETWORK` runs this once.
    checked(unsafe { client::fdb_setup_network() }).map_err(DoesNotStart::Refused)?;
    let run = || {
        // The function returns only at the end of the process, so its result is not used.
        // SAFETY: the network is set up; `stop` ends it before the process destroys its statics.
        let _ = unsafe { client::fdb_run_network() };
    };
    let thread = thread::Builder::new().name("keyloom".into()).spawn(run);
    let thread = thread.map_err(|error| DoesNotStart::NoThread(error.to_string().into()))?;
    Ok(Network { thread: Some(thread), process: process::id() })
}
