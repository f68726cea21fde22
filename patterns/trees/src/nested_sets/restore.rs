//! Repairs rows that cannot be read or have no valid place.
//!
//! A row whose name cannot be read becomes a placeholder at its place. A row has no valid place if
//! its header is truncated or its interval crosses another. Such a row becomes the last root; its
//! former descendants move up to the next enclosing node.

use std::collections::BTreeMap;

use keyloom::{Entry, Error, KeyBuf, KeyRange, Order, Reader, Result, Snapshots, Store, Writer};
use keyloom_kit::{Progress, RepairOptions, repair_each};

use super::change::Going;
use super::check::{Open, dangling};
use super::labels::{Gap, Label, Side, Span};
use super::layout::{Header, Keys, Kind, Positions, row_bytes, split_header};
use super::place::Placed;
use super::view::View;
use crate::tree::{REPLANS, Report, fresh_id, placeholder};
use crate::{InsertAt, NodeId, TreeNode};

/// The number of keys that are read together.
const CHUNK: usize = 1_000;

/// A stored row.
type Stored = (KeyBuf, Vec<u8>);

/// If a row has the id of another node, gives the row its own id back, or a new id. Replaces rows
/// with an unreadable name by placeholders. Places do not change.
pub(super) fn rows<S: Store>(
    keys: &Keys,
    store: &S,
    options: &RepairOptions,
    report: &mut Report<'_>,
) -> Result<Progress> {
    let (claims, wrong) = {
        let snapshot = Snapshots::lasting(store);
        let mut wrong = Vec::new();
        in_chunks(&snapshot, all_rows(keys), |rows| {
            let is_double = doubles(keys, &snapshot, &rows)?;
            for ((key, bytes), is_double) in rows.into_iter().zip(is_double) {
                if is_double || needs_placeholder(keys, &key, &bytes) {
                    wrong.push(key);
                }
            }
            Ok(())
        })?;
        // Read only if needed.
        let claims = if wrong.is_empty() { BTreeMap::new() } else { claims(keys, &snapshot)? };
        (claims, wrong)
    };
    repair_each(store, options, report, &wrong, |txn, key| restore_row(keys, txn, key, &claims))
}

/// Makes rows without a place the last roots. The positions of the other rows are already correct.
pub(super) fn places<S: Store>(
    keys: &Keys,
    store: &S,
    options: &RepairOptions,
    report: &mut Report<'_>,
) -> Result<Progress> {
    for _ in 0..=REPLANS {
        let unplaced = Unplaced::find(keys, &Snapshots::lasting(store))?;
        let claims = &unplaced.claims;
        // Inserting a root requires that the last row has a place. If the labels after all rows are
        // free, the first of the unplaced rows at the end is moved there, and then the others one
        // by one. Otherwise these rows are moved in one transaction, which deletes all of them
        // first. The other unplaced rows follow, in reverse order.
        let behind = unplaced.behind(keys);
        let count = if behind.is_some() { 1 } else { unplaced.last.len() };
        let (together, rest) = unplaced.last.split_at(count.min(unplaced.last.len()));
        let first = store.transact(|txn| match behind {
            Some(_) if !unplaced.is_still_behind(keys, txn)? => Ok(None),
            _ => uproot(keys, txn, together, behind.as_ref(), claims).map(Some),
        })?;
        // Otherwise another writer has changed the rows at the end.
        let Some(first) = first.filter(|first| *first > 0 || together.is_empty()) else { continue };
        let first = Progress { written: first, ..Progress::complete() };
        let mut report = |done: &Progress| report(&first.followed_by(done));
        let others: Vec<Stored> =
            rest.iter().chain(unplaced.others.iter().rev()).cloned().collect();
        let done = repair_each(store, options, &mut report, &others, |txn, row| {
            uproot(keys, txn, std::slice::from_ref(row), None, claims)
        })?;
        return Ok(first.followed_by(&done));
    }
    Err(Error::Conflict { what: keys.space.named().into() })
}

/// The rows without a valid place.
#[derive(Default)]
struct Unplaced {
    claims: BTreeMap<Label, NodeId>,
    /// Those behind all rows with a place.
    last: Vec<Stored>,
    others: Vec<Stored>,
    /// The last label of all rows.
    end: Label,
    /// The row with a place that has the last right label, and that label.
    outermost: Option<(Stored, Label)>,
}

impl Unplaced {
    fn find<R: Reader>(keys: &Keys, reader: &R) -> Result<Self> {
        let (mut found, mut open) = (Self::default(), Open::default());
        in_chunks(reader, all_rows(keys), |rows| {
            for row in rows {
                let Some(left) = keys.left_of(&row.0) else { continue };
                found.end = found.end.max(left);
                match placed(keys, &row, &mut open) {
                    Some(span) => {
                        found.end = found.end.max(span.last);
                        found.others.append(&mut found.last);
                        if found.outermost.as_ref().is_none_or(|(_, last)| *last < span.last) {
                            found.outermost = Some((row, span.last));
                        }
                    }
                    None => found.last.push(row),
                }
            }
            Ok(())
        })?;
        if !(found.last.is_empty() && found.others.is_empty()) {
            found.claims = claims(keys, reader)?;
        }
        Ok(found)
    }

