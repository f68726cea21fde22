//! Parent-child on every store.

mod company;
mod costs;
mod faults;
mod guide;
mod itself;
mod model;
mod rules;
mod undeclared;

keyloom_testing::on_every_store! {
    guide::the_guide_finds_branches_by_their_employees,
    guide::the_guide_finds_employees_by_their_branch,
    guide::the_guide_finds_countries_by_grandchildren,
    model::queries_find_what_nested_loops_find,
    rules::a_deleted_parent_treats_its_children_by_the_rule,
    rules::orphans_are_resolved_by_a_rule,
    rules::a_collision_does_not_stop_the_repair,
    rules::a_moved_record_takes_its_children_along,
    itself::trees_stay_without_cycles_and_within_their_depth,
    itself::a_path_is_not_moved_below_itself,
    undeclared::what_belongs_to_documents_is_declared_by_each_writer,
    undeclared::a_path_within_elements_is_declared_by_each_reader,
    costs::steps_cost_what_the_documentation_says,
    faults::a_fault_at_any_operation_leaves_no_move_half_done,
    faults::a_conflict_at_any_operation_is_retried_to_the_same_end,
    faults::wrong_writes_are_refused,
}

keyloom_testing::on_every_server! {
    guide::the_guide_finds_branches_by_their_employees,
    guide::the_guide_finds_employees_by_their_branch,
    guide::the_guide_finds_countries_by_grandchildren,
    model::queries_find_what_nested_loops_find,
    rules::a_moved_record_takes_its_children_along,
    rules::orphans_are_resolved_by_a_rule,
    rules::a_collision_does_not_stop_the_repair,
    rules::a_deleted_parent_treats_its_children_by_the_rule,
    itself::trees_stay_without_cycles_and_within_their_depth,
    itself::a_path_is_not_moved_below_itself,
}
