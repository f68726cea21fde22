//! Events in space and time.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod faults;
mod fixture;
mod maintenance;
mod queries;

use faults::{a_fault_while_reading_ends_a_query, bad_input_is_refused_and_nothing_is_lost};
use maintenance::{
    bins_of_another_width_are_refused_and_repair_makes_them_anew,
    check_finds_and_repair_mends_every_kind_of_damage, operations_cost_what_the_documentation_says,
    rebuilt_from_scratch_equals_maintained_step_by_step,
};
use queries::{
    bins_in_which_nothing_is_cost_nothing, earthquakes_are_found_where_and_when_they_were,
    every_query_finds_what_a_look_at_all_events_finds, pages_join_to_the_whole,
};

macro_rules! run {
    ($on:ident) => {
        $on! {
            a_fault_while_reading_ends_a_query,
            bad_input_is_refused_and_nothing_is_lost,
            bins_in_which_nothing_is_cost_nothing,
            bins_of_another_width_are_refused_and_repair_makes_them_anew,
            check_finds_and_repair_mends_every_kind_of_damage,
            earthquakes_are_found_where_and_when_they_were,
            every_query_finds_what_a_look_at_all_events_finds,
            operations_cost_what_the_documentation_says,
            pages_join_to_the_whole,
            rebuilt_from_scratch_equals_maintained_step_by_step,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
