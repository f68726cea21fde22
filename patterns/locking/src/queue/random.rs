//! Random positions and turns.

use std::hash::{BuildHasher as _, RandomState};

/// A random number. `RandomState` of the standard library takes its keys from the random source of
/// the system, so two processes do not draw the same numbers. A forked process inherits the keys of
/// its parent, but not the process id, which is hashed.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
