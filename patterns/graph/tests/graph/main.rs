//! Graphs: reads return what was written, and searches agree with other implementations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod algorithms;
mod bad_input;
mod blocks;
mod communities;
mod costs;
mod damage;
mod edge_lists;
mod error_names;
mod faults;
mod graphalytics;
mod graphml;
mod ids;
mod labels;
mod loads;
mod messages;
mod model;
mod newest;
mod searches;
mod shortest;
mod steps;
mod weighted_ranks;

use keyloom::Store;
use keyloom_graph::Graph;
use keyloom_tables::Schema;
use keyloom_testing::on_every_store_and_server;

/// A graph whose vertices are numbers and whose edges have weights.
type Numbers = Graph<u32, u8, u32>;

fn directed(store: &impl Store) -> Numbers {
    Graph::directed(&Schema::open(store, "test").unwrap(), "numbers").unwrap()
}

fn undirected(store: &impl Store) -> Numbers {
    Graph::undirected(&Schema::open(store, "test").unwrap(), "numbers").unwrap()
}

on_every_store_and_server! {
    model::reads_agree_with_a_naive_model,
    model::pages_make_up_the_neighbours,
    model::vertices_with_many_edges_are_deleted_in_steps,
    loads::loads_leave_the_bytes_of_single_puts,
    edge_lists::imports_leave_the_bytes_of_puts,
    graphml::graphml_leaves_the_bytes_of_puts,
    newest::newest_edges_agree_with_a_sorted_list,
    searches::searches_agree_with_petgraph,
    searches::costs_are_added_in_the_order_of_a_path,
    searches::bounded_cheapest_paths_agree_with_layers,
    shortest::all_shortest_paths_agree_with_enumeration,
    steps::steps_agree_with_a_naive_evaluation,
    steps::repetitions_agree_with_their_definition,
    steps::unions_and_orders_agree_with_their_definition,
    bad_input::bad_input_is_refused_and_nothing_lost,
    costs::steps_cost_one_round_trip_each,
    ids::ids_of_all_types_are_distinguished,
    labels::rows_of_labels_are_those_of_a_graph_of_them,
    graphalytics::rows_and_blocks_reproduce_the_outputs,
    blocks::blocks_follow_the_graph,
    blocks::a_stopped_refresh_continues,
    blocks::blocks_that_are_lost_are_an_error,
    blocks::a_build_that_another_build_takes_over_is_an_error,
    blocks::damaged_blocks_are_found_and_repaired,
    damage::an_edge_that_does_not_decode_stops_no_repair,
    faults::damage_is_found_and_repaired,
    faults::faults_leave_nothing_half_done,
    faults::conflicts_are_retried_to_the_same_end,
}
