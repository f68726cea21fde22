//! Which model of a hierarchy? Runs the same operations on all models and prints their costs.
//!
//! ```text
//! cargo run --release -p keyloom-examples --bin choose_tree
//! cargo run --release -p keyloom-examples --bin choose_tree -- 20000
//! ```
//!
//! The data is a real directory tree. The three mixes of operations are mostly reads, mostly
//! appended nodes, and many moves; the argument is the number of operations. If the models return
//! different answers, the program stops. The counts do not depend on the machine: the book shows
//! them, and a test of the book compares them. The times are those of LMDB with
//! `Durability::MayLoseStore`, one transaction per change.

mod operations;
mod replay;
mod table;

use std::error::Error;

use operations::{MIXES, Operation, depths, directory_tree, operations};
use replay::Costs;
use table::{HEAD, costs_of_models, rows, rows_of};

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(2_000), |count| count.parse())?;
    let forest = directory_tree()?;
    let nodes: usize = forest.iter().map(|tree| tree.preorder().count()).sum();
    let (average, most) = depths(&forest);
    println!(
        "a directory tree of {nodes} nodes, whose depth is {average:.1} on average, at most {most}"
    );
    for mix in MIXES {
        let operations = operations(&forest, &mix, count)?;
        let moves = operations.iter().filter(|of| matches!(of, Operation::Move { .. })).count();
        println!("\n{}: {moves} of {} operations are moves", mix.name, operations.len());
        let costs = costs_of_models(&forest, &operations)?;
        print(&costs);
        let [Costs { answers: (_, tree), .. }, ..] = &costs;
        let (average, most) = depths(tree);
        println!("the depth is now {average:.1} on average, at most {most}");
    }
    Ok(())
}

/// Prints the table of the book, and then the times in the same form.
fn print(costs: &[Costs; 4]) {
    let line = |cells: &[String]| println!("| {} |", cells.join(" | "));
    line(&HEAD.map(String::from));
    println!("|---|---|---|---|---|");
    rows(costs).iter().for_each(|row| line(row));
    println!("\nµs for each operation:");
    let each = |cost: &replay::CostOf| cost.time.as_secs_f64() * 1e6 / cost.times as f64;
    rows_of(costs, |cost| format!("{:.1}", each(cost))).iter().for_each(|row| line(row));
    for (model, of) in HEAD.iter().skip(1).zip(costs) {
        let ms = of.of.values().map(|cost| cost.time.as_secs_f64()).sum::<f64>() * 1e3;
        println!("{model:<18} {ms:>9.1} ms in total");
    }
}
