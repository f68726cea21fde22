//! Runs the operations on one model, and counts their costs.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Metered, Reader, Result, Store};
use keyloom_patterns::trees::{InsertAt, NestedNode, Tree};

use super::operations::Operation;

/// The total cost of the operations of one kind.
#[derive(Default)]
pub struct CostOf {
    pub times: u64,
    /// The nodes of all subtrees that were moved or deleted.
    pub nodes: u64,
    pub keys_written: u64,
    pub keys_read: u64,
    pub round_trips: u64,
    pub time: Duration,
}

/// The costs of each kind of operation, and the answers.
pub struct Costs {
    pub of: BTreeMap<&'static str, CostOf>,
    /// The result of each operation (for a read that of `ask`), and the whole tree at the end.
    pub answers: (Vec<u64>, Vec<NestedNode<u64>>),
}

pub fn replay<T: Tree<Value = u64>>(
    tree: &T,
    forest: &[NestedNode<u64>],
    operations: &[Operation],
) -> std::result::Result<Costs, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let lmdb = Lmdb::options().durability(Durability::MayLoseStore).open(directory.path())?;
    let store = Metered::new(lmdb);
    store.transact(|txn| tree.import(txn, None, forest))?;
    let mut of: BTreeMap<&'static str, CostOf> = BTreeMap::new();
    let mut found = Vec::with_capacity(operations.len());
    for operation in operations {
        let started = Instant::now();
        let (answer, cost) = store.measure(|store| perform(tree, store, operation));
        let sum = of.entry(operation.name()).or_default();
        sum.time += started.elapsed();
        sum.times += 1;
        sum.nodes += operation.nodes();
        sum.keys_read += cost.keys_read;
        sum.keys_written += cost.keys_written;
        sum.round_trips += cost.round_trips;
        found.push(answer?);
    }
    let snapshot = store.snapshot()?;
    let mut wrong = None;
    tree.check_each(&snapshot, |found| {
        wrong = Some(found);
        ControlFlow::Break(())
    })?;
    match wrong {
        Some(wrong) => Err(wrong.to_string().into()),
        None => Ok(Costs { of, answers: (found, tree.export(&snapshot, None)?) }),
    }
}

fn perform<T: Tree<Value = u64>>(
    tree: &T,
    store: &impl Store,
    operation: &Operation,
) -> Result<u64> {
    match *operation {
        Operation::Append(parent, id) => {
            store.transact(|txn| tree.insert(txn, id, "new", &0, InsertAt::last(parent)))?;
        }
        Operation::Rename(id) => store.transact(|txn| tree.rename(txn, id, "another"))?,
        Operation::Move { node, parent, .. } => {
            store.transact(|txn| tree.move_to(txn, node, InsertAt::last(parent)))?
        }
        Operation::Delete { node, .. } => {
            return store.transact(|txn| tree.delete_subtree(txn, node));
        }
        _ => return ask(tree, &store.snapshot()?, operation),
    }
    Ok(1)
}

/// Reads the names of the nodes found. Returns the sum of their bytes and of the number of nodes.
fn ask<T: Tree<Value = u64>>(tree: &T, reader: &impl Reader, operation: &Operation) -> Result<u64> {
    let mut sum = 0;
    match *operation {
        Operation::Children(id) => {
            for node in tree.children(reader, id)? {
                sum += 1 + node?.name()?.len() as u64;
            }
        }
        Operation::Descendants(id) => {
            for visit in tree.descendants(reader, id, 1..=3)? {
                sum += 1 + visit?.node.name()?.len() as u64;
            }
        }
        Operation::Ancestors(id) => {
            for node in tree.ancestors(reader, id)? {
                sum += 1 + node.name()?.len() as u64;
            }
        }
        Operation::Get(id) => {
            if let Some(node) = tree.get(reader, id)? {
                sum += 1 + node.name()?.len() as u64;
            }
        }
        _ => {}
    }
    Ok(sum)
}
