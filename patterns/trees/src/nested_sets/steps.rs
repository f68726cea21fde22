//! Moves and deletions that are longer than a transaction.
//!
//! A record says what is under way, and every operation reads it with its first read. During a move
//! the rows of the subtree are copied to labels that were free, where nobody sees them, and the
//! position of each node names both its places. One write then turns the record over: the new place
//! counts, and the old rows, which nobody sees any more, are removed. A deletion begins with the
//! second half.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, Order, Reader, Result, Store, Writer};

use super::change::{Change, intervals, with_depths};
use super::labels::{Label, Span};
use super::layout::{Input, Keys, Position, Positions, Row, refused};
use super::place::Placed;
use super::room::labels_of;
use super::view::{View, between};
use crate::tree::{NodeRecords, unless_newer};
use crate::{InsertAt, MoveProgress, MoveStep, NodeId, TreeNode};
use keyloom_tables::BatchSize;

/// The first byte of the record: the format. In the first one labels had 8 bytes.
const FORMAT: u8 = 2;

/// How many rows a transaction copies or removes, where the store takes as much.
const BATCH: usize = 1_000;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// The root of the subtree that is moved or deleted.
    pub(super) node: NodeId,
    /// Where the subtree is, or was.
    from: Span,
    /// Where it goes; `None` when it is deleted.
    to: Option<Going>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Going {
    span: Span,
    parent: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The rows that begin up to this label are copied.
    Copying(Option<Label>),
    Clearing,
}

impl Steps {
    /// The rows that nobody sees.
    pub(super) fn hidden(&self) -> Option<Span> {
        match self.stage {
            Stage::Copying(_) => self.to.map(|to| to.span),
            Stage::Clearing => Some(self.from),
        }
    }

    /// Where nothing may change meanwhile.
    pub(super) fn spans(&self) -> impl Iterator<Item = Span> {
        std::iter::once(self.from).chain(self.to.map(|to| to.span))
    }

    /// Whether the new place counts. What is cleared without one was deleted, or is the copy of a
    /// move that was cancelled.
    pub(super) fn has_switched(&self) -> bool {
        self.stage == Stage::Clearing && self.to.is_some()
    }

    /// The steps that take back what was copied.
    fn cancelled(&self) -> Option<Self> {
        let Stage::Copying(_) = self.stage else { return None };
        self.to.map(|to| Self { from: to.span, to: None, stage: Stage::Clearing, ..*self })
    }

