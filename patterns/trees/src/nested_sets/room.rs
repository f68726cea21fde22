//! Finds labels for nodes in a gap, or relabels a window around the gap.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Error, Limits, Order, Reader, Result};

use super::labels::{Gap, Label, LabelSpace, Relabelled, Span, share};
use super::layout::{Keys, Row, disagreement};
use super::view::View;
use crate::TreeError;

/// The labels for new nodes, and the rows that are relabelled for them.
pub(super) struct Room {
    /// The requested labels, in order.
    pub(super) labels: Vec<Label>,
    /// The relabelled window: every row that begins in it moves.
    pub(super) window: Option<Span>,
    /// The changed rows with their new labels, and the old left label of each.
    pub(super) moved: Vec<(Label, Row<Vec<u8>>)>,
}

impl Room {
    /// The number of keys that the relabelling writes, and the approximate number of bytes.
    fn cost(&self, keys: &Keys) -> (usize, usize) {
        let per_key = keys.space.prefix().len() + 40;
        let of_row = |(old, row): &(Label, Row<Vec<u8>>)| {
            let written = 1 + usize::from(*old != row.left);
            (written, row.bytes.len() + written * per_key)
        };
        self.moved.iter().map(of_row).fold((1, 0), |(k, b), (keys, bytes)| (k + keys, b + bytes))
    }
}

/// The number of keys, and the approximate number of bytes, that a change may write to relabel.
#[derive(Clone, Copy)]
struct Most {
    keys: usize,
    bytes: usize,
}

impl Most {
    fn of(limits: &Limits) -> Self {
        Self { keys: most_keys(limits), bytes: most_bytes(limits) }
    }

    fn takes(self, (keys, bytes): (usize, usize)) -> bool {
        keys <= self.keys && bytes <= self.bytes
    }
}

/// The number of keys of a transaction that relabelling may use: half is left for the change
/// itself.
fn most_keys(limits: &Limits) -> usize {
    limits.max_transaction_operations.map_or(usize::MAX, |most| most / 2)
}

/// The number of bytes that relabelling may use: a store may count each byte several times.
fn most_bytes(limits: &Limits) -> usize {
    limits.max_transaction_bytes.map_or(usize::MAX, |most| most / 4)
}

impl<'k, 'r, R: Reader> View<'k, 'r, R> {
    /// Makes room for `count` labels in a gap, in a transaction within `limits`.
    pub(super) fn room(&self, gap: &Gap, count: u64, limits: &Limits) -> Result<Room> {
        if let Some(labels) = gap.labels(count) {
            return Ok(Room { labels, window: None, moved: Vec::new() });
        }
        let mut around = self.around(gap, count)?;
        let most = Most::of(limits);
        around.widen(most)?;
        let room = around.relabel(gap, count);
        let cost = room.cost(self.keys);
        if !most.takes(cost) {
            let tree = self.keys.space.named();
            return Err(TreeError::NoRoom { tree, keys: cost.0 as u64 }.into());
        }
        Ok(room)
    }

    /// The smallest window around a gap that can take `count` more labels.
    pub(super) fn around(&self, gap: &Gap, count: u64) -> Result<Around<'_, 'k, 'r, R>> {
        let first = self.keys.labels.window(gap.lo, 0);
        let (rows, read) = (BTreeMap::new(), None);
        let mut around = Around { view: self, rows, read, window: first, level: 0 };
        for level in 1..=self.keys.labels.levels {
            let window = self.keys.labels.window(gap.lo, level);
            self.refuse_in_steps(window)?;
            around.grow(window, usize::MAX)?;
            (around.window, around.level) = (window, level);
            // Nodes that are only moved free their old labels.
            let takes_all = level == self.keys.labels.levels && self.is_without_some();
            if around.used().saturating_add(count) <= LabelSpace::capacity(level) || takes_all {
                return Ok(around);
            }
        }
        Err(too_many_nodes(self.keys))
    }
}

/// The error of a tree with too many nodes.
#[cold]
pub(super) fn too_many_nodes(keys: &Keys) -> Error {
    let limit = most_nodes(keys);
    TreeError::TooManyNodes { tree: keys.space.named(), limit }.into()
}

