//! The clock that measures leases and delays.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use keyloom::{Error, Result};

/// A source of the time, in milliseconds since 1970 (Unix time).
///
/// Programs on several machines compare their clocks with times that other programs wrote. So the
/// clocks may differ by at most the [grace period](crate::LeaseOptions::grace) of the leases. The
/// clock of a store, such as `now()` of PostgreSQL, can serve as the source.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now, in milliseconds since 1970.
    ///
    /// # Errors
    /// The errors of the source.
    fn now(&self) -> Result<u64>;
}

/// The clock of the operating system.
///
/// ```
/// use keyloom_locking::{Clock, SystemClock};
/// assert!(SystemClock.now()? > 1_700_000_000_000);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Result<u64> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(Error::other)?;
        Ok(millis(since))
    }
}

/// A clock that only the program advances, for tests that do not wait. Clones share the time.
///
/// ```
/// use std::time::Duration;
/// use keyloom_locking::{Clock, ManualClock};
/// let clock = ManualClock::at(1_000);
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.now()?, 6_000);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock at `millis` after 1970.
    pub fn at(millis: u64) -> Self {
        Self { now: Arc::new(AtomicU64::new(millis)) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.now.fetch_add(millis(by), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Result<u64> {
        Ok(self.now.load(Ordering::SeqCst))
    }
}

/// A duration in milliseconds, saturated at `u64::MAX`.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
