//! Moves and deletions that span several transactions.
//!
//! A move copies the rows of the subtree to free labels, where they are hidden; the position of
//! each node holds both places. Then one write switches the record ([`Steps`]): the new place
//! becomes visible, and the old rows are hidden and removed. A deletion starts with this second
//! half.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, Order, Reader, Result, Store, Writer};
use keyloom_kit::{BatchSize, Progress};

use super::change::{Change, intervals, with_depths};
use super::labels::{Label, Span};
use super::layout::{Keys, Position, Positions, Row};
use super::place::Placed;
use super::room::labels_of;
use super::steps::{Going, Stage, Steps, under_way};
use super::view::{View, between};
use crate::tree::{NodeRecords, Report, unless_newer};
use crate::{InsertAt, NodeId, TreeNode};

/// The number of rows that one transaction copies or removes, if the store accepts that many.
const BATCH: usize = 1_000;

/// Begins a move; writes nothing if the node is already there.
pub(super) fn begin_move(
    keys: &Keys,
    txn: &mut impl Writer,
    id: NodeId,
    place: InsertAt,
) -> Result<Progress> {
    let (mut change, steps) = {
        let (view, row) = View::of_row(keys, &*txn, id)?;
        let from = row.span();
        view.refuse_other_steps()?;
        let node = TreeNode::<_, (), ()>::new(id, row.node(), 0);
        let gap = view.gap(Placed { id, name: node.name()?, span: Some(from) }, place)?;
        if gap.lo < from.first && from.last < gap.hi {
            return Ok(Progress::default());
        }
        let count = 2 * view.reader.count(keys.lefts(from))?;
        // The subtree stays at its old place for now, and may be relabelled itself.
        let room = view.room(&gap, count, &txn.limits())?;
        let (Some(first), Some(last)) = (room.labels.first(), room.labels.last()) else {
            return Ok(Progress::default());
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

/// Begins a deletion: from now on the subtree is hidden.
pub(super) fn begin_deletion(keys: &Keys, txn: &mut impl Writer, id: NodeId) -> Result<()> {
    let steps = {
        let (view, row) = View::of_row(keys, &*txn, id)?;
        view.refuse_other_steps()?;
        Steps { node: id, from: row.span(), to: None, stage: Stage::Clearing }
    };
    txn.put(&keys.steps, &steps.encode())
}

impl<R: Reader> View<'_, '_, R> {
    fn refuse_other_steps(&self) -> Result<()> {
        self.steps.map_or(Ok(()), |steps| Err(self.in_steps(steps.node)))
    }
}

/// The layout of a tree, and the table of its nodes.
type On<'t, V, C> = (&'t Keys, &'t NodeRecords<V, C>);

/// Continues work that a first transaction has begun, and reports that transaction too.
pub(super) fn resume_from<S: Store, V, C: Codec<V>>(
    on: On<'_, V, C>,
    store: &S,
    mut done: Progress,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    let (keys, _) = on;
    let steps = under_way(keys, store.snapshot()?.get(&keys.steps)?.as_deref())?;
    done.finished = steps.is_none();
    if progress(&done).is_break() || done.finished {
        return Ok(done);
    }
    resume(on, store, done, progress)
}

/// Continues until the work is finished, or `progress` stops it. `done` is the progress so far.
pub(super) fn resume<S: Store, V, C: Codec<V>>(
    on: On<'_, V, C>,
    store: &S,
    mut done: Progress,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    let (keys, _) = on;
    let mut size = BatchSize::new(BATCH);
    let mut plan = None;
    loop {
        if let Some(steps) = under_way(keys, store.snapshot()?.get(&keys.steps)?.as_deref())?
            && matches!(steps.stage, Stage::Copying(_))
            && plan.as_ref().is_none_or(|plan: &Plan| !plan.is_of(&steps))
        {
            plan = Some(Plan::make(keys, &store.snapshot()?, &steps)?);
        }
        let next = size.transact(store, |txn, rows| step(on, txn, plan.as_ref(), rows))?;
        done = done.followed_by(&next);
        if progress(&done).is_break() || done.finished {
            return Ok(done);
        }
    }
}

/// Ends the work in progress, for a repair. An unreadable record is deleted. If a move encounters
/// damage before it has switched, the move is cancelled.
pub(super) fn end<S: Store, V, C: Codec<V>>(
    on: On<'_, V, C>,
    store: &S,
    report: &mut Report<'_>,
) -> Result<Progress> {
    let (keys, _) = on;
    let written = store.transact(|txn| forget_damaged(keys, txn))?;
    let mut done = Progress { written, ..Progress::default() };
    let outcome = resume(on, store, done.clone(), |now| {
        done = now.clone();
        report(now)
    });
    match outcome {
        Err(error) if is_damage(&error) => {
            done.written += store.transact(|txn| cancel(keys, txn))?;
            resume(on, store, done, report)
        }
        outcome => outcome,
    }
}

/// Deletes an unreadable record of work in steps. Without the record no row is hidden: nodes that
/// were already copied exist twice, and one of the two gets another id.
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

/// Whether the error is about damaged stored bytes.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::At { source, .. } => is_damage(source),
        error => matches!(error, Error::Value { .. } | Error::Key(_)),
    }
}

/// Runs one transaction of the work.
fn step<V, C: Codec<V>>(
    (keys, records): On<'_, V, C>,
    txn: &mut impl Writer,
    plan: Option<&Plan>,
    rows: usize,
) -> Result<Progress> {
    records.expect_writable(txn)?;
    let steps = under_way(keys, txn.get(&keys.steps)?.as_deref())?;
    match steps {
        None => Ok(Progress::complete()),
        Some(steps) => match (steps.stage, plan.filter(|plan| plan.is_of(&steps))) {
            (Stage::Clearing, _) => clear((keys, records), txn, &steps, rows),
            (Stage::Copying(copied), Some(plan)) => copy(keys, txn, steps, copied, plan, rows),
            // Another writer has begun another move since the plan was made.
            (Stage::Copying(_), None) => Ok(Progress::default()),
        },
    }
}

/// The new places of all rows of a moved subtree. The subtree does not change until the move ends,
/// so every program computes the same plan.
struct Plan {
    of: (Span, Option<Going>),
    /// The old left labels in order, each with its new interval.
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

/// Copies some rows, or switches the record when all are copied.
fn copy(
    keys: &Keys,
    txn: &mut impl Writer,
    mut steps: Steps,
    copied: Option<Label>,
    plan: &Plan,
    rows: usize,
) -> Result<Progress> {
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
    steps.stage = if last.is_some() { Stage::Copying(last) } else { Stage::Clearing };
    change.writes.put(&keys.steps, &steps.encode())?;
    change.make(keys, txn)
}

/// Removes some rows from the old place, or the record if no rows are left.
fn clear<V, C: Codec<V>>(
    (keys, records): On<'_, V, C>,
    txn: &mut impl Writer,
    steps: &Steps,
    rows: usize,
) -> Result<Progress> {
    let (mut change, mut gone) = (Change::default(), Vec::new());
    {
        let page = txn.page(keys.lefts(steps.from), Order::Ascending, rows)?;
        let mut found = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            change.writes.delete(&entry.0)?;
            // No reader sees this row, so delete it even if it is damaged. A repair removes its
            // position.
            found.extend(keys.row(entry).ok());
        }
        let nodes: Vec<_> = found.iter().map(|row| keys.node(row.id)).collect();
        for ((row, key), at) in found.iter().zip(&nodes).zip(txn.get_many(&nodes)?) {
            let Some(at) = at.and_then(|at| Positions::decode(&at).ok()) else { continue };
            match at.next {
                // The copy of a cancelled move.
                Some(next) if next.left == row.left => {
                    change.put_position(keys, row.id, at.now.into())?;
                }
                Some(next) => change.put_position(keys, row.id, next.into())?,
                // A deleted node. If the label differs, the position points to another row, so keep
                // it.
                None if at.now.left == row.left => {
                    change.writes.delete(key)?;
                    gone.push(row.id);
                }
                None => (),
            }
        }
    }
    records.delete(txn, &gone)?;
    let finished = change.writes.is_empty();
    if finished {
        change.writes.delete(&keys.steps)?;
    }
    Ok(Progress { finished, ..change.make(keys, txn)? })
}
