//! The laws of joins and links, on every store.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod blog;
#[path = "../common/mod.rs"]
mod common;
mod faults;
mod fixture;
#[path = "../common/laws.rs"]
mod laws;
mod links;
mod relations;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
#[path = "../servers/mod.rs"]
mod servers;
mod streaming;

on_every_store_and_server! {
    relations::every_join_finds_what_nested_loops_find,
    streaming::joins_cost_what_the_documentation_says,
    links::rebuilt_from_scratch_equals_maintained_step_by_step,
    links::links_of_an_end_are_taken_away_in_bounded_steps,
    links::links_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_no_link_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::a_fault_while_reading_ends_a_join_behind_rows_that_are_right,
    faults::bad_input_is_refused,
}
