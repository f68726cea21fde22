//! Repairs the rows and their positions, in transactions of bounded size.

use keyloom::{KeyBuf, Order, Reader, Result, Store, Writer};
use keyloom_kit::{BatchSize, Progress, RepairOptions, in_batches, page_behind};

use super::check::{Open, dangling, read_rows, wrong_positions};
use super::labels::{Label, Span};
use super::layout::{Keys, Kind, Positions, header};
use super::restore;
use crate::tree::{Report, Stages};

/// Makes all rows readable, and derives the positions from the rows. Work in steps must have ended.
pub(super) fn repair<S: Store>(keys: &Keys, store: &S, stages: &mut Stages<'_>) -> Result<()> {
    stages.run(|options, report| restore::rows(keys, store, options, report))?;
    // A resumed repair does not know what the earlier one changed.
    let mut has_changed = true;
    stages.run(|options, report| {
        let done = repair_positions(keys, store, options, report)?;
        has_changed = done.changed() > 0;
        Ok(done)
    })?;
    // Two rows can have one id whose position led to neither of them. The position leads to one of
    // the two now, so the other one is recognized.
    stages.run(|options, report| match has_changed {
        true => restore::rows(keys, store, options, report),
        false => Ok(Progress::complete()),
    })?;
    stages.run(|options, report| match has_changed {
        true => repair_positions(keys, store, options, report),
        false => Ok(Progress::complete()),
    })?;
    stages.run(|options, report| restore::places(keys, store, options, report))?;
    stages.run(|options, report| {
        in_batches(store, options, report, |txn, batch, done| {
            remove_dangling(keys, txn, batch, done)
        })
    })
}

/// Derives the positions from the rows. This needs the nodes that enclose a row, so a resumed
/// repair starts again with the first row. Only transactions that changed something are reported.
fn repair_positions<S: Store>(
    keys: &Keys,
    store: &S,
    options: &RepairOptions,
    report: &mut Report<'_>,
) -> Result<Progress> {
    let mut size = BatchSize::new(options.batch);
    let mut done = Progress::default();
    let mut rows = From { last: None, open: Open::default() };
    loop {
        let (written, next) =
            size.transact(store, |txn, batch| repair_rows(keys, txn, rows.clone(), batch))?;
        done.written += written;
        done.finished = next.is_none();
        let is_told = written > 0 || done.finished;
        match next {
            Some(next) if !is_told || report(&done).is_continue() => rows = next,
            Some(_) => return Ok(done),
            None => {
                let _ = report(&done);
                return Ok(done);
            }
        }
    }
}

/// The position at which a repair continues in the rows.
#[derive(Clone)]
struct From {
    last: Option<KeyBuf>,
    open: Open,
}

fn repair_rows(
    keys: &Keys,
    txn: &mut impl Writer,
    mut from: From,
    batch: usize,
) -> Result<(u64, Option<From>)> {
    if !is_as_it_was(keys, txn, &from.open)? {
        // Other writers have changed the nodes that enclose the next row. Keep the repairs made so
        // far, and start again from the first row.
        return Ok((0, Some(From { last: None, open: Open::default() })));
    }
    let (faults, next) = {
        let all = keys.lefts(Span { first: 0, last: Label::MAX });
        let range = match &from.last {
            None => all,
            Some(last) => all.resume(Order::Ascending, last),
        };
        let page = txn.page(range, Order::Ascending, batch)?;
        let rows = read_rows(keys, page.entries, None, &mut from.open);
        (wrong_positions(keys, txn, None, &rows.expected)?, page.last)
    };
    for (fault, at) in &faults {
        txn.put(&fault.key, &Positions::from(*at).encode())?;
    }
    let next = next.map(|last| From { last: Some(last), open: from.open });
    Ok((faults.len() as u64, next))
}

/// Whether the nodes that enclosed the last row are still at their places.
fn is_as_it_was<R: Reader>(keys: &Keys, reader: &R, open: &Open) -> Result<bool> {
    let lefts: Vec<KeyBuf> = open.0.iter().map(|(span, _)| keys.left(span.first)).collect();
    let rows = reader.get_many(&lefts)?;
    Ok(rows.iter().zip(&open.0).all(|(row, (span, id))| {
        row.as_ref().is_some_and(|bytes| {
            header(span.first, bytes).is_ok_and(|found| (found.right, found.id) == (span.last, *id))
        })
    }))
}

/// Removes the positions of a page that have no row.
fn remove_dangling(
    keys: &Keys,
    txn: &mut impl Writer,
    batch: usize,
    done: &mut Progress,
) -> Result<()> {
    let faults = {
        let page = page_behind(done.position.last.as_deref(), txn, keys.positions(), batch)?;
        done.finished = page.last.is_none();
        done.position.last = page.last;
        let mut nodes = Vec::new();
        for entry in page.entries {
            if let Some(Kind::Node(id)) = keys.kind(&entry.0) {
                nodes.push((id, entry));
            }
        }
        dangling(keys, txn, None, nodes)?
    };
    for fault in &faults {
        txn.delete(&fault.key)?;
    }
    done.written += faults.len() as u64;
    Ok(())
}