    /// The gap behind all rows, if it has labels for the first of the last rows.
    fn behind(&self, keys: &Keys) -> Option<Gap> {
        let behind = Gap { parent: None, lo: self.end, hi: keys.labels.end(), side: Side::Back };
        let is_used = !self.last.is_empty() && behind.lo < behind.hi && behind.has_room(2);
        is_used.then_some(behind)
    }

    /// Whether no row has come or grown into the gap behind all rows.
    fn is_still_behind(&self, keys: &Keys, reader: &impl Reader) -> Result<bool> {
        let behind = keys.lefts(Span { first: self.end.saturating_add(1), last: Label::MAX });
        if reader.first(behind)?.is_some() {
            return Ok(false);
        }
        let Some(((key, bytes), _)) = &self.outermost else { return Ok(true) };
        let now = reader.get(key)?;
        Ok(now.is_some_and(|now| now[..] == bytes[..]))
    }
}

fn all_rows(keys: &Keys) -> KeyRange<'static> {
    keys.lefts(Span { first: 0, last: Label::MAX })
}

/// Passes all entries of a range to `each`, in chunks of rows.
fn in_chunks<R: Reader>(
    reader: &R,
    range: KeyRange<'static>,
    mut each: impl FnMut(Vec<Stored>) -> Result<()>,
) -> Result<()> {
    let mut entries = reader.range(range, Order::Ascending)?;
    loop {
        let some: Vec<Entry<R::Bytes<'_>>> = entries.by_ref().take(CHUNK).collect::<Result<_>>()?;
        if some.is_empty() {
            return Ok(());
        }
        each(some.iter().map(|(key, bytes)| (KeyBuf::from_slice(key), bytes.to_vec())).collect())?;
    }
}

/// The ids whose position points to no row or to a row with another id, keyed by the left label in
/// that position.
fn claims<R: Reader>(keys: &Keys, reader: &R) -> Result<BTreeMap<Label, NodeId>> {
    let mut claims = BTreeMap::new();
    let mut entries = reader.range(keys.nodes(), Order::Ascending)?;
    loop {
        let some = entries.by_ref().take(CHUNK).collect::<Result<Vec<_>>>()?;
        if some.is_empty() {
            return Ok(claims);
        }
        let mut nodes = Vec::new();
        let mut lefts = BTreeMap::new();
        for (key, bytes) in some {
            let Some(Kind::Node(id)) = keys.kind(&key) else { continue };
            if let Ok(at) = Positions::decode(&bytes) {
                lefts.insert(KeyBuf::from_slice(&key), (at.now.left, id));
                nodes.push((id, (key, bytes)));
            }
        }
        let lost = dangling(keys, reader, None, nodes)?;
        claims.extend(lost.iter().filter_map(|fault| lefts.get(&fault.key).copied()));
    }
}

/// Returns, for each row, whether the position of its id points to another row with the same id.
fn doubles<R: Reader>(keys: &Keys, reader: &R, rows: &[Stored]) -> Result<Vec<bool>> {
    let ids: Vec<Option<NodeId>> =
        rows.iter().map(|(key, bytes)| Some(header(keys, key, bytes)?.id)).collect();
    let node_keys: Vec<KeyBuf> = ids.iter().map(|id| keys.node(id.unwrap_or_default())).collect();
    let mut lefts = Vec::with_capacity(rows.len());
    for (key, bytes) in node_keys.iter().zip(reader.get_many(&node_keys)?) {
        let at = bytes.and_then(|bytes| Positions::decode(&bytes).ok());
        lefts.push(at.map_or_else(|| key.clone(), |at| keys.left(at.now.left)));
    }
    let found = reader.get_many(&lefts)?;
    let there = ids.iter().zip(rows).zip(lefts.iter().zip(found));
    Ok(there
        .map(|((id, (own, _)), (left, row))| {
            let other = row.and_then(|bytes| Some(header(keys, left, &bytes)?.id));
            id.is_some() && own != left && other == *id
        })
        .collect())
}

/// Whether the name of a row cannot be read. A truncated header is a different fault.
fn needs_placeholder(keys: &Keys, key: &[u8], bytes: &[u8]) -> bool {
    let is_named = |node: &[u8]| TreeNode::<_, (), ()>::new(0, node, 0).is_named();
    let node = header(keys, key, bytes).and_then(|header| bytes.get(header.bytes..));
    node.is_some_and(|node| !is_named(node))
}

