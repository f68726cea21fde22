//! The exact cost of each operation, in round trips.

use keyloom::{Store, Writer};

use crate::server::{Server, fresh, waits};
use keyloom_on_servers::contract::{self, Contract};

const CONTRACT: Contract = Contract { for_the_version: 0, of_writes: 1, of_own_write: 0 };

#[test]
fn a_snapshot_costs_one_and_each_read_one() {
    let (store, _cleanup) = fresh!();
    contract::a_snapshot_costs_one_and_each_read_one(&store);
}

#[test]
fn a_thousand_keys_cost_one() {
    // Runs alone, because a commit of another test between the requests of the first read would
    // cost one more.
    let Some(server) = Server::alone() else { return };
    let (store, _cleanup) = server.fresh(keyloom_etcd::Etcd::options());
    contract::a_thousand_keys_cost_one(&store, &CONTRACT);
}

#[test]
fn a_hundred_ranges_cost_one() {
    let (store, _cleanup) = fresh!();
    contract::a_hundred_ranges_cost_one(&store, &CONTRACT);
    contract::own_deletes_cost_one_more_for_all_ranges(&store);
}

#[test]
fn more_than_2048_ranges_cost_two() {
    let (store, _cleanup) = fresh!();
    contract::more_ranges_than_go_together_cost_two(&store, 16 * 128);
}

#[test]
fn a_range_costs_one_for_each_page() {
    let (store, _cleanup) = fresh!();
    contract::a_range_costs_one_for_each_page(&store, 3_000, [2, 4]);
}

#[test]
fn a_scan_of_short_groups_costs_three_pages() {
    let (store, _cleanup) = fresh!();
    contract::a_scan_of_short_groups_costs_three_pages(&store);
}

#[test]
fn a_transaction_that_only_writes_costs_one() {
    let (store, _cleanup) = fresh!();
    contract::a_transaction_that_only_writes_costs_what_its_engine_calls_for(&store, &CONTRACT);
}

#[test]
fn a_transaction_costs_one_for_each_read_and_one_for_the_commit() {
    let (store, _cleanup) = fresh!();
    contract::a_transaction_costs_one_for_each_read_and_one_for_the_commit(&store, &CONTRACT);
    assert_eq!(waits(&store, || store.transact(|txn| txn.add(b"n", 1)).unwrap()).1, 2);
}

#[test]
fn a_commit_without_writes_costs_nothing() {
    let (store, _cleanup) = fresh!();
    contract::a_commit_without_writes_costs(&store, 0);
}

#[test]
fn a_thousand_records_of_an_index_cost_two() {
    let (store, _cleanup) = fresh!();
    contract::a_thousand_records_of_an_index_cost_two(&store);
}
