//! The server that the tests are given.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use keyloom::Postgres;
use keyloom::postgres::PostgresOptions;
use keyloom::{BoxedError, KeyRange, Store, Writer};

/// The address of the server, or why there is none.
pub fn address() -> Option<String> {
    let address = std::env::var("KEYLOOM_POSTGRES").ok();
    if address.is_none() {
        let why =
            "KEYLOOM_POSTGRES is not set; run tests/servers/with.sh cargo test --features postgres";
        assert!(std::env::var_os("KEYLOOM_REQUIRE_SERVERS").is_none(), "{why}");
        eprintln!("skipped: {why}");
    }
    address
}

/// A store in a table of its own, emptied when it goes.
pub struct Temporary(Postgres);

impl Deref for Temporary {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = self.0.transact(|txn| txn.delete_range(KeyRange::all()));
    }
}

/// A table name that no other test has.
pub fn fresh_table() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("keyloom_test_{}_{next}", std::process::id())
}

pub fn open(address: &str) -> Temporary {
    open_with(address, Postgres::options())
}

pub fn open_with(address: &str, options: PostgresOptions) -> Temporary {
    Temporary(options.table(fresh_table()).open(address).unwrap())
}

/// A store and what empties it.
pub fn fixture(address: &str) -> Result<(Postgres, Temporary), BoxedError> {
    let store = open(address);
    Ok((store.clone(), store))
}
