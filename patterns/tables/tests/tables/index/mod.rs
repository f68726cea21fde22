//! The laws of tables and of the composite-key index, on every store.

mod batches;
mod faults;
mod fixture;
mod maintenance;
mod queries;

keyloom_testing::on_every_store_and_server! {
    queries::every_query_finds_what_a_filter_over_all_records_finds,
    queries::clauses_of_a_query_select_what_filters_select,
    queries::pages_join_to_the_whole_whatever_is_written_in_between,
    maintenance::a_repair_that_was_stopped_continues_where_it_was,
    queries::operations_cost_what_the_documentation_says,
    faults::bad_input_is_refused_and_nothing_is_lost,
    faults::several_patterns_commit_or_roll_back_together,
    queries::continuations_of_other_queries_are_refused,
    queries::prefixes_do_not_find_keys_that_only_begin_with_the_same_bytes,
    queries::prefixes_of_any_length_reach_into_the_record_key,
    batches::many_at_once_leave_what_one_by_one_leaves,
    batches::replaced_records_leave_what_puts_and_deletes_leave,
    batches::many_cost_few_round_trips,
    batches::check_repair_and_lookups_cost_few_round_trips,
    batches::damage_in_every_chunk_is_found_and_repaired,
    batches::bad_input_among_many_is_found_before_anything_is_written,
}
