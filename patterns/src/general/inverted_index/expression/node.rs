//! The evaluation of an expression at one chunk after the other.

use keyloom::{Reader, Result};

use super::held::HeldWalk;
use super::leaf::{ChunkWalk, RangeWalk, Span};
use super::{BitmapExpr, Tree};
use crate::explain::Explain;
use crate::general::inverted_index::container::most_ids;
use crate::general::inverted_index::integers::ComparisonWalk;
use crate::general::inverted_index::{ChunkIds, Container};

/// How a chunk is combined with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Set,
    And,
    AndNot,
    Or,
    Xor,
}

impl Op {
    fn apply(self, ids: &mut ChunkIds, container: Container<'_>) {
        match self {
            Self::Set => ids.set(container),
            Self::And => ids.and(container),
            Self::AndNot => ids.and_not(container),
            Self::Or => ids.or(container),
            Self::Xor => ids.xor(container),
        }
    }

    fn apply_ids(self, ids: &mut ChunkIds, other: &ChunkIds) {
        match self {
            Self::Set => ids.clone_from(other),
            Self::And => ids.and_ids(other),
            Self::AndNot => ids.and_not_ids(other),
            Self::Or => ids.or_ids(other),
            Self::Xor => ids.xor_ids(other),
        }
    }
}

/// An expression that is being evaluated.
#[derive(Debug)]
pub(super) struct Node<'r, R: Reader> {
    source: Source<'r, R>,
    /// Where a chunk is computed that is then combined with another: made when first needed, and kept.
    scratch: Option<ChunkIds>,
}

#[derive(Debug)]
enum Source<'r, R: Reader> {
    Stored(ChunkWalk<'r, R, (u64,)>),
    Held(HeldWalk),
    Range(RangeWalk),
    Compared(ComparisonWalk<'r, R>),
    All(All<'r, R>),
    Any(Any<'r, R>),
}

/// What all of `with` have and none of `without`.
#[derive(Debug)]
struct All<'r, R: Reader> {
    with: Vec<Node<'r, R>>,
    without: Vec<Node<'r, R>>,
}

/// What some operands have, or an odd number of them.
#[derive(Debug)]
struct Any<'r, R: Reader> {
    op: Op,
    of: Vec<Node<'r, R>>,
}

impl<'r, R: Reader> Node<'r, R> {
    /// Nothing is read before it is sought.
    pub(super) fn new(expr: &BitmapExpr, reader: &'r R, span: Span) -> Self {
        let nodes = |of: &[BitmapExpr]| of.iter().map(|one| Self::new(one, reader, span)).collect();
        let source = match expr.tree() {
            Tree::Stored(space) => Source::Stored(ChunkWalk::new(reader, space, span)),
            Tree::Held(held) => Source::Held(HeldWalk::new(held, span)),
            Tree::Range(ids) => Source::Range(RangeWalk::new(ids.clone(), span)),
            Tree::Compared(comparison) => Source::Compared(comparison.walk(reader, span)),
            Tree::All { with, without } => {
                Source::All(All { with: nodes(with), without: nodes(without) })
            }
            Tree::Any(of) => Source::Any(Any { op: Op::Or, of: nodes(of) }),
            Tree::Odd(of) => Source::Any(Any { op: Op::Xor, of: nodes(of) }),
        };
        Self { source, scratch: None }
    }

    /// Goes on to the first position at or behind `to` where there may be ids, and tells it. A position that
    /// was reached or passed before does not move it.
    #[inline]
    pub(super) fn seek(&mut self, to: u64) -> Result<Option<u64>> {
        match &mut self.source {
            Source::Stored(walk) => walk.seek(to),
            Source::Held(walk) => Ok(walk.seek(to)),
            Source::Range(walk) => Ok(walk.seek(to)),
            Source::Compared(walk) => walk.seek(to),
            Source::All(all) => all.seek(to),
            Source::Any(any) => any.seek(to),
        }
    }

    /// The container that a leaf is at; `None` of what must be computed.
    #[inline]
    fn container(&self) -> Result<Option<Container<'_>>> {
        match &self.source {
            Source::Stored(walk) => walk.container(),
            Source::Held(walk) => Container::parse(walk.value()).map(Some),
            Source::Range(walk) => Container::parse(walk.value()).map(Some),
            Source::Compared(_) | Source::All(_) | Source::Any(_) => Ok(None),
        }
    }

    /// About how many ids the chunk has; more where it has slices, which take longer.
    fn weight(&self) -> usize {
        match &self.source {
            Source::Stored(walk) => most_ids(walk.value()),
            Source::Held(walk) => most_ids(walk.value()),
            Source::Range(walk) => most_ids(walk.value()),
            Source::Compared(_) => usize::MAX / 2,
            Source::All(all) => all.with.iter().map(Self::weight).min().unwrap_or(0),
            Source::Any(any) => any.of.iter().map(Self::weight).fold(0, usize::saturating_add),
        }
    }

    /// Combines ids with the chunk at the position `at`, which [`Node::seek`] told.
    fn combine(&mut self, at: u64, op: Op, ids: &mut ChunkIds) -> Result<()> {
        if let Some(container) = self.container()? {
            op.apply(ids, container);
            return Ok(());
        }
        if op == Op::Set {
            return self.compute(at, ids);
        }
        let mut own = self.scratch.take().unwrap_or_else(ChunkIds::with_room);
        let computed = self.compute(at, &mut own);
        op.apply_ids(ids, &own);
        self.scratch = Some(own);
        computed
    }

    fn compute(&mut self, at: u64, ids: &mut ChunkIds) -> Result<()> {
        match &mut self.source {
            Source::Compared(walk) => walk.compute(at, ids.as_words()),
            Source::All(all) => all.compute(at, ids),
            Source::Any(any) => any.compute(at, ids),
            Source::Stored(_) | Source::Held(_) | Source::Range(_) => Ok(()),
        }
    }

    /// The chunk at the position `at`, which [`Node::seek`] told.
    pub(super) fn load(&mut self, at: u64, ids: &mut ChunkIds) -> Result<()> {
        self.combine(at, Op::Set, ids)
    }

    /// How many ids the chunk at the position `at` has; `ids` are overwritten.
    pub(super) fn count(&mut self, at: u64, ids: &mut ChunkIds) -> Result<u32> {
        if let Some(container) = self.container()? {
            return Ok(container.len());
        }
        let of_two = match &mut self.source {
            Source::All(all) => all.count_of_two(at)?,
            Source::Any(any) => any.count_of_two(at)?,
            _ => None,
        };
        if let Some(count) = of_two {
            return Ok(count);
        }
        self.compute(at, ids)?;
        Ok(ids.len())
    }

    /// Adds what was read.
    pub(super) fn explain(&self, sum: &mut Explain) {
        match &self.source {
            Source::Stored(walk) => add(sum, walk.explain()),
            Source::Held(_) | Source::Range(_) => {}
            Source::Compared(walk) => add(sum, walk.explain()),
            Source::All(all) => {
                all.with.iter().chain(&all.without).for_each(|node| node.explain(sum))
            }
            Source::Any(any) => any.of.iter().for_each(|node| node.explain(sum)),
        }
    }
}

