//! A store on FoundationDB: laws, costs and limits, on a real cluster.
//!
//! `FDB_CLUSTER_FILE` names the cluster file. Without it the tests are skipped, and the last line
//! says so; with `KEYLOOM_REQUIRE_SERVERS=1` this is a failure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[cfg(feature = "foundationdb")]
mod conflicts;
#[cfg(feature = "foundationdb")]
mod interoperability;
#[cfg(feature = "foundationdb")]
mod isolated;
#[cfg(feature = "foundationdb")]
mod laws;
#[cfg(feature = "foundationdb")]
mod limits;
#[cfg(feature = "foundationdb")]
mod opening;
#[cfg(feature = "foundationdb")]
mod round_trips;

#[cfg(feature = "foundationdb")]
mod cluster {
    use keyloom::Error;

    pub use keyloom_on_servers::contract::{key, plant, waits};

    /// A fresh store; returns from the test if there is no cluster.
    macro_rules! fresh {
        () => {
            match keyloom_testing::servers::stores::foundationdb::open() {
                Some(store) => store,
                None => return,
            }
        };
    }
    pub(crate) use fresh;

    pub fn is_conflict(result: &keyloom::Result<()>) -> bool {
        matches!(result, Err(Error::Conflict { .. }))
    }
}

#[cfg(not(feature = "foundationdb"))]
#[test]
fn every_test_of_the_server() {
    keyloom_testing::servers::skip("built without the feature `foundationdb`");
}
