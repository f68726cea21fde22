//! What a repair saves of a document that cannot be read: all rows that can.
//!
//! Pieces that are there are read in the order that the head says, or of their numbers where there is none. A row that can be
//! framed but not read becomes a placeholder. Where the frame is lost, the text is searched for the next row that can be
//! read. Depths follow from the rows that are left.

use std::collections::{BTreeMap, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

use keyloom::value::Codec;
use keyloom::{Order, Reader, Result, Store, Writer};

use super::TreeDocument;
use super::document::Document;
use super::encoding::{Frame, take_frame};
use super::head::Head;
use super::preorder::{Preorder, Row};
use crate::hierarchy::tree::{fresh_id, named_placeholder, placeholder, unless_newer};
use crate::hierarchy::{NodeId, TreeNode};

/// What is stored of a document.
struct Remains {
    /// The bytes of the head.
    stored: Option<Vec<u8>>,
    head: Head,
    /// The parts of the text, in order; between two of them something is lost.
    parts: Vec<Vec<u8>>,
}

impl<V, C: Codec<V>> TreeDocument<V, C> {
    /// Writes a document of all rows that can be read, under new numbers, and then the head; the old pieces dangle. Where the
    /// head has changed meanwhile, the new pieces do.
    pub(super) fn salvage<S: Store>(&self, store: &S) -> Result<u64> {
        let Remains { stored, head, parts } = self.remains(&store.snapshot()?)?;
        let mut rows = Rows::<V, C>::new();
        parts.iter().try_for_each(|part| rows.read(part))?;
        let next = head.next;
        let document = Document {
            tree: self.clone(),
            head: Head { version: head.version, ..Head::default() },
            text_bytes: 0,
            rows: Preorder::new(rows.text, rows.rows),
        };
        let change = self.fresh_copy(&document, next)?;
        self.write_fresh(store, &change)?;
        store.transact(|txn| {
            let is_as_it_was = txn.get(&self.head_key())?.as_deref() == stored.as_deref();
            match is_as_it_was {
                true => txn.put(&self.head_key(), &change.head.encode()),
                false => Ok(()),
            }
        })?;
        Ok(change.fresh.len() as u64 + 1)
    }

    fn remains(&self, reader: &impl Reader) -> Result<Remains> {
        let mut pieces: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for entry in reader.range(self.space.range_of(&"piece"), Order::Ascending)? {
            let (key, bytes) = entry?;
            if let Ok((_, number)) = self.space.unpack::<(&str, u64)>(&key) {
                pieces.insert(number, bytes.to_vec());
            }
        }
        let unused = pieces.keys().next_back().map_or(0, |last| last.saturating_add(1));
        let key = self.head_key();
        let stored = reader.get(&key)?.map(|bytes| bytes.to_vec());
        let head = stored.as_deref().map(|bytes| unless_newer(Head::decode(bytes))).transpose();
        let mut head = head.map_err(|error| error.at(&key))?.flatten();
        let parts: Vec<Vec<u8>> = match &mut head {
            Some(head) if head.pieces.is_empty() => vec![std::mem::take(&mut head.text)],
            Some(head) => runs(head.pieces.iter().map(|piece| pieces.remove(&piece.number))),
            None if pieces.is_empty() => stored.iter().cloned().collect(),
            None => runs(pieces.into_values().map(Some)),
        };
        let mut head =
            head.unwrap_or_else(|| Head { version: version_of_today(), ..Head::default() });
        head.next = head.next.max(unused);
        Ok(Remains { stored, head, parts })
    }
}

/// Pieces of a text joined, as far as none between them is lost: a row may go on from one to the next.
fn runs(pieces: impl Iterator<Item = Option<Vec<u8>>>) -> Vec<Vec<u8>> {
    let mut runs = vec![Vec::new()];
    for piece in pieces {
        match (piece, runs.last_mut()) {
            (Some(piece), Some(run)) => run.extend_from_slice(&piece),
            _ => runs.push(Vec::new()),
        }
    }
    runs
}

/// A version that no lost head had: versions count changes one by one, and this counts the microseconds since 1970.
fn version_of_today() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX / 2)
}

/// Rows that are read from damaged text.
struct Rows<V, C> {
    text: Vec<u8>,
    rows: Vec<Row>,
    /// Where the bytes of each id are.
    ids: HashMap<NodeId, std::ops::Range<usize>>,
    /// How deep the next row may lie.
    deepest: u32,
    types: std::marker::PhantomData<fn() -> (V, C)>,
}

impl<V, C: Codec<V>> Rows<V, C> {
    fn new() -> Self {
        let (text, rows, ids) = (Vec::new(), Vec::new(), HashMap::new());
        Self { text, rows, ids, deepest: 0, types: std::marker::PhantomData }
    }

    /// Reads a part of a text, which begins with a row, or with the end of one.
    fn read(&mut self, mut rest: &[u8]) -> Result<()> {
        while !rest.is_empty() {
            let frame = take_frame(rest);
            if let Some(frame) = frame
                && self.is_readable(frame.node)?
            {
                self.push(frame.rises, frame.id, frame.node)?;
                rest = frame.rest;
                continue;
            }
            let next = self.next_readable(rest)?;
            // The frame is right where it ends before the next row that can be read.
            if let Some(frame) = frame.filter(|frame| frame.rest.len() >= next.len()) {
                let damaged = rest.get(frame.header..rest.len() - next.len()).unwrap_or_default();
                self.push_damaged(&frame, damaged)?;
            }
            rest = next;
        }
        Ok(())
    }

    fn is_readable(&self, node: &[u8]) -> Result<bool> {
        TreeNode::<_, V, C>::new(0, node, 0).is_readable()
    }

    /// The rest from the next row on that can be read, which is not the first.
    fn next_readable<'t>(&self, rest: &'t [u8]) -> Result<&'t [u8]> {
        for at in 1..rest.len() {
            let from = rest.get(at..).unwrap_or_default();
            // What only looks like the head of a newer format is no row.
            let is_row = |frame: Frame<'_>| self.is_readable(frame.node).unwrap_or(false);
            if take_frame(from).is_some_and(is_row) {
                return Ok(from);
            }
        }
        Ok(&[])
    }

    fn push_damaged(&mut self, frame: &Frame<'_>, damaged: &[u8]) -> Result<()> {
        let node = TreeNode::<_, V, C>::new(frame.id, frame.node, 0);
        let stored = match unless_newer(node.name())? {
            // The value alone: it stays as it is.
            Some(_) if damaged.len() == frame.node.len() => frame.node.to_vec(),
            Some(name) => named_placeholder(name, damaged),
            None => placeholder(frame.id, damaged),
        };
        self.push(frame.rises, frame.id, &stored)
    }

    fn push(&mut self, rises: u32, id: NodeId, node: &[u8]) -> Result<()> {
        let depth = self.deepest.saturating_sub(rises);
        let mut own = id;
        if let Some(at) = self.ids.get(&id) {
            if self.text.get(at.clone()) == Some(node) {
                // A copy: a write in steps that did not end left it.
                return Ok(());
            }
            own = fresh_id(id, |id| Ok(self.ids.contains_key(&id)))?;
        }
        let at = self.text.len()..self.text.len() + node.len();
        self.text.extend_from_slice(node);
        self.ids.insert(own, at.clone());
        self.rows.push(Row::new(own, at, depth));
        self.deepest = depth + 1;
        Ok(())
    }
}
