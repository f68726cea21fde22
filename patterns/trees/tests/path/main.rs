//! Paths of labels: the language of PostgreSQL's ltree, the skip scan, and the path hierarchy of a
//! table.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod functions;
mod hierarchy;
mod language;
mod naive;
mod oracle;
mod scan;
mod trees;

keyloom_testing::on_every_store_and_foundationdb! {
    scan::scans_find_what_a_filter_over_all_keys_finds,
    scan::a_literal_beginning_reads_only_its_range,
    scan::a_skip_scan_does_not_read_what_it_skips,
    scan::pages_join_to_the_whole_whatever_is_written_in_between,
    scan::continuations_of_other_patterns_are_refused,
    scan::keys_that_are_no_paths_are_named,
    scan::tables_of_paths_are_searched_as_they_are,
    trees::trees_of_names_are_searched_as_they_are,
    hierarchy::queries_find_what_a_filter_over_all_records_finds,
    hierarchy::bad_input_is_refused_and_nothing_is_written,
}
