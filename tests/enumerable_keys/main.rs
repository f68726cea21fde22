//! The laws of enumerable keys, on every store.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
#[path = "../common/laws.rs"]
mod laws;
mod orders;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
#[path = "../servers/mod.rs"]
mod servers;
mod stamps;
mod threads;
mod walks;

use faults::{
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    a_fault_at_any_operation_leaves_nothing_half_done, bad_input_is_refused_and_nothing_is_written,
    check_finds_and_repair_mends_a_sequence_that_is_behind,
    operations_cost_what_the_documentation_says,
};
use orders::{
    between_shards_there_is_no_order_and_one_last_id_loses_records,
    records_of_time_lie_in_the_buckets_of_their_ids,
};
use stamps::{
    records_come_in_the_order_of_their_commits, who_follows_the_stamps_sees_each_record_once,
};
use threads::{
    blocks_give_no_number_twice, numbers_are_dense_and_in_the_order_of_the_commits,
    who_follows_the_shards_sees_each_record_once,
};
use walks::{
    an_index_of_the_records_is_maintained_as_it_is_rebuilt,
    every_walk_finds_what_a_filter_over_all_records_finds,
};

macro_rules! run {
    ($on:ident) => {
        $on! {
            every_walk_finds_what_a_filter_over_all_records_finds,
            an_index_of_the_records_is_maintained_as_it_is_rebuilt,
            records_of_time_lie_in_the_buckets_of_their_ids,
            between_shards_there_is_no_order_and_one_last_id_loses_records,
            numbers_are_dense_and_in_the_order_of_the_commits,
            blocks_give_no_number_twice,
            records_come_in_the_order_of_their_commits,
            who_follows_the_stamps_sees_each_record_once,
            who_follows_the_shards_sees_each_record_once,
            operations_cost_what_the_documentation_says,
            a_fault_at_any_operation_leaves_nothing_half_done,
            a_conflict_at_any_operation_is_retried_to_the_same_end,
            check_finds_and_repair_mends_a_sequence_that_is_behind,
            bad_input_is_refused_and_nothing_is_written,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
