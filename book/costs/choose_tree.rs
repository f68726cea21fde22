//! The tables that the example `choose_tree` prints, which runs operations on the models of trees.

use keyloom_patterns::trees::NestedNode;

use super::{Table, chapter};

#[path = "../../examples/choose_tree/operations.rs"]
mod operations;
#[path = "../../examples/choose_tree/replay.rs"]
mod replay;
#[path = "../../examples/choose_tree/table.rs"]
mod table;

use operations::{MIXES, Operation, depths, directory_tree};
pub(super) use table::thousands;
use table::{HEAD, costs_of_models, rows};

/// Compares the table of a chapter with the costs of a mix of operations, and returns the facts of
/// the run that the text of the chapter may state.
fn compare(name: &str, mix: &str) -> Vec<String> {
    let forest = directory_tree().unwrap();
    let mix = MIXES.iter().find(|one| one.name == mix).unwrap();
    let operations = operations::operations(&forest, mix, 2_000).unwrap();
    let costs = costs_of_models(&forest, &operations).unwrap();
    let mut table = Table::of(name);
    assert_eq!(table.columns, HEAD);
    for row in rows(&costs) {
        table.compare_cells(&row[0], &row[1..]);
    }
    table.end(&[]);

    let nodes = forest.iter().flat_map(NestedNode::preorder).count() as u64;
    let moves = operations.iter().filter(|of| matches!(of, Operation::Move { .. })).count();
    let depth = |(average, most)| format!("{average:.1} levels on average and {most} at most");
    let (before, after) = (depth(depths(&forest)), depth(depths(&costs[0].answers.1)));
    vec![
        format!("{moves} are moves"),
        format!("a real directory tree of {} nodes, whose depth is {before}", thousands(nodes)),
        format!("increase the depth of the tree to {after}"),
    ]
}

#[track_caller]
fn states(name: &str, facts: &[String]) {
    let text = chapter(name).replace('\n', " ");
    let missing: Vec<&String> = facts.iter().filter(|fact| !text.contains(*fact)).collect();
    assert!(missing.is_empty(), "{name} does not state {missing:?}");
}

#[test]
fn the_table_of_trees_with_many_moves_states_its_costs() {
    states("trees.md", &compare("trees.md", "many moves"));
}

#[test]
fn the_table_of_trees_that_are_mostly_read_states_its_costs() {
    states("measurements.md", &compare("measurements.md", "mostly reads")[..1]);
}