    /// The format, the stage and how far it is, the node, both spans and the new parent.
    fn encode(&self) -> Vec<u8> {
        let (stage, copied) = match self.stage {
            Stage::Copying(None) => (0, 0),
            Stage::Copying(Some(copied)) => (1, copied),
            Stage::Clearing => (2, 0),
        };
        let mut bytes = vec![FORMAT, stage];
        bytes.extend_from_slice(&copied.to_be_bytes());
        bytes.extend_from_slice(&self.node.to_be_bytes());
        bytes.extend_from_slice(&self.from.first.to_be_bytes());
        bytes.extend_from_slice(&self.from.last.to_be_bytes());
        bytes.push(u8::from(self.to.is_some()));
        if let Some(Going { span, parent }) = self.to {
            bytes.extend_from_slice(&span.first.to_be_bytes());
            bytes.extend_from_slice(&span.last.to_be_bytes());
            bytes.push(u8::from(parent.is_some()));
            bytes.extend(parent.into_iter().flat_map(u64::to_be_bytes));
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = Input::of("a move in steps of nested sets", bytes, FORMAT)?;
        let stage = input.byte()?;
        let copied = input.label()?;
        let stage = match stage {
            0 => Stage::Copying(None),
            1 => Stage::Copying(Some(copied)),
            2 => Stage::Clearing,
            _ => return Err(refused("it has no known stage")),
        };
        let node = input.number()?;
        let from = input.span()?;
        let to = match input.byte()? {
            0 => None,
            _ => Some(Going { span: input.span()?, parent: input.parent()? }),
        };
        input.end()?;
        if to.is_none() && stage != Stage::Clearing {
            return Err(refused("it does not say where the subtree goes"));
        }
        Ok(Self { node, from, to, stage })
    }
}

/// What is under way, of what is stored of it.
pub(super) fn under_way(keys: &Keys, stored: Option<&[u8]>) -> Result<Option<Steps>> {
    let Some(bytes) = stored else { return Ok(None) };
    match unless_newer(Steps::decode(bytes)).map_err(|error| error.at(&keys.steps))? {
        Some(steps) => Ok(Some(steps)),
        None => Err(no_record().at(&keys.steps)),
    }
}

#[cold]
fn no_record() -> Error {
    let why = "the tree cannot be read as long as it is there; run repair, which deletes this key \
               (nodes that were copied already are there twice then, the second with another id)";
    Error::Value { codec: "a move in steps of nested sets", action: "decode", source: why.into() }
}

/// Begins a move, and tells how many keys it wrote; none where the node is there already.
pub(super) fn begin_move(
    keys: &Keys,
    txn: &mut impl Writer,
    id: NodeId,
    place: InsertAt,
) -> Result<u64> {
    let (mut change, steps) = {
        let (view, row) = View::of_row(keys, &*txn, id)?;
        let from = row.span();
        view.refuse_other_steps()?;
        let node = TreeNode::<_, (), ()>::new(id, row.node(), 0);
        let gap = view.gap(Placed { id, name: node.name()?, span: Some(from) }, place)?;
        if gap.lo < from.first && from.last < gap.hi {
            return Ok(0);
        }
        let count = 2 * view.reader.count(keys.lefts(from))?;
        // The subtree stays where it is, and may have to give way itself.
        let room = view.room(&gap, count, &txn.limits())?;
        let (Some(first), Some(last)) = (room.labels.first(), room.labels.last()) else {
            return Ok(0);
        };
        let to = Going { span: Span { first: *first, last: *last }, parent: gap.parent };
        let new = room.moved.iter().find(|(old, _)| *old == from.first).map(|(_, row)| row.span());
        let steps = Steps {
            node: id,
            from: new.unwrap_or(from),
            to: Some(to),
            stage: Stage::Copying(None),
        };
        (view.give_way(room.window, &room.moved)?, steps)
    };
    change.writes.put(&keys.steps, &steps.encode())?;
    change.make(keys, txn)
}

/// Begins a deletion: from now on nobody sees the subtree. Tells how many keys it wrote.
pub(super) fn begin_deletion(keys: &Keys, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
    let steps = {
        let (view, row) = View::of_row(keys, &*txn, id)?;
        view.refuse_other_steps()?;
        Steps { node: id, from: row.span(), to: None, stage: Stage::Clearing }
    };
    txn.put(&keys.steps, &steps.encode())?;
    Ok(1)
}

impl<R: Reader> View<'_, '_, R> {
    fn refuse_other_steps(&self) -> Result<()> {
        self.steps.map_or(Ok(()), |steps| Err(self.in_steps(steps.node)))
    }
}

/// The layout of a tree, and the table of its nodes.
type On<'t, V, C> = (&'t Keys, &'t NodeRecords<V, C>);

/// Goes on with what a first transaction has begun, and tells of that one too.
pub(super) fn go_on_from<S: Store, V, C: Codec<V>>(
    (keys, records): On<'_, V, C>,
    store: &S,
    written: u64,
    mut progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
) -> Result<MoveProgress> {
    let steps = under_way(keys, store.snapshot()?.get(&keys.steps)?.as_deref())?;
    let step = match steps.map(|steps| steps.stage) {
        Some(Stage::Copying(_)) => MoveStep::Copying,
        Some(Stage::Clearing) => MoveStep::Clearing,
        None => MoveStep::Finished,
    };
    let begun = MoveProgress { step, keys: written };
    if progress(&begun).is_break() || step == MoveStep::Finished {
        return Ok(begun);
    }
    go_on((keys, records), store, written, progress)
}

/// Goes on until nothing is under way, or `progress` stops it. So many keys were written before.
pub(super) fn go_on<S: Store, V, C: Codec<V>>(
    on: On<'_, V, C>,
    store: &S,
    written: u64,
    mut progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
) -> Result<MoveProgress> {
    let (keys, _) = on;
    let mut size = BatchSize::new(BATCH);
    let mut plan = None;
    let mut done = MoveProgress { step: MoveStep::Finished, keys: written };
    loop {
        if let Some(steps) = under_way(keys, store.snapshot()?.get(&keys.steps)?.as_deref())?
            && matches!(steps.stage, Stage::Copying(_))
            && plan.as_ref().is_none_or(|plan: &Plan| !plan.is_of(&steps))
        {
            plan = Some(Plan::make(keys, &store.snapshot()?, &steps)?);
        }
        let (step, keys) = size.transact(store, |txn, rows| step(on, txn, plan.as_ref(), rows))?;
        done = MoveProgress { step, keys: done.keys + keys };
        if progress(&done).is_break() || step == MoveStep::Finished {
            return Ok(done);
        }
    }
}

/// Ends what is under way, for a repair: how many keys were written. An unreadable record is
/// deleted; a move that meets damage before it has switched is cancelled.
pub(super) fn end<S: Store, V, C: Codec<V>>(on: On<'_, V, C>, store: &S) -> Result<u64> {
    let (keys, _) = on;
    let mut written = store.transact(|txn| forget_damaged(keys, txn))?;
    let outcome = go_on(on, store, written, |progress| {
        written = progress.keys;
        ControlFlow::Continue(())
    });
    match outcome {
        Err(error) if is_damage(&error) => {
            written += store.transact(|txn| cancel(keys, txn))?;
            Ok(go_on(on, store, written, |_| ControlFlow::Continue(()))?.keys)
        }
        outcome => Ok(outcome?.keys),
    }
}

/// Without the record nothing is hidden: nodes that were copied already are there twice, and one of
/// them gets another id.
fn forget_damaged(keys: &Keys, txn: &mut impl Writer) -> Result<u64> {
    let steps = txn.get(&keys.steps)?.map(|bytes| unless_newer(Steps::decode(&bytes))).transpose();
    if steps.map_err(|error| error.at(&keys.steps))? != Some(None) {
        return Ok(0);
    }
    txn.delete(&keys.steps)?;
    Ok(1)
}

/// Turns a move that has not switched into the removal of its copies.
fn cancel(keys: &Keys, txn: &mut impl Writer) -> Result<u64> {
    let steps = under_way(keys, txn.get(&keys.steps)?.as_deref())?;
    let Some(cancelled) = steps.and_then(|steps| steps.cancelled()) else { return Ok(0) };
    txn.put(&keys.steps, &cancelled.encode())?;
    Ok(1)
}

/// Whether stored bytes are not what they should be.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::At { source, .. } => is_damage(source),
        error => matches!(error, Error::Value { .. } | Error::Key(_)),
    }
}

