//! The evaluation plan of an expression: a flat list, whatever the depth of the expression.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use keyloom::Subspace;
use keyloom_kit::Fnv;

use super::held::Held;
use super::{BitmapExpr, Tree};
use crate::comparison::Comparison;

/// A leaf of an expression.
#[derive(Debug)]
pub(crate) enum LeafExpr<'e> {
    /// The bitmap in a subspace.
    Stored(&'e Subspace),
    /// Integers in a range.
    Compared(&'e Comparison),
    Held(&'e Arc<Held>),
    Range(RangeInclusive<u64>),
}

/// A node of an expression. Operands are indexes into [`Shape::operands`].
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// The index of a leaf.
    Leaf(usize),
    /// The ids that are in all of `with`, which is not empty, and in none of `without`.
    All {
        with: Range<usize>,
        without: Range<usize>,
        /// Whether `without` is computed before `with`. Then both are single operands, and
        /// `without` is deep.
        is_reversed: bool,
    },
    Any(Range<usize>),
    Odd(Range<usize>),
}

/// How the leaves of an expression are combined: nodes in postorder, so the last is the root.
/// Nested operators of one kind are one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(super) nodes: Vec<Node>,
    /// Indexes of nodes.
    pub(super) operands: Vec<usize>,
    /// The maximum number of chunk buffers needed to compute each node.
    needs: Vec<u8>,
}

/// A node that needs more chunk buffers than this is computed before the other operands. So an
/// expression of n leaves needs about this many plus log n buffers, instead of one buffer for each
/// level.
const DEEP: u8 = 8;

/// An expression whose leaves are ready to be read.
#[derive(Clone, Debug)]
pub(crate) struct Plan<L> {
    pub(super) shape: Shape,
    pub(super) leaves: Vec<L>,
}

/// An operand, or the intersection of all ranges of an AND.
enum Operand<'e> {
    Expr(&'e BitmapExpr),
    Range(RangeInclusive<u64>),
}

enum Kind {
    All { without: usize },
    Any,
    Odd,
}

/// A step of the planning.
enum Task<'e> {
    Visit(Operand<'e>),
    /// Creates a node from the last created nodes; the number says how many.
    Close(Kind, usize),
}

