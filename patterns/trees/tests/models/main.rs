//! The laws of hierarchies: every model behaves in the same way, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod adjacency_list;
mod agreement;
mod damage;
mod deep;
mod error_names;
mod indexed;
mod laws;
mod materialized_path;
mod nested;
mod nested_sets;
mod one_gap;
mod operations;
mod oracle;
mod pages;
mod questions;
mod sorted_places;
mod tree_document;
mod writers;

use keyloom::Subspace;
use keyloom_tables::{Index, entry};
use keyloom_testing::{on_every_store, on_foundationdb};
use keyloom_trees::{
    AdjacencyList, MaterializedPath, NestedSets, NodeId, NodeRecord, TreeDocument, TreeModel,
};
use oracle::Rules;

/// Generates the laws for a model: `model!(name, rules, constructor)`.
macro_rules! model {
    ($name:ident, $rules:expr, $make:expr) => {
        mod $name {
            use keyloom::Store;

            #[allow(unused_imports, reason = "what makes the model names what it needs")]
            use super::*;

            fn it_agrees_with_the_oracle(store: &(impl Store + Clone)) {
                agreement::it_agrees_with_the_oracle(store, $make, $rules);
            }
            fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
                laws::a_fault_at_any_operation_leaves_nothing_half_done(store, $make, $rules);
            }
            fn a_conflict_at_any_operation_is_retried_to_the_same_end(
                store: &(impl Store + Clone),
            ) {
                laws::a_conflict_at_any_operation_is_retried_to_the_same_end(store, $make, $rules);
            }
            fn what_is_refused_is_refused_before_anything_is_written(store: &(impl Store + Clone)) {
                laws::what_is_refused_is_refused_before_anything_is_written(store, $make, $rules);
            }
            fn a_move_beside_itself_changes_nothing(store: &(impl Store + Clone)) {
                laws::a_move_beside_itself_changes_nothing(store, $make, $rules);
            }
            fn a_name_longer_than_a_key_is_no_child(store: &(impl Store + Clone)) {
                laws::a_name_longer_than_a_key_is_no_child(store, $make, $rules);
            }
            fn damage_is_named_and_repair_converges(store: &(impl Store + Clone)) {
                damage::damage_is_named_and_repair_converges(store, $make, $rules);
            }
            fn what_is_dumped_can_be_loaded_again(store: &(impl Store + Clone)) {
                laws::what_is_dumped_can_be_loaded_again(store, $make, $rules);
            }
            fn paths_are_created_once_and_leaves_are_deleted(store: &(impl Store + Clone)) {
                pages::paths_are_created_once_and_leaves_are_deleted(store, $make, $rules);
            }
            fn a_move_takes_another_name(store: &(impl Store + Clone)) {
                pages::a_move_takes_another_name(store, $make, $rules);
            }
            fn pages_after_a_lost_node_are_refused(store: &(impl Store + Clone)) {
                pages::pages_after_a_lost_node_are_refused(store, $make, $rules);
            }
            fn readers_keep_the_tree_that_they_began_with(store: &(impl Store + Clone)) {
                laws::readers_keep_the_tree_that_they_began_with(store, $make, $rules);
            }
            fn children_stay_in_the_order_of_their_keys(store: &(impl Store + Clone)) {
                sorted_places::children_stay_in_the_order_of_their_keys(store, $make, $rules);
            }
            fn a_place_at_an_end_reads_few_children(store: &(impl Store + Clone)) {
                sorted_places::a_place_at_an_end_reads_few_children(store, $make, $rules);
            }
            macro_rules! run {
                ($on:ident) => {
                    $on! {
                        it_agrees_with_the_oracle,
                        a_fault_at_any_operation_leaves_nothing_half_done,
                        a_conflict_at_any_operation_is_retried_to_the_same_end,
                        what_is_refused_is_refused_before_anything_is_written,
                        a_move_beside_itself_changes_nothing,
                        a_name_longer_than_a_key_is_no_child,
                        damage_is_named_and_repair_converges,
                        what_is_dumped_can_be_loaded_again,
                        paths_are_created_once_and_leaves_are_deleted,
                        a_move_takes_another_name,
                        pages_after_a_lost_node_are_refused,
                        readers_keep_the_tree_that_they_began_with,
                        children_stay_in_the_order_of_their_keys,
                        a_place_at_an_end_reads_few_children,
                    }
                };
            }
            run!(on_every_store);
            run!(on_foundationdb);

            #[test]
            fn writers_in_threads_leave_a_whole_tree() {
                writers::in_threads($make, $rules);
            }
            #[test]
            fn writers_in_processes_leave_a_whole_tree() {
                let test = concat!(stringify!($name), "::writers_in_processes_leave_a_whole_tree");
                writers::in_processes(test, $make, $rules);
            }
            #[test]
            fn two_moves_that_would_make_a_cycle_conflict() {
                writers::two_moves_that_would_make_a_cycle_conflict($make, $rules);
            }
        }
    };
}

// One line per model: its name, its requirements beyond the contract, and its constructor.
model!(adjacency_list_laws, Rules::NONE, AdjacencyList::<u32>::new);
model!(adjacency_list_with_unique_names, Rules::UNIQUE_NAMES, |space: &Subspace| {
    AdjacencyList::<u32>::new(space).with_unique_names()
});
model!(materialized_path_of_ids, Rules::NONE, MaterializedPath::<u32>::new);
model!(materialized_path_of_names, Rules::ORDERED_BY_NAME, |space: &Subspace| {
    MaterializedPath::<u32>::new(space).of_names()
});
model!(nested_sets_laws, Rules::NONE, NestedSets::<u32>::new);
// Documents in one key, and documents of so many pieces that most changes split them again.
model!(tree_document_laws, Rules::DOCUMENT, TreeDocument::<u32>::new);
model!(tree_document_in_pieces, Rules::IN_PIECES, |space: &Subspace| {
    TreeDocument::<u32>::new(space).piece_bytes(64)
});

/// With derived data: all laws hold for a tree with a table of its nodes.
fn with_index<T: TreeModel<Value = u32>>(tree: T) -> T {
    let by_name = |_: &NodeId, node: &NodeRecord<u32>| entry((node.name(), *node.value()));
    tree.with(&Index::new(&Subspace::new("by name"), by_name))
}

model!(indexed_adjacency_list, Rules::UNIQUE_NAMES, |space: &Subspace| {
    with_index(AdjacencyList::<u32>::new(space).with_unique_names())
});
model!(indexed_nested_sets, Rules::NONE, |space: &Subspace| {
    with_index(NestedSets::<u32>::new(space))
});
model!(indexed_paths_of_names, Rules::ORDERED_BY_NAME, |space: &Subspace| {
    with_index(MaterializedPath::<u32>::new(space).of_names())
});

mod indexed_laws {
    use crate::indexed::*;
    use keyloom_testing::on_every_store;

    on_every_store! {
        nodes_rebuilt_equal_nodes_maintained,
        a_tree_that_forgets_an_operation_is_caught,
        faults_leave_no_node_half_indexed,
        work_in_steps_keeps_nodes_indexed,
        a_rename_in_steps_keeps_nodes_indexed,
        an_index_is_built_over_nodes_that_are_there,
        a_tree_that_was_dropped_takes_no_change,
        a_tree_of_another_definition_is_refused,
        nodes_of_a_tree_are_written_by_the_tree_alone,
        a_damaged_record_of_a_node_is_found_and_repaired,
        an_index_without_a_schema_follows_a_tree,
        a_node_costs_a_get_and_a_key_more,
    }
}
