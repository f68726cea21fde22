//! The laws of enumerable keys, on every store.

mod faults;
mod orders;
mod stamps;
mod threads;
mod walks;

keyloom_testing::on_every_store_and_server! {
    walks::every_walk_finds_what_a_filter_over_all_records_finds,
    walks::an_index_of_the_records_is_maintained_as_it_is_rebuilt,
    orders::records_of_time_lie_in_the_buckets_of_their_ids,
    orders::between_shards_there_is_no_order_and_one_last_id_loses_records,
    threads::numbers_are_dense_and_in_the_order_of_the_commits,
    threads::blocks_give_no_number_twice,
    stamps::records_come_in_the_order_of_their_commits,
    stamps::who_follows_the_stamps_sees_each_record_once,
    threads::who_follows_the_shards_sees_each_record_once,
    faults::operations_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_nothing_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::check_finds_and_repair_repairs_a_sequence_that_is_behind,
    faults::bad_input_is_refused_and_nothing_is_written,
}
