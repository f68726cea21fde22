//! The laws of joins and links, on every store.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod blog;
#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fixture;
mod links;
mod relations;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
#[path = "../servers/mod.rs"]
mod servers;
mod streaming;

use faults::{
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    a_fault_at_any_operation_leaves_no_link_half_done,
    a_fault_while_reading_ends_a_join_behind_rows_that_are_right, bad_input_is_refused,
};
use links::{
    every_kind_of_damage_is_found_and_mended, links_cost_what_the_documentation_says,
    links_of_an_end_are_taken_away_in_bounded_steps,
    rebuilt_from_scratch_equals_maintained_step_by_step,
};
use relations::every_join_finds_what_nested_loops_find;
use streaming::joins_cost_what_the_documentation_says;

macro_rules! run {
    ($on:ident) => {
        $on! {
            every_join_finds_what_nested_loops_find,
            joins_cost_what_the_documentation_says,
            rebuilt_from_scratch_equals_maintained_step_by_step,
            links_of_an_end_are_taken_away_in_bounded_steps,
            links_cost_what_the_documentation_says,
            every_kind_of_damage_is_found_and_mended,
            a_fault_at_any_operation_leaves_no_link_half_done,
            a_conflict_at_any_operation_is_retried_to_the_same_end,
            a_fault_while_reading_ends_a_join_behind_rows_that_are_right,
            bad_input_is_refused,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
