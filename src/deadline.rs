//! One time limit for all waits of a call.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

/// A common time limit for all waits of a call. It starts with the first wait.
#[derive(Debug)]
pub(crate) struct Deadline<'o> {
    patience: Duration,
    begun: OnceCell<Instant>,
    outer: Option<&'o Deadline<'o>>,
}

impl Deadline<'_> {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, begun: OnceCell::new(), outer: None }
    }

    /// A deadline for some of the waits. It passes no later than this one.
    pub(crate) fn within(&self, patience: Duration) -> Deadline<'_> {
        Deadline { patience, begun: OnceCell::new(), outer: Some(self) }
    }

    /// The remaining time.
    pub(crate) fn left(&self) -> Duration {
        let left = self.patience.saturating_sub(self.waited());
        self.outer.map_or(left, |outer| outer.left().min(left))
    }

    /// The time since the first wait began.
    pub(crate) fn waited(&self) -> Duration {
        self.begun.get_or_init(Instant::now).elapsed()
    }

    /// The time waited once the deadline has passed: the patience, or less if the outer deadline
    /// passed first.
    pub(crate) fn waited_ms(&self) -> u64 {
        u64::try_from(self.waited().min(self.patience).as_millis()).unwrap_or(u64::MAX)
    }
}
