//! Stamps, which identify and order updates.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// The stamp of an update: ordered by time, then by writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    pub(super) time_us: u64,
    pub(super) writer: u64,
}

/// Creates the stamps of one writer. Each stamp is later than the previous stamp and than all
/// stamps that the update has read, even if the clock goes backwards.
///
/// ```
/// use keyloom_tables::property_index::Stamps;
/// // With a clock of one's own, for tests.
/// let stamps = Stamps::with_clock(7, || 1_000_000);
/// ```
pub struct Stamps {
    writer: u64,
    last_us: u64,
    clock: Box<dyn Fn() -> u64 + Send>,
}

impl Stamps {
    /// Creates stamps from the system clock.
    ///
    /// `writer` is a number that no other writer uses at the same time, such as 64 random bits, or
    /// a number made from the machine, the process and the thread. If two writers use the same
    /// number, updates are lost.
    pub fn new(writer: u64) -> Self {
        let clock = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
        };
        Self::with_clock(writer, clock)
    }

    /// Creates stamps from a clock that returns microseconds.
    pub fn with_clock(writer: u64, clock: impl Fn() -> u64 + Send + 'static) -> Self {
        Self { writer, last_us: 0, clock: Box::new(clock) }
    }

    /// The current time of the clock.
    pub(super) fn now_us(&self) -> u64 {
        (self.clock)()
    }

    /// A stamp that is newer than `seen`.
    pub(super) fn next_after(&mut self, seen: Option<Stamp>) -> Stamp {
        let seen = seen.map_or(0, |stamp| stamp.time_us);
        self.last_us = self.now_us().max(self.last_us.max(seen).saturating_add(1));
        Stamp { time_us: self.last_us, writer: self.writer }
    }
}

impl fmt::Debug for Stamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stamps")
            .field("writer", &self.writer)
            .field("last_us", &self.last_us)
            .finish_non_exhaustive()
    }
}
