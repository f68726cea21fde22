//! One application of five tables and twelve indexes, declared with keyloom and with its peers.
//!
//! ```text
//! cargo bench -p keyloom-compare --features declarations --bench declarations
//! cargo run --manifest-path benches/compare/declarations/sqlx/Cargo.toml
//! ```
//!
//! Every store is filled with the same records and must return what keyloom returns. Nothing is
//! timed. The second program checks sqlx, which needs another version of SQLite than toasty and
//! rusqlite.

#![allow(missing_docs, dead_code, clippy::unwrap_used, clippy::indexing_slicing)]
// The error type of native_db is large.
#![allow(clippy::result_large_err)]

mod application;
mod native_db;
mod toasty;

use self::application::{ByHand, Peer, check, print_table};
use self::native_db::NativeDb;
use self::toasty::Toasty;

fn main() {
    check::<ByHand>();
    check::<NativeDb>();
    check::<Toasty>();
    print_table(&[
        (NativeDb::NAME, NativeDb::FILE),
        (Toasty::NAME, Toasty::FILE),
        ("sqlx and SQLite", include_str!("sqlx.rs")),
    ]);
}
