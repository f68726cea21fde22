//! Refused locks change nothing.

use keyloom::{Error, Memory};
use keyloom_locking::{LeaseOptions, Lock, LockPath, Session};
use keyloom_testing::laws;
use std::time::Duration;

use super::support::{Bench, exclusive, path, refused};

#[test]
fn bad_locks_are_refused_with_a_remedy() {
    let store = Memory::new();
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    let before = laws::dump_all(&store);
    let deep = LockPath::of((0..65).map(|n: u32| n));
    let cases = [
        (Lock::exclusive_range(path("a"), 5, 5), "the end of a range is after its beginning"),
        (Lock::shared_range(path("a"), "b", "a"), "the end of a range is after its beginning"),
        (Lock::exclusive(path("a").child(None::<u8>)), "a name may not be null"),
        (Lock::exclusive_range(path("a"), None::<u8>, 1), "a name may not be null"),
        (Lock::exclusive(deep), "a path has at most 64 levels"),
    ];
    for (lock, why) in cases {
        let text = refused(bench.try_lock(ada, &lock)).to_string();
        assert!(text.ends_with(why), "{text}");
    }
    let text = refused(keyloom::Store::transact(&store, |txn| bench.locks.try_lock(txn, ada, &[])));
    assert!(text.to_string().contains("at least one lock"));
    let long = exclusive(&"x".repeat(600));
    let error = bench.try_lock(ada, &long).unwrap_err();
    assert!(error.to_string().contains("511"), "{error}");
    assert!(error.downcast_ref::<keyloom_locking::LockError>().is_none());
    assert_eq!(laws::dump_all(&store), before);
}

#[test]
fn an_ended_session_locks_nothing() {
    let store = Memory::new();
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    bench.let_leases_end();
    assert!(refused(bench.try_lock(ada, &exclusive("a"))).to_string().contains("has ended"));
    assert!(refused(bench.renew(ada)).to_string().contains("open a new session"));
    assert!(refused(bench.try_lock(12345, &exclusive("a"))).to_string().contains("12345"));
}

#[test]
fn bad_sessions_are_refused_with_a_remedy() {
    let store = Memory::new();
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    let before = laws::dump_all(&store);
    let begin = |name, lease| {
        let options = LeaseOptions { lease, ..LeaseOptions::default() };
        Session::begin_with(&store, &bench.locks, name, options).map(drop)
    };
    let nul = begin("a\0b", Duration::from_secs(10)).unwrap_err().to_string();
    assert!(nul.contains(r"a\0b") && nul.contains("leave the NUL out"), "{nul}");
    for lease in [Duration::ZERO, Duration::from_micros(500), Duration::from_micros(29_999)] {
        let begun = begin("ada", lease).unwrap_err();
        let renewed =
            keyloom::Store::transact(&store, |txn| bench.locks.renew(txn, ada, lease)).unwrap_err();
        for text in [begun.to_string(), renewed.to_string()] {
            let value = format!("{lease:?}");
            assert!(text.contains(&value) && text.contains("less than 30 ms"), "{text}");
        }
    }
    assert_eq!(laws::dump_all(&store), before);
    begin("ada", Duration::from_millis(30)).unwrap();
}

#[test]
fn another_schema_is_refused() {
    let store = Memory::new();
    let schema = keyloom_tables::Schema::open(&store, "shop").unwrap();
    schema.table::<String, u32>("locks_requests").unwrap();
    let error = keyloom_locking::Locks::open(
        &keyloom_tables::Schema::open(&store, "shop").unwrap(),
        "locks",
    );
    let error: Error = error.unwrap_err();
    assert!(error.to_string().contains("locks_requests"), "{error}");
}
