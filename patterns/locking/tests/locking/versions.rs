//! Locks whose index was written by an earlier version of the crate.

use keyloom::{Memory, Store};
use keyloom_locking::{LockError, Request, SessionRecord};
use keyloom_tables::{Schema, entry};

use super::support::{Bench, exclusive, refused};

/// Writes an index of version 1. Its contents do not matter, since version 2 replaces them.
fn write_first_version(store: &Memory) {
    let schema = Schema::open(store, "shop").unwrap();
    let requests = schema.table::<(u64, u64), Request>("locks_requests").unwrap();
    let claims = schema.index(&requests, "claims", 1, |_, request| entry(request.token)).unwrap();
    let sessions = schema.table::<u64, SessionRecord>("locks_sessions").unwrap();
    let early = SessionRecord { name: "early".into(), started: 0, expires: u64::MAX, grace: 0 };
    let request = Request { locks: vec![exclusive("a/b")], token: 1, since: 0 };
    store
        .transact(|txn| {
            sessions.put(txn, &1, &early)?;
            claims.table().put(txn, &(1, 200), &request)
        })
        .unwrap();
}

#[test]
fn locks_of_the_first_version_are_held_after_a_build() {
    let store = Memory::new();
    write_first_version(&store);
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    let lock = exclusive("a/b");
    for locks in [&lock, &exclusive("c")] {
        let error = refused(bench.try_lock(ada, locks));
        assert!(matches!(error, LockError::NotBuilt { .. }), "{error}");
        assert!(error.to_string().contains("`Locks::build`"), "{error}");
    }
    bench.locks.build(&store).unwrap();
    bench.try_lock(ada, &exclusive("c")).unwrap();
    let error = refused(bench.try_lock(ada, &lock)).to_string();
    assert!(error.contains(r#"session "early" holds X on /"a"/"b""#), "{error}");
    bench.locks.build(&store).unwrap();
}