/// One transaction of it: what is to be done next, and how many keys were written or removed.
fn step<V, C: Codec<V>>(
    (keys, records): On<'_, V, C>,
    txn: &mut impl Writer,
    plan: Option<&Plan>,
    rows: usize,
) -> Result<(MoveStep, u64)> {
    records.expect_writable(txn)?;
    let steps = under_way(keys, txn.get(&keys.steps)?.as_deref())?;
    match steps {
        None => Ok((MoveStep::Finished, 0)),
        Some(steps) => match (steps.stage, plan.filter(|plan| plan.is_of(&steps))) {
            (Stage::Clearing, _) => clear((keys, records), txn, &steps, rows),
            (Stage::Copying(copied), Some(plan)) => copy(keys, txn, steps, copied, plan, rows),
            // Somebody else has begun another one since the plan was made.
            (Stage::Copying(_), None) => Ok((MoveStep::Copying, 0)),
        },
    }
}

/// The new places of all rows of a subtree that is moved. The subtree does not change meanwhile, so
/// whoever makes the plan comes to the same one.
struct Plan {
    of: (Span, Option<Going>),
    /// Old left labels in order, and beside each the new interval.
    rows: Vec<(Label, Span)>,
}

impl Plan {
    fn is_of(&self, steps: &Steps) -> bool {
        self.of == (steps.from, steps.to)
    }

