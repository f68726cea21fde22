//! Extents: queries for extents that overlap a shape, are inside a shape, or contain a position.

use keyloom_testing::on_every_store_and_server;

mod boxes;
mod by_distance;
mod faults;
mod fixture;
mod maintenance;
mod queries;
mod shapes;
mod vectors;

on_every_store_and_server! {
    queries::every_query_finds_what_a_look_at_all_extents_finds,
    queries::queries_along_every_edge_find_what_a_look_at_all_extents_finds,
    queries::pages_join_to_the_whole,
    shapes::circles_find_the_extents_within_the_distance,
    shapes::polygons_find_the_extents_that_geo_finds,
    shapes::pages_by_a_shape_join_to_the_whole,
    by_distance::extents_come_in_the_order_of_their_distance,
    by_distance::the_nearest_extents_cost_what_the_documentation_says,
    maintenance::operations_cost_what_the_documentation_says,
    faults::a_fault_while_reading_ends_a_query,
    faults::bad_input_is_refused_and_nothing_is_written,
}
