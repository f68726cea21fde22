//! The memory store in its strictest configuration: the limits and conflicts of other stores.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::thread::sleep;
use std::time::Duration;

use keyloom::{
    Error, KeyRange, Limits, MAX_KEY_BYTES, Memory, Order, Reader, Store, Transaction, Writer,
};

mod limits {
    use super::*;

    #[test]
    fn of_other_stores_are_reported_and_kept() {
        for limits in [Limits::foundationdb(), Limits::etcd()] {
            let store = Memory::builder().limits(limits).build();
            assert_eq!(store.limits(), limits);
            let most = vec![7; limits.max_value_bytes];
            let more = vec![7; limits.max_value_bytes + 1];
            let error = store.transact(|txn| txn.put(b"a", &more)).unwrap_err();
            assert!(matches!(error, Error::ValueTooLong { .. }), "{error}");
            assert!(error.to_string().contains("split it"), "{error}");
            // A value may be as large as a transaction, but then its key does not fit.
            if Some(most.len()) < limits.max_transaction_bytes {
                store.transact(|txn| txn.put(b"a", &most)).unwrap();
            }
        }
    }

    #[test]
    fn of_a_transaction_count_bytes_and_operations() {
        let mut limits = Limits::etcd();
        limits.max_transaction_operations = Some(128);
        let store = Memory::builder().limits(limits).build();
        store.transact(|txn| (0..128u8).try_for_each(|n| txn.put(&[n], b""))).unwrap();
        let mut txn = store.begin().unwrap();
        let error = (0..=255u8).find_map(|n| txn.put(&[n], b"new").err()).unwrap();
        assert!(txn.put(b"small", b"").is_err(), "once too large, it stays so");
        assert!(matches!(txn.commit(), Err(Error::TransactionTooLarge { .. })));
        let text = error.to_string();
        let expected = Error::TransactionTooLarge { unit: "operations", actual: 129, limit: 128 };
        assert_eq!(text, expected.to_string());
        assert!(text.contains("smaller transactions"), "{text}");
        let value = vec![7; 1_000_000];
        let error =
            store.transact(|txn| (0..2u8).try_for_each(|n| txn.put(&[n], &value))).unwrap_err();
        assert!(matches!(error, Error::TransactionTooLarge { unit: "bytes", .. }), "{error}");
        let snapshot = store.snapshot().unwrap();
        assert!((0..128u8).all(|n| snapshot.get(&[n]).unwrap() == Some(b"".as_slice())));
    }

    #[test]
    fn of_age_end_snapshots_and_transactions() {
        let mut limits = Limits::default();
        limits.max_age_ms = Some(500);
        let store = Memory::builder().limits(limits).build();
        let snapshot = store.snapshot().unwrap();
        let mut txn = store.begin().unwrap();
        txn.put(b"a", b"").unwrap();
        assert_eq!(snapshot.get(b"a").unwrap(), None);
        let mut open_walk = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
        sleep(Duration::from_millis(700));
        let too_old = |error: Error| {
            assert!(matches!(error, Error::TooOld { limit_ms: 500, .. }), "{error}");
            assert!(!error.is_retryable());
        };
        too_old(snapshot.get(b"a").unwrap_err());
        too_old(snapshot.range(KeyRange::all(), Order::Ascending).unwrap_err());
        too_old(open_walk.next().unwrap().unwrap_err());
        assert!(open_walk.next().is_none(), "what failed stays ended");
        too_old(txn.put(b"b", b"").unwrap_err());
        too_old(txn.commit().unwrap_err());
        assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 0);
    }

    #[test]
    fn of_age_do_not_count_the_wait_for_the_writer_before() {
        let mut limits = Limits::default();
        limits.max_age_ms = Some(1_000);
        let store = Memory::builder().limits(limits).build();
        std::thread::scope(|scope| {
            let first = store.begin().unwrap();
            let second = scope.spawn(|| store.transact(|txn| txn.put(b"a", b"")));
            sleep(Duration::from_millis(1_300));
            drop(first);
            second.join().unwrap().unwrap();
        });
    }

    #[test]
    fn default_to_the_key_length_of_every_backend() {
        assert_eq!(Memory::new().limits().max_key_bytes, MAX_KEY_BYTES);
    }
}

/// What two concurrent transactions may do on an optimistic store.
mod side_by_side {
    use super::*;

