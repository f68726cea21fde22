//! The laws of keys, one file per law.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod distinct;
mod examples;
mod hostile;
mod order;
mod other_types;
mod python;
mod round_trip;
mod subspaces;
mod values;
