//! Boxes of several numbers.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod fixture;
mod maintenance;
mod queries;

use maintenance::{
    a_fault_while_reading_ends_a_query, bad_input_is_refused_and_nothing_is_lost,
    check_finds_and_repair_mends_every_kind_of_damage,
    entries_of_other_dimensions_are_refused_and_repair_makes_them_anew,
    operations_cost_what_the_documentation_says,
    rebuilt_from_scratch_equals_maintained_step_by_step,
};
use queries::{
    boxes_of_four_numbers_hold_what_they_should, boxes_of_three_numbers_hold_what_they_should,
    boxes_of_two_numbers_hold_what_they_should, pages_join_to_the_whole,
};

macro_rules! run {
    ($on:ident) => {
        $on! {
            a_fault_while_reading_ends_a_query,
            bad_input_is_refused_and_nothing_is_lost,
            boxes_of_four_numbers_hold_what_they_should,
            boxes_of_three_numbers_hold_what_they_should,
            boxes_of_two_numbers_hold_what_they_should,
            check_finds_and_repair_mends_every_kind_of_damage,
            entries_of_other_dimensions_are_refused_and_repair_makes_them_anew,
            operations_cost_what_the_documentation_says,
            pages_join_to_the_whole,
            rebuilt_from_scratch_equals_maintained_step_by_step,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
