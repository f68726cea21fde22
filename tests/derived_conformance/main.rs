//! Every kind of derived data keeps the laws of the conformance suite, and each broken kind breaks its law.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod kinds;
mod mutants;