/// The maximum number of nodes in a tree.
pub(super) fn most_nodes(keys: &Keys) -> u64 {
    LabelSpace::capacity(keys.labels.levels) / 2
}

/// The rows read around a gap.
pub(super) struct Around<'a, 'k, 'r, R: Reader> {
    view: &'a View<'k, 'r, R>,
    /// The rows by left label: all rows that begin in `read`, and the earlier rows that enclose the
    /// start of `read`.
    rows: BTreeMap<Label, Known>,
    read: Option<Span>,
    /// The window to relabel.
    window: Span,
    level: u32,
}

/// A label of a window, the left label of its row, and the end of the row that the label marks.
#[derive(Clone, Copy)]
pub(super) struct Used {
    pub(super) label: Label,
    pub(super) left: Label,
    pub(super) end: End,
}

struct Known {
    row: Row<Vec<u8>>,
    /// The left label of the row's parent, once read; `Some(None)` for a root.
    parent: Option<Option<Label>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Left,
    Right,
}

impl<R: Reader> Around<'_, '_, '_, R> {
    /// Widens the window as long as it has at most twice as many labels in use as the smallest
    /// window, and the relabelling stays within `limit`. The resulting gap is many times as large.
    fn widen(&mut self, limit: Most) -> Result<()> {
        // With this widening, and with half of the window for the gap, repeated inserts before one
        // node write 10.92 keys on average; without both, they write 24.85.
        let most = (limit.keys / 2).min(2 * self.used() as usize);
        for level in self.level + 1..=self.view.keys.labels.levels {
            let window = self.view.keys.labels.window(self.window.first, level);
            let is_known = self.view.refuse_in_steps(window).is_ok() && self.grow(window, most)?;
            let is_small = || self.labels_in(window).count() <= most;
            // The limit counts bytes too. With a limit of keys alone, an insert beside long values
            // failed with `NoRoom`, although the smallest window fits into the bytes of a
            // transaction.
            if !is_known || !is_small() || !limit.takes(self.most_cost(window)) {
                break;
            }
            (self.window, self.level) = (window, level);
        }
        Ok(())
    }

    /// Reads the unread part of a window, but no more than `most` rows at each end. Returns whether
    /// the whole part was read.
    fn grow(&mut self, window: Span, most: usize) -> Result<bool> {
        let parts = match self.read {
            None => [Some(window), None],
            // If the window extends past an end of `read`, that end is not the minimum or maximum.
            Some(read) => [
                (window.first < read.first)
                    .then(|| Span { first: window.first, last: read.first.saturating_sub(1) }),
                (window.last > read.last)
                    .then(|| Span { first: read.last.saturating_add(1), last: window.last }),
            ],
        };
        for part in parts.into_iter().flatten() {
            let mut rows = 0;
            for part in self.view.visible(part) {
                for entry in self.view.reader.range(self.view.keys.lefts(part), Order::Ascending)? {
                    rows += 1;
                    if rows > most {
                        return Ok(false);
                    }
                    self.learn(self.view.keys.row(entry?)?.to_owned());
                }
            }
        }
        self.read = Some(window);
        self.climb(window, most)
    }

    fn learn(&mut self, row: Row<Vec<u8>>) {
        self.rows.entry(row.left).or_insert(Known { row, parent: None });
    }

    /// Reads the rows that begin before a window and end in it. These rows enclose the start of the
    /// window.
    fn climb(&mut self, window: Span, most: usize) -> Result<bool> {
        let Some(before) = self.view.last(0, window.first)? else { return Ok(true) };
        let mut rows = 0;
        let mut at = Some(before.left);
        self.learn(before.to_owned());
        while let Some(left) = at {
            let Some(known) = self.rows.get(&left) else { break };
            if known.row.right > window.last {
                break;
            }
            rows += 1;
            if rows > most {
                return Ok(false);
            }
            at = match known.parent {
                Some(parent) => parent,
                None => self.look_up_parent(left)?,
            };
        }
        Ok(true)
    }

    fn look_up_parent(&mut self, left: Label) -> Result<Option<Label>> {
        let Some(known) = self.rows.get_mut(&left) else { return Ok(None) };
        let id = known.row.id;
        let at = self.view.named(id)?;
        if at.left != left {
            return Err(disagreement(&self.view.keys.node(id)));
        }
        let above = self.view.above((id, at))?;
        let parent = above.map(|(_, at)| at.left);
        known.parent = Some(parent);
        if let Some((id, at)) = above
            && !self.rows.contains_key(&at.left)
        {
            let row = self.view.row_at(id, at.left)?.to_owned();
            self.learn(row);
        }
        Ok(parent)
    }

    /// The labels of a window that are in use.
    fn labels_in(&self, window: Span) -> impl Iterator<Item = Used> {
        let ends = self.rows.iter().flat_map(|(&left, known)| {
            [(left, End::Left), (known.row.right, End::Right)].map(|(label, end)| Used {
                label,
                left,
                end,
            })
        });
        ends.filter(move |used| window.contains(used.label))
    }

    /// An upper bound of [`Room::cost`] for a window, assuming that all its labels change.
    fn most_cost(&self, window: Span) -> (usize, usize) {
        let per_key = self.view.keys.space.prefix().len() + 40;
        let written = self.rows.iter().filter_map(|(left, known)| {
            let begins = window.contains(*left);
            let keys = 1 + usize::from(begins);
            let is_changed = begins || window.contains(known.row.right);
            is_changed.then(|| (keys, known.row.bytes.len() + keys * per_key))
        });
        written.fold((1, 0), |(k, b), (keys, bytes)| (k + keys, b + bytes))
    }

    /// The number of labels of the window that are in use.
    fn used(&self) -> u64 {
        self.labels_in(self.window).count() as u64
    }

    /// The labels in use in the window, in order, each with its new label, and `count` labels for
    /// new nodes.
    fn new_labels(&self, gap: &Gap, count: u64) -> (Vec<(Used, Label)>, Vec<Label>) {
        let (used, new) = self.relabelled(gap);
        let labels = new.new_labels(count);
        (used.into_iter().zip(new.before.into_iter().chain(new.behind)).collect(), labels)
    }

    /// The labels in use in the window, in order, each with its new label.
    pub(super) fn moves(&self, gap: &Gap) -> Vec<(Used, Label)> {
        let (used, new) = self.relabelled(gap);
        used.into_iter().zip(new.before.into_iter().chain(new.behind)).collect()
    }

    fn relabelled(&self, gap: &Gap) -> (Vec<Used>, Relabelled) {
        let mut used: Vec<Used> = self.labels_in(self.window).collect();
        used.sort_unstable_by_key(|used| used.label);
        let before = used.partition_point(|used| used.label <= gap.lo) as u64;
        let new = gap.relabelled(self.window, before, used.len() as u64 - before);
        (used, new)
    }

    /// A row by its left label.
    pub(super) fn row(&self, left: Label) -> Option<&Row<Vec<u8>>> {
        self.rows.get(&left).map(|known| &known.row)
    }

    /// Relabels the rows of the window, and takes `count` labels from the gap.
    fn relabel(mut self, gap: &Gap, count: u64) -> Room {
        let (used, labels) = self.new_labels(gap, count);
        let mut changed = BTreeSet::new();
        for (Used { left, end, .. }, new) in used {
            let Some(known) = self.rows.get_mut(&left) else { continue };
            match end {
                End::Left => known.row.left = new,
                End::Right => known.row.right = new,
            }
            changed.insert(left);
        }
        let moved = changed.into_iter();
        let moved = moved.filter_map(|left| self.rows.remove(&left).map(|known| (left, known.row)));
        Room { labels, window: Some(self.window), moved: moved.collect() }
    }
}

/// Returns `count` evenly spaced labels of a reserved span, from its first label to its last.
pub(super) fn labels_of(span: Span, count: u64) -> Vec<Label> {
    let parts = count.saturating_sub(1);
    (0..count).map(|n| span.first + share(span.width(), n, parts)).collect()
}
