//! Integers by id.

use keyloom_testing::on_every_store_and_server;

mod aggregates;
mod comparisons;
mod costs;
mod values;

on_every_store_and_server! {
    values::integers_are_a_map_whatever_is_done_with_them,
    values::values_of_few_and_of_many_ids_are_those_of_the_map,
    comparisons::every_comparison_is_what_a_filter_over_a_map_finds,
    aggregates::aggregates_are_those_of_a_list_of_values,
    aggregates::sums_of_extremes_are_exact,
    aggregates::whole_percents_are_ranks_without_rounding,
    costs::operations_cost_what_the_documentation_says,
    costs::a_fault_at_any_operation_leaves_nothing_half_done,
    costs::a_conflict_at_any_operation_is_retried_to_the_same_end,
    costs::a_fault_while_reading_ends_a_query,
    costs::bad_input_is_refused,
}
