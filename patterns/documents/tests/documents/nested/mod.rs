//! Nested objects on every store.

mod blog;
mod costs;
pub mod faults;
mod fixture;
mod guide;
mod model;

keyloom_testing::on_every_store! {
    guide::the_guide_finds_comments_on_their_own,
    guide::the_guide_sorts_posts_by_their_comments,
    guide::the_guide_counts_comments_and_their_posts,
    model::queries_find_what_nested_loops_find,
    model::documents_are_read_as_they_were_put,
    costs::one_changed_element_is_one_record_written,
    costs::many_documents_are_put_together,
    costs::changes_of_elements_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_no_document_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::orphans_are_reported_and_deleted,
    faults::elements_within_records_become_records,
    faults::wrong_writes_and_paths_are_refused,
}

keyloom_testing::on_every_server! {
    guide::the_guide_finds_comments_on_their_own,
    guide::the_guide_counts_comments_and_their_posts,
    guide::the_guide_sorts_posts_by_their_comments,
    model::queries_find_what_nested_loops_find,
    model::documents_are_read_as_they_were_put,
    faults::orphans_are_reported_and_deleted,
    faults::elements_within_records_become_records,
}
