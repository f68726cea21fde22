//! Tests of locking, one module per subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bad_input;
mod costs;
mod deadlocks;
mod error_names;
mod expiry;
mod fairness;
mod faults;
mod fencing;
mod inspection;
mod interleavings;
mod queue;
mod rate_limits;
mod recipes;
mod schedules;
mod sessions;
mod support;
mod threads;
mod versions;
mod work;
