//! The laws of tables and of the composite-key index, on every store.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod batches;
#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fixture;
mod maintenance;
mod queries;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
#[path = "../servers/mod.rs"]
mod servers;

use batches::{
    bad_input_among_many_is_found_before_anything_is_written,
    check_repair_and_lookups_cost_few_round_trips, damage_in_every_chunk_is_found_and_mended,
    many_at_once_leave_what_one_by_one_leaves, many_cost_few_round_trips,
};
use faults::{
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    a_fault_at_any_operation_leaves_nothing_half_done, bad_input_is_refused_and_nothing_is_lost,
    several_patterns_commit_or_roll_back_together,
};
use maintenance::{
    a_repair_that_was_stopped_goes_on_where_it_was,
    check_finds_and_repair_mends_every_kind_of_damage,
    rebuilt_from_scratch_equals_maintained_step_by_step,
};
use queries::{
    clauses_of_a_query_select_what_filters_select, continuations_of_other_queries_are_refused,
    every_query_finds_what_a_filter_over_all_records_finds,
    operations_cost_what_the_documentation_says,
    pages_join_to_the_whole_whatever_is_written_in_between,
    prefixes_do_not_find_keys_that_only_begin_with_the_same_bytes,
    prefixes_of_any_length_reach_into_the_record_key,
};

macro_rules! run {
    ($on:ident) => {
        $on! {
            rebuilt_from_scratch_equals_maintained_step_by_step,
            every_query_finds_what_a_filter_over_all_records_finds,
            clauses_of_a_query_select_what_filters_select,
            pages_join_to_the_whole_whatever_is_written_in_between,
            check_finds_and_repair_mends_every_kind_of_damage,
            a_repair_that_was_stopped_goes_on_where_it_was,
            a_fault_at_any_operation_leaves_nothing_half_done,
            a_conflict_at_any_operation_is_retried_to_the_same_end,
            operations_cost_what_the_documentation_says,
            bad_input_is_refused_and_nothing_is_lost,
            several_patterns_commit_or_roll_back_together,
            continuations_of_other_queries_are_refused,
            prefixes_do_not_find_keys_that_only_begin_with_the_same_bytes,
            prefixes_of_any_length_reach_into_the_record_key,
                    many_at_once_leave_what_one_by_one_leaves,
            many_cost_few_round_trips,
            check_repair_and_lookups_cost_few_round_trips,
            damage_in_every_chunk_is_found_and_mended,
            bad_input_among_many_is_found_before_anything_is_written,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
