//! Which model of a hierarchy? Runs the same operations on all models and prints their costs.
//!
//! ```text
//! cargo run --release -p keyloom-examples --bin choose_tree
//! cargo run --release -p keyloom-examples --bin choose_tree -- 20000
//! ```
//!
//! The data is a real directory tree. The three mixes of operations are mostly reads, mostly
//! appended nodes, and many moves; the argument is the number of operations. If the models return
//! different answers, the program stops. The counts do not depend on the machine. The times are
//! those of LMDB with `Durability::MayLoseStore`, one transaction per change.

mod operations;
mod replay;

use std::error::Error;

use keyloom::Subspace;
use keyloom_patterns::trees::{AdjacencyList, MaterializedPath, NestedSets, TreeDocument};

use operations::{MIXES, Operation, directory_tree, operations};
use replay::{Costs, replay};

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(2_000), |count| count.parse())?;
    let forest = directory_tree()?;
    let nodes: usize = forest.iter().map(|tree| tree.preorder().count()).sum();
    println!("a directory tree of {nodes} nodes, {count} operations of each mix");
    let space = Subspace::new("tree");
    for mix in MIXES {
        let operations = operations(&forest, &mix, count)?;
        let moves = operations.iter().filter(|of| matches!(of, Operation::Move(..))).count();
        println!("\n{}: {moves} of {} operations are moves", mix.name, operations.len());
        let models = [
            ("adjacency list", replay(&AdjacencyList::new(&space), &forest, &operations)?),
            ("materialized path", replay(&MaterializedPath::new(&space), &forest, &operations)?),
            ("nested sets", replay(&NestedSets::new(&space), &forest, &operations)?),
            ("tree document", replay(&TreeDocument::new(&space), &forest, &operations)?),
        ];
        print(&models)?;
    }
    Ok(())
}

/// Prints a line for each operation and model: the average cost of one operation.
fn print(models: &[(&str, Costs)]) -> Result<(), Box<dyn Error>> {
    let Some((_, first)) = models.first() else { return Ok(()) };
    println!("| operation | model | keys written | keys read | round trips | µs |");
    println!("|---|---|---|---|---|---|");
    for operation in first.of.keys() {
        for (model, costs) in models {
            let cost = costs.of.get(operation).ok_or("a model has left an operation out")?;
            let each = |sum: u64| sum as f64 / cost.times as f64;
            println!(
                "| {operation} ({}) | {model} | {:.2} | {:.1} | {:.2} | {:.1} |",
                cost.times,
                each(cost.keys_written),
                each(cost.keys_read),
                each(cost.round_trips),
                cost.time.as_secs_f64() * 1e6 / cost.times as f64,
            );
        }
    }
    if let Some((model, _)) = models.iter().find(|(_, costs)| costs.answers != first.answers) {
        return Err(format!("the {model} answers otherwise").into());
    }
    for (model, costs) in models {
        let ms = costs.of.values().map(|cost| cost.time.as_secs_f64()).sum::<f64>() * 1e3;
        let keys: u64 = costs.of.values().map(|cost| cost.keys_written).sum();
        let trips: u64 = costs.of.values().map(|cost| cost.round_trips).sum();
        println!("{model:<18} {keys:>9} keys written {trips:>9} round trips {ms:>9.1} ms");
    }
    Ok(())
}
