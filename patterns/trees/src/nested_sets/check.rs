//! Checks that intervals are nested or disjoint, and that both keys of each node agree.
//!
//! The rows are authoritative: they alone determine the ancestors of each node. Positions are
//! derived from them.

use std::ops::{ControlFlow, Deref};

use keyloom::value::Codec;
use keyloom::{Entry, KeyBuf, Order, Reader, Result};
use keyloom_kit::{Inconsistency, Rule};

use super::labels::Span;
use super::layout::{Keys, Kind, Position, Positions, header, split_header};
use super::steps::Steps;
use crate::tree::{Findings, unless_newer};
use crate::{NodeId, TreeNode};

/// The number of keys that are read together.
pub(super) const BATCH: usize = 1_000;

/// The nodes that enclose the next row: their labels and ids.
#[derive(Clone, Default)]
pub(super) struct Open(pub(super) Vec<(Span, NodeId)>);

impl Open {
    /// Adds the next row, and returns its parent, or an error if the interval of the row crosses
    /// another.
    pub(super) fn enter(&mut self, span: Span, id: NodeId) -> Result<Option<NodeId>, ()> {
        while self.0.last().is_some_and(|(open, _)| open.last < span.first) {
            self.0.pop();
        }
        let parent = match self.0.last() {
            Some((open, _)) if open.last <= span.last => return Err(()),
            parent => parent.map(|(_, id)| *id),
        };
        self.0.push((span, id));
        Ok(parent)
    }
}

/// The result of checking a page of rows.
pub(super) struct Rows {
    /// The position that each node should have.
    pub(super) expected: Vec<(NodeId, Position)>,
    /// The faults of rows that do not decode, or whose intervals cross.
    faults: Vec<Inconsistency>,
}

pub(super) fn read_rows<B: Deref<Target = [u8]>>(
    keys: &Keys,
    entries: Vec<Entry<B>>,
    hidden: Option<Span>,
    open: &mut Open,
) -> Rows {
    let mut rows = Rows { expected: Vec::new(), faults: Vec::new() };
    for entry in entries {
        let key = KeyBuf::from_slice(&entry.0);
        let mut fault = |rule| rows.faults.push(Inconsistency::new(key.clone(), rule));
        let Ok(row) = keys.row(entry) else {
            fault(Rule::Foreign);
            continue;
        };
        if hidden.is_some_and(|hidden| hidden.contains(row.left)) {
            continue;
        }
        if !keys.is_within(&row) {
            fault(Rule::Wrong);
            continue;
        }
        match open.enter(row.span(), row.id) {
            Ok(parent) => rows.expected.push((row.id, Position { left: row.left, parent })),
            Err(()) => fault(Rule::Wrong),
        }
    }
    rows
}

/// Reports all faults of a tree.
pub(super) fn check<R: Reader, V, C: Codec<V>>(
    keys: &Keys,
    reader: &R,
    found: impl FnMut(Inconsistency) -> ControlFlow<()>,
) -> Result<u64> {
    let mut findings = Findings::new(found);
    let mut looked_at = 0;
    let all = keys.space.self_and_children();
    let steps = reader.get(&keys.steps)?.map(|bytes| unless_newer(Steps::decode(&bytes)));
    let steps = steps.transpose().map_err(|error| error.at(&keys.steps))?;
    if steps == Some(None) {
        findings.report(&keys.steps, Rule::Wrong);
    }
    let steps = steps.flatten();
    let mut open = Open::default();
    let mut last: Option<KeyBuf> = None;
    while !findings.has_stopped() {
        let range = match &last {
            None => all.clone(),
            Some(last) => all.clone().resume(Order::Ascending, last),
        };
        let page = reader.page(range, Order::Ascending, BATCH)?;
        looked_at += page.entries.len() as u64;
        let faults =
            faults_of_page::<R, V, C>(keys, reader, steps.as_ref(), page.entries, &mut open)?;
        faults.into_iter().for_each(|fault| findings.pass_on(fault));
        last = page.last;
        if last.is_none() {
            break;
        }
    }
    Ok(looked_at)
}

