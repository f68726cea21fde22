//! The laws of the index table: the kinds of index, and the whole life of one, on every store.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod builds;
#[path = "../common/mod.rs"]
mod common;
mod costs;
mod faults;
mod fixture;
mod kinds;
mod processes;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
#[path = "../servers/mod.rs"]
mod servers;
mod states;

use builds::{
    a_build_beside_writers_leaves_what_a_build_alone_leaves,
    a_build_that_was_stopped_goes_on_where_the_store_says,
    violations_are_listed_and_the_build_goes_on_once_they_are_mended,
};
use costs::operations_cost_what_the_documentation_says;
use faults::{
    a_fault_at_any_operation_leaves_nothing_half_done, a_function_that_panics_leaves_nothing,
    bad_input_is_refused_and_nothing_is_written,
    long_work_that_fails_anywhere_comes_to_the_same_end,
};
use kinds::{
    check_finds_and_repair_mends_what_is_wrong_with_any_kind,
    many_at_once_leave_what_one_by_one_leaves, queries_find_what_a_filter_over_all_records_finds,
    rebuilt_equals_maintained_for_every_kind, records_by_an_index_that_is_behind_are_right,
};
use processes::{
    a_changed_definition_is_refused_until_it_is_built_anew,
    a_program_that_does_not_know_an_index_cannot_spoil_it, two_transactions_cannot_take_one_value,
};
use states::any_order_of_changes_and_steps_keeps_the_invariants;

macro_rules! run {
    ($on:ident) => {
        $on! {
            rebuilt_equals_maintained_for_every_kind,
            queries_find_what_a_filter_over_all_records_finds,
            records_by_an_index_that_is_behind_are_right,
            many_at_once_leave_what_one_by_one_leaves,
            check_finds_and_repair_mends_what_is_wrong_with_any_kind,
            any_order_of_changes_and_steps_keeps_the_invariants,
            a_build_that_was_stopped_goes_on_where_the_store_says,
            a_build_beside_writers_leaves_what_a_build_alone_leaves,
            violations_are_listed_and_the_build_goes_on_once_they_are_mended,
            operations_cost_what_the_documentation_says,
            a_fault_at_any_operation_leaves_nothing_half_done,
            long_work_that_fails_anywhere_comes_to_the_same_end,
            a_function_that_panics_leaves_nothing,
            bad_input_is_refused_and_nothing_is_written,
            a_changed_definition_is_refused_until_it_is_built_anew,
            a_program_that_does_not_know_an_index_cannot_spoil_it,
            two_transactions_cannot_take_one_value,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
