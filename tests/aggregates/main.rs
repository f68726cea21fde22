//! The laws of aggregates and of wide columns, on every store.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod changes;
#[path = "../common/mod.rs"]
mod common;
mod faults;
#[path = "../common/laws.rs"]
mod laws;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
#[path = "../servers/mod.rs"]
mod servers;
mod shapes;
mod updates;
mod wide_columns;

use changes::{entities_are_found_in_one_range, every_change_does_what_it_does_to_a_json_value};
use faults::{
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    a_fault_at_any_operation_leaves_nothing_half_done, bad_input_is_refused_and_nothing_is_written,
    check_finds_every_kind_of_damage, operations_cost_what_the_documentation_says,
};
use shapes::{
    entities_come_back_as_they_were_put, types_of_every_shape_come_back,
    what_is_empty_has_a_form_of_its_own, what_is_undivided_is_one_key,
};
use updates::{
    a_list_that_is_read_as_a_set_loses_no_item, fields_that_older_code_does_not_know_survive,
};
use wide_columns::{
    a_collection_that_failed_is_begun_anew,
    collecting_keeps_what_it_should_and_changes_no_read_that_is_promised,
    every_read_finds_what_a_filter_over_all_versions_finds,
    wide_columns_cost_what_the_documentation_says, wide_columns_refuse_bad_input,
};

macro_rules! run {
    ($on:ident) => {
        $on! {
            entities_come_back_as_they_were_put,
            types_of_every_shape_come_back,
            what_is_empty_has_a_form_of_its_own,
            what_is_undivided_is_one_key,
            every_change_does_what_it_does_to_a_json_value,
            entities_are_found_in_one_range,
            fields_that_older_code_does_not_know_survive,
            a_list_that_is_read_as_a_set_loses_no_item,
            operations_cost_what_the_documentation_says,
            a_fault_at_any_operation_leaves_nothing_half_done,
            a_conflict_at_any_operation_is_retried_to_the_same_end,
            check_finds_every_kind_of_damage,
            bad_input_is_refused_and_nothing_is_written,
            every_read_finds_what_a_filter_over_all_versions_finds,
            collecting_keeps_what_it_should_and_changes_no_read_that_is_promised,
            a_collection_that_failed_is_begun_anew,
            wide_columns_cost_what_the_documentation_says,
            wide_columns_refuse_bad_input,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
