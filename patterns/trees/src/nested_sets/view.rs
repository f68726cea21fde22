//! The view of a reader: nodes and their positions, without hidden rows.

use keyloom::{KeyBuf, Order, Reader, Result};
use smallvec::{SmallVec, smallvec};

use super::labels::{Label, Span};
use super::layout::{Keys, Position, Positions, Row, disagreement};
use super::steps::{Steps, under_way};
use crate::tree::unknown;
use crate::{NodeId, TreeError};

/// The tree as a reader should see it.
pub(super) struct View<'k, 'r, R: Reader> {
    pub(super) keys: &'k Keys,
    pub(super) reader: &'r R,
    /// A move or a deletion in steps that has not ended.
    pub(super) steps: Option<Steps>,
    /// The hidden rows: rows hidden by work in steps, and rows that are about to move.
    pub(super) hidden: SmallVec<[Span; 2]>,
    /// A requested node that is being deleted in steps.
    leaving: Option<NodeId>,
}

impl<R: Reader> Clone for View<'_, '_, R> {
    fn clone(&self) -> Self {
        Self {
            keys: self.keys,
            reader: self.reader,
            steps: self.steps,
            hidden: self.hidden.clone(),
            leaving: self.leaving,
        }
    }
}

pub(super) type RowOf<'r, R> = Row<<R as Reader>::Bytes<'r>>;

impl<'k, 'r, R: Reader> View<'k, 'r, R> {
    /// Creates the view from the stored record of work in steps.
    fn new(keys: &'k Keys, reader: &'r R, steps: Option<&[u8]>) -> Result<Self> {
        let steps = under_way(keys, steps)?;
        let hidden = steps.and_then(|steps| steps.hidden());
        let hidden = hidden.map_or_else(SmallVec::new, |hidden| smallvec![hidden]);
        Ok(Self { keys, reader, steps, hidden, leaving: None })
    }

    /// Returns the view and the positions of some nodes (`None` for a node that does not exist), in
    /// one round trip.
    pub(super) fn open(
        keys: &'k Keys,
        reader: &'r R,
        ids: &[NodeId],
    ) -> Result<(Self, Vec<Option<Position>>)> {
        let mut wanted: SmallVec<[KeyBuf; 3]> = smallvec![keys.steps.clone()];
        wanted.extend(ids.iter().map(|id| keys.node(*id)));
        let mut found = reader.get_many(&wanted)?.into_iter();
        let mut view = Self::new(keys, reader, found.next().flatten().as_deref())?;
        let mut positions = Vec::with_capacity(ids.len());
        for (bytes, id) in found.zip(ids) {
            positions.push(view.asked(*id, bytes.as_deref())?);
        }
        Ok((view, positions))
    }

    /// Like [`open`](View::open), for one node. Most operations start here, so this method
    /// allocates as little as possible.
    pub(super) fn of(
        keys: &'k Keys,
        reader: &'r R,
        id: NodeId,
    ) -> Result<(Self, Option<Position>)> {
        let found = reader.get_many(&[&keys.steps[..], &keys.node(id)])?;
        let stored = |n: usize| found.get(n).and_then(Option::as_deref);
        let mut view = Self::new(keys, reader, stored(0))?;
        let position = view.asked(id, stored(1))?;
        Ok((view, position))
    }

    /// Returns the view and the position of a node that must exist.
    pub(super) fn of_node(keys: &'k Keys, reader: &'r R, id: NodeId) -> Result<(Self, Position)> {
        match Self::of(keys, reader, id)? {
            (view, Some(position)) => Ok((view, position)),
            (_, None) => Err(unknown(&keys.space, id)),
        }
    }

    /// Returns the view and the row of a node that must exist.
    pub(super) fn of_row(
        keys: &'k Keys,
        reader: &'r R,
        id: NodeId,
    ) -> Result<(Self, RowOf<'r, R>)> {
        let (view, position) = Self::of_node(keys, reader, id)?;
        let row = view.row_at(id, position.left)?;
        Ok((view, row))
    }

    /// The position of a node that was requested with the view.
    fn asked(&mut self, id: NodeId, bytes: Option<&[u8]>) -> Result<Option<Position>> {
        let position = self.resolve(id, bytes)?;
        if bytes.is_some() && position.is_none() {
            self.leaving = Some(id);
        }
        Ok(position)
    }

