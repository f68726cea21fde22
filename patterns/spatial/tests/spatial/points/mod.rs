//! Points: circles, boxes, polygons, nearest neighbours, grids.

use keyloom_testing::on_every_store_and_server;

mod cells;
mod combined;
mod crowds;
mod distances;
mod faults;
mod fixture;
mod groups;
mod maintenance;
mod polygons;
mod queries;
mod radius;
mod real;
mod records;
mod round_trips;
mod serialized;
mod several;

on_every_store_and_server! {
    queries::every_query_finds_what_a_look_at_all_points_finds,
    queries::grids_count_what_a_look_at_all_points_counts,
    queries::pages_join_to_the_whole,
    groups::queries_of_a_group_find_what_a_filter_finds,
    groups::pages_of_a_group_join_to_the_whole,
    groups::repair_restores_the_entries_of_all_groups,
    groups::damaged_entry_of_a_group_is_named_by_its_key,
    groups::nearest_of_a_small_group_reads_that_group,
    groups::schema_refuses_other_leading_parts,
    maintenance::operations_cost_what_the_documentation_says,
    faults::a_schema_refuses_what_its_index_refuses,
    faults::a_fault_while_reading_ends_a_query,
    faults::bad_input_is_refused_and_nothing_is_lost,
    round_trips::a_small_circle_waits_once,
    round_trips::a_thousand_nearest_take_few_round_trips,
    several::every_position_of_a_record_is_found,
}
