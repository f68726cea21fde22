//! JSON collections.

mod bad_input;
mod conditions;
mod costs;
mod faults;
mod fixture;
mod patches;
mod paths;
mod queries;

keyloom_testing::on_every_store_and_server! {
    queries::long_values_are_found_by_their_documents,
    queries::queries_by_path_are_those_of_their_definition,
    queries::nested_queries_match_within_one_element,
    conditions::conditions_find_the_documents_that_satisfy_them,
    conditions::updates_change_each_document_once,
    queries::examples_match_documents_that_have_all_of_them,
    queries::indexes_follow_every_change,
    patches::patches_are_those_of_the_standards,
    patches::refused_patches_leave_the_document,
    bad_input::unreadable_documents_are_skipped,
    bad_input::long_lists_have_an_entry_for_each_element,
    queries::a_repair_writes_lost_entries_again,
    queries::indexes_that_are_not_built_are_not_used,
    patches::a_unique_path_refuses_a_second_document,
    patches::words_are_found_at_a_path,
    bad_input::refused_documents_change_nothing,
}
