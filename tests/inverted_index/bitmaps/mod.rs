//! Sets of ids in the store.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod damage;
mod faults;
pub mod sets;
mod steps;

use faults::{
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    a_fault_at_any_operation_leaves_nothing_half_done, a_fault_while_reading_ends_a_walk,
    bad_input_is_refused_and_nothing_is_written, operations_cost_what_the_documentation_says,
};
use steps::{
    a_bitmap_is_a_set_whatever_is_done_with_it, pages_join_to_the_whole_whatever_is_written,
    roaring_bitmaps_come_out_and_go_in,
};

macro_rules! run {
    ($on:ident) => {
        $on! {
            a_bitmap_is_a_set_whatever_is_done_with_it,
            pages_join_to_the_whole_whatever_is_written,
            roaring_bitmaps_come_out_and_go_in,
            operations_cost_what_the_documentation_says,
            a_fault_at_any_operation_leaves_nothing_half_done,
            a_conflict_at_any_operation_is_retried_to_the_same_end,
            a_fault_while_reading_ends_a_walk,
            bad_input_is_refused_and_nothing_is_written,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
