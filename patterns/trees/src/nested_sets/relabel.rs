//! Relabels a window in steps, if the relabelling is too large for one transaction.
//!
//! Labels move to their new places one by one, and never past another label. First the labels that
//! move right are changed, from the last to the first; then the labels that move left, from the
//! first to the last. So after each transaction the tree is unchanged, and no state is stored:
//! interrupted work is planned again from the current labels.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::{Error, KeyBuf, Order, Reader, Result, Store, Writer};
use keyloom_kit::{BatchSize, Progress};

use super::change::Change;
use super::labels::{Gap, Label, Span};
use super::layout::{Keys, Position, Positions, disagreement, header, split_header};
use super::place::Placed;
use super::room::{End, Used, most_nodes, too_many_nodes};
use super::view::View;
use crate::tree::REPLANS;
use crate::{InsertAt, NodeId, TreeError, TreeNode};

/// The number of labels that one transaction changes, if the store accepts that many. Each label
/// takes at most three keys.
const BATCH: usize = 1_000;

/// The nodes that need room.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'n> {
    /// New nodes; the first has this name.
    New { name: &'n str, place: InsertAt, nodes: u64 },
    /// A node that moves with all its descendants.
    Move { id: NodeId, place: InsertAt },
}

impl Wanted<'_> {
    /// The gap, and the number of labels needed; `None` if the node is already there.
    fn gap<'k, 'r, R: Reader>(
        self,
        keys: &'k Keys,
        reader: &'r R,
    ) -> Result<Option<(View<'k, 'r, R>, Gap, u64)>> {
        match self {
            Self::New { name, place, nodes } => {
                if nodes > most_nodes(keys) {
                    return Err(too_many_nodes(keys));
                }
                let (view, _) = View::open(keys, reader, &[])?;
                let gap = view.gap(Placed { id: 0, name, span: None }, place)?;
                Ok(Some((view, gap, 2 * nodes)))
            }
            Self::Move { id, place } => {
                let (view, row) = View::of_row(keys, reader, id)?;
                let span = row.span();
                let node = TreeNode::<_, (), ()>::new(id, row.node(), 0);
                let gap = view.gap(Placed { id, name: node.name()?, span: Some(span) }, place)?;
                let count = reader.count(keys.lefts(span))?.saturating_mul(2);
                let is_there = gap.lo < span.first && span.last < gap.hi;
                Ok((!is_there).then_some((view, gap, count)))
            }
        }
    }
}

/// Whether a change was refused for lack of room.
pub(super) fn lacks_room(error: &keyloom::Error) -> bool {
    matches!(error.downcast_ref(), Some(TreeError::NoRoom { .. }))
}

/// Makes room in as many transactions as needed. `done` is the progress so far.
pub(super) fn make_room<S: Store>(
    keys: &Keys,
    store: &S,
    wanted: Wanted<'_>,
    mut done: Progress,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    done.finished = false;
    let mut size = BatchSize::new(BATCH);
    let mut plan: Option<Plan> = None;
    let mut replans = 0;
    loop {
        let now = match plan.take() {
            Some(plan) => plan,
            None => match Plan::make(keys, &store.snapshot()?, wanted)? {
                Some(plan) => plan,
                None => break,
            },
        };
        let step = size.transact(store, |txn, labels| now.step(keys, txn, labels))?;
        match step {
            Some(step) => {
                done = done.followed_by(&step.done);
                plan = now.after(step);
                replans = 0;
            }
            // Another writer has changed the window: plan again.
            None if replans < REPLANS => replans += 1,
            None => return Err(Error::Conflict { what: keys.space.named().into() }),
        }
        if progress(&done).is_break() {
            return Ok(done);
        }
    }
    done.finished = true;
    Ok(done)
}

/// A row that gets new labels, with its current labels.
struct Moving {
    id: NodeId,
    span: Span,
}

/// A label that changes.
struct Target {
    /// The index of the row of the label.
    row: usize,
    end: End,
    to: Label,
}

/// The labels of a window, and their targets.
struct Plan {
    rows: Vec<Moving>,
    /// All current labels of the window, with the index of their row.
    labels: BTreeMap<Label, usize>,
    /// The remaining targets, in an order in which no label passes another. The next target is
    /// last.
    to_do: Vec<Target>,
}

/// The result of a transaction: the number of targets done, and the new labels of the changed rows.
struct Step {
    targets: usize,
    changed: BTreeMap<usize, Span>,
    done: Progress,
}

impl Plan {
    /// Makes the plan; `None` if the gap has room.
    fn make(keys: &Keys, reader: &impl Reader, wanted: Wanted<'_>) -> Result<Option<Self>> {
        let Some((view, gap, count)) = wanted.gap(keys, reader)? else { return Ok(None) };
        if gap.has_room(count) {
            return Ok(None);
        }
        let around = view.around(&gap, count)?;
        let mut plan = Self { rows: Vec::new(), labels: BTreeMap::new(), to_do: Vec::new() };
        let mut numbers = BTreeMap::new();
        let (mut to_left, mut to_right) = (Vec::new(), Vec::new());
        for (Used { label, left, end }, to) in around.moves(&gap) {
            let Some(row) = around.row(left) else { continue };
            let number = *numbers.entry(left).or_insert_with(|| {
                plan.rows.push(Moving { id: row.id, span: row.span() });
                plan.rows.len() - 1
            });
            if plan.labels.insert(label, number).is_some() {
                return Err(disagreement(&keys.left(left)));
            }
            let target = Target { row: number, end, to };
            match to.cmp(&label) {
                std::cmp::Ordering::Less => to_left.push(target),
                std::cmp::Ordering::Greater => to_right.push(target),
                std::cmp::Ordering::Equal => (),
            }
        }
        // The next target is popped from the end.
        plan.to_do.extend(to_left.into_iter().rev());
        plan.to_do.extend(to_right);
        Ok((!plan.to_do.is_empty()).then_some(plan))
    }

