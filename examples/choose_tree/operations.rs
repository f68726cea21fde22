//! The operations as data. Each operation is valid when it runs.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use keyloom::{Memory, Result, Store, Subspace};
use keyloom_patterns::trees::tree_document::Document;
use keyloom_patterns::trees::{InsertAt, NestedNode, NodeId, TreeDocument};

pub enum Operation {
    Get(NodeId),
    Children(NodeId),
    /// At most three levels.
    Descendants(NodeId),
    Ancestors(NodeId),
    /// A new node as the last child.
    Append(NodeId, NodeId),
    Rename(NodeId),
    /// A node with its descendants, together `nodes`, becomes the last child of another node.
    Move {
        node: NodeId,
        parent: NodeId,
        nodes: u64,
    },
    /// Deletes a node with its descendants, together `nodes`.
    Delete {
        node: NodeId,
        nodes: u64,
    },
}

impl Operation {
    /// The names of all operations, in the order in which they are printed.
    pub const NAMES: [&str; 8] =
        ["get", "children", "descendants", "ancestors", "append", "rename", "delete", "move"];

    pub fn name(&self) -> &'static str {
        match self {
            Self::Get(_) => "get",
            Self::Children(_) => "children",
            Self::Descendants(_) => "descendants",
            Self::Ancestors(_) => "ancestors",
            Self::Append(..) => "append",
            Self::Rename(_) => "rename",
            Self::Move { .. } => "move",
            Self::Delete { .. } => "delete",
        }
    }

    /// The number of nodes of the subtree that is moved or deleted.
    pub fn nodes(&self) -> u64 {
        match self {
            Self::Move { nodes, .. } | Self::Delete { nodes, .. } => *nodes,
            _ => 0,
        }
    }
}

pub struct Mix {
    pub name: &'static str,
    /// Shares in percent: gets, children, descendants, ancestors, appends, renames, moves,
    /// deletions. Impossible operations are skipped.
    of_hundred: [u32; 8],
}

pub const MIXES: [Mix; 3] = [
    Mix { name: "mostly reads", of_hundred: [30, 25, 15, 20, 6, 2, 1, 1] },
    Mix { name: "mostly new nodes", of_hundred: [5, 5, 5, 5, 75, 2, 1, 2] },
    Mix { name: "many moves", of_hundred: [10, 10, 5, 10, 10, 10, 40, 5] },
];

/// Random operations, the same ones in each run. They are also applied to a document in memory, so
/// that each operation is valid.
pub fn operations(forest: &[NestedNode<u64>], mix: &Mix, count: usize) -> Result<Vec<Operation>> {
    let nowhere = TreeDocument::<u64>::new(&Subspace::root());
    let mut tree = nowhere.read(&Memory::new().snapshot()?)?;
    tree.import(None, forest)?;
    let mut ids: Vec<NodeId> =
        forest.iter().flat_map(NestedNode::preorder).map(|(_, n)| n.id).collect();
    let mut next = ids.iter().max().map_or(0, |largest| largest + 1);
    let mut random = fastrand::Rng::with_seed(7);
    let mut operations = Vec::with_capacity(count);
    while operations.len() < count && !ids.is_empty() {
        let mut any = || ids.get(random.usize(..ids.len())).copied().unwrap_or_default();
        let (node, other) = (any(), any());
        let operation = match chosen(mix, random.u32(..100)) {
            0 => Operation::Get(node),
            1 => Operation::Children(node),
            2 => Operation::Descendants(node),
            3 => Operation::Ancestors(node),
            4 => Operation::Append(node, next),
            5 => Operation::Rename(node),
            6 if can_move(&tree, node, other)? => {
                let nodes = tree.descendant_count(node)? + 1;
                Operation::Move { node, parent: other, nodes }
            }
            7 if tree.descendant_count(node)? < 20 => {
                Operation::Delete { node, nodes: tree.descendant_count(node)? + 1 }
            }
            _ => continue,
        };
        match operation {
            Operation::Append(parent, id) => {
                tree.insert(id, "new", &0, InsertAt::last(parent))?;
                ids.push(id);
                next += 1;
            }
            Operation::Move { node, parent, .. } => tree.move_to(node, InsertAt::last(parent))?,
            Operation::Delete { node, .. } => {
                tree.delete_subtree(node)?;
                ids.retain(|id| tree.get(*id).is_some());
            }
            _ => {}
        }
        operations.push(operation);
    }
    Ok(operations)
}

/// Whether a node can be moved below `to`. A node cannot move below itself. Nodes with 1,000
/// descendants or more are not moved, since such moves are rare in practice.
fn can_move(tree: &Document<u64>, node: NodeId, to: NodeId) -> Result<bool> {
    Ok(node != to && !tree.is_ancestor(node, to)? && tree.descendant_count(node)? < 1_000)
}

fn chosen(mix: &Mix, mut number: u32) -> usize {
    let kind = mix.of_hundred.iter().position(|share| match number.checked_sub(*share) {
        Some(rest) => {
            number = rest;
            false
        }
        None => true,
    });
    kind.unwrap_or_default()
}

/// The files and directories of a source tree, with their sizes; each directory is sorted by name.
pub fn directory_tree() -> std::result::Result<Vec<NestedNode<u64>>, Box<dyn Error>> {
    // A test of the book includes this file, so the path begins at the folder of both packages.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = workspace.join("examples/data/directory-tree.tsv.gz");
    let mut text = String::new();
    MultiGzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
    let mut files: Vec<(Vec<&str>, u64)> = Vec::new();
    for line in text.lines() {
        let (bytes, path) = line.split_once('\t').ok_or("a line without a size")?;
        // The size of one file is unknown.
        files.push((path.split('/').collect(), bytes.parse().unwrap_or(0)));
    }
    files.sort();
    let mut forest: Vec<NestedNode<u64>> = Vec::new();
    let mut id = 0;
    for (path, bytes) in files {
        let mut siblings = &mut forest;
        for (depth, name) in path.iter().enumerate() {
            if siblings.last().is_none_or(|last| last.name != *name) {
                id += 1;
                let is_file = depth + 1 == path.len();
                siblings.push(NestedNode::new(id, *name, if is_file { bytes } else { 0 }));
            }
            let Some(last) = siblings.last_mut() else { break };
            siblings = &mut last.children;
        }
    }
    Ok(forest)
}

/// The depths of the nodes, on average and at most. A root has depth 0.
pub fn depths(forest: &[NestedNode<u64>]) -> (f64, u32) {
    let all = || forest.iter().flat_map(NestedNode::preorder).map(|(depth, _)| depth);
    let sum: u32 = all().sum();
    (f64::from(sum) / all().count() as f64, all().max().unwrap_or_default())
}
