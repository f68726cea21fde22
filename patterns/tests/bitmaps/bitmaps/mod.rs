//! Sets of ids in the store.

use keyloom_testing::on_every_store_and_server;

mod damage;
mod faults;
pub mod sets;
mod steps;

on_every_store_and_server! {
    steps::a_bitmap_is_a_set_whatever_is_done_with_it,
    steps::pages_join_to_the_whole_whatever_is_written,
    steps::roaring_bitmaps_come_out_and_go_in,
    faults::operations_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_nothing_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::a_fault_while_reading_ends_a_walk,
    faults::bad_input_is_refused_and_nothing_is_written,
}
