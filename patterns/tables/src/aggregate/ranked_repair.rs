//! Checks, repairs and builds the counts of a ranked index level by level.

use std::ops::ControlFlow;

use keyloom::{KeyBuf, KeyRange, Order, Reader, Result, Store, Writer};
use keyloom_kit::{
    BatchSize, Inconsistency, Progress, RecordKey, RepairOptions, RepairPosition, Rule,
};

use super::expected::SideBySide;
use super::ranked_counts::{Counts, Level, height};
use super::totals::decode;
use crate::table::Table;

/// Compares each level with the level below it and adds the faults of the counts to `found`.
pub(super) fn check(
    counts: &Counts,
    reader: &impl Reader,
    found: &mut Vec<Inconsistency>,
) -> Result<()> {
    for (below, level) in counts.pairs() {
        let nodes = Nodes {
            below,
            level,
            entries: Some(reader.range(below.all(), Order::Ascending)?),
            open: (level.key(&[]), 0),
        };
        for pair in SideBySide::new(nodes, reader.range(level.all(), Order::Ascending)?) {
            let (entry, expected, stored) = pair?;
            let Some(stored) = stored else {
                found.push(Inconsistency::new(entry, Rule::Missing));
                continue;
            };
            match (expected, decode(&stored)) {
                (_, None) => found.push(Inconsistency::new(entry, Rule::Foreign)),
                (None, Some(_)) => found.push(Inconsistency::new(entry, Rule::Dangling)),
                (Some(expected), Some(stored)) if expected != stored => {
                    found.push(Inconsistency::new(entry, Rule::Wrong));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Computes, from the level below, the nodes that a level should have. Keeps one node in memory.
struct Nodes<'c, I> {
    below: &'c Level,
    level: &'c Level,
    entries: Option<I>,
    open: (KeyBuf, i64),
}

impl<B, I> Iterator for Nodes<'_, I>
where
    B: std::ops::Deref<Target = [u8]>,
    I: Iterator<Item = Result<(B, B)>>,
{
    type Item = Result<(KeyBuf, i64)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.entries.as_mut()?.next() {
                None => {
                    self.entries = None;
                    let last = std::mem::take(&mut self.open);
                    return (last.1 != 0).then_some(Ok(last));
                }
                Some(Err(error)) => {
                    self.entries = None;
                    return Some(Err(error));
                }
                Some(Ok(entry)) => entry,
            };
            let tail = self.below.tail(&entry.0);
            // A malformed count counts as 0. It is a fault of the level below and is reported
            // there.
            let count = self.below.count(&entry).unwrap_or(0);
            if !is_node(tail, self.level) {
                self.open.1 = self.open.1.wrapping_add(count);
                continue;
            }
            let done = std::mem::replace(&mut self.open, (self.level.key(tail), count));
            if done.1 != 0 {
                return Some(Ok(done));
            }
        }
    }
}

fn is_node(tail: &[u8], level: &Level) -> bool {
    !tail.is_empty() && height(tail) >= level.number
}

/// Repairs the counts from the lowest level to the highest, and each level from its end to its
/// beginning.
///
/// The repair runs backwards because a writer that removes a node adds its count to the node before
/// it. If the removed node was not yet repaired, neither was the node before it, so the wrong count
/// is repaired later. A node that a writer adds is counted from the level below, so faults before
/// it have no effect. So all nodes after the repaired position stay correct despite concurrent
/// writers.
pub(super) fn repair<S: Store, K: RecordKey, V, C>(
    counts: &Counts,
    store: &S,
    table: &Table<K, V, C>,
    options: &RepairOptions,
    done: &mut Progress,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<()> {
    let mut size = BatchSize::new(options.batch);
    let resume = done.position.last.clone();
    let at = |level: &Level| resume.as_ref().filter(|last| level.all().contains(last));
    let first = counts.levels().iter().skip(1).find(|level| at(level).is_some());
    let first = first.map_or(1, |level| level.number);
    for (below, level) in counts.pairs().filter(|(_, level)| level.number >= first) {
        let is_top = usize::from(level.number) + 1 == counts.levels().len();
        let mut before = at(level).map(|key| KeyBuf::from_slice(level.tail(key)));
        if before.as_ref().is_some_and(|tail| tail.is_empty()) {
            // This level is repaired completely, up to its beginning.
            done.finished = is_top;
            continue;
        }
        loop {
            let part = size.transact(store, |txn, batch| {
                table.check_repair(txn)?;
                recount(txn, below, level, before.as_deref(), batch)
            })?;
            done.entries += part.visited;
            done.written += part.written;
            done.removed += part.removed;
            let last = Some(level.key(part.from.as_deref().unwrap_or_default()));
            done.position = RepairPosition { entries: true, last, ..RepairPosition::default() };
            done.finished = is_top && part.from.is_none();
            if progress(done).is_break() {
                return Ok(());
            }
            before = part.from;
            if before.is_none() {
                break;
            }
        }
    }
    Ok(())
}

/// One transaction of a build. Continues at `reached`, the position that the previous transaction
/// returned. Returns the new position, or `None` after the last level.
pub(super) fn count_next(
    counts: &Counts,
    txn: &mut impl Writer,
    reached: Option<&[u8]>,
    batch: usize,
) -> Result<Option<KeyBuf>> {
    let mut pairs = counts.pairs();
    let at = reached.and_then(|key| {
        let (below, level) = pairs.find(|(_, level)| level.all().contains(key))?;
        Some((below, level, level.tail(key)))
    });
    let (below, level, before) = match at {
        Some((below, level, tail)) if !tail.is_empty() => (below, level, Some(tail)),
        // The previous level is counted completely, or no level was begun.
        _ => match pairs.next() {
            Some((below, level)) => (below, level, None),
            None => return Ok(None),
        },
    };
    let part = recount(txn, below, level, before, batch)?;
    Ok(match part.from {
        None if pairs.next().is_none() => None,
        from => Some(level.key(from.as_deref().unwrap_or_default())),
    })
}

/// The result of one repair transaction.
#[derive(Default)]
struct Part {
    /// The node where the transaction stopped; `None` at the beginning of the level.
    from: Option<KeyBuf>,
    visited: u64,
    written: u64,
    removed: u64,
}

/// Repairs nodes of `level` before the tail `before`, in descending order. Visits `batch` entries
/// of the level below, and continues up to the next node. The nodes at and after `before` are
/// already correct.
fn recount(
    txn: &mut impl Writer,
    below: &Level,
    level: &Level,
    before: Option<&[u8]>,
    batch: usize,
) -> Result<Part> {
    // The node where the previous batch stopped may have been removed. The node before it then
    // counts its entries. So this batch begins before the next existing node.
    let behind = match before {
        Some(tail) => level.node_from(txn, &level.key(tail))?,
        None => None,
    };
    let upto = |of: &Level| match &behind {
        Some(node) => of.all().before(&of.key(level.tail(node))).into_owned(),
        None => of.all(),
    };
    let (mut part, mut nodes, mut count) = (Part::default(), Vec::new(), 0_i64);
    for entry in txn.range(upto(below), Order::Descending)? {
        let entry = entry?;
        part.visited += 1;
        count = count.wrapping_add(below.count(&entry)?);
        let tail = below.tail(&entry.0);
        if is_node(tail, level) {
            nodes.push((level.key(tail), std::mem::take(&mut count)));
            if part.visited >= batch as u64 {
                part.from = Some(KeyBuf::from_slice(tail));
                break;
            }
        }
    }
    if part.from.is_none() && count != 0 {
        nodes.push((level.key(&[]), count));
    }
    nodes.reverse();
    let first = level.key(part.from.as_deref().unwrap_or_default());
    let range = upto(level).intersect(KeyRange::starting_at(&first)).into_owned();
    let stored = txn.range(range, Order::Ascending)?;
    let mut changes = Vec::new();
    for pair in SideBySide::new(nodes.into_iter().map(Ok), stored) {
        let (key, expected, stored) = pair?;
        if stored.and_then(|value| decode(&value)) != expected || expected.is_none() {
            changes.push((key, expected));
        }
    }
    // The changes may be more than a transaction takes, since one batch can meet many more stale
    // counts than it visits entries. The highest of them come first, as in the whole repair.
    let more = changes.len().saturating_sub(batch.max(1));
    changes.drain(..more);
    if more > 0
        && let Some((key, _)) = changes.first()
    {
        part.from = Some(KeyBuf::from_slice(level.tail(key)));
    }
    for (key, expected) in changes {
        match expected {
            Some(count) => txn.put(&key, &count.to_le_bytes())?,
            None => txn.delete(&key)?,
        }
        part.written += u64::from(expected.is_some());
        part.removed += u64::from(expected.is_none());
    }
    Ok(part)
}
