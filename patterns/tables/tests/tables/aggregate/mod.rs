//! The laws of aggregation on every store: skip scans, group-by, and maintained aggregates.

mod clicks;
mod faults;
mod fixture;
mod group_by;
mod ranked;
mod roll_up;
mod sketches;
mod skip_scan;
mod totals;

keyloom_testing::on_every_store! {
    skip_scan::every_scan_finds_what_a_filter_over_all_keys_finds,
    skip_scan::a_hundred_groups_cost_a_hundred_ranges_whatever_they_hold,
    group_by::group_by_gives_what_a_map_of_groups_gives,
    clicks::the_click_stream_of_the_catalogue_is_answered_from_keys_alone,
    totals::operations_cost_what_the_documentation_says,
    totals::a_repair_continues_where_it_was_stopped,
    ranked::ranks_counts_and_positions_are_those_of_a_sorted_list,
    ranked::damaged_counts_are_found_and_repaired_while_others_write,
    ranked::a_repair_whose_last_node_is_deleted_meanwhile_ends_right,
    roll_up::an_interval_reads_raw_entries_at_its_edges_only,
    sketches::sketches_hold_what_was_put_and_are_rebuilt_to_what_is_there,
    faults::a_fault_while_reading_says_so,
    faults::bad_input_is_refused_with_a_reason_and_nothing_is_written,
}

// Without the tests whose transactions exceed etcd's limit.
keyloom_testing::on_every_server! {
    skip_scan::every_scan_finds_what_a_filter_over_all_keys_finds,
    group_by::group_by_gives_what_a_map_of_groups_gives,
    totals::operations_cost_what_the_documentation_says,
    totals::a_repair_continues_where_it_was_stopped,
    faults::a_fault_while_reading_says_so,
    faults::bad_input_is_refused_with_a_reason_and_nothing_is_written,
}
