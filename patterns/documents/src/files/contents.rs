//! The contents of files, in pieces.

use keyloom::{Reader, Result, Writer};
use serde::{Deserialize, Serialize};

use super::entry::names;
use super::{FileEntry, Files, FilesError, Kind};

/// The greatest number of bytes of a piece. Every store takes values of this size, and LMDB stores
/// a piece in eight pages.
pub const PIECE_BYTES: usize = 32_000;

/// A piece of the contents of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Piece {
    /// Text, whose words are indexed.
    Text(String),
    Bytes(Vec<u8>),
}

impl Piece {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Splits contents into pieces.
fn pieces_of(contents: &[u8]) -> Vec<Piece> {
    match std::str::from_utf8(contents) {
        Ok(text) if !text.contains('\0') => texts_of(text),
        _ => contents.chunks(PIECE_BYTES).map(|bytes| Piece::Bytes(bytes.to_vec())).collect(),
    }
}

fn texts_of(text: &str) -> Vec<Piece> {
    let (mut rest, mut pieces) = (text, Vec::new());
    while !rest.is_empty() {
        let (piece, others) = rest.split_at_checked(piece_end(rest)).unwrap_or((rest, ""));
        pieces.push(Piece::Text(piece.to_owned()));
        rest = others;
    }
    pieces
}

/// The end of the first piece of a text: after the last white space in the piece, or at the size
/// limit if this white space is in the first half of the piece.
fn piece_end(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let most = (0..=PIECE_BYTES).rev().find(|end| text.is_char_boundary(*end));
    let most = most.unwrap_or(text.len());
    let piece = text.get(..most).unwrap_or_default();
    let space = piece.char_indices().rev().find(|(_, char)| char.is_whitespace());
    let end = space.map(|(at, char)| at + char.len_utf8());
    end.filter(|end| *end > most / 2).unwrap_or(most)
}

impl Files {
    /// Writes the contents of a file; returns the id of the file. Creates the file if it does not
    /// exist. Its directory must exist.
    ///
    /// # Errors
    /// [`FilesError::BadPath`], [`FilesError::NotFound`], [`FilesError::NotADirectory`],
    /// [`FilesError::IsADirectory`], [`FilesError::Full`]; any error of the store, such as
    /// [`Error::TransactionTooLarge`](keyloom::Error::TransactionTooLarge).
    pub fn write(&self, txn: &mut impl Writer, path: &str, contents: &[u8]) -> Result<u32> {
        txn.guarded(|txn| {
            let (directory, name, existing) = self.place(txn, path)?;
            let pieces = pieces_of(contents);
            let many = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
            let kind = Kind::File { bytes: contents.len() as u64, pieces: many };
            let entry = FileEntry { directory, name: name.to_owned(), kind };
            let (id, before) = match existing {
                Some((_, FileEntry { kind: Kind::Directory, .. })) => {
                    return Err(FilesError::IsADirectory { path: path.to_owned() }.into());
                }
                Some((id, FileEntry { kind: Kind::File { pieces, .. }, .. })) => {
                    self.entries.put(txn, &id, &entry)?;
                    (id, pieces)
                }
                None => (self.add(txn, &entry)?, 0),
            };
            let numbered = (0..).zip(pieces).map(|(n, piece)| ((id, n), piece));
            self.pieces.put_many(txn, numbered)?;
            self.remove_pieces(txn, id, many..before)?;
            Ok(id)
        })
    }

    pub(super) fn remove_pieces(
        &self,
        txn: &mut impl Writer,
        id: u32,
        numbers: std::ops::Range<u32>,
    ) -> Result<()> {
        let keys: Vec<(u32, u32)> = numbers.map(|n| (id, n)).collect();
        self.pieces.delete_many(txn, &keys).map(drop)
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// [`FilesError::BadPath`], [`FilesError::NotFound`], [`FilesError::NotADirectory`],
    /// [`FilesError::IsADirectory`]; [`FilesError::Damaged`] if a piece is missing; any error of
    /// the store.
    pub fn read(&self, reader: &impl Reader, path: &str) -> Result<Vec<u8>> {
        if names(path)?.is_empty() {
            return Err(FilesError::IsADirectory { path: path.to_owned() }.into());
        }
        let (id, entry) = self.required(reader, path)?;
        let Kind::File { bytes, pieces } = entry.kind else {
            return Err(FilesError::IsADirectory { path: path.to_owned() }.into());
        };
        let (mut contents, mut many) = (Vec::new(), 0);
        for piece in self.pieces.range(reader, id)? {
            contents.extend_from_slice(piece?.1.bytes());
            many += 1;
        }
        match (contents.len() as u64, many) == (bytes, pieces) {
            true => Ok(contents),
            false => Err(FilesError::Damaged { id, why: "its pieces are not all there" }.into()),
        }
    }

    /// The text of a piece of a file; `None` if there is no such piece, or if the piece is not
    /// text. Costs one get.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn piece(&self, reader: &impl Reader, id: u32, number: u32) -> Result<Option<String>> {
        Ok(match self.pieces.get(reader, &(id, number))? {
            Some(Piece::Text(text)) => Some(text),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_the_contents(
            parts in prop::collection::vec(("[a é\u{0}]{1,3}", 1_usize..30_000), 0..6),
        ) {
            let contents: String = parts.iter().map(|(part, many)| part.repeat(*many)).collect();
            let pieces = pieces_of(contents.as_bytes());
            let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes().to_vec()).collect();
            prop_assert_eq!(all, contents.as_bytes());
            let is_short = |piece: &Piece| (1..=PIECE_BYTES).contains(&piece.bytes().len());
            prop_assert!(pieces.iter().all(is_short));
        }
    }

    #[test]
    fn words_are_whole_in_one_piece() {
        let words: Vec<String> = (0..20_000).map(|n| format!("word{n}")).collect();
        let text = words.join(" ");
        let pieces = pieces_of(text.as_bytes());
        let found: Vec<&str> = pieces
            .iter()
            .filter_map(|piece| std::str::from_utf8(piece.bytes()).ok())
            .flat_map(str::split_whitespace)
            .collect();
        assert!(pieces.len() > 5);
        assert_eq!(found, words);
    }
}
