//! Points: circles, boxes, polygons, what is nearest, grids.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod cells;
mod distances;
mod faults;
mod fixture;
mod maintenance;
mod queries;
mod real;
mod round_trips;

use faults::{
    a_fault_while_reading_ends_a_query, a_schema_refuses_what_its_index_refuses,
    bad_input_is_refused_and_nothing_is_lost,
};
use maintenance::{
    check_finds_and_repair_mends_every_kind_of_damage, operations_cost_what_the_documentation_says,
    rebuilt_from_scratch_equals_maintained_step_by_step,
};
use queries::{
    every_query_finds_what_a_look_at_all_points_finds,
    grids_count_what_a_look_at_all_points_counts, pages_join_to_the_whole,
};
use round_trips::a_small_circle_waits_once;

macro_rules! run {
    ($on:ident) => {
        $on! {
            every_query_finds_what_a_look_at_all_points_finds,
            grids_count_what_a_look_at_all_points_counts,
            pages_join_to_the_whole,
            rebuilt_from_scratch_equals_maintained_step_by_step,
            check_finds_and_repair_mends_every_kind_of_damage,
            operations_cost_what_the_documentation_says,
            a_schema_refuses_what_its_index_refuses,
            a_fault_while_reading_ends_a_query,
            bad_input_is_refused_and_nothing_is_lost,
            a_small_circle_waits_once,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