/// The header of a row, or `None` if it is truncated.
fn header(keys: &Keys, key: &[u8], bytes: &[u8]) -> Option<Header> {
    split_header(keys.is_wide(key), bytes)
}

fn restore_row(
    keys: &Keys,
    txn: &mut impl Writer,
    key: &KeyBuf,
    claims: &BTreeMap<Label, NodeId>,
) -> Result<u64> {
    let Some(bytes) = txn.get(key)?.map(|bytes| bytes.to_vec()) else { return Ok(0) };
    let row = (key.clone(), bytes);
    let is_double = doubles(keys, txn, std::slice::from_ref(&row))? == [true];
    let Ok(found) = keys.row((&row.0[..], &row.1[..])) else { return Ok(0) };
    let id = match is_double {
        true => own_id(keys, txn, found.left, found.id, claims)?,
        false => found.id,
    };
    let node = match needs_placeholder(keys, key, found.bytes) {
        true => placeholder(id, found.node()),
        false => found.node().to_vec(),
    };
    let restored = row_bytes(found.span(), id, &node);
    if restored == found.bytes {
        return Ok(0);
    }
    txn.put(key, &restored)?;
    if id == found.id {
        return Ok(1);
    }
    let at = super::layout::Position { left: found.left, parent: None };
    // The parent is written later, with the other positions.
    txn.put(&keys.node(id), &Positions::from(at).encode())?;
    Ok(2)
}

/// The id whose position points to this row, or an unused id.
fn own_id(
    keys: &Keys,
    reader: &impl Reader,
    left: Label,
    id: NodeId,
    claims: &BTreeMap<Label, NodeId>,
) -> Result<NodeId> {
    match claims.get(&left) {
        Some(own) => Ok(*own),
        None => fresh_id(id, |id| Ok(reader.get(&keys.node(id))?.is_some())),
    }
}

/// The span of a row that has a valid place among the preceding rows.
fn placed(keys: &Keys, (key, bytes): &Stored, open: &mut Open) -> Option<Span> {
    let row = keys.row((&key[..], &bytes[..])).ok()?;
    let is_placed = keys.is_within(&row) && open.enter(row.span(), row.id).is_ok();
    is_placed.then(|| row.span())
}

/// Makes rows the last roots, in their order, in the gap after all rows if it is known.
fn uproot(
    keys: &Keys,
    txn: &mut impl Writer,
    rows: &[Stored],
    behind: Option<&Gap>,
    claims: &BTreeMap<Label, NodeId>,
) -> Result<u64> {
    let mut removed = 0;
    let mut roots: Vec<Going<Vec<u8>>> = Vec::new();
    for (key, bytes) in rows {
        let Some(now) = txn.get(key)?.map(|now| now.to_vec()) else { continue };
        // Another writer may have changed the name or the value, but not the place.
        if header(keys, key, &now) != header(keys, key, bytes) {
            continue;
        }
        txn.delete(key)?;
        removed += 1;
        let row = (key.clone(), now);
        let Some((mut id, node)) = rest_of(keys, txn, &row, claims)? else { continue };
        if roots.iter().any(|root| root.id == id) {
            id = fresh_id(id, |id| {
                let is_given = roots.iter().any(|root| root.id == id);
                Ok(is_given || txn.get(&keys.node(id))?.is_some())
            })?;
        }
        roots.push(Going { depth: 0, id, node });
    }
    let Some(first) = roots.first() else { return Ok(removed) };
    let change = {
        let (view, _) = View::open(keys, &*txn, &[])?;
        let what = Placed { id: first.id, name: "", span: None };
        let gap = behind.map_or_else(|| view.gap(what, InsertAt::Last(None)), |gap| Ok(*gap))?;
        view.place(&gap, &roots, &txn.limits())?
    };
    Ok(removed + change.make(keys, txn)?.changed())
}

/// The node in a row without a place: its id and its stored bytes.
fn rest_of(
    keys: &Keys,
    reader: &impl Reader,
    (key, bytes): &Stored,
    claims: &BTreeMap<Label, NodeId>,
) -> Result<Option<(NodeId, Vec<u8>)>> {
    let Some(left) = keys.left_of(key) else { return Ok(None) };
    let Some(Header { id, bytes: stored, .. }) = header(keys, key, bytes) else {
        // The header is truncated: name and value are lost, but the id may be known.
        return Ok(claims.get(&left).map(|id| (*id, placeholder(*id, bytes))));
    };
    let at = reader.get(&keys.node(id))?.and_then(|at| Positions::decode(&at).ok());
    let is_free = at.is_none_or(|at| at.now.left == left);
    let id = if is_free { id } else { own_id(keys, reader, left, id, claims)? };
    Ok(Some((id, bytes.get(stored..).unwrap_or_default().to_vec())))
}
