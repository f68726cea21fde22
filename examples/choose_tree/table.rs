//! The costs of all models as a table, which the book shows.

use std::error::Error;

use keyloom::Subspace;
use keyloom_patterns::trees::{
    AdjacencyList, MaterializedPath, NestedNode, NestedSets, TreeDocument,
};

use super::operations::Operation;
use super::replay::{CostOf, Costs, replay};

pub const HEAD: [&str; 5] = [
    "operation: keys written / keys read / round trips",
    "adjacency list",
    "materialized path",
    "nested sets",
    "one document",
];

/// Runs the operations on each model. If the models return different answers, this is an error.
pub fn costs_of_models(
    forest: &[NestedNode<u64>],
    operations: &[Operation],
) -> Result<[Costs; 4], Box<dyn Error>> {
    let space = Subspace::new("tree");
    let costs = [
        replay(&AdjacencyList::new(&space), forest, operations)?,
        replay(&MaterializedPath::new(&space), forest, operations)?,
        replay(&NestedSets::new(&space), forest, operations)?,
        replay(&TreeDocument::new(&space), forest, operations)?,
    ];
    let [first, others @ ..] = &costs;
    match HEAD.iter().skip(2).zip(others).find(|(_, other)| other.answers != first.answers) {
        Some((model, _)) => Err(format!("{model}: other answers than the adjacency list").into()),
        None => Ok(costs),
    }
}

/// A row for each operation, with its average cost on each model, and a row with the totals.
pub fn rows(costs: &[Costs; 4]) -> Vec<Vec<String>> {
    let mut rows = rows_of(costs, |cost| {
        let of_all = [cost.keys_written, cost.keys_read, cost.round_trips];
        of_all.map(|sum| average(sum, cost.times)).join(" / ")
    });
    let sum = |of: &Costs, count: fn(&CostOf) -> u64| of.of.values().map(count).sum();
    let [first, ..] = costs;
    let all = thousands(sum(first, |cost| cost.times));
    let mut total = vec![format!("all {all}: keys written / round trips")];
    total.extend(costs.iter().map(|of| {
        let [written, trips] =
            [sum(of, |cost| cost.keys_written), sum(of, |cost| cost.round_trips)];
        format!("{} / {}", thousands(written), thousands(trips))
    }));
    rows.push(total);
    rows
}

/// A row for each operation, with a cell for each model.
pub fn rows_of(costs: &[Costs; 4], cell: impl Fn(&CostOf) -> String) -> Vec<Vec<String>> {
    let row = |name: &&str| {
        let cells: Option<Vec<&CostOf>> = costs.iter().map(|of| of.of.get(name)).collect();
        let cells = cells?;
        let mut row = vec![label(name, cells.first()?)];
        row.extend(cells.into_iter().map(&cell));
        Some(row)
    };
    Operation::NAMES.iter().filter_map(row).collect()
}

fn label(name: &str, cost: &CostOf) -> String {
    match name {
        "descendants" => "descendants, three levels".into(),
        "delete" | "move" => {
            format!("{name} a subtree, {} nodes on average", average(cost.nodes, cost.times))
        }
        _ => name.into(),
    }
}

/// With one decimal, unless it is 0: `1.7`, `3`.
fn average(sum: u64, times: u64) -> String {
    let average = format!("{:.1}", sum as f64 / times as f64);
    average.strip_suffix(".0").map(String::from).unwrap_or(average)
}

/// With commas: `18,649`.
pub fn thousands(number: u64) -> String {
    match number / 1_000 {
        0 => number.to_string(),
        some => format!("{},{:03}", thousands(some), number % 1_000),
    }
}
