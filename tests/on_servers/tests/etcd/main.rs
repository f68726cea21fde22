//! A store in an etcd cluster: laws, costs and limits, on real servers.
//!
//! The environment gives the servers: `KEYLOOM_ETCD=etcd://host:port,host:port/name`. Without it
//! the tests are skipped, and the last line says so; with `KEYLOOM_REQUIRE_SERVERS=1` this is a
//! failure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[cfg(feature = "etcd")]
mod conflicts;
#[cfg(feature = "etcd")]
mod escalation;
#[cfg(feature = "etcd")]
mod failures;
#[cfg(feature = "etcd")]
mod history;
#[cfg(feature = "etcd")]
mod isolated;
#[cfg(feature = "etcd")]
mod laws;
#[cfg(feature = "etcd")]
mod limits;
#[cfg(feature = "etcd")]
mod opening;
#[cfg(feature = "etcd")]
mod overlaps;
#[cfg(feature = "etcd")]
mod round_trips;
#[cfg(feature = "etcd")]
mod server;

#[cfg(not(feature = "etcd"))]
#[test]
fn every_test_of_the_server() {
    keyloom_testing::servers::skip("built without the feature `etcd`");
    let required = std::env::var("KEYLOOM_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
    assert!(!required, "built without the feature \"etcd\"");
}
