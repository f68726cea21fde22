//! The laws of versioned records, on every store.

mod faults;
mod model;
mod threads;

keyloom_testing::on_every_store_and_server! {
    model::every_operation_does_what_it_does_to_a_map,
    model::a_record_that_comes_back_has_a_version_of_its_own,
    faults::operations_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_nothing_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::bad_input_is_refused_and_nothing_is_written,
    threads::no_atomic_change_loses_an_update,
    threads::a_read_and_then_a_write_loses_updates_and_is_caught,
    threads::of_many_creators_one_succeeds,
}
