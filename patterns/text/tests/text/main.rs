//! Tests of full-text search, one module per subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod corpus;
mod declared;
mod derived;
mod groups;
mod maintenance;
mod matches;
mod naive;
mod orders;
mod remote;
mod search;
mod suggest;
mod summaries;
mod writers;

use keyloom_testing::{on_every_server, on_every_store};

on_every_store! {
    maintenance::rebuilt_indexes_have_the_same_bytes,
    maintenance::statistics_are_those_of_the_records,
    maintenance::batches_leave_the_bytes_of_single_puts,
    maintenance::updates_that_only_add_terms_count_a_record_once,
    maintenance::damage_of_any_entry_is_found_and_repaired,
    search::queries_match_the_documents_of_their_definition,
    search::fields_are_ranked_as_if_they_were_one,
    search::documents_with_a_field_are_found_and_counted,
    search::filters_leave_scores_as_they_are,
    search::wrong_searches_are_errors_with_a_remedy,
    search::pages_are_stable_while_others_write,
    search::damage_is_an_error_with_the_key,
    search::terms_that_continue_after_a_nul_are_other_terms,
    orders::results_come_in_the_order_of_an_integer_field,
    orders::records_come_in_the_order_of_a_sort_key,
    orders::functions_replace_the_score,
    orders::rankings_are_parts_of_the_results,
    orders::facets_count_the_values_of_all_matches,
    orders::similar_records_have_the_most_typical_words,
    summaries::summaries_of_any_history_are_those_of_the_records,
    summaries::damaged_summaries_are_found_and_repaired,
    suggest::completions_are_the_most_frequent_terms,
    suggest::similar_terms_are_those_of_the_definition,
    suggest::unknown_words_of_a_text_are_replaced,
    groups::groups_answer_as_indexes_of_their_own,
    groups::rebuilt_groups_have_the_same_bytes,
    groups::damage_of_any_entry_of_a_group_is_found_and_repaired,
}

// Without the tests whose transactions exceed etcd's limit.
on_every_server! {
    maintenance::statistics_are_those_of_the_records,
    search::queries_match_the_documents_of_their_definition,
    search::fields_are_ranked_as_if_they_were_one,
    search::documents_with_a_field_are_found_and_counted,
    search::filters_leave_scores_as_they_are,
    search::wrong_searches_are_errors_with_a_remedy,
    search::pages_are_stable_while_others_write,
    orders::results_come_in_the_order_of_an_integer_field,
    orders::facets_count_the_values_of_all_matches,
}
