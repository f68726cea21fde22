//! Events in space and time.

use keyloom_testing::on_every_store_and_server;

mod faults;
mod fixture;
mod maintenance;
mod queries;

on_every_store_and_server! {
    faults::a_fault_while_reading_ends_a_query,
    faults::bad_input_is_refused_and_nothing_is_lost,
    queries::bins_in_which_nothing_is_cost_nothing,
    maintenance::bins_of_another_width_are_refused_and_repair_makes_them_again,
    queries::earthquakes_are_found_where_and_when_they_were,
    queries::every_query_finds_what_a_look_at_all_events_finds,
    maintenance::operations_cost_what_the_documentation_says,
    queries::pages_join_to_the_whole,
}
