//! The head of a document: its version, and the list of its pieces or its text.

use keyloom::{Error, Result};

use crate::number;

/// The format that this version writes.
const FORMAT: u8 = 1;

/// A part of the text with a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) number: u64,
    pub(super) bytes: usize,
}

/// The value at the key "head".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// 0 if nothing was ever written.
    pub(super) version: u64,
    /// The next piece number. This and greater numbers were never assigned.
    pub(super) next: u64,
    /// The pieces in the order of the text; empty if the text is in the head.
    pub(super) pieces: Vec<Piece>,
    /// The text, if there are no pieces.
    pub(super) text: Vec<u8>,
}

impl Head {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len() + 8 * self.pieces.len() + 32);
        out.push(FORMAT);
        out.extend_from_slice(&self.version.to_be_bytes());
        number::put(self.next, &mut out);
        number::put(self.pieces.len() as u64, &mut out);
        for piece in &self.pieces {
            number::put(piece.number, &mut out);
            number::put(piece.bytes as u64, &mut out);
        }
        out.extend_from_slice(&self.text);
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        match bytes.split_first() {
            Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
                what: "the head of a tree document".into(),
                found: format.into(),
                supported: FORMAT.into(),
            }),
            Some((&FORMAT, rest)) => Self::fields(rest).ok_or_else(broken),
            _ => Err(broken()),
        }
    }

    fn fields(rest: &[u8]) -> Option<Self> {
        let (version, mut rest) = rest.split_first_chunk()?;
        let version = u64::from_be_bytes(*version);
        let next = number::take(&mut rest)?;
        let count = number::take(&mut rest)?;
        let mut pieces = Vec::new();
        for _ in 0..count {
            let number = number::take(&mut rest)?;
            let bytes = usize::try_from(number::take(&mut rest)?).ok()?;
            pieces.push(Piece { number, bytes });
        }
        let is_either = pieces.is_empty() || rest.is_empty();
        is_either.then(|| Self { version, next, pieces, text: rest.to_vec() })
    }
}

#[cold]
fn broken() -> Error {
    let source = "it is not a head; is another kind of data in the subspace?".into();
    Error::Value { codec: "a tree document", action: "decode", source }
}