impl Shape {
    /// The index of the root.
    pub(super) fn root(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    pub(super) fn node(&self, number: usize) -> Option<&Node> {
        self.nodes.get(number)
    }

    pub(super) fn some(&self, places: &Range<usize>) -> &[usize] {
        self.operands.get(places.clone()).unwrap_or_default()
    }

    fn need(&self, number: usize) -> u8 {
        self.needs.get(number).copied().unwrap_or_default()
    }

    /// Whether a node is computed before its sibling operands.
    pub(super) fn is_deep(&self, number: usize) -> bool {
        self.need(number) > DEEP
    }

    fn push(&mut self, node: Node, need: u8) -> usize {
        self.nodes.push(node);
        self.needs.push(need);
        self.nodes.len() - 1
    }

    fn keep(&mut self, operands: &[usize]) -> Range<usize> {
        let begin = self.operands.len();
        self.operands.extend_from_slice(operands);
        begin..self.operands.len()
    }

    /// The operand that needs the most chunk buffers, and the number of buffers that all operands
    /// need if it is computed first.
    fn deepest(&self, operands: &[usize]) -> (usize, u8) {
        let deepest = (0..operands.len()).rev().max_by_key(|at| self.need_at(operands, *at));
        let deepest = deepest.unwrap_or(0);
        let others = (0..operands.len()).filter(|at| *at != deepest);
        let others = others.map(|at| self.need_at(operands, at)).max();
        let most = self.need_at(operands, deepest);
        // An operand that is combined with others and is not a leaf takes one more buffer.
        let others = others.filter(|need| *need > 0).map_or(0, |need| need.saturating_add(1));
        (deepest, most.max(others))
    }

    fn need_at(&self, operands: &[usize], at: usize) -> u8 {
        operands.get(at).map_or(0, |number| self.need(*number))
    }

    fn add_leaf(&mut self, leaf: usize) -> usize {
        self.push(Node::Leaf(leaf), 0)
    }

    /// Each deep subtracted operand becomes a node of its own; the deepest one is the last node and
    /// is computed first.
    fn add_all(&mut self, with: &[usize], without: &[usize]) -> usize {
        let (_, of_with) = self.deepest(with);
        // The operands are sorted once. A recursion for each deep operand would copy the other
        // operands each time: 3,000 operands overflowed a stack of 128 KiB.
        let mut deepest_first = without.to_vec();
        deepest_first.sort_by_key(|number| Reverse(self.need(*number)));
        // In this order, at most two operands determine how many buffers all of them need.
        let is_apart = |two: &[usize]| self.deepest(two).1 > DEEP.max(of_with);
        let last = deepest_first.last().copied();
        let twos = deepest_first.windows(2).chain(last.as_slice().chunks(1));
        let deep = twos.take_while(|two| is_apart(two)).count();
        let mut others = deepest_first.split_off(deep);
        // Restore the order in which the operands were created.
        others.sort_unstable();
        let from = match (with, others.as_slice()) {
            ([only], []) if deep > 0 => *only,
            _ => self.add_shallow(with, &others),
        };
        deepest_first.into_iter().rev().fold(from, |from, less| {
            let need = self.need(less).max(self.need(from).saturating_add(1));
            let (with, without) = (self.keep(&[from]), self.keep(&[less]));
            self.push(Node::All { with, without, is_reversed: true }, need)
        })
    }

    fn add_shallow(&mut self, with: &[usize], without: &[usize]) -> usize {
        let ((_, of_with), (_, of_without)) = (self.deepest(with), self.deepest(without));
        let need = of_with.max(of_without).saturating_add(1);
        let need = if need > DEEP { of_with.max(of_without + 1).max(DEEP + 1) } else { need };
        let (with, without) = (self.keep(with), self.keep(without));
        self.push(Node::All { with, without, is_reversed: false }, need)
    }

    fn add_any(&mut self, operands: &mut [usize], node: fn(Range<usize>) -> Node) -> usize {
        let (deepest, need) = self.deepest(operands);
        if deepest > 0 {
            operands.swap(0, deepest);
        }
        let operands = self.keep(operands);
        self.push(node(operands), need.max(1))
    }
}

impl BitmapExpr {
    /// The plan of the expression, with the leaves converted by `leaf`. Visits each operand once.
    pub(super) fn plan<'e, L, E>(
        &'e self,
        mut leaf: impl FnMut(LeafExpr<'e>) -> Result<L, E>,
    ) -> Result<Plan<L>, E> {
        let (mut shape, mut leaves) = (Shape::default(), Vec::new());
        let mut made: Vec<usize> = Vec::new();
        let mut tasks = vec![Task::Visit(Operand::Expr(self))];
        while let Some(task) = tasks.pop() {
            let found = match task {
                Task::Visit(Operand::Range(ids)) => LeafExpr::Range(ids),
                Task::Visit(Operand::Expr(expr)) => match expr.tree() {
                    Tree::Stored(space) => LeafExpr::Stored(space),
                    Tree::Compared(comparison) => LeafExpr::Compared(comparison),
                    Tree::Held(held) => LeafExpr::Held(held),
                    Tree::Range(ids) => LeafExpr::Range(ids.clone()),
                    Tree::All { .. } => {
                        expr.visit_all(&mut tasks);
                        continue;
                    }
                    Tree::Any(_) => {
                        visit(Kind::Any, expr.flat(operands_of_any), &mut tasks);
                        continue;
                    }
                    Tree::Odd(_) => {
                        visit(Kind::Odd, expr.flat(operands_of_odd), &mut tasks);
                        continue;
                    }
                },
                Task::Close(kind, operands) => {
                    let mut operands = made.split_off(made.len().saturating_sub(operands));
                    made.push(match kind {
                        Kind::All { without } => {
                            let with = operands.len().saturating_sub(without);
                            let (with, without) = operands.split_at(with);
                            shape.add_all(with, without)
                        }
                        Kind::Any => shape.add_any(&mut operands, Node::Any),
                        Kind::Odd => shape.add_any(&mut operands, Node::Odd),
                    });
                    continue;
                }
            };
            made.push(shape.add_leaf(leaves.len()));
            leaves.push(leaf(found)?);
        }
        Ok(Plan { shape, leaves })
    }

    /// The operands of nested operators of one kind, in order.
    fn flat<'e>(&'e self, operands: fn(&'e Tree) -> Option<&'e [Self]>) -> Vec<&'e Self> {
        // A fold of terms with `|` becomes one union instead of one level per term. With levels,
        // 100,000 terms took 108 s, and a recursion over 1,500 levels overflowed the stack of a
        // thread.
        let (mut flat, mut rest) = (Vec::new(), vec![self]);
        while let Some(expr) = rest.pop() {
            match operands(expr.tree()) {
                Some(of) => rest.extend(of.iter().rev()),
                None => flat.push(expr),
            }
        }
        flat
    }

