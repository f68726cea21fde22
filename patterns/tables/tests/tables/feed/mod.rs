//! The laws of change feeds, on every store.

mod bad_input;
mod damage;
mod faults;
mod model;
mod threads;

use keyloom::Subspace;
use keyloom_tables::feed::Consumer;
use keyloom_tables::{Feed, Table};

type Key = (String, u64);
type TestFeed = Feed<Key, String>;
type TestConsumer = Consumer<Key, String, keyloom::value::Postcard>;

keyloom_testing::on_every_store_and_server! {
    model::consumers_see_what_a_list_of_all_changes_says,
    threads::each_change_is_processed_once_and_in_order,
    threads::shares_divide_the_changes_by_records,
    threads::a_waiting_consumer_learns_of_a_change,
    faults::operations_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_nothing_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::a_sweep_that_stops_anywhere_loses_no_change,
    damage::check_finds_and_repair_repairs_what_can_be,
    bad_input::bad_input_is_refused_and_nothing_is_written,
    bad_input::a_schema_keeps_a_program_without_the_feed_from_writing,
}

fn feed() -> TestFeed {
    Feed::new(&Subspace::new("feed")).with_old_values()
}

fn table(feed: &TestFeed) -> Table<Key, String> {
    Table::new(&Subspace::new("table")).with(feed)
}
