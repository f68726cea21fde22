//! The application declared with sqlx, as a separate program: see `../main.rs`.
//!
//! ```text
//! cargo run --manifest-path benches/compare/declarations/sqlx/Cargo.toml
//! ```

#![allow(missing_docs, dead_code, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "../application.rs"]
mod application;
#[path = "../sqlx.rs"]
mod with_sqlx;

use application::{Peer, check, print_table};
use with_sqlx::Sqlx;

fn main() {
    check::<Sqlx>();
    print_table(&[(Sqlx::NAME, Sqlx::FILE)]);
}