fn faults_of_page<R: Reader, V, C: Codec<V>>(
    keys: &Keys,
    reader: &R,
    steps: Option<&Steps>,
    entries: Vec<Entry<R::Bytes<'_>>>,
    open: &mut Open,
) -> Result<Vec<Inconsistency>> {
    let mut faults = Vec::new();
    let (mut rows, mut nodes) = (Vec::new(), Vec::new());
    for entry in entries {
        match keys.kind(&entry.0) {
            Some(Kind::Left) => {
                faults.extend(unreadable_node::<_, V, C>(keys, &entry));
                rows.push(entry);
            }
            Some(Kind::Node(id)) => nodes.push((id, entry)),
            Some(Kind::Steps) => (),
            None => {
                let key = KeyBuf::from_slice(&entry.0);
                faults.push(Inconsistency::new(key, Rule::Foreign));
            }
        }
    }
    let rows = read_rows(keys, rows, steps.and_then(Steps::hidden), open);
    faults.extend(rows.faults);
    faults
        .extend(wrong_positions(keys, reader, steps, &rows.expected)?.into_iter().map(|(f, _)| f));
    faults.extend(dangling(keys, reader, steps, nodes)?);
    Ok(faults)
}

/// The fault of a row whose name or value cannot be read.
fn unreadable_node<B: Deref<Target = [u8]>, V, C: Codec<V>>(
    keys: &Keys,
    (key, bytes): &Entry<B>,
) -> Option<Inconsistency> {
    // If the header is truncated, `read_rows` reports the row.
    let stored = bytes.get(split_header(keys.is_wide(key), bytes)?.bytes..)?;
    let node = TreeNode::<_, V, C>::new(0, stored, 0);
    node.fault().map(|rule| Inconsistency::new(KeyBuf::from_slice(key), rule))
}

/// The positions that differ from the rows, and their correct values.
pub(super) fn wrong_positions<R: Reader>(
    keys: &Keys,
    reader: &R,
    steps: Option<&Steps>,
    expected: &[(NodeId, Position)],
) -> Result<Vec<(Inconsistency, Position)>> {
    let node_keys: Vec<KeyBuf> = expected.iter().map(|(id, _)| keys.node(*id)).collect();
    let mut faults = Vec::new();
    for ((key, bytes), (_, at)) in node_keys.iter().zip(reader.get_many(&node_keys)?).zip(expected)
    {
        let rule = match bytes.map(|bytes| Positions::decode(&bytes)) {
            None => Rule::Missing,
            Some(Ok(there)) if is_right(&there, *at, steps) => continue,
            Some(_) => Rule::Wrong,
        };
        faults.push((Inconsistency::new(key.clone(), rule), *at));
    }
    Ok(faults)
}

fn is_right(there: &Positions, at: Position, steps: Option<&Steps>) -> bool {
    let Some(next) = there.next else { return there.now == at };
    // Two places are valid only during work in steps, and one of them must be hidden.
    let hidden = steps.and_then(Steps::hidden);
    let switched = steps.is_some_and(Steps::has_switched);
    let (seen, other) = if switched { (next, there.now) } else { (there.now, next) };
    seen == at && hidden.is_some_and(|hidden| hidden.contains(other.left))
}

/// The positions of nodes that have no row.
pub(super) fn dangling<R: Reader>(
    keys: &Keys,
    reader: &R,
    steps: Option<&Steps>,
    nodes: Vec<(NodeId, Entry<R::Bytes<'_>>)>,
) -> Result<Vec<Inconsistency>> {
    let mut faults = Vec::new();
    let mut named = Vec::new();
    for (id, (key, bytes)) in nodes {
        let key = KeyBuf::from_slice(&key);
        match Positions::decode(&bytes) {
            Err(_) => faults.push(Inconsistency::new(key, Rule::Foreign)),
            Ok(at) => named.push((id, key, place_of(&at, steps).left)),
        }
    }
    let lefts: Vec<KeyBuf> = named.iter().map(|(_, _, left)| keys.left(*left)).collect();
    let rows = reader.get_many(&lefts)?;
    for ((id, key, left), row) in named.iter().zip(rows) {
        let is_there =
            row.is_some_and(|bytes| header(*left, &bytes).is_ok_and(|found| found.id == *id));
        if !is_there {
            faults.push(Inconsistency::new(key.clone(), Rule::Dangling));
        }
    }
    Ok(faults)
}

fn place_of(at: &Positions, steps: Option<&Steps>) -> Position {
    match at.next {
        Some(next) if steps.is_some_and(Steps::has_switched) => next,
        _ => at.now,
    }
}
