//! Random operations as data. They do not depend on the contents of the tree, so any of them can be
//! removed.

use fastrand::Rng;
use keyloom::{Result, Writer};
use keyloom_testing::ids::{TEXTS, number, text};
use keyloom_trees::{InsertAt, NestedNode, NodeId, OnDelete, Tree};

use super::oracle::Rules;

#[derive(Clone, Debug)]
pub enum Operation {
    Insert { id: NodeId, name: String, value: u32, place: InsertAt },
    Rename { id: NodeId, name: String },
    SetValue { id: NodeId, value: u32 },
    Move { id: NodeId, place: InsertAt },
    DeleteSubtree { id: NodeId },
    DeleteNode { id: NodeId, orphans: OnDelete },
    Load { parent: Option<NodeId>, trees: Vec<NestedNode<u32>> },
}

/// The parameters of random operations.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// The number of ids; some are in the tree, and some are not.
    pub ids: u64,
    pub rules: Rules,
    /// The percentage of deletions.
    pub deletions: u32,
}

impl Mix {
    /// A forest with half of the ids, followed by operations on it.
    pub fn operations(self, rng: &mut Rng, count: usize) -> Vec<Operation> {
        let mut operations = vec![self.forest(rng)];
        operations.extend((1..count).map(|_| self.operation(rng)));
        operations
    }

    pub fn forest(self, rng: &mut Rng) -> Operation {
        let mut trees: Vec<NestedNode<u32>> = Vec::new();
        for n in 0..self.ids / 2 {
            let node = NestedNode::new(number(n), loaded(n), rng.u32(..));
            // At a random level below.
            let mut siblings = &mut trees;
            while !siblings.is_empty() && rng.u8(..10) < 6 {
                let at = rng.usize(..siblings.len());
                siblings = &mut siblings[at].children;
            }
            siblings.push(node);
        }
        Operation::Load { parent: None, trees }
    }

    pub fn operation(self, rng: &mut Rng) -> Operation {
        let id = self.id(rng);
        if rng.u32(..100) < self.deletions {
            return match rng.u8(..4) {
                0 => Operation::DeleteSubtree { id },
                1 => Operation::DeleteNode { id, orphans: OnDelete::Promote },
                _ => Operation::DeleteNode { id, orphans: OnDelete::Reparent },
            };
        }
        match rng.u8(..100) {
            0..48 => {
                let (name, value) = (name(rng), rng.u32(..));
                let id = number(self.new_id(rng));
                Operation::Insert { id, name, value, place: self.place(rng) }
            }
            48..80 => Operation::Move { id, place: self.place(rng) },
            80..90 => Operation::Rename { id, name: name(rng) },
            90..95 => Operation::SetValue { id, value: rng.u32(..) },
            _ => self.load(rng),
        }
    }

    fn id(self, rng: &mut Rng) -> NodeId {
        // Usually ids of the initial forest: see `forest`.
        let among = if rng.u8(..4) > 0 { self.ids / 2 } else { self.ids };
        number(rng.u64(..among))
    }

    /// The index of an id that may be new.
    fn new_id(self, rng: &mut Rng) -> u64 {
        let from = if rng.u8(..4) > 0 { self.ids / 2 } else { 0 };
        rng.u64(from..self.ids)
    }

    fn parent(self, rng: &mut Rng) -> Option<NodeId> {
        (rng.u8(..6) > 0).then(|| self.id(rng))
    }

    fn place(self, rng: &mut Rng) -> InsertAt {
        if self.rules.ordered_by_name {
            return InsertAt::Sorted(self.parent(rng));
        }
        match rng.u8(..10) {
            0..2 => InsertAt::First(self.parent(rng)),
            2..4 => InsertAt::Last(self.parent(rng)),
            4..6 => InsertAt::At(self.parent(rng), rng.u64(..5)),
            6 => InsertAt::Sorted(self.parent(rng)),
            7 => InsertAt::Before(self.id(rng)),
            _ => InsertAt::After(self.id(rng)),
        }
    }

    fn load(self, rng: &mut Rng) -> Operation {
        let parent = self.parent(rng);
        // The names differ and each id occurs once; the ids may already be in the tree.
        let mut next = self.new_id(rng);
        let trees = (0..rng.usize(..3)).map(|_| nested(rng, &mut next, 0)).collect();
        Operation::Load { parent, trees }
    }
}

/// The name of a loaded node. Some names are prefixes of others.
fn loaded(n: u64) -> String {
    format!("loaded {n}")
}

fn nested(rng: &mut Rng, next: &mut u64, depth: u32) -> NestedNode<u32> {
    let n = *next;
    *next += 1;
    let mut node = NestedNode::new(number(n), loaded(n), rng.u32(..));
    for _ in 0..rng.u32(..3_u32.saturating_sub(depth).max(1)) {
        node = node.with(nested(rng, next, depth + 1));
    }
    node
}

/// Names with all characters that keys escape; they share prefixes and suffixes.
const NAMES: [&str; 4] = ["a\0b", "a.b", "a-b", "é"];

pub fn name(rng: &mut Rng) -> String {
    match rng.u8(..4) {
        0 => rng.choice(NAMES).unwrap().into(),
        1 => text(rng.usize(..TEXTS.len())),
        _ => text(rng.usize(..200)),
    }
}

/// Applies an operation to a model. Returns the number of nodes that it deleted.
pub fn perform<T: Tree<Value = u32>>(
    model: &T,
    txn: &mut impl Writer,
    operation: &Operation,
) -> Result<u64> {
    match operation {
        Operation::Insert { id, name, value, place } => {
            model.insert(txn, *id, name, value, *place)?
        }
        Operation::Rename { id, name } => model.rename(txn, *id, name)?,
        Operation::SetValue { id, value } => model.set_value(txn, *id, value)?,
        Operation::Move { id, place } => model.move_to(txn, *id, *place)?,
        Operation::DeleteSubtree { id } => return model.delete_subtree(txn, *id),
        Operation::DeleteNode { id, orphans } => model.delete_node(txn, *id, *orphans)?,
        Operation::Load { parent, trees } => model.import(txn, *parent, trees)?,
    }
    Ok(0)
}
