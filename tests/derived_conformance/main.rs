//! Every kind of derived data keeps the laws of the conformance suite, and each broken kind breaks its law.
//!
//! All kinds on servers take minutes:
//! `tests/servers/with.sh cargo test --features postgres,etcd --test derived_conformance -- on_postgres on_etcd`.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod kinds;
mod mutants;
#[cfg(any(feature = "postgres", feature = "etcd"))]
#[path = "../servers/mod.rs"]
mod servers;
