//! A store on FoundationDB: the laws, the costs and the limits, on a real cluster.
//!
//! The cluster is the one whose file `FDB_CLUSTER_FILE` names. Without it nothing is tested and each test says
//! so, unless `KEYLOOM_REQUIRE_SERVERS=1` makes that a failure.
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
#[path = "../servers/mod.rs"]
mod servers;

#[cfg(feature = "foundationdb")]
mod cluster {
    use keyloom::{Error, FoundationDb, Store, Writer};

    /// A fresh store, or the end of the test.
    macro_rules! fresh {
        () => {
            match crate::servers::stores::foundationdb::open() {
                Some(store) => store,
                None => return,
            }
        };
    }
    pub(crate) use fresh;

    /// Four digits, so that keys are in the order of their numbers.
    pub fn key(n: usize) -> Vec<u8> {
        format!("key {n:04}").into_bytes()
    }

    /// Puts `key(0)` to `key(count - 1)`.
    pub fn plant(store: &FoundationDb, count: usize) {
        store.transact(|txn| (0..count).try_for_each(|n| txn.put(&key(n), b"planted"))).unwrap();
    }

    /// How often `work` waits for the cluster.
    pub fn waits<T>(store: &FoundationDb, work: impl FnOnce() -> T) -> (T, u64) {
        let before = store.round_trips().unwrap();
        let done = work();
        (done, store.round_trips().unwrap() - before)
    }

    pub fn is_conflict(result: &keyloom::Result<()>) -> bool {
        matches!(result, Err(Error::Conflict { .. }))
    }
}

#[cfg(not(feature = "foundationdb"))]
#[test]
fn skipped() {
    // Past what the test harness keeps to itself.
    let _ = std::io::Write::write_all(
        &mut std::io::stderr(),
        b"skipped: built without the feature \"foundationdb\"\n",
    );
}
