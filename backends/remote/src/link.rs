//! Waiting for a server.
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use keyloom::{BoxedError, Error, Result, ServerError, SharedError};

/// The server of one store, and the number of waits for an answer.
///
/// ```
/// use keyloom_remote::{Link, Outcome};
/// use std::time::Duration;
/// let link = Link::with_runtime("toy://localhost", Duration::from_secs(1))?;
/// assert!(matches!(link.wait(async { 7 }), Outcome::Answered(7)));
/// assert_eq!(link.round_trips(), 1);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug)]
pub struct Link {
    /// The runtime that drives the connections; `None` if the waiting thread drives them.
    runtime: Option<Runtime>,
    round_trips: AtomicU64,
    timeout: Duration,
    /// The process whose threads drive the connections.
    process: u32,
    /// The address of the server in errors, never with a password.
    place: Box<str>,
    /// The advice of [`Error::Forked`](keyloom::Error::Forked) for a forked child.
    after_fork: &'static str,
}

/// Work on the runtime of a [`Link`]. The work ends when the task is dropped.
#[derive(Debug)]
pub struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The outcome of a wait.
#[derive(Debug)]
pub enum Outcome<T> {
    /// The answer, which may be an error of the server.
    Answered(T),
    /// Nothing was sent.
    Refused(Error),
    /// There was no answer in time. The request may or may not have been executed.
    TimedOut,
}

/// The source of the error if the server stopped answering but the connection did not break.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct Silent(Duration);

/// The source of the error of a link without a runtime.
#[derive(Debug, thiserror::Error)]
#[error("the link has no runtime: make it by `Link::with_runtime`")]
struct NoRuntime;

impl Link {
    /// The server of a store whose connections are driven by the threads that wait for them.
    /// `place` is the address shown in errors, without a password. `timeout` applies to one answer.
    pub fn new(place: &str, timeout: Duration) -> Self {
        Self {
            runtime: None,
            round_trips: AtomicU64::default(),
            timeout,
            process: std::process::id(),
            place: place.into(),
            after_fork: "drop this handle and open the store again",
        }
    }

    /// Like [`new`](Link::new), with a runtime that drives the connections on a thread of its own.
    ///
    /// # Errors
    /// [`Error::Backend`] if the thread cannot be started.
    pub fn with_runtime(place: &str, timeout: Duration) -> Result<Self> {
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

    /// Sets the remedy shown after a fork, in place of opening the store again.
    #[must_use]
    pub fn after_fork(mut self, remedy: &'static str) -> Self {
        self.after_fork = remedy;
        self
    }

    /// Waits for an answer, on any thread, including one of an async runtime. The thread of the
    /// [runtime](Link::with_runtime) drives the connections, so they make progress while this
    /// thread sleeps.
    ///
    /// A link without a runtime returns [`Outcome::Refused`]: nothing would wake this thread.
    pub fn wait<F: Future>(&self, request: F) -> Outcome<F::Output> {
        let outcome = self.wait_uncounted(self.timeout, request);
        if !matches!(outcome, Outcome::Refused(_)) {
            self.round_trips.fetch_add(1, Relaxed);
        }
        outcome
    }

    /// Like [`wait`](Link::wait), with another time-out and without counting a round trip: for
    /// example to open a connection.
    pub fn wait_uncounted<F: Future>(&self, timeout: Duration, request: F) -> Outcome<F::Output> {
        if let Err(error) = self.refuse_fork() {
            return Outcome::Refused(error);
        }
        let Some(runtime) = &self.runtime else {
            return Outcome::Refused(Error::Backend(NoRuntime.into()));
        };
        let _context = runtime.enter();
        // Unconstrained: a task that blocks here cannot yield, so it must not run out of its
        // budget.
        let request = tokio::task::unconstrained(async {
            // The time-out is created here, because it needs the timer of the runtime.
            tokio::time::timeout(timeout, request).await
        });
        match pollster::block_on(request) {
            Ok(answer) => Outcome::Answered(answer),
            Err(_) => Outcome::TimedOut,
        }
    }

    /// Returns an error in a forked child, whose connections are those of its parent.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn refuse_fork(&self) -> Result<()> {
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

    /// Runs `work` without waiting for it, if the link has a runtime.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    /// Runs `work` until it ends or the returned task is dropped. `None` without a runtime.
    pub fn spawn_until_dropped(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Option<Task> {
        self.runtime.as_ref().map(|runtime| Task(runtime.spawn(work).abort_handle()))
    }

    /// Counts `waits` additional round trips, for a request that took several.
    pub fn waited_also(&self, waits: usize) {
        self.round_trips.fetch_add(waits as u64, Relaxed);
    }

    /// The longest wait for an answer.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The deadline for the answer to a message that is sent now.
    pub fn deadline(&self) -> Instant {
        // Adding a very long time-out to the current time would overflow.
        const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
        Instant::now() + self.timeout.min(A_YEAR)
    }

    /// The number of round trips, for [`Store::round_trips`](keyloom::Store::round_trips).
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(Relaxed)
    }

    /// The address of the server in errors.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The error for a connection that broke outside a commit.
    pub fn lost(&self, source: impl Into<BoxedError>) -> Error {
        Error::Server(ServerError::ConnectionLost {
            store: self.place.clone(),
            source: SharedError::from(source),
        })
    }

    /// The error for a server that did not answer in time outside a commit.
    pub fn silent(&self) -> Error {
        self.lost(Silent(self.timeout))
    }

    /// The error for a server that did not answer a commit in time.
    pub fn silent_at_commit(&self) -> Error {
        Error::CommitUnknown { source: Silent(self.timeout).into() }
    }
}
impl Drop for Link {
    fn drop(&mut self) {
        // Shut down in the background: a store may be dropped on a thread of an async runtime,
        // which must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
