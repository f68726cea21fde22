//! The laws of joins and links, on every store.

mod blog;
mod faults;
mod fixture;
mod links;
mod relations;
mod streaming;

keyloom_testing::on_every_store_and_server! {
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
