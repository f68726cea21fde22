//! Faults and bad input.

use std::ops::ControlFlow;

use keyloom::{Error, Fault, Faulty, Reader, Result, Store, Subspace, Writer};
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::property_index::Stamps;
use keyloom_tables::{Inconsistency, Rule};

use crate::property_index::laws::{clear, container, keys, towns};

/// After a failure at any operation of an update, the old or the new value is stored, and a query
/// finds it. Another update, or a cleanup, removes the remains.
pub fn a_fault_at_any_operation_is_repaired(store: &(impl Store + Clone)) {
    let index = towns();
    let (of, item) = (container(1), "a".to_owned());
    let faulty = Faulty::new(store.clone());
    for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
        for again in [true, false] {
            for n in 0.. {
                clear(store);
                let mut stamps = Stamps::with_clock(1, || 1_000);
                index.set(store, &mut stamps, &of, &item, &"Paris".into()).unwrap();
                let before = keys(store);
                faulty.fail_at(n, fault);
                let outcome = index.set(&faulty, &mut stamps, &of, &item, &"Lyon".into());
                faulty.clear_fault();
                let snapshot = store.snapshot().unwrap();
                let value = index.value(&snapshot, &of, &item).unwrap().unwrap();
                assert!(value == "Lyon" || (value == "Paris" && outcome.is_err()));
                for town in ["Lyon", "Paris"] {
                    let found = index.items_with(&snapshot, &of, town.into()).unwrap();
                    let found = found.collect::<Result<Vec<_>>>().unwrap();
                    assert_eq!(found.len(), usize::from(town == value), "{town} after {n}");
                }
                assert_eq!(index.check(&snapshot).unwrap(), []);
                drop(snapshot);
                if again {
                    index.set(store, &mut stamps, &of, &item, &"Lyon".into()).unwrap();
                }
                let later = Stamps::with_clock(1, || 10_000_000_000);
                index.sweep(store, &later, &of, &item).unwrap();
                assert_eq!(keys(store), before, "after {fault:?} at {n}");
                if outcome.is_ok() {
                    assert!(n > 15, "{n} operations can fail");
                    break;
                }
            }
        }
    }
}

pub fn bad_input_is_refused(store: &(impl Store + Clone)) {
    clear(store);
    let index = towns();
    let mut stamps = Stamps::with_clock(1, || 1_000);
    let (of, item) = (container(1), "a".to_owned());
    // A value that fits in the list of updates but not in the index.
    let long = "n".repeat(490);
    let error = index.set(store, &mut stamps, &of, &item, &long).unwrap_err();
    assert!(
        matches!(&error, Error::KeyTooLong { key, .. } if key.contains(r#"("towns", 1,"#)),
        "{error}"
    );
    assert_eq!(keys(store), 0, "nothing is written");

    // A key that is not an update, and an update of a newer program.
    let update = Subspace::new("towns").child(&0).pack(&(&of, &item, 5u64, 1u64));
    let with = |value: &[u8]| {
        store.transact(|txn| txn.put(&update, value)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let errors = [
            index.value(&snapshot, &of, &item).unwrap_err(),
            index.items(&snapshot, &of).unwrap().next().unwrap().unwrap_err(),
            index.check(&snapshot).unwrap_err(),
        ];
        drop(snapshot);
        let changed = index.set(store, &mut Stamps::new(1), &of, &item, &"Paris".into());
        let options = RepairOptions::default();
        let stamps = Stamps::new(1);
        let repaired = index.repair_with(store, &stamps, &options, |_| ControlFlow::Continue(()));
        assert!(changed.is_err() && repaired.is_err());
        assert_eq!(store.snapshot().unwrap().get(&update).unwrap().as_deref(), Some(value));
        errors
    };
    for error in with(b"?") {
        assert!(error.to_string().contains(r#""a", 5, 1)"#), "{error}");
    }
    for error in with(&[0x21, 0]) {
        assert!(matches!(error, Error::NewerFormat { found: 2, supported: 1, .. }), "{error}");
    }
    // An entry of another format whose item is not listed is a fault that repair deletes.
    clear(store);
    let entry =
        Subspace::new("towns").child(&1).pack(&(&of, 0u8, 0u64, "Paris", &item, 5u64, 1u64));
    store.transact(|txn| txn.put(&entry, &[2])).unwrap();
    let faults = index.check(&store.snapshot().unwrap()).unwrap();
    assert!(faults.iter().any(|fault| fault.key[..] == *entry), "{faults:?}");
    // If the item is listed, the entry is rewritten.
    clear(store);
    let mut stamps = Stamps::with_clock(1, || 1_000);
    index.set(store, &mut stamps, &of, &item, &"Paris".into()).unwrap();
    let space = Subspace::new("towns").child(&1);
    let entry = || {
        let snapshot = store.snapshot().unwrap();
        let (key, value) = snapshot.first(space.range()).unwrap().unwrap();
        (key.to_vec(), value.to_vec())
    };
    let clean = entry();
    store.transact(|txn| txn.put(&clean.0, &[2])).unwrap();
    let faults = index.check(&store.snapshot().unwrap()).unwrap();
    assert!(matches!(&faults[..], [Inconsistency { rule: Rule::Wrong, .. }]), "{faults:?}");
    let options = RepairOptions::default();
    index.repair_with(store, &stamps, &options, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(entry(), clean);
    assert_eq!(index.check(&store.snapshot().unwrap()).unwrap(), []);
}
