//! Boolean expressions of bitmaps.

use keyloom_testing::on_every_store_and_server;

mod costs;
mod depth;
mod endless;
mod faults;
mod queries;
mod trees;

on_every_store_and_server! {
    trees::any_tree_is_what_roaring_makes_of_it,
    trees::any_tree_is_read_in_part,
    queries::an_expression_goes_into_a_bitmap_even_into_its_own_operand,
    queries::ranges_without_end_are_counted,
    costs::operations_cost_what_the_documentation_says,
    costs::explain_reports_what_is_read,
    faults::a_fault_while_reading_ends_a_query,
    faults::damage_is_reported_with_its_key,
    faults::bad_input_is_refused,
    depth::deep_expressions_are_read_on_a_small_stack,
    endless::endless_expressions_are_counted,
    endless::a_complement_costs_what_its_expression_costs,
    endless::percentiles_with_a_complement_end,
}
