//! The laws of the index for stores without transactions: on every store, and on a store with
//! atomicity for single keys only, with concurrent updates and crashes.

mod faults;
mod laws;
mod per_key;
mod races;
mod schedules;
mod subjects;
mod turns;

keyloom_testing::on_every_store_and_server! {
    laws::every_query_finds_what_a_map_holds,
    laws::operations_cost_what_the_documentation_says,
    laws::buckets_that_become_too_wide_are_split,
    laws::check_finds_and_repair_repairs_what_should_never_be,
    faults::a_fault_at_any_operation_is_repaired,
    faults::bad_input_is_refused,
}