    #[inline]
    fn resolve(&self, id: NodeId, bytes: Option<&[u8]>) -> Result<Option<Position>> {
        let Some(bytes) = bytes else { return Ok(None) };
        let positions = Positions::decode(bytes).map_err(|error| error.at(&self.keys.node(id)))?;
        let position = match (self.steps, positions.next) {
            (Some(steps), Some(next)) if steps.has_switched() => next,
            _ => positions.now,
        };
        let is_hidden =
            self.steps.and_then(|steps| steps.hidden()).is_some_and(|h| h.contains(position.left));
        Ok((!is_hidden).then_some(position))
    }

    #[inline]
    pub(super) fn position(&self, id: NodeId) -> Result<Option<Position>> {
        self.resolve(id, self.reader.get(&self.keys.node(id))?.as_deref())
    }

    /// The position of a node given by the caller.
    pub(super) fn named(&self, id: NodeId) -> Result<Position> {
        self.position(id)?.ok_or_else(|| unknown(&self.keys.space, id))
    }

    /// The position of a node that the tree itself refers to.
    #[inline]
    fn expected(&self, id: NodeId) -> Result<Position> {
        self.position(id)?.ok_or_else(|| disagreement(&self.keys.node(id)))
    }

    /// The row of a node with the left label `left`.
    pub(super) fn row_at(&self, id: NodeId, left: Label) -> Result<RowOf<'r, R>> {
        let key = self.keys.left(left);
        let row = match self.reader.get(&key)? {
            Some(bytes) => {
                let header = super::layout::header(left, &bytes).map_err(|error| error.at(&key))?;
                (header.id == id && header.right > left).then(|| Row::new(left, header, bytes))
            }
            None => None,
        };
        row.ok_or_else(|| disagreement(&key))
    }

    /// The row of a node given by the caller.
    pub(super) fn row(&self, id: NodeId) -> Result<RowOf<'r, R>> {
        self.row_at(id, self.named(id)?.left)
    }

    /// The labels around the children of a node, or around all roots.
    pub(super) fn inside(&self, parent: Option<NodeId>) -> Result<(Label, Label)> {
        match parent {
            None => Ok((0, self.keys.labels.end())),
            Some(parent) => self.row(parent).map(|row| (row.left, row.right)),
        }
    }

    /// The first row that begins after `lo` and before `hi`.
    pub(super) fn first(&self, mut lo: Label, hi: Label) -> Result<Option<RowOf<'r, R>>> {
        loop {
            let Some(span) = between(lo, hi) else { return Ok(None) };
            let Some(entry) = self.reader.first(self.keys.lefts(span))? else { return Ok(None) };
            let row = self.keys.row(entry)?;
            match self.hides(row.left) {
                Some(hidden) => lo = hidden.last,
                None => return Ok(Some(row)),
            }
        }
    }

    /// The last row that begins after `lo` and before `hi`.
    pub(super) fn last(&self, lo: Label, mut hi: Label) -> Result<Option<RowOf<'r, R>>> {
        loop {
            let Some(span) = between(lo, hi) else { return Ok(None) };
            let Some(entry) = self.reader.last(self.keys.lefts(span))? else { return Ok(None) };
            let row = self.keys.row(entry)?;
            match self.hides(row.left) {
                Some(hidden) => hi = hidden.first,
                None => return Ok(Some(row)),
            }
        }
    }

    /// All rows that begin in a span, in order.
    pub(super) fn rows(&self, span: Span) -> Result<Vec<RowOf<'r, R>>> {
        let mut rows = Vec::new();
        for span in self.visible(span) {
            for entry in self.reader.range(self.keys.lefts(span), Order::Ascending)? {
                rows.push(self.keys.row(entry?)?);
            }
        }
        Ok(rows)
    }

    /// The number of rows that begin in a span.
    pub(super) fn count(&self, span: Option<Span>) -> Result<u64> {
        let parts = span.map_or_else(SmallVec::new, |span| self.visible(span));
        parts.into_iter().map(|part| self.reader.count(self.keys.lefts(part))).sum()
    }

    pub(super) fn next_sibling(&self, id: NodeId, at: Position) -> Result<Option<RowOf<'r, R>>> {
        let right = self.row_at(id, at.left)?.right;
        // The next row belongs to a sibling of the node or of one of its ancestors.
        let Some(next) = self.first(right, self.keys.labels.end())? else { return Ok(None) };
        let parent = self.expected(next.id)?.parent;
        Ok((parent == at.parent).then_some(next))
    }

    pub(super) fn previous_sibling(&self, at: Position) -> Result<Option<RowOf<'r, R>>> {
        let Some(row) = self.last(0, at.left)? else { return Ok(None) };
        if at.parent == Some(row.id) {
            return Ok(None);
        }
        self.child_over(row, at.parent).map(Some)
    }

    fn hides(&self, label: Label) -> Option<Span> {
        self.hidden.iter().copied().find(|hidden| hidden.contains(label))
    }

    /// The visible parts of a span, in order.
    pub(super) fn visible(&self, span: Span) -> SmallVec<[Span; 2]> {
        let mut hidden = self.hidden.clone();
        hidden.retain(|hidden| hidden.overlaps(span));
        hidden.sort_unstable_by_key(|hidden| hidden.first);
        let mut visible = SmallVec::new();
        let mut from = Some(span.first);
        for hidden in hidden {
            if let Some(first) = from
                && first < hidden.first
            {
                visible.push(Span { first, last: hidden.first - 1 });
            }
            from = hidden.last.checked_add(1);
        }
        if let Some(first) = from.filter(|first| *first <= span.last) {
            visible.push(Span { first, last: span.last });
        }
        visible
    }

    /// The child of `parent` whose subtree contains a row: the row itself or one of its ancestors.
    pub(super) fn child_over(
        &self,
        row: RowOf<'r, R>,
        parent: Option<NodeId>,
    ) -> Result<RowOf<'r, R>> {
        let mut child = (row.id, self.expected(row.id)?);
        while child.1.parent != parent {
            child = self.above(child)?.ok_or_else(|| disagreement(&self.keys.node(child.0)))?;
        }
        if child.0 == row.id { Ok(row) } else { self.row_at(child.0, child.1.left) }
    }

    /// The parent of a node, and its position.
    #[inline]
    pub(super) fn above(&self, (id, at): (NodeId, Position)) -> Result<Option<(NodeId, Position)>> {
        let Some(parent) = at.parent else { return Ok(None) };
        let above = self.expected(parent)?;
        // A node begins before all its descendants, so a walk up cannot loop.
        if above.left < at.left {
            Ok(Some((parent, above)))
        } else {
            Err(disagreement(&self.keys.node(id)))
        }
    }

    /// The same view without the rows of a span.
    pub(super) fn without(&self, span: Span) -> Self {
        let mut view = self.clone();
        view.hidden.push(span);
        view
    }

    /// Whether the view excludes rows that are about to move.
    pub(super) fn is_without_some(&self) -> bool {
        self.hidden.len() > usize::from(self.steps.is_some_and(|steps| steps.hidden().is_some()))
    }

    /// Refuses a change in a span that work in steps is using.
    pub(super) fn refuse_in_steps(&self, span: Span) -> Result<()> {
        match self.steps.filter(|steps| steps.spans().any(|s| s.overlaps(span))) {
            None => Ok(()),
            Some(steps) => Err(self.in_steps(steps.node)),
        }
    }

    /// Refuses the id of a node that is being deleted in steps: its remaining keys still use the
    /// id, and a retried insert must fail in the same way.
    pub(super) fn refuse_leaving(&self) -> Result<()> {
        match (self.leaving, self.steps) {
            (Some(_), Some(steps)) => Err(self.in_steps(steps.node)),
            _ => Ok(()),
        }
    }

    pub(super) fn in_steps(&self, node: NodeId) -> keyloom::Error {
        TreeError::InSteps { tree: self.keys.space.named(), node }.into()
    }
}

/// The labels strictly between two labels.
pub(super) fn between(lo: Label, hi: Label) -> Option<Span> {
    let span = Span { first: lo.checked_add(1)?, last: hi.checked_sub(1)? };
    (span.first <= span.last).then_some(span)
}
