//! Every store and every wrapper satisfies the laws of the store.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use keyloom::{
    AnyStore, Batched, Cost, Error, Fault, Faulty, KeyRange, Limits, Memory, Metered, Reader,
    Store, Writer,
};
use keyloom_conformance::{Fixture, Suite};

#[test]
fn memory_keeps_the_laws() {
    keyloom_conformance::check(|| Ok(Memory::new()));
}

#[test]
fn memory_with_transactions_side_by_side_keeps_the_laws() {
    keyloom_conformance::check(|| Ok(Memory::builder().optimistic(true).build()));
}

#[test]
fn memory_with_the_limits_of_etcd_keeps_the_laws() {
    keyloom_conformance::check(|| {
        Ok(Memory::builder().limits(Limits::etcd()).optimistic(true).build())
    });
}

#[test]
fn memory_with_the_limits_of_foundationdb_keeps_the_laws() {
    let limits = Limits::foundationdb();
    keyloom_conformance::check(|| Ok(Memory::builder().limits(limits).optimistic(true).build()));
}

#[test]
fn metered_memory_keeps_the_laws() {
    keyloom_conformance::check(|| Ok(Metered::new(Memory::new())));
}

#[test]
fn memory_in_an_arc_keeps_the_laws() {
    keyloom_conformance::check(|| Ok(Arc::new(Memory::new())));
}

/// A wrapper with the default of the trait would read on one thread.
#[test]
fn every_wrapper_passes_on_parallel_snapshots() {
    fn count(store: &impl Store) -> usize {
        store.parallel_snapshots(3).unwrap().len()
    }
    let memory = Memory::new();
    assert_eq!(count(&memory), 3);
    assert_eq!(count(&Arc::new(memory.clone())), 3);
    assert_eq!(count(&Metered::new(memory.clone())), 3);
    assert_eq!(count(&Faulty::new(memory.clone())), 3);
    assert_eq!(count(&Batched::new(memory.clone())), 3);
    assert_eq!(count(&AnyStore::other("memory:", memory.clone())), 3);
    assert_eq!(count(&AnyStore::Memory(memory)), 3);
}

#[test]
fn faulty_memory_without_a_fault_keeps_the_laws() {
    keyloom_conformance::check(|| Ok(Faulty::new(Memory::new())));
}

#[test]
fn batched_memory_keeps_the_laws() {
    keyloom_conformance::check(|| Ok(Batched::new(Memory::new())));
}

#[test]
fn batched_memory_with_conflicts_keeps_the_laws() {
    keyloom_conformance::check(|| {
        let memory = Memory::builder().limits(Limits::etcd()).optimistic(true).build();
        Ok(Batched::new(memory))
    });
}

/// A memory store whose reads fail on demand.
struct Failing(Faulty<Memory>);

impl Fixture for Failing {
    type Store = Faulty<Memory>;

    fn store(&self) -> &Faulty<Memory> {
        &self.0
    }

    fn fail_read_after(&self, reads: Option<usize>) -> bool {
        match reads {
            Some(reads) => self.0.fail_at(reads as u64, Fault::Error),
            None => self.0.clear_fault(),
        }
        true
    }
}

#[test]
fn reads_that_fail_say_so() {
    let make = || Ok(Failing(Faulty::new(Memory::new())));
    assert_eq!(Suite::new().operations(0).run(make).unwrap(), []);
}

#[test]
fn a_store_behind_any_store_other_keeps_the_laws() {
    keyloom_conformance::check(|| Ok(AnyStore::other("memory:", Memory::new())));
}

#[test]
fn a_conflicting_store_behind_any_store_keeps_the_laws() {
    let memory = || Memory::builder().limits(Limits::etcd()).optimistic(true).build();
    keyloom_conformance::check(|| Ok(AnyStore::other("memory:", memory())));
}

#[test]
fn any_store_other_passes_on_limits_policy_and_restarts() {
    let inner = Memory::builder().limits(Limits::etcd()).build();
    let store = AnyStore::other("memory:1", inner.clone());
    assert_eq!((store.limits(), store.to_string().as_str()), (Limits::etcd(), "memory:1"));
    assert_eq!(store.begin().unwrap().limits(), Limits::etcd());
    inner.conflict_next(2);
    let mut runs = 0;
    store
        .transact(|txn| {
            runs += 1;
            txn.put(b"a", b"1")
        })
        .unwrap();
    assert_eq!(runs, 3);
}

#[test]
fn open_with_prefers_the_backends_given() {
    let opened = |address: &str| -> keyloom::Result<AnyStore> {
        AnyStore::open_with(
            address,
            &[("memory", |address| Ok(AnyStore::other(address, Memory::new())))],
        )
    };
    assert!(matches!(opened("memory:7"), Ok(AnyStore::Other(_))));
    assert!(matches!(opened("mem:"), Err(Error::InvalidArgument { .. })));
    assert!(matches!(AnyStore::open_with("memory:", &[]), Ok(AnyStore::Memory(_))));
    // Both URL schemes of PostgreSQL count as one.
    let opens = |address: &str| Ok(AnyStore::other(address, Memory::new()));
    for address in ["postgres://a/b", "postgresql://a/b"] {
        let store = AnyStore::open_with(address, &[("postgres", opens)]).unwrap();
        assert_eq!(store.to_string(), address);
    }
}

