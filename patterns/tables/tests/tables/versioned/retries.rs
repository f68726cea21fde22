//! Decisions outside of a transaction, which are repeated after a conflict.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use keyloom::{Error, Store, Subspace};
use keyloom_tables::{RecordConflict, VersionedTable};
use keyloom_testing::laws::{clear, dump_all};

type Numbers = VersionedTable<u8, u32>;

fn numbers() -> Numbers {
    VersionedTable::new(&Subspace::new("numbers"))
}

/// The change of another program to the record during the decision.
type Meanwhile = fn(Option<u32>) -> Option<u32>;

pub fn a_decision_is_made_again_after_each_conflict(store: &(impl Store + Clone)) {
    let table = numbers();
    let meanwhile: [Meanwhile; 3] = [
        // Changes or creates the record.
        |number| Some(number.unwrap_or(0) + 100),
        // Removes or creates the record.
        |number| number.map_or(Some(100), |_| None),
        // Changes the record if it exists.
        |number| number.map(|number| number + 100),
    ];
    for other in meanwhile {
        for before in [None, Some(1)] {
            for conflicts in 0..4 {
                for attempts in 1..5 {
                    clear(store);
                    store.transact(|txn| table.modify(txn, &1, |_| Ok(before))).unwrap();
                    check(store, &table, other, before, conflicts, attempts);
                }
            }
        }
    }
    let error = table.modify_retrying(store, &1, 0, |_| Ok(None)).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    let unchanged = dump_all(store);
    let error = table.modify_retrying(store, &1, 9, |_| Err(Error::other("no"))).unwrap_err();
    assert_eq!(error.to_string(), "no");
    assert_eq!(dump_all(store), unchanged);
}

/// Adds 1 while another program changes the record during the first `conflicts` decisions.
fn check(
    store: &impl Store,
    table: &Numbers,
    other: Meanwhile,
    before: Option<u32>,
    conflicts: u32,
    attempts: u32,
) {
    let mut decisions = 0;
    let mut expected = before;
    let mut is_disturbed = false;
    let result = table.modify_retrying(store, &1, attempts, |number| {
        assert_eq!(number.copied(), expected);
        decisions += 1;
        let changed = other(expected);
        // If there is no record before and after, there is no conflict.
        is_disturbed = decisions <= conflicts && changed != expected;
        if is_disturbed {
            store.transact(|txn| table.modify(txn, &1, |_| Ok(changed))).unwrap();
            expected = changed;
        }
        Ok(Some(number.copied().unwrap_or(0) + 1))
    });
    let found = table.get(&store.snapshot().unwrap(), &1).unwrap().map(|record| record.value);
    if is_disturbed {
        assert_eq!(decisions, attempts);
        let error = result.unwrap_err();
        assert!(error.downcast_ref::<RecordConflict<u32>>().is_some(), "{error}");
        assert_eq!(found, expected);
    } else {
        assert!(decisions <= attempts);
        assert!(result.unwrap().is_some());
        assert_eq!(found, Some(expected.unwrap_or(0) + 1));
    }
}

pub fn decisions_of_threads_lose_no_update(store: &(impl Store + Clone)) {
    clear(store);
    let (table, decisions) = (numbers(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let add = |number: Option<&u32>| {
                        decisions.fetch_add(1, Ordering::Relaxed);
                        Ok(Some(number.copied().unwrap_or(0) + 1))
                    };
                    table.modify_retrying(store, &1, 10_000, add).unwrap();
                }
            });
        }
    });
    assert_eq!(*table.get(&store.snapshot().unwrap(), &1).unwrap().unwrap(), 40);
    assert!(decisions.into_inner() >= 40);
}
