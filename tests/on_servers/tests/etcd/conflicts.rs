//! What two concurrent transactions may do, and what not.

use keyloom::{Error, KeyRange, Order, Reader, Store, Transaction, Writer};
use keyloom_etcd::Etcd;

use crate::server::{fresh, is_conflict, key, plant};

/// The outcome of a transaction that calls `read` and then writes, while `meanwhile` commits first.
fn outcome(
    store: &Etcd,
    read: impl FnOnce(&<Etcd as Store>::Transaction<'_>),
    meanwhile: impl FnMut(&mut <Etcd as Store>::Transaction<'_>) -> keyloom::Result<()>,
) -> keyloom::Result<()> {
    let mut txn = store.begin().unwrap();
    read(&txn);
    store.transact(meanwhile).unwrap();
    txn.put(b"written", b"").unwrap();
    txn.commit()
}

#[test]
fn a_key_that_was_read_must_not_change() {
    let (store, _cleanup) = fresh!();
    plant(&store, 10);
    let read = |txn: &<Etcd as Store>::Transaction<'_>| {
        txn.get(&key(3)).unwrap();
        txn.get(b"absent").unwrap();
    };
    assert!(is_conflict(&outcome(&store, read, |txn| txn.put(&key(3), b"new"))));
    assert!(is_conflict(&outcome(&store, read, |txn| txn.put(&key(3), b"new"))), "the same value");
    assert!(is_conflict(&outcome(&store, read, |txn| txn.delete(&key(3)))));
    assert!(is_conflict(&outcome(&store, read, |txn| txn.put(b"absent", b""))));
    store.transact(|txn| txn.delete(b"absent")).unwrap();
    outcome(&store, read, |txn| txn.put(&key(4), b"new")).unwrap();
    outcome(&store, read, |txn| txn.delete(b"absent")).unwrap();
    outcome(&store, |_| (), |txn| txn.put(b"written", b"first")).unwrap();
}

#[test]
fn a_range_that_was_read_must_not_change() {
    let (store, _cleanup) = fresh!();
    plant(&store, 10);
    let range = || KeyRange::half_open(b"key 0003", b"key 0006");
    let walk = |txn: &<Etcd as Store>::Transaction<'_>| {
        assert!(txn.range(range(), Order::Ascending).unwrap().count() > 0);
    };
    let count = |txn: &<Etcd as Store>::Transaction<'_>| {
        assert!(txn.count(range()).unwrap() > 0);
    };
    let many = |txn: &<Etcd as Store>::Transaction<'_>| {
        let ranges = [KeyRange::prefix(b"absent"), range()];
        assert!(!txn.range_many(&ranges, 5).unwrap()[1].entries.is_empty());
    };
    for read in [&walk as &dyn Fn(&<Etcd as Store>::Transaction<'_>), &count, &many] {
        assert!(is_conflict(&outcome(&store, read, |txn| txn.put(&key(5), b"new"))), "changed");
        assert!(is_conflict(&outcome(&store, read, |txn| txn.put(b"key 0003x", b""))), "phantom");
        assert!(is_conflict(&outcome(&store, read, |txn| txn.delete(b"key 0003x"))), "deleted");
        assert!(is_conflict(&outcome(&store, read, |txn| txn.delete_range(range()))));
        plant(&store, 10);
        outcome(&store, read, |txn| txn.put(&key(6), b"behind")).unwrap();
        outcome(&store, read, |txn| txn.delete(&key(2))).unwrap();
    }
}

