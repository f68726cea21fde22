//! Repairs the rows and their positions, in transactions of bounded size.

use keyloom::{KeyBuf, Order, Reader, Result, Store, Writer};
use keyloom_kit::refuse_foreign;

use super::check::{Open, dangling, read_rows, wrong_positions};
use super::labels::{Label, Span};
use super::layout::{Keys, Kind, Positions, header};
use super::restore;
use crate::tree::Repair;

/// Makes all rows readable, and writes the positions from them. Work in steps must have ended.
pub(super) fn repair<S: Store>(keys: &Keys, run: &mut Repair<'_, S>) -> Result<()> {
    run.stage(|run| restore::rows(keys, run))?;
    // It needs the nodes that enclose a row, so one that was stopped begins with the first row.
    run.stage(|run| {
        let mut rows = Some(From { last: None, open: Open::default() });
        while let Some(from) = rows {
            rows = run.transact(|txn, batch| repair_rows(keys, txn, from.clone(), batch))?;
        }
        Ok(())
    })?;
    run.stage(|run| restore::places(keys, run))?;
    run.stage(|run| run.pages(|txn, last, batch| remove_dangling(keys, txn, last, batch)))
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
        // Other writers have changed the nodes that enclose the next row. Earlier repairs stay;
        // start again from the first row.
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

fn remove_dangling(
    keys: &Keys,
    txn: &mut impl Writer,
    last: Option<&[u8]>,
    batch: usize,
) -> Result<(u64, Option<KeyBuf>)> {
    refuse_foreign(keys.positions(), last)?;
    let (faults, next) = {
        let all = keys.nodes();
        let range = match last {
            None => all,
            Some(last) => all.resume(Order::Ascending, last),
        };
        let page = txn.page(range, Order::Ascending, batch)?;
        let mut nodes = Vec::new();
        for entry in page.entries {
            if let Some(Kind::Node(id)) = keys.kind(&entry.0) {
                nodes.push((id, entry));
            }
        }
        (dangling(keys, txn, None, nodes)?, page.last)
    };
    for fault in &faults {
        txn.delete(&fault.key)?;
    }
    Ok((faults.len() as u64, next))
}
