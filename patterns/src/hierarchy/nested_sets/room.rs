//! Room for nodes: labels in a gap, or in a window around it that is labelled anew.

use std::collections::BTreeMap;

use keyloom::{Reader, Result};

use super::labels::{Gap, Label, LabelSpace, Span, spread};
use super::layout::{Row, disagreement};
use super::view::View;
use crate::hierarchy::TreeError;

/// Labels for what is to be placed, and what must give way to it.
pub(super) struct Room {
    /// As many as were asked for, in order.
    pub(super) labels: Vec<Label>,
    /// The window that is labelled anew: no row stays where it began in it.
    pub(super) window: Option<Span>,
    /// The rows that change, with their new labels, and where each was until now.
    pub(super) moved: Vec<(Label, Row<Vec<u8>>)>,
}

impl<R: Reader> View<'_, '_, R> {
    /// Room for `count` labels in a gap.
    pub(super) fn room(&self, gap: &Gap, count: u64) -> Result<Room> {
        if let Some(labels) = gap.labels(count) {
            return Ok(Room { labels, window: None, moved: Vec::new() });
        }
        let mut around = Around { view: self, rows: BTreeMap::new(), read: None };
        for level in 1..=self.keys.labels.levels {
            let window = self.keys.labels.window(gap.lo, level);
            self.refuse_in_steps(window)?;
            around.grow(window)?;
            let used = around.labels_in(window).count() as u64;
            // What only moves took labels before, which are free now.
            let takes_all = level == self.keys.labels.levels && self.is_without_some();
            if used + count <= LabelSpace::capacity(level) || takes_all {
                return Ok(around.label_anew(window, gap, count));
            }
        }
        let limit = LabelSpace::capacity(self.keys.labels.levels) / 2;
        Err(TreeError::TooManyNodes { tree: self.keys.space.to_string(), limit }.into())
    }
}

/// What is known of the rows around a gap.
struct Around<'a, 'k, 'r, R: Reader> {
    view: &'a View<'k, 'r, R>,
    /// By their left labels: all rows that begin in `read`, and those before it that enclose its beginning.
    rows: BTreeMap<Label, Known>,
    read: Option<Span>,
}

struct Known {
    row: Row<Vec<u8>>,
    /// Where its parent begins, once it was looked up; `Some(None)` for a root.
    parent: Option<Option<Label>>,
}

#[derive(Clone, Copy)]
enum End {
    Left,
    Right,
}

impl<R: Reader> Around<'_, '_, '_, R> {
    /// Reads what of a window is not known yet.
    fn grow(&mut self, window: Span) -> Result<()> {
        let parts = match self.read {
            None => [Some(window), None],
            // Neither end of a span is the end of all numbers where the window goes on behind it.
            Some(read) => [
                (window.first < read.first)
                    .then(|| Span { first: window.first, last: read.first.saturating_sub(1) }),
                (window.last > read.last)
                    .then(|| Span { first: read.last.saturating_add(1), last: window.last }),
            ],
        };
        for part in parts.into_iter().flatten() {
            for row in self.view.rows(part)? {
                self.learn(row.to_owned());
            }
        }
        self.read = Some(window);
        self.climb(window)
    }

    fn learn(&mut self, row: Row<Vec<u8>>) {
        self.rows.entry(row.left).or_insert(Known { row, parent: None });
    }

    /// Reads the rows that begin before a window and end in it: they enclose what lies at its beginning.
    fn climb(&mut self, window: Span) -> Result<()> {
        let Some(before) = self.view.last(0, window.first)? else { return Ok(()) };
        let mut at = Some(before.left);
        self.learn(before.to_owned());
        while let Some(left) = at {
            let Some(known) = self.rows.get(&left) else { break };
            if known.row.right > window.last {
                break;
            }
            at = match known.parent {
                Some(parent) => parent,
                None => self.look_up_parent(left)?,
            };
        }
        Ok(())
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

    /// The labels of a window that are in use: where the row begins, and which end of it.
    fn labels_in(&self, window: Span) -> impl Iterator<Item = (Label, Label, End)> {
        let ends = self.rows.iter().flat_map(|(left, known)| {
            [(*left, *left, End::Left), (known.row.right, *left, End::Right)]
        });
        ends.filter(move |(label, ..)| window.contains(*label))
    }

    /// Spreads the labels of a window, and as many new ones in the gap, evenly.
    fn label_anew(mut self, window: Span, gap: &Gap, count: u64) -> Room {
        let mut used: Vec<_> = self.labels_in(window).collect();
        used.sort_unstable_by_key(|(label, ..)| *label);
        let before = used.partition_point(|(label, ..)| *label <= gap.lo);
        let all: Vec<Label> =
            spread(window.first, window.last, used.len() as u64 + count).collect();
        let (first, rest) = all.split_at(before);
        let (labels, last) = rest.split_at(count as usize);
        let mut changed = BTreeMap::new();
        for ((_, left, end), new) in used.iter().zip(first.iter().chain(last)) {
            let Some(known) = self.rows.get_mut(left) else { continue };
            match end {
                End::Left => known.row.left = *new,
                End::Right => known.row.right = *new,
            }
            changed.insert(*left, ());
        }
        let moved = changed.into_keys();
        let moved = moved.filter_map(|left| self.rows.remove(&left).map(|known| (left, known.row)));
        Room { labels: labels.to_vec(), window: Some(window), moved: moved.collect() }
    }
}

/// Labels of places that were taken before: `count` of them from the first to the last.
pub(super) fn labels_of(span: Span, count: u64) -> Vec<Label> {
    let steps = u128::from(count.saturating_sub(1).max(1));
    let width = u128::from(span.width());
    (0..count).map(|n| span.first + (u128::from(n) * width / steps) as u64).collect()
}
