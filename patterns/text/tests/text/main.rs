//! Tests of full-text search, one module per subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod corpus;
mod derived;
mod maintenance;

use keyloom_testing::on_every_store;

on_every_store! {
    maintenance::rebuilt_indexes_have_the_same_bytes,
    maintenance::statistics_are_those_of_the_records,
    maintenance::batches_leave_the_bytes_of_single_puts,
    maintenance::damage_of_any_entry_is_found_and_repaired,
}
