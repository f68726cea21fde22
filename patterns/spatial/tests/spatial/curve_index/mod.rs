//! Boxes of several numbers.

use keyloom_testing::on_every_store_and_server;

mod fixture;
mod maintenance;
mod queries;

on_every_store_and_server! {
    maintenance::a_fault_while_reading_ends_a_query,
    maintenance::bad_input_is_refused_and_nothing_is_lost,
    queries::boxes_of_four_numbers_hold_what_they_should,
    queries::boxes_of_three_numbers_hold_what_they_should,
    queries::boxes_of_two_numbers_hold_what_they_should,
    maintenance::entries_of_other_dimensions_are_refused_and_repair_makes_them_again,
    maintenance::operations_cost_what_the_documentation_says,
    queries::pages_join_to_the_whole,
}
