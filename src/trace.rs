//! The spans and events of the feature `tracing`. Without the feature, these functions do nothing.

use std::fmt::Display;
use std::time::Duration;

/// The span of a running transaction, entered until this is dropped.
pub(crate) struct Running {
    #[cfg(feature = "tracing")]
    span: tracing::span::EnteredSpan,
}

#[cfg(feature = "tracing")]
impl Running {
    pub(crate) fn transaction() -> Self {
        let attempts = tracing::field::Empty;
        let span = tracing::debug_span!(target: "keyloom", "transaction", attempts);
        Self { span: span.entered() }
    }

    /// Reports that another attempt begins after a pause.
    pub(crate) fn runs_again(&self, attempt: u32, pause: Duration, reason: &dyn Display) {
        let pause_ms = pause.as_secs_f64() * 1e3;
        tracing::debug!(target: "keyloom", attempt, pause_ms, %reason, "transaction runs again");
    }

    /// Records the number of attempts, at the end.
    pub(crate) fn ended(&self, attempts: u32) {
        self.span.record("attempts", attempts);
    }

    /// Reports that there is no further attempt.
    pub(crate) fn gave_up(&self, attempts: u32, reason: &dyn Display) {
        self.ended(attempts);
        tracing::warn!(target: "keyloom", attempts, %reason, "transaction gave up");
    }
}

#[cfg(not(feature = "tracing"))]
#[allow(clippy::unused_self)]
impl Running {
    pub(crate) fn transaction() -> Self {
        Self {}
    }

    pub(crate) fn runs_again(&self, _: u32, _: Duration, _: &dyn Display) {}

    pub(crate) fn ended(&self, _: u32) {}

    pub(crate) fn gave_up(&self, _: u32, _: &dyn Display) {}
}

/// Reports a batch of transactions that were committed together.
#[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
pub(crate) fn batch(transactions: usize, restarts: usize) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "keyloom", transactions, restarts, "batch committed");
}
