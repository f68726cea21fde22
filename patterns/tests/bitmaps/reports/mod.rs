//! Reports of audiences, and many audiences at once.

use keyloom_testing::on_every_store_and_server;

mod batch;
mod breakdowns;
mod distinct;
mod faults;
mod fixture;
mod groups;
mod integers;
mod saved;

on_every_store_and_server! {
    breakdowns::a_report_says_what_looking_at_every_record_says,
    breakdowns::an_audience_of_many_chunks_is_reported_whole,
    breakdowns::selected_tuples_are_counted,
    breakdowns::values_of_large_dictionaries_are_counted,
    breakdowns::chunks_without_the_audience_are_skipped,
    breakdowns::reports_cost_what_the_documentation_says,
    breakdowns::ids_without_a_record_are_left_out,
    breakdowns::sums_of_many_slices_are_walked,
    breakdowns::the_way_that_is_taken_reads_little_more_than_the_better_one,
    groups::groups_are_those_of_a_loop_over_all_records,
    groups::wrong_stored_values_are_caught,
    groups::too_many_groups_are_refused,
    groups::the_field_with_the_fewest_values_is_outermost,
    groups::the_cheaper_way_is_chosen,
    batch::a_batch_gives_what_each_audience_gives_by_itself,
    batch::a_batch_is_one_pass_and_can_be_stopped,
    batch::a_batch_over_full_chunks_gives_the_same,
    distinct::distinct_users_are_rolled_up_within_the_error_of_a_sketch,
    saved::saved_audiences_are_those_of_sets_in_memory,
    saved::a_missing_member_is_caught,
    integers::reports_on_integers_say_what_looking_at_every_record_says,
    integers::integers_of_many_chunks_are_reported_whole,
    integers::a_page_begins_after_a_deleted_row,
    integers::a_page_begins_after_the_largest_id,
    integers::a_page_refuses_continuations_of_other_reports,
    integers::reports_on_integers_cost_what_the_documentation_says,
    integers::a_large_audience_reads_the_slices,
    faults::a_fault_while_a_report_is_made_comes_out,
    faults::bad_input_is_refused,
    faults::damage_is_named,
}
