//! Two programs whose record types differ: what one has written, the other reads as the same value,
//! or is refused.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod changes;
mod dynamic;
mod model;
mod pairs;
mod verdict;