fn add(sum: &mut Explain, other: Explain) {
    sum.ranges += other.ranges;
    sum.seeks += other.seeks;
    sum.keys_scanned += other.keys_scanned;
}

impl<R: Reader> All<'_, R> {
    /// The first position where all are. Each is sought where the furthest of the others is, so what lies
    /// between is not read.
    #[inline]
    fn seek(&mut self, to: u64) -> Result<Option<u64>> {
        let mut at = to;
        loop {
            let before = at;
            for node in &mut self.with {
                match node.seek(at)? {
                    Some(found) => at = found,
                    None => return Ok(None),
                }
            }
            if at == before {
                return Ok(Some(at));
            }
        }
    }

    /// The smallest first, and no further than there are ids left.
    fn compute(&mut self, at: u64, ids: &mut ChunkIds) -> Result<()> {
        self.with.sort_unstable_by_key(Node::weight);
        let mut op = Op::Set;
        for node in &mut self.with {
            node.combine(at, op, ids)?;
            op = Op::And;
            if ids.is_empty() {
                return Ok(());
            }
        }
        for node in &mut self.without {
            if node.seek(at)? == Some(at) {
                node.combine(at, Op::AndNot, ids)?;
            }
        }
        Ok(())
    }

    /// The count where it is that of two containers, which need not be combined then.
    #[inline]
    fn count_of_two(&mut self, at: u64) -> Result<Option<u32>> {
        Ok(match (self.with.as_mut_slice(), self.without.as_mut_slice()) {
            ([a, b], []) => both_at(a, b, at)?.map(|(a, b)| a.and_count(b)),
            ([a], [b]) => both_at(a, b, at)?.map(|(a, b)| a.len().saturating_sub(a.and_count(b))),
            _ => None,
        })
    }
}

/// The containers of two leaves that are both at a position.
#[inline]
fn both_at<'n, R: Reader>(
    a: &'n mut Node<'_, R>,
    b: &'n mut Node<'_, R>,
    at: u64,
) -> Result<Option<(Container<'n>, Container<'n>)>> {
    if a.seek(at)? != Some(at) || b.seek(at)? != Some(at) {
        return Ok(None);
    }
    Ok(a.container()?.zip(b.container()?))
}

impl<R: Reader> Any<'_, R> {
    /// The first position where one is.
    fn seek(&mut self, to: u64) -> Result<Option<u64>> {
        let mut first = None;
        for node in &mut self.of {
            if let Some(at) = node.seek(to)? {
                first = Some(first.map_or(at, |first: u64| first.min(at)));
            }
        }
        Ok(first)
    }

    fn compute(&mut self, at: u64, ids: &mut ChunkIds) -> Result<()> {
        ids.clear();
        for node in &mut self.of {
            if node.seek(at)? == Some(at) {
                node.combine(at, self.op, ids)?;
            }
        }
        Ok(())
    }

    /// As that of [`All`].
    fn count_of_two(&mut self, at: u64) -> Result<Option<u32>> {
        let [a, b] = self.of.as_mut_slice() else { return Ok(None) };
        let Some((a, b)) = both_at(a, b, at)? else { return Ok(None) };
        let times = if self.op == Op::Xor { 2 } else { 1 };
        Ok(Some((a.len() + b.len()).saturating_sub(times * a.and_count(b))))
    }
}
