//! Injects a fault into every operation.

use keyloom::{Error, Fault, Faulty, Result, Store, Writer};

use crate::fixture::{Build, Bytes, Disable, Drain, KINDS, Sale, Shop, sale};
use keyloom_testing::laws::{clear, dump_all, failing_operations};
use proptest::prelude::ProptestConfig;

fn is_planned(error: &Error) -> bool {
    error.to_string().contains("made to fail")
}

/// Inserted, moved and deleted records, in one transaction.
fn change(shop: &Shop, txn: &mut impl Writer) -> Result<()> {
    shop.sales.put(txn, &9, &sale(9))?;
    let moved = Sale { town: "Thun".into(), ..sale(2) };
    shop.sales.put_many(txn, [(1, sale(1)), (2, moved)])?;
    shop.sales.delete(txn, &3).map(drop)
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    let faulty = Faulty::new(store.clone());
    let faults = [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted];
    for (fault, is_deferred) in faults.into_iter().flat_map(|f| [(f, false), (f, true)]) {
        let mut failures = 0;
        for n in failing_operations() {
            clear(store);
            let shop = Shop::try_open(store, is_deferred).unwrap();
            store.transact(|txn| shop.sales.put_many(txn, (1..5).map(|n| (n, sale(n))))).unwrap();
            let before = dump_all(store);
            faulty.fail_at(n, fault);
            let outcome = faulty.transact(|txn| change(&shop, txn));
            let was_hit = faulty.operations() > n;
            faulty.clear_fault();
            let after = dump_all(store);
            (0..KINDS).for_each(|kind| drop(shop.with_kind(kind, Bytes(store))));
            match outcome {
                Ok(()) => assert_ne!(after, before),
                Err(error) => {
                    assert!(is_planned(&error), "{error}");
                    let is_there = fault == Fault::UnknownButCommitted && error.maybe_committed();
                    assert_eq!(after != before, is_there);
                    failures += 1;
                }
            }
            if !was_hit {
                break;
            }
        }
        assert!(failures > 15, "{failures} operations can fail");
    }
}

/// Opens, builds and disables, each with a fault at every operation in turn, and repeats the step.
pub fn work_that_fails_can_be_done_again(store: &(impl Store + Clone)) {
    let faulty = Faulty::new(store.clone());
    let faults = [(Fault::Error, 1), (Fault::UnknownAndLost, 2), (Fault::UnknownButCommitted, 4)];
    for ((fault, kind), is_deferred) in
        faults.into_iter().flat_map(|fault| [(fault, false), (fault, true)])
    {
        // Each run takes long, so by default only every second operation is tested, on three
        // stores.
        let skipped = if ProptestConfig::default().cases >= 256 { 1 } else { 2 };
        for n in failing_operations().step_by(skipped) {
            clear(store);
            let work = || -> Result<Shop> {
                let shop = Shop::try_open(&faulty, is_deferred)?;
                let sales = (1..6).map(|n| (n, sale(n)));
                faulty.transact(|txn| shop.sales.put_many(txn, sales.clone()))?;
                shop.with_kind(kind, Disable(&faulty))?;
                assert!(shop.with_kind(kind, Build(&faulty, usize::MAX))?);
                let changed = (3..6).map(|id| (id, sale(id + 4)));
                faulty.transact(|txn| shop.sales.put_many(txn, changed.clone()))?;
                assert!(shop.with_kind(kind, Drain(&faulty, usize::MAX))?);
                Ok(shop)
            };
            faulty.fail_at(n, fault);
            let outcome = work();
            let was_hit = faulty.operations() > n;
            faulty.clear_fault();
            let shop = outcome.unwrap_or_else(|error| {
                assert!(is_planned(&error), "{error}");
                work().unwrap()
            });
            shop.with_kind(kind, Bytes(store));
            assert_eq!(shop.sales.count(&store.snapshot().unwrap(), ()).unwrap(), 5);
            if !was_hit {
                assert!(n > 30, "{n} operations can fail");
                break;
            }
        }
    }
}
