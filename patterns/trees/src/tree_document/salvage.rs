//! Salvages the readable rows of a damaged document.
//!
//! Existing pieces are read in the order listed in the head, or by number if there is no head. A
//! row with a name stays as it is, even if its value does not decode. A row with an intact frame
//! but no name becomes a placeholder. If the frame is lost, the text is searched for the next row
//! that is followed by another row. Depths follow from the remaining rows.
//!
//! A damaged head may still decode. If the head lists no pieces, the text in the head does not
//! decode, and pieces exist, then the rows of both the head and the pieces are read.

use std::collections::{BTreeMap, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

use keyloom::value::Codec;
use keyloom::{Order, Reader, Result, Snapshots, Store, Writer};

use super::TreeDocument;
use super::document::Document;
use super::encoding::{Frame, decode, holds_name, is_cut_off, is_named, take_frame};
use super::head::Head;
use super::preorder::{Preorder, Row};
use crate::tree::{fresh_id, named_placeholder, placeholder, unless_newer};
use crate::{NodeId, TreeNode};

/// The maximum number of consecutive rows without a name, between two rows with a name, that become
/// placeholders.
// With a lower limit, more rows with damaged names are lost; with a higher limit, other bytes are
// mistaken for rows more often.
const UNNAMED_ROWS: usize = 64;

/// The remaining parts of a stored document.
struct Remains {
    /// The bytes of the head.
    stored: Option<Vec<u8>>,
    head: Head,
    /// The parts of the text, in order, with a gap between any two parts.
    parts: Vec<Part>,
}

/// A contiguous part of a text.
struct Part {
    text: Vec<u8>,
    /// Whether the part is known to begin at the start of a row.
    is_aligned: bool,
}

impl<V, C: Codec<V>> TreeDocument<V, C> {
    /// Writes a document of all readable rows under new piece numbers, and then the head; the old
    /// pieces become dangling. If another writer has changed the head in the meantime, the new
    /// pieces are dangling instead.
    pub(super) fn salvage<S: Store>(&self, store: &S) -> Result<u64> {
        let Remains { stored, head, parts } = self.remains(&Snapshots::lasting(store))?;
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
        let unaligned = |text| Part { text, is_aligned: false };
        // The first remaining piece may not be the first of the document.
        let joined =
            |pieces: BTreeMap<u64, Vec<u8>>| unaligned(pieces.into_values().flatten().collect());
        let parts: Vec<Part> = match &mut head {
            Some(damaged) if has_lost_its_pieces(damaged, &pieces) => {
                let text = std::mem::take(&mut damaged.text);
                head = None;
                vec![unaligned(text), joined(pieces)]
            }
            Some(head) if head.pieces.is_empty() => {
                vec![Part { text: std::mem::take(&mut head.text), is_aligned: true }]
            }
            Some(head) => {
                runs(head.pieces.iter().map(|piece| (piece.bytes, pieces.remove(&piece.number))))
            }
            None if pieces.is_empty() => stored.iter().cloned().map(unaligned).collect(),
            None => vec![joined(pieces)],
        };
        let mut head =
            head.unwrap_or_else(|| Head { version: version_of_today(), ..Head::default() });
        head.next = head.next.max(unused);
        Ok(Remains { stored, head, parts })
    }
}

/// Whether a head that decodes is damaged: it lists no pieces, although pieces exist. In addition,
/// either a piece has a number that was not assigned yet, or the text in the head does not decode.
/// Pieces next to an intact text come from an unfinished write in steps.
fn has_lost_its_pieces(head: &Head, pieces: &BTreeMap<u64, Vec<u8>>) -> bool {
    let Some((last, _)) = pieces.last_key_value() else { return false };
    head.pieces.is_empty() && (*last >= head.next || decode(head.text.clone()).is_err())
}

/// Joins adjacent pieces, because a row may continue from one piece to the next. Each piece comes
/// with its listed length. A missing piece, or a piece of another length, ends a run.
fn runs(pieces: impl Iterator<Item = (usize, Option<Vec<u8>>)>) -> Vec<Part> {
    let mut runs = vec![Part { text: Vec::new(), is_aligned: true }];
    for (length, piece) in pieces {
        let is_whole = piece.as_ref().is_some_and(|piece| piece.len() == length);
        if let (Some(piece), Some(run)) = (piece, runs.last_mut()) {
            run.text.extend_from_slice(&piece);
        }
        if !is_whole {
            runs.push(Part { text: Vec::new(), is_aligned: false });
        }
    }
    runs
}

/// A version greater than that of any lost head: the number of microseconds since 1970. Versions
/// count changes, so they are smaller.
fn version_of_today() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX / 2)
}

