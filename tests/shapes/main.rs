//! The shapes of record types, and which types can read records of which.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod bad_input;
mod types;
