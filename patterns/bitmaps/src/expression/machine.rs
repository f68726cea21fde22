//! Computes the ids of an expression in one chunk.

use std::cmp::Reverse;
use std::ops::Range;

use keyloom::Result;

use super::op::Op;
use super::plan::{Node, Shape};
use crate::ChunkIds;

/// The leaves of an expression, at one chunk.
pub(super) trait Leaves {
    /// Whether a node may have ids at a position.
    fn is_at(&mut self, shape: &Shape, node: usize, at: u64) -> Result<bool>;

    /// Combines ids with the ids of a leaf at its current position.
    fn combine(&mut self, leaf: usize, at: u64, op: Op, ids: &mut ChunkIds) -> Result<()>;

    /// The approximate number of ids of a leaf at its position; greater if it is slow to read.
    fn weight(&self, leaf: usize) -> usize;
}

/// A node under computation.
#[derive(Debug)]
struct Work {
    node: usize,
    /// The number of operands that have been processed.
    done: usize,
    /// Whether the first operand has overwritten the buffer.
    is_set: bool,
    /// How the node is combined with its parent. Unless this is [`Op::Set`], the node has a chunk
    /// buffer of its own.
    op: Op,
}

impl Work {
    fn new(node: usize, op: Op) -> Self {
        Self { node, done: 0, is_set: false, op }
    }
}

/// Computes nodes without recursion. A machine has one chunk buffer for each node to be combined
/// with another node. Buffers are allocated when first needed, and kept.
#[derive(Debug, Default)]
pub(super) struct Machine {
    work: Vec<Work>,
    chunks: Vec<ChunkIds>,
    /// Buffer for sorting operands.
    order: Vec<usize>,
}

impl Machine {
    /// Computes the ids of the whole expression at the current position into `out`.
    pub(super) fn compute(
        &mut self,
        shape: &mut Shape,
        leaves: &mut impl Leaves,
        at: u64,
        out: &mut ChunkIds,
    ) -> Result<()> {
        let root = shape.root();
        match shape.node(root) {
            Some(Node::Leaf(leaf)) => return leaves.combine(*leaf, at, Op::Set, out),
            _ => out.clear(),
        }
        self.chunk(0);
        self.swap(out);
        self.work.clear();
        self.begin(shape, leaves, root, Op::Set);
        let computed = self.run(shape, leaves, at);
        self.swap(out);
        computed
    }

    fn swap(&mut self, out: &mut ChunkIds) {
        if let Some(first) = self.chunks.first_mut() {
            std::mem::swap(first, out);
        }
    }

    fn run(&mut self, shape: &mut Shape, leaves: &mut impl Leaves, at: u64) -> Result<()> {
        let mut level = 0;
        while let Some(mut work) = self.work.pop() {
            match self.advance(&mut work, level, shape, leaves, at)? {
                Some((operand, op)) => {
                    self.work.push(work);
                    level += usize::from(op != Op::Set);
                    self.chunk(level);
                    self.begin(shape, leaves, operand, op);
                }
                None if work.op != Op::Set => {
                    level -= 1;
                    if let Some([ids, own]) = self.chunks.get_mut(level..level + 2) {
                        work.op.apply_ids(ids, own);
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Ensures that there is a chunk buffer for a level.
    fn chunk(&mut self, level: usize) {
        if self.chunks.len() <= level {
            self.chunks.push(ChunkIds::with_room());
        }
    }

    /// Begins the computation of a node. For an AND, deep operands come first, then the operand
    /// with the fewest ids.
    fn begin(&mut self, shape: &mut Shape, leaves: &impl Leaves, node: usize, op: Op) {
        self.work.push(Work::new(node, op));
        let Some(Node::All { with, is_reversed: false, .. }) = shape.node(node) else { return };
        let with = with.clone();
        self.order.clear();
        self.order.extend_from_slice(shape.some(&with));
        self.order.sort_unstable_by_key(|node| {
            (Reverse(shape.is_deep(*node)), weight(shape, leaves, *node))
        });
        if let Some(operands) = shape.operands.get_mut(with) {
            operands.copy_from_slice(&self.order);
        }
    }

    /// Continues a node until it is done, or until an operand must be computed first.
    fn advance(
        &mut self,
        work: &mut Work,
        level: usize,
        shape: &Shape,
        leaves: &mut impl Leaves,
        at: u64,
    ) -> Result<Option<(usize, Op)>> {
        let Some(ids) = self.chunks.get_mut(level) else { return Ok(None) };
        while let Some((operand, op)) = work.next(shape, ids) {
            work.done += 1;
            let is_certain = op == Op::And || op == Op::LessFrom;
            let is_first_of_all = op == Op::Set && work.is_all(shape);
            if !is_certain && !is_first_of_all && !leaves.is_at(shape, operand, at)? {
                continue;
            }
            work.is_set = true;
            match shape.node(operand) {
                Some(Node::Leaf(leaf)) => leaves.combine(*leaf, at, op, ids)?,
                _ => return Ok(Some((operand, op))),
            }
        }
        if !work.is_set {
            ids.clear();
        }
        Ok(None)
    }
}

impl Work {
    fn is_all(&self, shape: &Shape) -> bool {
        matches!(shape.node(self.node), Some(Node::All { is_reversed: false, .. }))
    }

    /// The next operand, and how it is combined with the preceding operands.
    fn next(&mut self, shape: &Shape, ids: &mut ChunkIds) -> Option<(usize, Op)> {
        let of = |places: &Range<usize>, at: usize| shape.some(places).get(at).copied();
        let first_or = |op| if self.is_set { op } else { Op::Set };
        match shape.node(self.node)? {
            Node::Leaf(_) => None,
            Node::Any(operands) => Some((of(operands, self.done)?, first_or(Op::Or))),
            Node::Odd(operands) => Some((of(operands, self.done)?, first_or(Op::Xor))),
            Node::All { with, without, is_reversed: true } => match self.done {
                0 => Some((of(without, 0)?, Op::Set)),
                1 => {
                    if !self.is_set {
                        ids.clear();
                    }
                    Some((of(with, 0)?, Op::LessFrom))
                }
                _ => None,
            },
            Node::All { with, without, .. } => match self.done.checked_sub(with.len()) {
                _ if self.is_set && ids.is_empty() => None,
                None => Some((of(with, self.done)?, first_or(Op::And))),
                Some(at) => Some((of(without, at)?, Op::AndNot)),
            },
        }
    }
}

/// The approximate number of ids of a node. Examines only its operands.
fn weight(shape: &Shape, leaves: &impl Leaves, node: usize) -> usize {
    let of_leaf = |node: usize| match shape.node(node) {
        Some(Node::Leaf(leaf)) => leaves.weight(*leaf),
        _ => usize::MAX / 4,
    };
    let of = |places: &Range<usize>| shape.some(places).iter().map(|node| of_leaf(*node));
    match shape.node(node) {
        Some(Node::All { with, .. }) => of(with).min().unwrap_or(0),
        Some(Node::Any(operands) | Node::Odd(operands)) => {
            of(operands).fold(0, usize::saturating_add)
        }
        _ => of_leaf(node),
    }
}
