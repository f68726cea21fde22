//! Reports of audiences, and many audiences at once.

#[cfg(any(feature = "postgres", feature = "etcd"))]
use crate::servers;
use crate::{common, on_every_server, on_every_store};

mod batch;
mod breakdowns;
mod distinct;
mod faults;
mod fixture;

use batch::{
    a_batch_gives_what_each_audience_gives_by_itself, a_batch_is_one_pass_and_can_be_stopped,
    a_batch_over_full_chunks_gives_the_same,
};
use breakdowns::{
    a_report_says_what_looking_at_every_record_says, an_audience_of_many_chunks_is_reported_whole,
    chunks_without_the_audience_are_skipped, ids_without_a_record_are_left_out,
    reports_cost_what_the_documentation_says, sums_of_many_slices_are_walked,
    the_way_that_is_taken_reads_little_more_than_the_better_one,
};
use distinct::distinct_users_are_rolled_up_within_the_error_of_a_sketch;
use faults::{a_fault_while_a_report_is_made_comes_out, bad_input_is_refused, damage_is_named};

macro_rules! run {
    ($on:ident) => {
        $on! {
            a_report_says_what_looking_at_every_record_says,
            an_audience_of_many_chunks_is_reported_whole,
            chunks_without_the_audience_are_skipped,
            reports_cost_what_the_documentation_says,
            ids_without_a_record_are_left_out,
            sums_of_many_slices_are_walked,
            the_way_that_is_taken_reads_little_more_than_the_better_one,
            a_batch_gives_what_each_audience_gives_by_itself,
            a_batch_is_one_pass_and_can_be_stopped,
            a_batch_over_full_chunks_gives_the_same,
            distinct_users_are_rolled_up_within_the_error_of_a_sketch,
            a_fault_while_a_report_is_made_comes_out,
            bad_input_is_refused,
            damage_is_named,
        }
    };
}
run!(on_every_store);
run!(on_every_server);
