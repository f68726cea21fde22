//! Every kind of derived data satisfies the laws of the conformance suite, and each broken kind
//! violates its law.
//!
//! All kinds on servers take minutes: `tests/servers/with.sh cargo test -p keyloom-patterns --test
//! derived_conformance --features keyloom-testing/postgres,keyloom-testing/etcd -- on_postgres
//! on_etcd`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod error_names;
mod kinds;
mod mutants;
