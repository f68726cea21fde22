//! The laws of denormalized fields, on every store.

mod costs;
mod faults;
mod fixture;
mod maintenance;
mod propagation;
mod schemas;

keyloom_testing::on_every_store_and_server! {
    maintenance::rebuilt_equals_maintained_and_only_marked_copies_are_stale,
    maintenance::check_finds_and_repair_repairs_stale_copies,
    maintenance::copies_chain,
    propagation::propagation_is_bounded_and_continues_where_it_was,
    propagation::a_source_that_changes_again_or_goes_sets_the_propagation_back,
    propagation::a_source_that_keeps_changing_does_not_keep_others_waiting,
    propagation::propagators_and_writers_at_once_leave_no_stale_copy,
    costs::operations_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_nothing_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::a_propagation_that_meets_a_fault_anywhere_continues_where_it_was,
    faults::bad_input_is_refused,
    schemas::no_change_is_lost_while_the_index_by_source_is_not_readable,
    schemas::copies_have_the_life_cycle_of_a_schema,
}
