//! Committed transactions are serializable, in an order that agrees with the clock.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod checking;
mod controls;
mod stores;
