//! Lock modes and which of them exclude each other.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The mode of a lock.
///
/// | | IS | IX | S | SIX | X |
/// |---|---|---|---|---|---|
/// | **IS** | yes | yes | yes | yes | |
/// | **IX** | yes | yes | | | |
/// | **S** | yes | | yes | | |
/// | **SIX** | yes | | | | |
/// | **X** | | | | | |
///
/// "Yes" means that two sessions can hold both at once. A session never excludes itself.
///
/// ```
/// use keyloom_locking::Mode;
/// assert!(Mode::Shared.is_compatible(Mode::Shared));
/// assert!(!Mode::Shared.is_compatible(Mode::IntentExclusive));
/// assert_eq!(Mode::Shared.with(Mode::IntentExclusive), Mode::SharedIntentExclusive);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mode {
    /// IS: the session has shared locks below.
    IntentShared,
    /// IX: the session has exclusive or shared locks below.
    IntentExclusive,
    /// S: the session reads the resource and everything below it.
    Shared,
    /// SIX: the session reads everything, and has exclusive locks on parts below.
    SharedIntentExclusive,
    /// X: the session changes the resource and everything below it.
    Exclusive,
}

impl Mode {
    pub(crate) const ALL: [Self; 5] = [
        Self::IntentShared,
        Self::IntentExclusive,
        Self::Shared,
        Self::SharedIntentExclusive,
        Self::Exclusive,
    ];

    /// Whether two sessions can hold these modes on one resource at once.
    pub fn is_compatible(self, other: Self) -> bool {
        use Mode::{Exclusive, IntentExclusive, IntentShared, Shared, SharedIntentExclusive};
        match (self.min(other), self.max(other)) {
            (_, Exclusive) => false,
            (IntentShared, _) => true,
            (IntentExclusive, IntentExclusive) | (Shared, Shared) => true,
            (IntentExclusive | Shared | SharedIntentExclusive | Exclusive, _) => false,
        }
    }

    /// The weakest mode that permits everything that either mode permits.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self.min(other), self.max(other)) {
            (Self::IntentExclusive, Self::Shared) => Self::SharedIntentExclusive,
            (_, stronger) => stronger,
        }
    }

    /// Whether this mode permits everything that `other` permits.
    pub fn includes(self, other: Self) -> bool {
        self.with(other) == self
    }

    /// The mode that the ancestors of a resource need.
    #[must_use]
    pub fn intention(self) -> Self {
        match self {
            Self::IntentShared | Self::Shared => Self::IntentShared,
            _ => Self::IntentExclusive,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IntentShared => "IS",
            Self::IntentExclusive => "IX",
            Self::Shared => "S",
            Self::SharedIntentExclusive => "SIX",
            Self::Exclusive => "X",
        })
    }
}