    type Step = fn(&mut keyloom::memory::MemoryTransaction<'_>);

    /// Begins two transactions, runs both, and commits the first. Returns whether the second one
    /// commits.
    fn second_commits(first: Step, second: Step) -> bool {
        let store = Memory::builder().optimistic(true).build();
        store
            .transact(|txn| {
                txn.put(b"b", b"")?;
                txn.put(b"d", b"")?;
                txn.put(b"n", &5i64.to_le_bytes())
            })
            .unwrap();
        let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
        first(&mut one);
        second(&mut two);
        // A read-only transaction is never refused.
        two.put(b"what the second one read", b"").unwrap();
        one.commit().unwrap();
        match two.commit() {
            Ok(()) => true,
            Err(error) => {
                assert!(matches!(error, Error::Conflict { .. }) && error.is_retryable(), "{error}");
                false
            }
        }
    }

    fn put(key: &'static [u8]) -> impl Fn(&mut keyloom::memory::MemoryTransaction<'_>) {
        move |txn| txn.put(key, b"new").unwrap()
    }

    #[test]
    fn a_read_that_was_overwritten_or_deleted_conflicts() {
        assert!(!second_commits(
            |txn| put(b"b")(txn),
            |txn| {
                txn.get(b"b").unwrap();
                put(b"x")(txn);
            }
        ));
        assert!(!second_commits(
            |txn| txn.delete(b"b").unwrap(),
            |txn| {
                txn.get(b"b").unwrap();
                put(b"x")(txn);
            }
        ));
        assert!(!second_commits(
            |txn| txn.delete_range(KeyRange::all()).unwrap(),
            |txn| {
                txn.get(b"b").unwrap();
            }
        ));
    }

    #[test]
    fn a_key_that_was_not_there_and_now_is_conflicts() {
        assert!(!second_commits(
            |txn| put(b"c")(txn),
            |txn| assert_eq!(txn.get(b"c").unwrap(), None)
        ));
    }

    #[test]
    fn a_phantom_in_a_range_that_was_walked_conflicts() {
        assert!(!second_commits(
            |txn| put(b"c")(txn),
            |txn| assert_eq!(txn.count(KeyRange::half_open(b"a", b"e")).unwrap(), 2)
        ));
    }

    #[test]
    fn what_lies_behind_the_end_of_a_walk_does_not_conflict() {
        // `first` reads only "b". "c" is after it, so an insert of "c" does not conflict.
        let first = |txn: &mut keyloom::memory::MemoryTransaction<'_>| {
            assert_eq!(txn.first(KeyRange::all()).unwrap().unwrap().0, b"b");
        };
        assert!(second_commits(|txn| put(b"c")(txn), first));
        assert!(!second_commits(|txn| put(b"a")(txn), first));
        let last = |txn: &mut keyloom::memory::MemoryTransaction<'_>| {
            assert_eq!(txn.last(KeyRange::half_open(b"a", b"e")).unwrap().unwrap().0, b"d");
        };
        assert!(second_commits(|txn| put(b"c")(txn), last));
        assert!(!second_commits(|txn| put(b"d\0")(txn), last));
    }

    #[test]
    fn a_range_that_was_opened_and_not_walked_does_not_conflict() {
        let open = |txn: &mut keyloom::memory::MemoryTransaction<'_>| {
            drop(txn.range(KeyRange::all(), Order::Ascending).unwrap());
        };
        assert!(second_commits(|txn| put(b"c")(txn), open));
    }

    #[test]
    fn a_walk_that_never_ended_counts_as_having_read_everything() {
        let forget = |txn: &mut keyloom::memory::MemoryTransaction<'_>| {
            std::mem::forget(txn.range(KeyRange::all(), Order::Ascending).unwrap());
        };
        assert!(!second_commits(|txn| put(b"z")(txn), forget));
    }

    #[test]
    fn blind_writes_do_not_conflict_and_the_later_commit_wins() {
        assert!(second_commits(|txn| put(b"b")(txn), |txn| put(b"b")(txn)));
        assert!(second_commits(|txn| txn.delete(b"b").unwrap(), |txn| put(b"d")(txn)));
    }

    #[test]
    fn read_only_transaction_commits_despite_concurrent_writes() {
        let store = Memory::builder().optimistic(true).build();
        let reader = store.begin().unwrap();
        assert_eq!(reader.count(KeyRange::all()).unwrap(), 0);
        store.transact(|txn| txn.put(b"a", b"")).unwrap();
        assert_eq!(reader.count(KeyRange::all()).unwrap(), 0);
        reader.commit().unwrap();
    }

    #[test]
    fn learning_that_something_is_no_counter_is_a_read() {
        let store = Memory::builder().optimistic(true).build();
        store.transact(|txn| txn.put(b"c", b"text")).unwrap();
        let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
        assert!(matches!(one.add(b"c", 1), Err(Error::NotACounter { .. })));
        one.put(b"seen", b"it is no counter").unwrap();
        two.put(b"c", &0i64.to_le_bytes()).unwrap();
        two.commit().unwrap();
        assert!(matches!(one.commit(), Err(Error::Conflict { .. })));
    }

    #[test]
    fn counters_add_up_without_a_conflict() {
        let store = Memory::builder().optimistic(true).build();
        let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
        one.add(b"n", 3).unwrap();
        two.add(b"n", 4).unwrap();
        two.max(b"m", 9).unwrap();
        one.commit().unwrap();
        two.commit().unwrap();
        assert_eq!(store.snapshot().unwrap().counter(b"n").unwrap(), 7);
        // A transaction that reads "c" conflicts.
        assert!(!second_commits(
            |txn| txn.add(b"n", 1).unwrap(),
            |txn| assert_eq!(txn.counter(b"n").unwrap(), 5)
        ));
    }

    #[test]
    fn the_log_of_commits_does_not_outgrow_what_is_open() {
        let store = Memory::builder().optimistic(true).build();
        for n in 0..1_000u32 {
            store.transact(|txn| txn.put(&n.to_be_bytes(), b"")).unwrap();
        }
        // A transaction that began before 1,000 others is still validated against all of them.
        let mut reader = store.begin().unwrap();
        reader.get(&7u32.to_be_bytes()).unwrap();
        reader.put(b"what it read", b"").unwrap();
        for n in 0..1_000u32 {
            store.transact(|txn| txn.put(&n.to_be_bytes(), b"x")).unwrap();
        }
        assert!(reader.commit().is_err());
        assert!(format!("{store:?}").contains("log: []"), "nothing is open, nothing is kept");
    }
}
