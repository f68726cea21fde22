//! The exact cost of each operation, in round trips to the cluster.

use keyloom::{KeyRange, Order, Reader, Store, Writer};

use crate::cluster::{fresh, key, waits};
use keyloom_on_servers::contract::{self, Contract};

/// The client fetches a read version before the first read, or at the commit of a transaction
/// without reads. It serves a transaction's own writes from memory, but such a read is still
/// counted as a round trip.
const CONTRACT: Contract = Contract { for_the_version: 1, of_writes: 2, of_own_write: 1 };

#[test]
fn a_snapshot_costs_one_and_each_read_one() {
    contract::a_snapshot_costs_one_and_each_read_one(&*fresh!());
}

#[test]
fn a_thousand_keys_cost_one() {
    contract::a_thousand_keys_cost_one(&*fresh!(), &CONTRACT);
}

#[test]
fn a_hundred_ranges_cost_one() {
    contract::a_hundred_ranges_cost_one(&*fresh!(), &CONTRACT);
}

#[test]
fn more_than_1024_ranges_cost_two() {
    contract::more_ranges_than_go_together_cost_two(&*fresh!(), 1_024);
}

#[test]
fn a_scan_of_short_groups_costs_three_pages() {
    contract::a_scan_of_short_groups_costs_three_pages(&*fresh!());
}

#[test]
fn a_range_costs_one_for_each_page() {
    // So few that no page reaches the amount that a server sends at once.
    contract::a_range_costs_one_for_each_page(&*fresh!(), 1_500, [2, 3]);
}

/// A server sends about 80 kB at once, whatever the requested size is.
#[test]
fn a_range_of_long_values_costs_one_for_each_eighty_kilobytes() {
    let store = fresh!();
    let value = vec![b'x'; 10_000];
    store.transact(|txn| (0..80).try_for_each(|n| txn.put(&key(n), &value))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let (count, cost) = waits(&*store, || {
        snapshot.range(KeyRange::all(), Order::Ascending).unwrap().map(Result::unwrap).count()
    });
    assert_eq!(count, 80);
    assert!((8..=12).contains(&cost), "{cost} waits for 800 kB");
    let (count, cost) = waits(&*store, || snapshot.count(KeyRange::all()).unwrap());
    assert_eq!(count, 80);
    assert!((8..=12).contains(&cost), "{cost} waits to count 800 kB");
}

#[test]
fn a_transaction_that_only_writes_costs_two() {
    let store = fresh!();
    contract::a_transaction_that_only_writes_costs_what_its_engine_calls_for(&*store, &CONTRACT);
    let apply = || {
        store.transact(|txn| {
            txn.add(b"n", 1)?;
            txn.append_if_fits(b"log", b"line")?;
            txn.compare_and_clear(b"c", b"")
        })
    };
    assert_eq!(waits(&*store, || apply().unwrap()).1, CONTRACT.of_writes);
}

#[test]
fn transaction_costs_one_for_version_each_read_and_commit() {
    let store = fresh!();
    contract::a_transaction_costs_one_for_each_read_and_one_for_the_commit(&*store, &CONTRACT);
}

#[test]
fn a_commit_without_writes_costs_nothing() {
    contract::a_commit_without_writes_costs(&*fresh!(), 0);
}

#[test]
fn a_thousand_records_of_an_index_cost_two() {
    contract::a_thousand_records_of_an_index_cost_two(&*fresh!());
}