    /// The plan after a step; `None` if the plan is done.
    fn after(mut self, step: Step) -> Option<Self> {
        self.to_do.truncate(self.to_do.len() - step.targets);
        for number in step.changed.keys() {
            let Some(row) = self.rows.get(*number) else { continue };
            for label in [row.span.first, row.span.last] {
                if self.labels.get(&label) == Some(number) {
                    self.labels.remove(&label);
                }
            }
        }
        for (number, span) in step.changed {
            self.labels.insert(span.first, number);
            self.labels.insert(span.last, number);
            if let Some(row) = self.rows.get_mut(number) {
                row.span = span;
            }
        }
        (!self.to_do.is_empty()).then_some(self)
    }

    /// Changes some labels; `None` if the rows differ from the plan.
    fn step(&self, keys: &Keys, txn: &mut impl Writer, labels: usize) -> Result<Option<Step>> {
        let next = self.to_do.iter().rev().take(labels);
        let mut swept: Option<Span> = None;
        let mut changed = BTreeMap::new();
        let mut targets = 0;
        for target in next {
            let Some(row) = self.rows.get(target.row) else { continue };
            let span = changed.entry(target.row).or_insert(row.span);
            let from = match target.end {
                End::Left => std::mem::replace(&mut span.first, target.to),
                End::Right => std::mem::replace(&mut span.last, target.to),
            };
            let (first, last) = (from.min(target.to), from.max(target.to));
            swept = Some(swept.map_or(Span { first, last }, |swept| Span {
                first: swept.first.min(first),
                last: swept.last.max(last),
            }));
            targets += 1;
        }
        let Some(swept) = swept else { return Ok(None) };
        let Some(change) = self.change(keys, &*txn, swept, &changed)? else { return Ok(None) };
        let done = change.make(keys, txn)?;
        Ok(Some(Step { targets, changed, done }))
    }

    /// The change that gives some rows new labels within a span; `None` if a row differs from the
    /// plan.
    fn change(
        &self,
        keys: &Keys,
        reader: &impl Reader,
        swept: Span,
        changed: &BTreeMap<usize, Span>,
    ) -> Result<Option<Change>> {
        let (view, _) = View::open(keys, reader, &[])?;
        view.refuse_in_steps(swept)?;
        let there = self.labels.range(swept.first..=swept.last).map(|(_, number)| *number);
        let numbers: BTreeSet<usize> = there.chain(changed.keys().copied()).collect();
        let rows: Vec<(usize, &Moving)> =
            numbers.iter().filter_map(|number| Some((*number, self.rows.get(*number)?))).collect();
        if !begins_as_planned(keys, reader, swept, &rows)? {
            return Ok(None);
        }
        let lefts: Vec<KeyBuf> = rows.iter().map(|(_, row)| keys.left(row.span.first)).collect();
        let moved = |number: &usize, row: &Moving| {
            changed.get(number).filter(|new| new.first != row.span.first).copied()
        };
        let moving: Vec<(&Moving, Span)> =
            rows.iter().filter_map(|(number, row)| Some((*row, moved(number, row)?))).collect();
        let mut change = Change::default();
        let news: BTreeSet<Label> = moving.iter().map(|(_, new)| new.first).collect();
        for (row, _) in moving.iter().filter(|(row, _)| !news.contains(&row.span.first)) {
            change.writes.delete(&keys.left(row.span.first))?;
        }
        for ((number, row), bytes) in rows.iter().zip(reader.get_many(&lefts)?) {
            let Some(bytes) = bytes else { return Ok(None) };
            let header = header(row.span.first, &bytes)?;
            if (header.id, header.right) != (row.id, row.span.last) {
                return Ok(None);
            }
            if let Some(new) = changed.get(number) {
                let node = bytes.get(header.bytes..).unwrap_or_default();
                change.put_row(keys, *new, row.id, node)?;
            }
        }
        let nodes: Vec<KeyBuf> = moving.iter().map(|(row, _)| keys.node(row.id)).collect();
        for (((row, new), key), at) in moving.iter().zip(&nodes).zip(reader.get_many(&nodes)?) {
            let Some(at) = at else { return Err(disagreement(key)) };
            let Positions { now, next } = Positions::decode(&at).map_err(|error| error.at(key))?;
            if now.left != row.span.first || next.is_some() {
                return Err(disagreement(key));
            }
            let now = Position { left: new.first, parent: now.parent };
            change.put_position(keys, row.id, now.into())?;
        }
        Ok(Some(change))
    }
}

/// Whether the rows that begin in a span are exactly the planned rows.
fn begins_as_planned(
    keys: &Keys,
    reader: &impl Reader,
    swept: Span,
    rows: &[(usize, &Moving)],
) -> Result<bool> {
    let mut planned: Vec<(Label, NodeId)> = rows
        .iter()
        .map(|(_, row)| (row.span.first, row.id))
        .filter(|(left, _)| swept.contains(*left))
        .collect();
    planned.sort_unstable();
    let mut planned = planned.into_iter();
    for entry in reader.range(keys.lefts(swept), Order::Ascending)? {
        let (key, bytes) = entry?;
        let id = split_header(keys.is_wide(&key), &bytes).map(|header| header.id);
        if planned.next().is_none_or(|(left, of)| keys.left(left)[..] != key[..] || id != Some(of))
        {
            return Ok(false);
        }
    }
    Ok(planned.next().is_none())
}
