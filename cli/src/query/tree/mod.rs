//! The nodes of a tree, by a pattern of their paths or by number.

mod pattern;

use keyloom::AnySnapshot;
use keyloom_trees::{NodeId, Tree};
use serde_json::json;

use super::At;
use super::listing::{Hit, Record, list};
use crate::failure::{Failure, Result};
use crate::models::{OnTree, has_unique_names, on_tree};
use crate::output::Output;

use pattern::{Pattern, States, literal};

/// Lists the nodes whose paths match a pattern, or the node with a number. Without a query, lists
/// the roots.
pub fn run(at: &At<'_>, out: &mut Output) -> Result {
    on_tree(at.part, None, Nodes { at, out })
}

struct Nodes<'q, 'o> {
    at: &'q At<'q>,
    out: &'o mut Output,
}

impl OnTree for Nodes<'_, '_> {
    type Output = ();

    fn run<T: Tree>(self, tree: &T) -> Result {
        let Self { at, out } = self;
        let query = at.query().unwrap_or("/*");
        if let Ok(id) = query.parse() {
            let node = one_node(tree, at.snapshot, id).transpose();
            return list(at, out, node.map(|node| Ok(hit(at, node?))), "there is no such node");
        }
        let pattern = Pattern::parse(query).ok_or_else(|| {
            Failure::new(format!(
                "{query:?} is neither a path nor the number of a node: a path begins with a slash, as in /photos/2024/x.jpg, and has * for any part of a name and ** for any names, as in '/photos/**/*.jpg'"
            ))
        })?;
        let has_unique_names = has_unique_names(at.part);
        let walk = Walk::new(tree, at.snapshot, &pattern, has_unique_names)?;
        let hits = walk.map(|node| Ok(hit(at, node?)));
        list(at, out, hits, "no node has such a path")
    }
}

/// A node and its path.
struct Node {
    id: NodeId,
    path: String,
}

fn hit(at: &At<'_>, node: Node) -> Hit {
    let Node { id, path } = node;
    let key = at.table.space.pack(&id).to_vec();
    Hit {
        from: format!("the node {id}"),
        record: Record::AtOneOf(vec![key]),
        // As text, because a number of JavaScript holds only 53 bits of an integer.
        fields: json!({"path": path, "node": id.to_string()}),
        text: path,
    }
}

/// The node with a number.
fn one_node<T: Tree>(tree: &T, snapshot: &AnySnapshot<'_>, id: NodeId) -> Result<Option<Node>> {
    if tree.get(snapshot, id)?.is_none() {
        return Ok(None);
    }
    let names = tree.names_to(snapshot, id)?;
    let path = names.iter().map(|name| format!("/{}", literal(name))).collect();
    Ok(Some(Node { id, path }))
}

/// A node below another, with its distance and its name.
type Below = (u32, NodeId, String);

/// Nodes below a node that a walk has reached.
struct Frame<'w> {
    nodes: Box<dyn Iterator<Item = Result<Below>> + 'w>,
    /// The states of the pattern after the path of the node above.
    states: States,
    /// The lengths in bytes of the path of the node above, and of the paths from its child down to
    /// the last node.
    ends: Vec<usize>,
}

/// A walk through the nodes whose paths match a pattern, in depth-first order. Subtrees without a
/// match are not read.
struct Walk<'w, T: Tree> {
    tree: &'w T,
    snapshot: &'w AnySnapshot<'w>,
    pattern: &'w Pattern,
    has_unique_names: bool,
    frames: Vec<Frame<'w>>,
    /// The path of the last node.
    path: String,
}

impl<'w, T: Tree> Walk<'w, T> {
    fn new(
        tree: &'w T,
        snapshot: &'w AnySnapshot<'w>,
        pattern: &'w Pattern,
        has_unique_names: bool,
    ) -> Result<Self> {
        let (frames, path) = (Vec::new(), String::new());
        let mut walk = Self { tree, snapshot, pattern, has_unique_names, frames, path };
        walk.enter(None, pattern.start())?;
        Ok(walk)
    }

    /// Continues with the nodes below a node, or with the roots.
    fn enter(&mut self, node: Option<NodeId>, states: States) -> Result {
        let (tree, snapshot) = (self.tree, self.snapshot);
        let only = self.pattern.only_next(&states).filter(|_| self.has_unique_names);
        let nodes: Box<dyn Iterator<Item = Result<Below>> + 'w> = if let Some(name) = only {
            let child = tree.child_named(snapshot, node, name)?;
            Box::new(child.map(|id| Ok((1, id, name.to_owned()))).into_iter())
        } else if self.pattern.is_whole(&states) {
            Box::new(tree.descendants(snapshot, node, 1..)?.map(|visit| {
                let visit = visit?;
                Ok((visit.depth, visit.node.id(), visit.node.name()?.to_owned()))
            }))
        } else {
            Box::new(tree.children(snapshot, node)?.map(|child| {
                let child = child?;
                Ok((1, child.id(), child.name()?.to_owned()))
            }))
        };
        self.frames.push(Frame { nodes, states, ends: vec![self.path.len()] });
        Ok(())
    }

    /// The next node that matches.
    fn step(&mut self) -> Result<Option<Node>> {
        while let Some(frame) = self.frames.last_mut() {
            let Some(next) = frame.nodes.next() else {
                self.frames.pop();
                continue;
            };
            let (depth, id, name) = next?;
            let depth = usize::try_from(depth).unwrap_or(usize::MAX);
            frame.ends.truncate(depth);
            self.path.truncate(frame.ends.last().copied().unwrap_or_default());
            self.path.push('/');
            self.path.push_str(&literal(&name));
            frame.ends.push(self.path.len());
            let node = || Node { id, path: self.path.clone() };
            if self.pattern.is_whole(&frame.states) {
                return Ok(Some(node()));
            }
            let states = self.pattern.step(&frame.states, &name);
            let found = self.pattern.is_match(&states).then(node);
            if self.pattern.continues(&states) {
                self.enter(Some(id), states)?;
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

impl<T: Tree> Iterator for Walk<'_, T> {
    type Item = Result<Node>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose().inspect(|found| {
            if found.is_err() {
                self.frames.clear();
            }
        })
    }
}
