//! The text of a document: the rows in preorder, one after the other.

use keyloom::Error;

use super::preorder::{Preorder, Row};
use crate::{NodeId, TreeNode, number};

/// The encoded document, and the ends of its pieces.
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    /// The ends of the pieces; the last one is the end of the text.
    pub(super) ends: Vec<usize>,
}

/// Encodes the rows, and cuts the text into pieces of at most `piece_bytes`.
pub(super) fn encode(tree: &Preorder, piece_bytes: usize) -> Text {
    let mut cutter = Cutter { piece_bytes, start: 0, ends: Vec::new() };
    let mut bytes = Vec::with_capacity(tree.text().len() + tree.rows().len());
    let mut deepest = 0;
    for row in tree.rows() {
        let start = bytes.len();
        number::put(u64::from(deepest - row.depth), &mut bytes);
        number::put(row.id, &mut bytes);
        let node = tree.text().get(row.at.clone()).unwrap_or_default();
        number::put(node.len() as u64, &mut bytes);
        bytes.extend_from_slice(node);
        cutter.row(row.id, start, bytes.len());
        deepest = row.depth + 1;
    }
    cutter.end(bytes.len());
    Text { bytes, ends: cutter.ends }
}

/// Decodes the output of [`encode`].
pub(super) fn decode(text: Vec<u8>) -> Result<Preorder, Broken> {
    let mut rows = Vec::with_capacity(text.len() / 32);
    let (mut rest, mut deepest) = (&text[..], 0_u32);
    while !rest.is_empty() {
        let row = take_row(&mut rest, text.len(), deepest)
            .ok_or_else(|| Broken(text.len() - rest.len()))?;
        deepest = row.depth + 1;
        rows.push(row);
    }
    Ok(Preorder::new(text, rows))
}

/// A row in the text.
#[derive(Clone, Copy)]
pub(super) struct Frame<'t> {
    /// The number of levels by which the node is above the deepest possible level.
    pub(super) rises: u32,
    pub(super) id: NodeId,
    /// The number of bytes before the bytes of the node.
    pub(super) header: usize,
    pub(super) node: &'t [u8],
    /// The text after the row.
    pub(super) rest: &'t [u8],
}

/// The first row of a text.
pub(super) fn take_frame(text: &[u8]) -> Option<Frame<'_>> {
    let (rises, id, length, rest) = take_header(text)?;
    let header = text.len() - rest.len();
    let (node, rest) = rest.split_at_checked(length)?;
    Some(Frame { rises, id, header, node, rest })
}

/// Returns the number of levels that the first row rises, its id, the length of its node, and the
/// text after these three numbers.
fn take_header(text: &[u8]) -> Option<(u32, NodeId, usize, &[u8])> {
    let mut rest = text;
    let rises = u32::try_from(number::take(&mut rest)?).ok()?;
    let id = number::take(&mut rest)?;
    let length = usize::try_from(number::take(&mut rest)?).ok()?;
    Some((rises, id, length, rest))
}

/// Whether a text ends inside its first row, after the name.
pub(super) fn is_cut_off(text: &[u8]) -> bool {
    take_header(text).is_some_and(|(_, _, length, node)| length > node.len() && is_named(node))
}

/// Whether the bytes of a node begin with a name, in a supported format.
pub(super) fn is_named(node: &[u8]) -> bool {
    TreeNode::<_, (), ()>::new(0, node, 0).is_named()
}

/// Whether enough bytes follow the format byte for a name of the stored length. Checks neither the
/// format nor the name.
pub(super) fn holds_name(node: &[u8]) -> bool {
    let Some((_, mut rest)) = node.split_first() else { return false };
    number::take(&mut rest).is_some_and(|length| length <= rest.len() as u64)
}

fn take_row(rest: &mut &[u8], text_bytes: usize, deepest: u32) -> Option<Row> {
    let frame = take_frame(rest)?;
    let depth = deepest.checked_sub(frame.rises)?;
    let start = text_bytes - rest.len() + frame.header;
    *rest = frame.rest;
    Some(Row::new(frame.id, start..start + frame.node.len(), depth))
}

/// The byte offset at which the text of a document does not decode.
#[derive(Debug, thiserror::Error)]
#[error("no row begins or ends at byte {0} of the document; run repair")]
pub(super) struct Broken(pub(super) usize);

impl From<Broken> for Error {
    #[cold]
    fn from(broken: Broken) -> Self {
        Self::Value { codec: "a tree document", action: "decode", source: broken.into() }
    }
}

/// Decides where pieces end.
///
/// Whether a piece ends after a row depends only on that row, unless the piece would become too
/// small or too large. So a change moves only the piece boundaries near the change.
struct Cutter {
    piece_bytes: usize,
    /// The start of the current piece.
    start: usize,
    ends: Vec<usize>,
}

impl Cutter {
    fn row(&mut self, id: NodeId, start: usize, end: usize) {
        if end - self.start > self.piece_bytes && start > self.start {
            self.cut(start);
        }
        while end - self.start > self.piece_bytes {
            self.cut(self.start + self.piece_bytes);
        }
        if end - self.start >= self.piece_bytes / 4 && self.chooses(id, end - start) {
            self.cut(end);
        }
    }

    /// Returns true once per half a piece of text, on average.
    fn chooses(&self, id: NodeId, row_bytes: usize) -> bool {
        // Multiplicative hashing (Knuth) spreads consecutive ids evenly.
        let hash = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let every = (self.piece_bytes / 2).max(1) as u64;
        hash < (row_bytes as u64).saturating_mul(1 << 32) / every
    }

    fn cut(&mut self, end: usize) {
        self.ends.push(end);
        self.start = end;
    }

    fn end(&mut self, end: usize) {
        if end > self.start {
            self.cut(end);
        }
    }
}
