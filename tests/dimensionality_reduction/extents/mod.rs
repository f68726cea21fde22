//! Extents: what overlaps a box, is inside it, or contains a position.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod boxes;
mod faults;
mod fixture;
mod maintenance;
mod queries;

use faults::{a_fault_while_reading_ends_a_query, bad_input_is_refused_and_nothing_is_written};
use maintenance::{
    check_finds_and_repair_mends_every_kind_of_damage, operations_cost_what_the_documentation_says,
    rebuilt_from_scratch_equals_maintained_step_by_step,
};
use queries::{
    every_query_finds_what_a_look_at_all_extents_finds, pages_join_to_the_whole,
    queries_along_every_edge_find_what_a_look_at_all_extents_finds,
};

macro_rules! run {
    ($on:ident) => {
        $on! {
            every_query_finds_what_a_look_at_all_extents_finds,
            queries_along_every_edge_find_what_a_look_at_all_extents_finds,
            pages_join_to_the_whole,
            rebuilt_from_scratch_equals_maintained_step_by_step,
            check_finds_and_repair_mends_every_kind_of_damage,
            operations_cost_what_the_documentation_says,
            a_fault_while_reading_ends_a_query,
            bad_input_is_refused_and_nothing_is_written,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
