//! Two programs with different record types: each reads the other's records as the same values, or
//! is refused.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod changes;
mod dynamic;
mod model;
mod pairs;
mod verdict;
