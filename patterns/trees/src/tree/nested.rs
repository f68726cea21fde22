//! A tree in memory, for import and export.

use std::fmt::Write as _;
use std::ops::Deref;

use keyloom::Result;
use keyloom::value::Codec;
use serde::{Deserialize, Serialize};

use super::node::NodeId;
use super::{NestedNodes, VisitedNode};

/// A node with all its descendants in memory: the input of [`import`](super::Tree::import) and the
/// output of [`export`](super::Tree::export). Serde serializes it in nested form, as in JSON, with
/// at most [128 levels](NestedNode::MAX_LEVELS). Without serde, a tree may have any number of
/// levels.
///
/// ```
/// use keyloom_trees::NestedNode;
/// let apple = NestedNode::new(2, "apple", ());
/// let tree = NestedNode::new(1, "fruit", ()).with(apple).with(NestedNode::new(3, "pear", ()));
/// let names: Vec<(u32, &str)> =
///     tree.preorder().map(|(depth, node)| (depth, node.name.as_str())).collect();
/// assert_eq!(names, [(0, "fruit"), (1, "apple"), (1, "pear")]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NestedNode<V> {
    /// The id of the node.
    pub id: NodeId,
    /// The name of the node.
    pub name: String,
    /// The value of the node.
    pub value: V,
    /// The children of the node, in order. The field dereferences to a [`Vec`], and converts from
    /// and into one:
    ///
    /// ```
    /// use keyloom_trees::NestedNode;
    /// let mut pear = NestedNode::new(1, "pear", ());
    /// pear.children.push(NestedNode::new(2, "conference", ()));
    /// pear.children.extend([NestedNode::new(3, "williams", ())]);
    /// let moved: Vec<NestedNode<()>> = pear.children.into();
    /// let fruit = NestedNode { id: 4, name: "fruit".into(), value: (), children: moved.into() };
    /// assert_eq!(fruit.children.last().map(|node| node.id), Some(3));
    /// ```
    ///
    /// Trees may have any depth, so this field drops, clones, compares, hashes and prints its nodes
    /// without recursion.
    pub children: NestedNodes<V>,
}

impl<V> NestedNode<V> {
    /// The maximum number of levels of children that serde reads or writes; a deeper tree is an
    /// error. A thread stack of 2 MiB is large enough for this depth.
    /// [`serde_json`](https://docs.rs/serde_json) reads 63 levels by default.
    ///
    /// Write a deeper tree as the rows of its [preorder](NestedNode::preorder), and rebuild it with
    /// [`NestedNode::from_preorder`].
    pub const MAX_LEVELS: usize = 128;

    /// Creates a node without children.
    pub fn new(id: NodeId, name: impl Into<String>, value: V) -> Self {
        Self { id, name: name.into(), value, children: NestedNodes::default() }
    }

    /// Appends a child and returns the node.
    #[must_use]
    pub fn with(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    /// The node and its descendants in preorder, each with its depth; the node itself has depth 0.
    /// The walk does not recurse, so a tree may have any depth.
    pub fn preorder(&self) -> impl Iterator<Item = (u32, &Self)> {
        let mut open = vec![(0, std::slice::from_ref(self).iter())];
        std::iter::from_fn(move || {
            while let Some((depth, nodes)) = open.last_mut() {
                let depth = *depth;
                match nodes.next() {
                    Some(node) => {
                        open.push((depth + 1, node.children.iter()));
                        return Some((depth, node));
                    }
                    None => drop(open.pop()),
                }
            }
            None
        })
    }

    /// Builds trees from rows in [preorder](NestedNode::preorder): the depth, id, name and value of
    /// each node. A node is a child of the last preceding row with a smaller depth; if there is
    /// none, it is a root.
    ///
    /// Use rows to store or send a tree of any depth:
    ///
    /// ```
    /// use keyloom_trees::NestedNode;
    /// let tree = NestedNode::new(1, "fruit", 7)
    ///     .with(NestedNode::new(2, "apple", 3))
    ///     .with(NestedNode::new(3, "pear", 4));
    /// let rows: Vec<_> = tree
    ///     .preorder()
    ///     .map(|(depth, node)| (depth, node.id, node.name.clone(), node.value))
    ///     .collect();
    /// assert_eq!(NestedNode::from_preorder(rows), [tree]);
    /// ```
    pub fn from_preorder(rows: impl IntoIterator<Item = (u32, NodeId, String, V)>) -> Vec<Self> {
        let mut builder = Builder::new();
        for (depth, id, name, value) in rows {
            builder.push(depth, Self::new(id, name, value));
        }
        builder.finish()
    }
}

/// Builds trees in memory from the visits of a walk.
pub(crate) fn dump_of<B: Deref<Target = [u8]>, V, C: Codec<V>>(
    visits: impl Iterator<Item = Result<VisitedNode<B, V, C>>>,
) -> Result<Vec<NestedNode<V>>> {
    let mut builder = Builder::new();
    for visit in visits {
        let VisitedNode { depth, node } = visit?;
        builder.push(depth, NestedNode::new(node.id(), node.name()?, node.value()?));
    }
    Ok(builder.finish())
}

/// Writes the trees of a walk as a graph in the DOT language.
pub(crate) fn dot_of<B: Deref<Target = [u8]>, V, C>(
    visits: impl Iterator<Item = Result<VisitedNode<B, V, C>>>,
) -> Result<String> {
    let mut dot = Dot::new();
    for visit in visits {
        let VisitedNode { depth, node } = visit?;
        dot.push(depth, node.id(), node.name()?);
    }
    Ok(dot.finish())
}

/// Builds trees from a walk: nodes in preorder with their depths.
pub(super) struct Builder<V> {
    roots: Vec<NestedNode<V>>,
    /// The path to the last node pushed.
    open: Vec<(u32, NestedNode<V>)>,
}

impl<V> Builder<V> {
    pub(super) fn new() -> Self {
        Self { roots: Vec::new(), open: Vec::new() }
    }

    pub(super) fn push(&mut self, depth: u32, node: NestedNode<V>) {
        self.close(depth);
        self.open.push((depth, node));
    }

    pub(super) fn finish(mut self) -> Vec<NestedNode<V>> {
        self.close(0);
        self.roots
    }

    /// Closes all open nodes at this depth or deeper.
    fn close(&mut self, depth: u32) {
        while self.open.last().is_some_and(|(open, _)| *open >= depth) {
            let Some((_, node)) = self.open.pop() else { return };
            match self.open.last_mut() {
                Some((_, parent)) => parent.children.push(node),
                None => self.roots.push(node),
            }
        }
    }
}

/// A graph in the DOT language of Graphviz, written line by line.
struct Dot {
    text: String,
    /// The path to the last node pushed.
    open: Vec<(u32, NodeId)>,
}

impl Dot {
    fn new() -> Self {
        Self { text: "digraph tree {\n".into(), open: Vec::new() }
    }

    fn push(&mut self, depth: u32, id: NodeId, name: &str) {
        while self.open.last().is_some_and(|(open, _)| *open >= depth) {
            self.open.pop();
        }
        let label = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "    {id} [label=\"{label}\"];");
        if let Some((_, parent)) = self.open.last() {
            let _ = writeln!(self.text, "    {parent} -> {id};");
        }
        self.open.push((depth, id));
    }

    fn finish(mut self) -> String {
        self.text.push_str("}\n");
        self.text
    }
}
