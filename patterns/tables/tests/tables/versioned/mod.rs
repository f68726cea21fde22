//! The laws of versioned records, on every store.

mod external;
mod faults;
mod model;
mod retries;
mod threads;

keyloom_testing::on_every_store_and_server! {
    model::every_operation_does_what_it_does_to_a_map,
    model::a_record_that_comes_back_has_a_version_of_its_own,
    faults::operations_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_nothing_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::bad_input_is_refused_and_nothing_is_written,
    external::external_changes_do_what_they_do_to_a_map,
    external::changes_in_any_order_end_with_the_newest,
    external::external_changes_cost_what_the_docs_say,
    external::bad_external_versions_are_refused,
    external::no_version_comes_twice_whatever_its_source,
    external::a_version_that_the_table_gave_is_not_given_again,
    external::forgotten_deletions_are_gone,
    external::a_fault_in_an_external_change_leaves_nothing,
    retries::a_decision_is_made_again_after_each_conflict,
    retries::decisions_of_threads_lose_no_update,
    threads::no_atomic_change_loses_an_update,
    threads::a_read_and_then_a_write_loses_updates_and_is_caught,
    threads::of_many_creators_one_succeeds,
}