#[test]
fn an_unknown_scheme_is_named_and_no_secret() {
    let refused = |address: &str| AnyStore::open(address).unwrap_err().to_string();
    let error = refused("fjall:/data/cities");
    assert!(error.contains("fjall:…") && error.contains("open_with"), "{error}");
    assert!(!error.contains("cities"), "{error}");
    for address in
        ["ada:lovelace@host:5432/db", "lovelace", "lovelace:", "Lovelace:/x", ":/lovelace"]
    {
        let error = refused(address);
        assert!(error.contains('…') && !error.to_lowercase().contains("lovelace"), "{error}");
    }
}

/// A store with the keys 0 to 99, and ranges with one key each.
fn hundred_ranges(store: &impl Store) -> Vec<KeyRange<'static>> {
    store.transact(|txn| (0..100_u8).try_for_each(|n| txn.put(&[n], b"value"))).unwrap();
    (0..100_u8).map(|n| KeyRange::single(&[n]).into_owned()).collect()
}

#[test]
fn metered_counts_range_many_as_one_round_trip() {
    for store in [AnyStore::from(Memory::new()), AnyStore::other("memory:", Memory::new())] {
        let ranges = hundred_ranges(&store);
        let store = Metered::new(store);
        let snapshot = store.snapshot().unwrap();
        let (pages, cost) = store.measure(|_| snapshot.range_many(&ranges, 3));
        assert!(pages.unwrap().iter().all(|page| page.entries.len() == 1 && page.last.is_none()));
        let expected = Cost { ranges: 100, keys_read: 100, bytes_read: 600, ..Cost::default() };
        assert_eq!(cost, Cost { round_trips: 1, ..expected });
    }
}

#[test]
fn faulty_counts_range_many_as_one_operation() {
    let store = Faulty::new(Memory::new());
    let ranges = hundred_ranges(&store);
    let snapshot = store.snapshot().unwrap();
    store.fail_at(0, Fault::Error);
    assert!(snapshot.range_many(&ranges, 3).is_err());
    assert_eq!(snapshot.range_many(&ranges, 3).unwrap().len(), 100);
    assert_eq!(store.operations(), 2);
}

/// The suite allows a store with native counter operations to accept a value that is not a counter.
/// These stores check the value, and refuse it.
fn what_is_no_counter_is_refused(store: &impl Store) {
    store.transact(|txn| txn.put(b"n", b"abc")).unwrap();
    let mut txn = store.begin().unwrap();
    for outcome in [txn.add(b"n", 1), txn.min(b"n", 1), txn.max(b"n", 1)] {
        assert!(matches!(outcome, Err(Error::NotACounter { bytes: 3, .. })), "{outcome:?}");
    }
    assert_eq!(txn.get(b"n").unwrap().as_deref(), Some(&b"abc"[..]));
}

#[test]
fn memory_refuses_what_is_no_counter() {
    what_is_no_counter_is_refused(&Memory::new());
    what_is_no_counter_is_refused(&Memory::builder().optimistic(true).build());
    what_is_no_counter_is_refused(&Metered::new(Memory::new()));
    what_is_no_counter_is_refused(&Faulty::new(Memory::new()));
}

#[cfg(feature = "lmdb")]
#[test]
fn lmdb_refuses_what_is_no_counter() {
    let directory = tempfile::tempdir().unwrap();
    what_is_no_counter_is_refused(&keyloom::Lmdb::open(directory.path()).unwrap());
}

#[cfg(feature = "lmdb")]
mod on_lmdb {
    use keyloom::lmdb::Durability;
    use keyloom::{Batched, BoxedError, Faulty, Lmdb, Metered, Store};
    use keyloom_conformance::{Reopening, With};
    use tempfile::TempDir;

    type Temporary<S> = Result<With<S, TempDir>, BoxedError>;

    fn lmdb(durability: Durability) -> Temporary<Lmdb> {
        let directory = tempfile::tempdir()?;
        Ok(With(Lmdb::options().durability(durability).open(directory.path())?, directory))
    }

    fn wrapped<S: Store>(wrap: impl Fn(Lmdb) -> S) -> Temporary<S> {
        let With(store, directory) = lmdb(Durability::MayLoseStore)?;
        Ok(With(wrap(store), directory))
    }

    #[test]
    fn lmdb_keeps_the_laws() {
        keyloom_conformance::check(|| {
            Reopening::open(tempfile::tempdir()?, |directory| {
                let options = Lmdb::options().durability(Durability::MayLoseStore);
                Ok(options.open(directory.path())?)
            })
        });
    }

    #[test]
    fn lmdb_that_waits_for_the_disk_keeps_the_laws() {
        keyloom_conformance::check(|| lmdb(Durability::Full));
    }

    #[test]
    fn metered_lmdb_keeps_the_laws() {
        keyloom_conformance::check(|| wrapped(Metered::new));
    }

    #[test]
    fn batched_lmdb_keeps_the_laws() {
        keyloom_conformance::check(|| wrapped(Batched::new));
    }

    #[test]
    fn faulty_lmdb_without_a_fault_keeps_the_laws() {
        keyloom_conformance::check(|| wrapped(Faulty::new));
    }
}

/// The list in a report is complete: each name occurs once, with its own sentence.
#[test]
fn every_check_has_a_name_of_its_own() {
    let mut names: Vec<_> =
        keyloom_conformance::checks::<Memory>().iter().map(|c| c.name()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(all > 60);
}
