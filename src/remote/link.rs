//! Waiting for a server.

#[cfg(feature = "_runtime")]
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
#[cfg(feature = "postgres")]
use std::time::Instant;

#[cfg(feature = "_runtime")]
use tokio::runtime::{Builder, Runtime};

use crate::{BoxedError, Error, Result, ServerError, SharedError};

/// The server of one store, and the number of waits for an answer.
#[derive(Debug)]
pub(crate) struct Link {
    /// What drives the connections, if the waiting thread does not.
    #[cfg(feature = "_runtime")]
    runtime: Option<Runtime>,
    round_trips: AtomicU64,
    timeout: Duration,
    /// The process whose threads drive the connections.
    process: u32,
    /// The address of the server in errors, never with a password.
    place: Box<str>,
    /// The advice of [`Error::Forked`](crate::Error::Forked) for a forked child.
    after_fork: &'static str,
}

/// The outcome of a wait.
pub(crate) enum Outcome<T> {
    Answered(T),
    /// Nothing was sent.
    Refused(Error),
    /// There was no answer in time. It is unknown whether the request was executed.
    TimedOut,
}

/// The source of a lost-connection error if the server only stopped answering.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct Silent(Duration);

impl Link {
    /// The server of a store whose connections are driven by the threads that wait for them.
    pub(crate) fn new(place: &str, timeout: Duration) -> Self {
        Self {
            #[cfg(feature = "_runtime")]
            runtime: None,
            round_trips: AtomicU64::default(),
            timeout,
            process: std::process::id(),
            place: place.into(),
            after_fork: "drop this handle and open the store again",
        }
    }

    /// The same, with a runtime that drives the connections on a thread of its own.
    #[cfg(feature = "_runtime")]
    pub(crate) fn with_runtime(place: &str, timeout: Duration) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("keyloom")
            .enable_all()
            .build()
            .map_err(|error| Error::Backend(error.into()))?;
        let mut link = Self::new(place, timeout);
        link.runtime = Some(runtime);
        Ok(link)
    }

    /// Sets another remedy after a fork than to open the store again.
    #[cfg(feature = "foundationdb")]
    pub(crate) fn after_fork(mut self, remedy: &'static str) -> Self {
        self.after_fork = remedy;
        self
    }

    /// Waits for an answer, on any thread, including one of an async runtime. The connections are
    /// driven by a thread of their own, so they continue while this one sleeps.
    #[cfg(feature = "_runtime")]
    pub(crate) fn wait<F: Future>(&self, request: F) -> Outcome<F::Output> {
        self.round_trips.fetch_add(1, Relaxed);
        self.wait_uncounted(self.timeout, request)
    }

    /// [`wait`](Link::wait) without counting the round trip, for opening connections.
    #[cfg(feature = "_runtime")]
    pub(crate) fn wait_uncounted<F: Future>(
        &self,
        timeout: Duration,
        request: F,
    ) -> Outcome<F::Output> {
        if let Err(error) = self.refuse_fork() {
            return Outcome::Refused(error);
        }
        let _context = self.runtime.as_ref().map(Runtime::enter);
        // Unconstrained: a task that blocks here cannot yield, so its budget must not end.
        let request = tokio::task::unconstrained(async {
            // Created here, inside the runtime with its timer.
            tokio::time::timeout(timeout, request).await
        });
        match pollster::block_on(request) {
            Ok(answer) => Outcome::Answered(answer),
            Err(_) => Outcome::TimedOut,
        }
    }

    /// Returns an error in a forked child, whose connections are those of its parent.
    pub(crate) fn refuse_fork(&self) -> Result<()> {
        let here = std::process::id();
        match here == self.process {
            true => Ok(()),
            false => {
                let path = (&*self.place).into();
                let (opened_by, remedy) = (self.process, self.after_fork);
                Err(Error::Forked { path, opened_by, here, remedy })
            }
        }
    }

    /// Runs `work` without waiting for it.
    #[cfg(feature = "foundationdb")]
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    /// Counts `waits` more, for a request that took several round trips.
    pub(crate) fn waited_also(&self, waits: usize) {
        self.round_trips.fetch_add(waits as u64, Relaxed);
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// When an answer to a message that is sent now is late.
    #[cfg(feature = "postgres")]
    pub(crate) fn deadline(&self) -> Instant {
        // A time-out may be too long for a point in time.
        const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
        Instant::now() + self.timeout.min(A_YEAR)
    }

    pub(crate) fn round_trips(&self) -> u64 {
        self.round_trips.load(Relaxed)
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The error for a connection that broke outside a commit.
    pub(crate) fn lost(&self, source: impl Into<BoxedError>) -> Error {
        Error::Server(ServerError::ConnectionLost {
            store: self.place.clone(),
            source: SharedError::from(source),
        })
    }

    /// The error for a server that did not answer in time outside a commit.
    pub(crate) fn silent(&self) -> Error {
        self.lost(Silent(self.timeout))
    }

    /// The error for a server that did not answer a commit in time.
    pub(crate) fn silent_at_commit(&self) -> Error {
        Error::CommitUnknown { source: Silent(self.timeout).into() }
    }
}

#[cfg(feature = "_runtime")]
impl Drop for Link {
    fn drop(&mut self) {
        // In the background: a store may be dropped on a thread of an async runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
