//! Checks on several threads find the faults that one thread finds, in one state of the store.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use keyloom::value::Codec;
use keyloom::{AnyStore, Reader, Store, Writer};
use keyloom_patterns::{Attached, Maintained};

use crate::fixture::{Sale, Shop};

/// More than the entries that are read on one thread.
const SALES: u32 = 6_000;

fn sale(id: u32) -> (u32, Sale) {
    let town = ["Aachen", "Bonn", "Bonn\0", ""][id as usize % 4].to_owned();
    (id, Sale { town, cents: i64::from(id % 900), serial: id.is_multiple_of(3).then_some(id) })
}

fn filled(store: &AnyStore) -> Shop {
    let shop = Shop::open(store);
    store.transact(|txn| shop.sales.put_many(txn, (0..SALES).map(sale))).unwrap();
    shop
}

fn assert_equal_on_threads<D: Maintained, C: Codec<D::Value>>(
    store: &AnyStore,
    data: &Attached<D, C>,
    faults: usize,
) {
    let mut expected = data.check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(expected.len(), faults, "{}", data.pattern().kind());
    expected.sort_by(|a, b| (&a.key, a.rule).cmp(&(&b.key, b.rule)));
    for threads in 0..4 {
        let mut found = data.check_in_parallel(store, threads).unwrap();
        found.sort_by(|a, b| (&a.key, a.rule).cmp(&(&b.key, b.rule)));
        assert_eq!(found, expected, "{} on {threads} threads", data.pattern().kind());
    }
}

fn faults_are_those_of_one_thread(store: &AnyStore) {
    let shop = filled(store);
    assert_equal_on_threads(store, &shop.by_town, 0);
    store
        .transact(|txn| {
            // Their entries dangle.
            for id in [0, 1, 3_000, SALES - 1] {
                shop.sales.delete_without_derived(txn, &id)?;
            }
            txn.put(&shop.by_town.space().pack("not an entry"), b"")?;
            let entries = shop.by_serial.space().self_and_children();
            let last = txn.last(entries)?.map(|(key, _)| key.to_vec());
            txn.delete(&last.unwrap())
        })
        .unwrap();
    assert_equal_on_threads(store, &shop.by_town, 5);
    assert_equal_on_threads(store, &shop.by_serial, 3);
    assert_equal_on_threads(store, &shop.points, 4);
    // Kinds that compare sums are checked on one thread.
    let towns = shop.totals.check(&store.snapshot().unwrap()).unwrap().len();
    assert_equal_on_threads(store, &shop.totals, towns);
}

fn checks_beside_a_writer_read_one_state(store: &AnyStore) {
    let shop = filled(store);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in (0..).take_while(|_| !is_done.load(Relaxed)) {
                let (first, last) = (round % SALES, SALES - 1 - round % SALES);
                let deleted = store.transact(|txn| {
                    shop.sales.delete(txn, &first)?;
                    shop.sales.delete(txn, &last)
                });
                let put = store.transact(|txn| {
                    shop.sales.put(txn, &first, &sale(first).1)?;
                    shop.sales.put(txn, &last, &sale(last).1)
                });
                deleted.and(put).unwrap();
                thread::yield_now();
            }
        });
        // The control: two snapshots do have different states.
        let mut states_differ = false;
        for round in 0.. {
            let found = shop.by_town.check_in_parallel(store, 2);
            let is_last = found.as_ref().map_or(true, |found| !found.is_empty())
                || (round >= 10 && states_differ)
                || round >= 2_000;
            is_done.store(is_last, Relaxed);
            assert_eq!(found.unwrap(), []);
            if is_last {
                break;
            }
            let records = store.snapshot().unwrap().count(shop.sales.space().self_and_children());
            let entries = store.snapshot().unwrap().count(shop.by_town.space().self_and_children());
            states_differ |= records.unwrap() != entries.unwrap();
        }
        assert!(states_differ, "the writer has changed nothing between two snapshots");
    });
}

keyloom_testing::on_every_store! { faults_are_those_of_one_thread, checks_beside_a_writer_read_one_state }
