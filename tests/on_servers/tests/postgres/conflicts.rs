//! Which transactions conflict, which do not, and what happens then.

use keyloom::{Error, KeyRange, Order, Reader, Store, Transaction, Writer};
use keyloom_postgres::Postgres;

use keyloom_testing::servers::stores::postgres::open;
use keyloom_testing::servers::{self, Server, or_skip};

#[test]
fn conflict_is_reported_and_retryable() {
    let Some(store) = open() else { return };
    store.transact(|txn| txn.put(b"a", b"0")).unwrap();
    let mut one = store.begin().unwrap();
    assert!(one.get(b"a").unwrap().is_some());
    one.put(b"a", b"1").unwrap();
    store.transact(|txn| txn.put(b"a", b"2")).unwrap();
    let error = one.commit().unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert!(error.is_retryable() && !error.maybe_committed());
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap().as_deref(), Some(&b"2"[..]));

    // A statement in the middle may be refused; then all later statements are refused.
    let mut two = store.begin().unwrap();
    assert!(two.get(b"a").unwrap().is_some());
    store.transact(|txn| txn.put(b"a", b"3")).unwrap();
    let refused = (0..20_000_u32).try_for_each(|n| {
        two.put(b"a", &n.to_be_bytes()).and_then(|()| two.put(&n.to_be_bytes(), b""))
    });
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert!(two.must_restart());
    assert!(matches!(two.get(b"b").unwrap_err(), Error::Conflict { .. }));
    assert!(matches!(two.commit().unwrap_err(), Error::Conflict { .. }));
}

/// Another transaction commits while the body runs for the first time.
#[test]
fn a_body_that_lost_a_race_runs_again() {
    let Some(store) = open() else { return };
    store.transact(|txn| txn.put(b"n", b"0")).unwrap();
    let mut seen = Vec::new();
    let done = store.transact(|txn| {
        seen.push(txn.get(b"n")?.map(|value| value.to_vec()));
        if seen.len() == 1 {
            store.transact(|other| other.put(b"n", b"1"))?;
        }
        txn.put(b"n", b"2")
    });
    done.unwrap();
    assert_eq!(seen, [Some(b"0".to_vec()), Some(b"1".to_vec())]);
    assert_eq!(store.snapshot().unwrap().get(b"n").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn transactions_on_other_keys_of_a_small_table_do_not_conflict() {
    let Some(store) = open() else { return };
    store.transact(|txn| (0..5_000_u32).try_for_each(|n| txn.put(&n.to_be_bytes(), b"0"))).unwrap();
    let key = |n: u32| (n * 2_500 + 1_000).to_be_bytes();
    let mut both = [store.begin().unwrap(), store.begin().unwrap()];
    for (n, txn) in (0..).zip(&mut both) {
        assert!(txn.get(&key(n)).unwrap().is_some());
        let near = (key(n), (n * 2_500 + 1_010).to_be_bytes());
        let range = KeyRange::half_open(&near.0, &near.1);
        assert_eq!(txn.range(range, Order::Ascending).unwrap().count(), 10);
        txn.put(&key(n), b"1").unwrap();
    }
    for txn in both {
        txn.commit().unwrap();
    }
}

/// A refused commit has ended the transaction. A `ROLLBACK` after it would log a warning on the
/// server for each conflict.
#[test]
fn a_refused_commit_leaves_no_warning_in_the_log() {
    const CONFLICTS: usize = 10;
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let store = Postgres::options().max_connections(2).open(&server.address()).unwrap();
    store.transact(|txn| txn.put(b"a", b"0").and(txn.put(b"b", b"0"))).unwrap();
    let is_conflict = |result| matches!(result, Err(Error::Conflict { .. }));
    for _ in 0..CONFLICTS {
        // Refused at the write that is sent with the commit.
        let mut one = store.begin().unwrap();
        one.get(b"a").unwrap();
        one.put(b"a", b"1").unwrap();
        store.transact(|txn| txn.put(b"a", b"2")).unwrap();
        assert!(is_conflict(one.commit()));
        // Refused at the commit: each transaction reads what the other writes, and the second one
        // has too many writes to send them with the commit.
        let mut both = [store.begin().unwrap(), store.begin().unwrap()];
        for (txn, (read, written)) in both.iter_mut().zip([(b"a", b"b"), (b"b", b"a")]) {
            txn.get(read).unwrap();
            txn.put(written, b"3").unwrap();
        }
        let [one, mut two] = both;
        two.put(b"long", &vec![0; 2 << 20]).unwrap();
        one.commit().unwrap();
        assert!(is_conflict(two.commit()));
    }
    // Every connection is back in the pool, and usable.
    drop([store.snapshot().unwrap(), store.snapshot().unwrap()]);
    let log = server.log();
    assert_eq!(log.matches("ERROR:  could not serialize").count(), 2 * CONFLICTS, "{log}");
    assert_eq!(log.matches("during commit attempt").count(), CONFLICTS, "{log}");
    assert_eq!(log.matches("WARNING:").count(), 0, "{log}");
}

#[test]
fn a_snapshot_never_conflicts() {
    let Some(store) = open() else { return };
    let snapshot = store.snapshot().unwrap();
    for n in 0..50_u8 {
        store.transact(|txn| txn.put(&[b'k', n], b"").and(txn.put(b"n", &[n]))).unwrap();
        assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 0);
    }
}