/// The rows read from damaged text.
struct Rows<V, C> {
    text: Vec<u8>,
    rows: Vec<Row>,
    /// The range of the bytes of each id.
    ids: HashMap<NodeId, std::ops::Range<usize>>,
    /// The maximum depth of the next row.
    deepest: u32,
    types: std::marker::PhantomData<fn() -> (V, C)>,
}

impl<V, C: Codec<V>> Rows<V, C> {
    fn new() -> Self {
        let (text, rows, ids) = (Vec::new(), Vec::new(), HashMap::new());
        Self { text, rows, ids, deepest: 0, types: std::marker::PhantomData }
    }

    /// Reads a part of a text, which may begin inside a row.
    fn read(&mut self, part: &Part) -> Result<()> {
        let mut rest = match part.is_aligned {
            true => &part.text[..],
            false => next_row(&part.text, self.deepest),
        };
        while let Some((_, after)) = rest.split_first() {
            // All rows before this point are known, so a row begins here.
            let frame = take_frame(rest);
            if let Some(frame) = frame.filter(|frame| self.is_right(frame)) {
                self.push_damaged(&frame, frame.node)?;
                rest = frame.rest;
                continue;
            }
            // The length of the row is wrong: the row ends where the next row begins.
            let next = next_row(after, self.deepest);
            let end = rest.len() - next.len();
            let frame = frame.filter(|frame| frame.rises <= self.deepest);
            if let Some((frame, damaged)) = frame.and_then(|f| Some((f, rest.get(f.header..end)?)))
            {
                self.push_damaged(&frame, damaged)?;
            }
            rest = next;
        }
        Ok(())
    }

    /// Whether a frame ends at the end of its row: rows follow the frame, or its node can be read,
    /// or the frame is the last one and has a name.
    fn is_right(&self, frame: &Frame<'_>) -> bool {
        let is_last = frame.rest.is_empty() && is_named(frame.node);
        let node = TreeNode::<_, V, C>::new(frame.id, frame.node, 0);
        is_followed(frame, self.deepest) || is_last || node.is_readable()
    }

    fn push_damaged(&mut self, frame: &Frame<'_>, damaged: &[u8]) -> Result<()> {
        let node = TreeNode::<_, V, C>::new(frame.id, frame.node, 0);
        let stored = match node.name() {
            // Only the value can fail to decode: keep the row as it is.
            Ok(_) if damaged.len() == frame.node.len() => frame.node.to_vec(),
            Ok(name) => named_placeholder(name, damaged),
            Err(_) => placeholder(frame.id, damaged),
        };
        self.push(frame.rises, frame.id, &stored)
    }

    fn push(&mut self, rises: u32, id: NodeId, node: &[u8]) -> Result<()> {
        let depth = self.deepest.saturating_sub(rises);
        let mut own = id;
        if let Some(at) = self.ids.get(&id) {
            if self.text.get(at.clone()) == Some(node) {
                // A copy left by an unfinished write in steps.
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

/// Returns the text from the first row on. The first row is the first frame that has a name and is
/// followed by another row, or by the end of the part. A single frame is not enough evidence: a row
/// of a node without a value may be as short as five bytes.
fn next_row(text: &[u8], deepest: u32) -> &[u8] {
    let is_row = |from: &&[u8]| {
        take_frame(from).is_some_and(|frame| {
            let is_end = || frame.rest.is_empty() || is_cut_off(frame.rest);
            is_named(frame.node) && (is_end() || is_followed(&frame, deepest))
        })
    };
    (0..text.len()).filter_map(|at| text.get(at..)).find(is_row).unwrap_or_default()
}

/// Whether rows follow a frame: a row with a name after at most [`UNNAMED_ROWS`] rows whose name is
/// lost, or only rows whose name is lost, up to the end. A row without a name counts only if its
/// depth is possible and it has room for a name, so that other bytes are rarely mistaken for a row.
fn is_followed(frame: &Frame<'_>, deepest: u32) -> bool {
    let (mut rest, mut deepest) = (frame.rest, deepest.saturating_sub(frame.rises) + 1);
    for unnamed in 0..=UNNAMED_ROWS {
        let Some(next) = take_frame(rest) else { return rest.is_empty() && unnamed > 0 };
        if is_named(next.node) {
            return true;
        }
        if next.rises > deepest || !holds_name(next.node) {
            return false;
        }
        (rest, deepest) = (next.rest, deepest - next.rises + 1);
    }
    false
}
