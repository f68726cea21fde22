//! Measures the costs of a remote store: how often an operation waits for the server, and how often
//! a transaction runs when many writers conflict. The book's chapters on remote stores contain the
//! tables that it prints.
//!
//! ```text
//! cargo run --release -p keyloom-examples --bin far_away
//! cargo run --release -p keyloom-examples --bin far_away \
//!     --features postgres,etcd -- postgres://user@host/database
//! cargo run --release -p keyloom-examples --bin far_away \
//!     --features foundationdb -- fdb:CLUSTER_FILE
//! ```
//!
//! All data is in the subspace `far_away`, which is cleared before and after.

mod meeting;
mod patterns;
mod waits;

use std::error::Error;
use std::process::ExitCode;

use keyloom::{AnyStore, Memory, Metered, Store, Subspace, Writer};

/// The store of all steps.
type FarStore = Metered<AnyStore>;
type FarResult<T = ()> = Result<T, Box<dyn Error>>;

const BACKENDS: &[(&str, fn(&str) -> keyloom::Result<AnyStore>)] = &[
    #[cfg(feature = "postgres")]
    ("postgres", keyloom_postgres::Postgres::open_address),
    #[cfg(feature = "etcd")]
    ("etcd", keyloom_etcd::Etcd::open_address),
    #[cfg(feature = "foundationdb")]
    ("fdb", keyloom_foundationdb::FoundationDb::open_address),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("far_away: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> FarResult {
    let store = match std::env::args().nth(1) {
        Some(address) => AnyStore::open_with(&address, BACKENDS)?,
        None => Memory::builder().optimistic(true).build().into(),
    };
    println!("store      {store}");
    let store = Metered::new(store);
    let space = Subspace::new("far_away");
    store.transact(|txn| txn.delete_range(space.range()))?;
    waits::print(&store, &space.child("waits"))?;
    meeting::print(&store, &space.child("meeting"))?;
    patterns::print(&store, &space.child("patterns"))?;
    Ok(store.transact(|txn| txn.delete_range(space.range()))?)
}
