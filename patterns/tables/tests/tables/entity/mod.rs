//! The laws of entities and of wide columns, on every store.

mod changes;
mod faults;
mod shapes;
mod updates;
mod wide_columns;

keyloom_testing::on_every_store_and_server! {
    shapes::entities_come_back_as_they_were_put,
    shapes::types_of_every_shape_come_back,
    shapes::what_is_empty_has_a_form_of_its_own,
    shapes::what_is_undivided_is_one_key,
    changes::every_change_does_what_it_does_to_a_json_value,
    changes::entities_are_found_in_one_range,
    updates::fields_that_older_code_does_not_know_survive,
    updates::a_list_that_is_read_as_a_set_loses_no_item,
    faults::operations_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_nothing_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::check_finds_every_kind_of_damage,
    faults::bad_input_is_refused_and_nothing_is_written,
    wide_columns::every_read_finds_what_a_filter_over_all_versions_finds,
    wide_columns::collecting_keeps_what_it_should_and_changes_no_read_that_is_promised,
    wide_columns::a_collection_that_failed_is_begun_again,
    wide_columns::wide_columns_cost_what_the_documentation_says,
    wide_columns::wide_columns_refuse_bad_input,
}
