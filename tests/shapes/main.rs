//! The shapes of record types, and which types read the records of which.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod bad_input;
mod types;