    /// Visits the operands of an AND, with all ranges merged into one, and the subtracted operands.
    fn visit_all<'e>(&'e self, tasks: &mut Vec<Task<'e>>) {
        let (mut with, mut without, mut rest) = (Vec::new(), Vec::new(), vec![self]);
        let mut common: Option<(u64, u64)> = None;
        while let Some(expr) = rest.pop() {
            match expr.tree() {
                Tree::All { with, without: less } => {
                    rest.extend(with.iter().rev());
                    without.extend(less.iter().flat_map(|expr| expr.flat(operands_of_any)));
                }
                Tree::Range(ids) => {
                    let (first, last) = common.unwrap_or((0, u64::MAX));
                    common = Some((first.max(*ids.start()), last.min(*ids.end())));
                }
                _ => with.push(Operand::Expr(expr)),
            }
        }
        match common {
            Some((0, u64::MAX)) if !with.is_empty() => {}
            // The range comes first, so that no other operand reads chunks before it.
            Some((first, last)) => with.insert(0, Operand::Range(first..=last)),
            None => {}
        }
        let number = without.len();
        with.extend(without.into_iter().map(Operand::Expr));
        if with.len() > 1 {
            tasks.push(Task::Close(Kind::All { without: number }, with.len()));
        }
        tasks.extend(with.into_iter().rev().map(Task::Visit));
    }

    /// Hashes everything that distinguishes the plan of this expression from other plans: each node
    /// with its operands, and each leaf.
    ///
    /// Hashing only the number of operands of each node is not enough. Deep operands are moved, so
    /// `a - (b | deep)` and `a - (b - deep)` have the same leaves in the same order and the same
    /// numbers of operands.
    pub(super) fn hash(&self, hash: &mut Fnv) {
        let Ok(Plan { shape, leaves }) = self.plan(Ok::<_, Infallible>);
        let mut add = |kind: u8, lists: [&[usize]; 2]| {
            hash.add(&[kind]);
            for list in lists {
                hash.add(&(list.len() as u64).to_be_bytes());
                list.iter().for_each(|number| hash.add(&(*number as u64).to_be_bytes()));
            }
        };
        for node in &shape.nodes {
            match node {
                Node::Leaf(leaf) => add(0, [&[*leaf], &[]]),
                Node::All { with, without, is_reversed } => {
                    let kind = if *is_reversed { 9 } else { 4 };
                    add(kind, [shape.some(with), shape.some(without)]);
                }
                Node::Any(of) => add(5, [shape.some(of), &[]]),
                Node::Odd(of) => add(6, [shape.some(of), &[]]),
            }
        }
        leaves.iter().for_each(|leaf| leaf.hash(hash));
    }

    /// Whether it is certain that all ids of the expression are ids of stored operands for which
    /// `is_bounded` returns true.
    pub(crate) fn is_within(&self, is_bounded: &impl Fn(&Subspace) -> bool) -> bool {
        let Ok(Plan { shape, leaves }) = self.plan(|leaf| {
            Ok::<bool, Infallible>(match leaf {
                LeafExpr::Stored(space) => is_bounded(space),
                LeafExpr::Compared(comparison) => is_bounded(comparison.space()),
                LeafExpr::Held(_) | LeafExpr::Range(_) => false,
            })
        });
        let mut known: Vec<bool> = Vec::with_capacity(shape.nodes.len());
        for node in &shape.nodes {
            let is = |operand: &usize| known.get(*operand).copied().unwrap_or_default();
            known.push(match node {
                Node::Leaf(leaf) => leaves.get(*leaf).copied().unwrap_or_default(),
                Node::All { with, .. } => shape.some(with).iter().any(is),
                Node::Any(of) | Node::Odd(of) => shape.some(of).iter().all(is),
            });
        }
        known.last().copied().unwrap_or_default()
    }
}

fn operands_of_any(tree: &Tree) -> Option<&[BitmapExpr]> {
    if let Tree::Any(of) = tree { Some(of) } else { None }
}

fn operands_of_odd(tree: &Tree) -> Option<&[BitmapExpr]> {
    if let Tree::Odd(of) = tree { Some(of) } else { None }
}

/// Visits operands and creates a node of them, unless there is just one.
fn visit<'e>(kind: Kind, operands: Vec<&'e BitmapExpr>, tasks: &mut Vec<Task<'e>>) {
    if operands.len() != 1 {
        tasks.push(Task::Close(kind, operands.len()));
    }
    tasks.extend(operands.into_iter().rev().map(|expr| Task::Visit(Operand::Expr(expr))));
}

impl LeafExpr<'_> {
    fn hash(&self, hash: &mut Fnv) {
        let mut add = |kind: u8, bytes: &[u8]| {
            hash.add(&[kind]);
            hash.add(&(bytes.len() as u64).to_be_bytes());
            hash.add(bytes);
        };
        match self {
            Self::Stored(space) => add(1, space.prefix()),
            Self::Held(held) => {
                for (chunk, container) in held.chunks() {
                    add(2, &chunk.to_be_bytes());
                    add(2, container);
                }
                add(8, &[]);
            }
            Self::Range(ids) => {
                add(3, &[ids.start().to_be_bytes(), ids.end().to_be_bytes()].concat());
            }
            Self::Compared(comparison) => {
                add(7, &[]);
                comparison.hash(hash);
            }
        }
    }
}