    fn make(keys: &Keys, reader: &impl Reader, steps: &Steps) -> Result<Self> {
        let of = (steps.from, steps.to);
        let Some(to) = steps.to else { return Ok(Self { of, rows: Vec::new() }) };
        let mut rows = Vec::new();
        for entry in reader.range(keys.lefts(steps.from), Order::Ascending)? {
            rows.push(keys.row(entry?)?.labels());
        }
        let labels = labels_of(to.span, 2 * rows.len() as u64);
        let lefts: Vec<Label> = rows.iter().map(|row| row.left).collect();
        let depths = with_depths(rows).map(|(depth, row)| (depth, row.id));
        let intervals = intervals(depths, to.parent).into_iter();
        let spans = intervals.filter_map(|(left, right, _)| {
            Some(Span { first: *labels.get(left)?, last: *labels.get(right)? })
        });
        Ok(Self { of, rows: lefts.into_iter().zip(spans).collect() })
    }

    fn place(&self, left: Label) -> Option<Span> {
        let at = self.rows.binary_search_by_key(&left, |(left, _)| *left).ok()?;
        self.rows.get(at).map(|(_, span)| *span)
    }
}

/// DenormalizedFields some rows, or turns the record over when all are copied.
fn copy(
    keys: &Keys,
    txn: &mut impl Writer,
    mut steps: Steps,
    copied: Option<Label>,
    plan: &Plan,
    rows: usize,
) -> Result<(MoveStep, u64)> {
    let behind = match copied {
        None => Some(steps.from),
        Some(copied) => between(copied, steps.from.last),
    };
    let mut change = Change::default();
    let mut last = None;
    if let Some(behind) = behind {
        let page = txn.page(keys.lefts(behind), Order::Ascending, rows)?;
        let found = page.entries.into_iter().map(|entry| keys.row(entry));
        let found: Vec<Row<_>> = found.collect::<Result<_>>()?;
        let nodes: Vec<_> = found.iter().map(|row| keys.node(row.id)).collect();
        for ((row, key), at) in found.iter().zip(&nodes).zip(txn.get_many(&nodes)?) {
            let (Some(at), Some(new)) = (at, plan.place(row.left)) else {
                return Err(super::layout::disagreement(key));
            };
            let now = Positions::decode(&at).map_err(|error| error.at(key))?.now;
            let to = steps.to.filter(|_| row.id == steps.node);
            let parent = to.map_or(now.parent, |to| to.parent);
            let next = Some(Position { left: new.first, parent });
            change.put_row(keys, new, row.id, row.node())?;
            change.put_position(keys, row.id, Positions { now, next })?;
            last = Some(row.left);
        }
    }
    let step = if last.is_some() { MoveStep::Copying } else { MoveStep::Clearing };
    steps.stage = if last.is_some() { Stage::Copying(last) } else { Stage::Clearing };
    change.writes.put(&keys.steps, &steps.encode())?;
    Ok((step, change.make(keys, txn)?))
}

/// Removes some rows from where the subtree was, or the record when none is left.
fn clear<V, C: Codec<V>>(
    (keys, records): On<'_, V, C>,
    txn: &mut impl Writer,
    steps: &Steps,
    rows: usize,
) -> Result<(MoveStep, u64)> {
    let (mut change, mut gone) = (Change::default(), Vec::new());
    {
        let page = txn.page(keys.lefts(steps.from), Order::Ascending, rows)?;
        let mut found = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            change.writes.delete(&entry.0)?;
            // No reader sees the row, so a damaged one goes too. A repair removes its position.
            found.extend(keys.row(entry).ok());
        }
        let nodes: Vec<_> = found.iter().map(|row| keys.node(row.id)).collect();
        for ((row, key), at) in found.iter().zip(&nodes).zip(txn.get_many(&nodes)?) {
            let Some(at) = at.and_then(|at| Positions::decode(&at).ok()) else { continue };
            match at.next {
                // The copy of a move that was cancelled.
                Some(next) if next.left == row.left => {
                    change.put_position(keys, row.id, at.now.into())?;
                }
                Some(next) => change.put_position(keys, row.id, next.into())?,
                // A node that was deleted. That of another begins elsewhere.
                None if at.now.left == row.left => {
                    change.writes.delete(key)?;
                    gone.push(row.id);
                }
                None => (),
            }
        }
    }
    records.delete(txn, &gone)?;
    let is_done = change.writes.is_empty();
    if is_done {
        change.writes.delete(&keys.steps)?;
    }
    let step = if is_done { MoveStep::Finished } else { MoveStep::Clearing };
    Ok((step, change.make(keys, txn)?))
}
