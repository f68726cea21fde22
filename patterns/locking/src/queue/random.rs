//! Random positions and turns.

use std::hash::{BuildHasher as _, RandomState};

/// A random number. Each `RandomState` of the standard library has random keys from the system, so
/// that two processes do not draw the same ids. A forked process inherits the keys of its parent,
/// but not its id.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
