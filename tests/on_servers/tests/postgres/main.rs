//! The store on PostgreSQL, on a real server.
//!
//! `tests/servers/with.sh cargo test -p keyloom-on-servers --features postgres --test postgres`
//! starts one. Any other server with the same protocol can be used:
//! `KEYLOOM_POSTGRES=postgres://user@host/database`; the tests make and drop tables whose names
//! begin with `keyloom_test_`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[cfg(feature = "postgres")]
mod conflicts;
#[cfg(feature = "postgres")]
mod conformance;
#[cfg(feature = "postgres")]
mod failures;
#[cfg(feature = "postgres")]
mod isolated;
#[cfg(feature = "postgres")]
mod opening;
#[cfg(feature = "postgres")]
mod round_trips;
#[cfg(feature = "postgres")]
mod secure;
#[cfg(feature = "postgres")]
mod waits;

#[cfg(not(feature = "postgres"))]
#[test]
fn every_test_of_the_server() {
    keyloom_testing::servers::skip("built without the feature `postgres`");
}