#[test]
fn of_a_range_only_what_was_fetched_counts() {
    let (store, _cleanup) = fresh!();
    plant(&store, 1_000);
    let beginning = |txn: &<Etcd as Store>::Transaction<'_>| {
        txn.page(KeyRange::all(), Order::Ascending, 10).unwrap();
    };
    let beginnings = |txn: &<Etcd as Store>::Transaction<'_>| {
        let ranges = [KeyRange::all(), KeyRange::half_open(b"key 0600", b"key 0700")];
        txn.range_many(&ranges, 10).unwrap();
    };
    for read in [&beginning as &dyn Fn(&<Etcd as Store>::Transaction<'_>), &beginnings] {
        outcome(&store, read, |txn| txn.put(&key(500), b"")).unwrap();
        assert!(is_conflict(&outcome(&store, read, |txn| txn.put(b"key 0003x", b""))));
        assert!(is_conflict(&outcome(&store, read, |txn| txn.delete(b"key 0003x"))));
    }
    assert!(is_conflict(&outcome(&store, beginnings, |txn| txn.put(&key(605), b""))));
    outcome(&store, beginnings, |txn| txn.put(&key(650), b"")).unwrap();
    let end = |txn: &<Etcd as Store>::Transaction<'_>| {
        txn.page(KeyRange::prefix(b"key"), Order::Descending, 10).unwrap();
    };
    outcome(&store, end, |txn| txn.put(&key(500), b"")).unwrap();
    assert!(is_conflict(&outcome(&store, end, |txn| txn.put(b"key 1", b""))));
}

#[test]
fn a_conflict_names_the_key() {
    let (store, _cleanup) = fresh!();
    plant(&store, 10);
    let what = |result: keyloom::Result<()>| match result {
        Err(Error::Conflict { what }) => what,
        other => panic!("{other:?}"),
    };
    let read = |txn: &<Etcd as Store>::Transaction<'_>| {
        txn.get(&key(1)).unwrap();
        txn.get(&key(2)).unwrap();
        txn.count(KeyRange::prefix(b"x")).unwrap();
    };
    let said = what(outcome(&store, read, |txn| txn.put(&key(2), b"new")));
    assert!(said.contains("0002") || said.contains("6b657920"), "{said}");
    let said = what(outcome(&store, read, |txn| txn.put(b"xyz", b"new")));
    assert!(said.ends_with("in a range that it had read"), "{said}");
}

#[test]
fn all_reads_of_a_transaction_are_of_one_moment() {
    let (store, _cleanup) = fresh!();
    plant(&store, 10);
    let txn = store.begin().unwrap();
    // Before its first read, a transaction has no snapshot.
    store.transact(|txn| txn.put(&key(0), b"before")).unwrap();
    assert_eq!(txn.get(&key(0)).unwrap().unwrap(), &b"before"[..]);
    store.transact(|txn| (0..10).try_for_each(|n| txn.put(&key(n), b"after"))).unwrap();
    assert_eq!(txn.get(&key(1)).unwrap().unwrap(), &b"planted"[..]);
    let range = txn.range(KeyRange::all(), Order::Ascending).unwrap();
    assert!(range.map(Result::unwrap).all(|(_, value)| value != b"after"[..]));
    txn.commit().unwrap();
}

/// Another transaction commits while the body runs for the first time.
#[test]
fn a_body_that_lost_a_race_runs_again() {
    let (store, _cleanup) = fresh!();
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
fn counters_of_many_threads_lose_nothing() {
    let (store, _cleanup) = fresh!();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| store.transact(|txn| txn.add(b"n", 1)).unwrap()));
        }
    });
    assert_eq!(store.snapshot().unwrap().counter(b"n").unwrap(), 40);
}

/// The first read of a transaction may be many requests, but all of them read at one revision.
#[test]
fn many_keys_are_of_one_moment_while_others_commit() {
    let (store, _cleanup) = fresh!();
    let keys: Vec<_> = (0..300).map(key).collect();
    let put = |round: u32| {
        store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, &round.to_be_bytes())))
    };
    put(0).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..60).try_for_each(put));
        while !writer.is_finished() {
            let values = store.begin().unwrap().get_many(&keys).unwrap();
            assert!(values.iter().all(|value| value == &values[0]), "of several moments");
        }
        writer.join().unwrap().unwrap();
    });
}
