//! Reading documents from a store, and writing their changes.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use keyloom::key::display_named;
use keyloom::{Error, KeyBuf, Reader, Result, Store, Writer};
use keyloom_kit::{BatchSize, Inconsistency, Rule};
use keyloom_tables::versioned::{Expected, RecordConflict, VersionedRecord};

use super::TreeDocument;
use super::document::Document;
use super::encoding::{decode, encode};
use super::head::{Head, Piece};

/// The number of bytes of pieces that a [write in steps](TreeDocument::write_in_steps) writes in
/// one transaction: etcd accepts 1.3 MiB, FoundationDB 10 MB.
const STEP_BYTES: usize = 1 << 20;
/// The number of pieces that are removed in one transaction.
// `BatchSize` halves the number if the store refuses such a batch. A smaller number adds commits; a
// larger number blocks other writers for longer.
const STEP_KEYS: usize = 1_000;

/// The difference between the stored text and a document.
pub(super) struct Change {
    pub(super) head: Head,
    /// The text that the pieces are cut from.
    text: Vec<u8>,
    /// The pieces to write.
    pub(super) fresh: Vec<(u64, Range<usize>)>,
    /// The numbers of the pieces to remove.
    obsolete: Vec<u64>,
}

/// The numbers for new pieces.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    /// Reuse the numbers of replaced pieces, as far as there are any.
    Reused,
    /// Use new numbers, so that the pieces are invisible until the head lists them.
    New,
}

impl<V, C> TreeDocument<V, C> {
    pub(super) fn head_key(&self) -> KeyBuf {
        self.space.pack("head")
    }

    pub(super) fn piece_key(&self, number: u64) -> KeyBuf {
        self.space.pack(&("piece", number))
    }

    pub(super) fn head(&self, reader: &impl Reader) -> Result<Head> {
        match self.stored_head(reader)? {
            Some(head) => Ok(head),
            // The head is written before the first piece, and is never deleted. So pieces without a
            // head mean that the document has lost its head.
            None if reader.first(self.space.range_of(&"piece"))?.is_some() => {
                Err(self.broken(&self.head_key(), Rule::Missing))
            }
            None => Ok(Head::default()),
        }
    }

    pub(super) fn stored_head(&self, reader: &impl Reader) -> Result<Option<Head>> {
        let key = self.head_key();
        let stored = reader.get(&key)?;
        stored.map(|bytes| Head::decode(&bytes)).transpose().map_err(|error| error.at(&key))
    }

    /// Reads the whole tree into memory. Costs one get and, if the document has pieces, one
    /// [`get_many`](Reader::get_many) of all pieces: at most two round trips.
    ///
    /// # Errors
    /// Any error of the store; an error that contains the key if the document does not decode or
    /// lacks a piece.
    pub fn read(&self, reader: &impl Reader) -> Result<Document<V, C>> {
        let mut head = self.head(reader)?;
        let text = match head.pieces.is_empty() {
            true => std::mem::take(&mut head.text),
            false => self.text(reader, &head.pieces)?,
        };
        let text_bytes = text.len();
        let rows = decode(text).map_err(|broken| {
            let key = self.key_of(&head.pieces, broken.0);
            Error::from(broken).at(&key)
        })?;
        Ok(Document { tree: self.clone(), head, text_bytes, rows })
    }

    pub(super) fn text(&self, reader: &impl Reader, pieces: &[Piece]) -> Result<Vec<u8>> {
        let keys: Vec<KeyBuf> = pieces.iter().map(|piece| self.piece_key(piece.number)).collect();
        let found = reader.get_many(&keys)?;
        // Reserve the lengths that were read, not the lengths in a possibly damaged head.
        let mut text = Vec::with_capacity(found.iter().flatten().map(|bytes| bytes.len()).sum());
        for ((stored, piece), key) in found.into_iter().zip(pieces).zip(&keys) {
            match stored {
                Some(bytes) if bytes.len() == piece.bytes => text.extend_from_slice(&bytes),
                Some(_) => return Err(self.broken(key, Rule::Wrong)),
                None => return Err(self.broken(key, Rule::Missing)),
            }
        }
        Ok(text)
    }

    #[cold]
    fn broken(&self, key: &KeyBuf, rule: Rule) -> Error {
        Error::other(Inconsistency::new(key.clone(), rule))
    }

    /// Writes a document if the stored version is still the version that was read. Returns the new
    /// version, which is greater by one. If the document has not changed, writes nothing and
    /// returns the same version.
    ///
    /// Costs one get, and writes the head and the pieces that are not already stored.
    ///
    /// # Errors
    /// [`RecordConflict<()>`](RecordConflict) in an [`Error::Other`], with both versions, if
    /// another writer has written since the document was read; nothing is written then. Any error
    /// of the store. If the [batch is too large](Error::is_batch_too_large), see
    /// [`write_in_steps`](TreeDocument::write_in_steps).
    pub fn write(&self, txn: &mut impl Writer, document: &Document<V, C>) -> Result<u64> {
        txn.guarded(|txn| {
            let head = self.expect_version(txn, document)?;
            self.replace(txn, document, head.next)
        })
    }

    /// Replaces the document that was read in the same transaction.
    pub(super) fn replace(
        &self,
        txn: &mut impl Writer,
        document: &Document<V, C>,
        next: u64,
    ) -> Result<u64> {
        let Some(change) = self.change(document, next, Numbers::Reused)? else {
            return Ok(document.version());
        };
        for (number, at) in &change.fresh {
            txn.put(&self.piece_key(*number), change.text.get(at.clone()).unwrap_or_default())?;
        }
        for number in &change.obsolete {
            txn.delete(&self.piece_key(*number))?;
        }
        txn.put(&self.head_key(), &change.head.encode())?;
        Ok(change.head.version)
    }

    fn expect_version(&self, reader: &impl Reader, document: &Document<V, C>) -> Result<Head> {
        let head = self.head(reader)?;
        if head.version == document.version() {
            return Ok(head);
        }
        let expected = match document.version() {
            0 => Expected::Absent,
            version => Expected::Version(version),
        };
        let current =
            (head.version > 0).then_some(VersionedRecord { version: head.version, value: () });
        let key = display_named(&self.head_key()).to_string().into();
        Err(Error::other(RecordConflict {
            key,
            expected,
            current,
            deleted: None,
            deleted_here: None,
        }))
    }

    /// The writes of a change; `None` if there are none.
    ///
    /// A piece that is already stored keeps its key, even if its place in the text has changed.
    fn change(
        &self,
        document: &Document<V, C>,
        next: u64,
        numbers: Numbers,
    ) -> Result<Option<Change>> {
        let text = encode(&document.rows, self.piece_bytes);
        let old = document.text_read();
        if text.bytes == old {
            return Ok(None);
        }
        let version = document.version().checked_add(1).ok_or_else(|| self.out_of_versions())?;
        let mut head = Head { version, next, ..Head::default() };
        let mut obsolete: BTreeSet<u64> =
            document.head.pieces.iter().map(|piece| piece.number).collect();
        if text.bytes.len() <= self.piece_bytes {
            head.text = text.bytes;
            let obsolete = obsolete.into_iter().collect();
            return Ok(Some(Change { head, text: Vec::new(), fresh: Vec::new(), obsolete }));
        }
        let mut stored = pieces_of(old, &document.head.pieces);
        let mut fresh = Vec::new();
        let mut start = 0;
        for end in text.ends {
            let bytes = text.bytes.get(start..end).unwrap_or_default();
            // A missing number is assigned below.
            let number = stored.remove(bytes).filter(|number| obsolete.remove(number));
            if number.is_none() {
                fresh.push((head.pieces.len(), start..end));
            }
            head.pieces.push(Piece { number: number.unwrap_or_default(), bytes: end - start });
            start = end;
        }
        let fresh = fresh.into_iter().map(|(index, at): (usize, _)| {
            let reused = if numbers == Numbers::Reused { obsolete.pop_first() } else { None };
            let number = reused.unwrap_or_else(|| {
                head.next += 1;
                head.next - 1
            });
            if let Some(piece) = head.pieces.get_mut(index) {
                piece.number = number;
            }
            (number, at)
        });
        let fresh = fresh.collect();
        Ok(Some(Change { head, text: text.bytes, fresh, obsolete: obsolete.into_iter().collect() }))
    }

    #[cold]
    fn out_of_versions(&self) -> Error {
        Error::other("it has had all 2^64 versions").at(&self.head_key())
    }

    /// Like [`write`](TreeDocument::write), for a document that may be too large for one
    /// transaction. If it is too large, the pieces are written first, in as many transactions as
    /// needed, under unused numbers. Then one transaction checks the version and writes the head,
    /// which makes the new pieces visible. Finally the old pieces are removed. So readers see
    /// either the old document or the new document.
    ///
    /// If the program dies in between, pieces remain that no head lists:
    /// [`check`](crate::Tree::check) reports them as dangling, and [`repair`](crate::Tree::repair)
    /// removes them. The head itself, about 6 bytes per piece, must fit into one transaction.
    ///
    /// ```
    /// use keyloom::{Limits, Memory, Store, Subspace};
    /// use keyloom_trees::{InsertAt, TreeDocument};
    /// let outline = TreeDocument::<String>::new(&Subspace::new("outline"));
    /// // etcd accepts about 1.5 MB per transaction.
    /// let store = Memory::builder().limits(Limits::etcd()).build();
    /// let mut document = outline.read(&store.snapshot()?)?;
    /// document.insert(1, "long", &"four megabytes ".repeat(280_000), InsertAt::last(None))?;
    /// assert!(
    ///     store.transact(|txn| outline.write(txn, &document)).unwrap_err().is_batch_too_large()
    /// );
    /// assert_eq!(outline.write_in_steps(&store, &document)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`write`](TreeDocument::write).
    pub fn write_in_steps<S: Store>(&self, store: &S, document: &Document<V, C>) -> Result<u64> {
        match store.transact(|txn| self.write(txn, document)) {
            Err(error) if error.is_batch_too_large() => self.write_hidden(store, document),
            outcome => outcome,
        }
    }

    fn write_hidden<S: Store>(&self, store: &S, document: &Document<V, C>) -> Result<u64> {
        // Reserve the numbers before using them, so that no other writer uses the same numbers.
        let change = store.transact(|txn| {
            let head = self.expect_version(txn, document)?;
            let change = self.change(document, head.next, Numbers::New)?;
            if let Some(change) = &change {
                let taken = Head { next: change.head.next, ..head };
                txn.put(&self.head_key(), &taken.encode())?;
            }
            Ok(change)
        })?;
        let Some(change) = change else { return Ok(document.version()) };
        self.write_fresh(store, &change)?;
        let switched = store.transact(|txn| {
            let now = self.expect_version(txn, document)?;
            // Other writers may have reserved numbers in the meantime, without finishing their
            // write.
            let head = Head { next: now.next, ..change.head.clone() };
            txn.put(&self.head_key(), &head.encode())
        });
        match switched {
            Ok(()) => self.remove(store, &change.obsolete)?,
            Err(error) => {
                if error.downcast_ref::<RecordConflict<()>>().is_some() {
                    let fresh: Vec<u64> = change.fresh.iter().map(|(number, _)| *number).collect();
                    self.remove(store, &fresh)?;
                }
                return Err(error);
            }
        }
        Ok(change.head.version)
    }

    /// Returns a change that writes the whole document under new piece numbers.
    pub(super) fn fresh_copy(&self, document: &Document<V, C>, next: u64) -> Result<Change> {
        if let Some(change) = self.change(document, next, Numbers::New)? {
            return Ok(change);
        }
        let version = document.version().saturating_add(1);
        let head = Head { version, next, ..Head::default() };
        Ok(Change { head, text: Vec::new(), fresh: Vec::new(), obsolete: Vec::new() })
    }

    pub(super) fn write_fresh<S: Store>(&self, store: &S, change: &Change) -> Result<()> {
        let mut batch = BatchSize::new(STEP_BYTES / self.piece_bytes);
        batch.transact_all(store, &change.fresh, |txn, fresh| {
            fresh.iter().try_for_each(|(number, at)| {
                txn.put(&self.piece_key(*number), change.text.get(at.clone()).unwrap_or_default())
            })
        })
    }

    /// The key of the piece that contains a byte of the text.
    pub(super) fn key_of(&self, pieces: &[Piece], at: usize) -> KeyBuf {
        let mut end = 0_usize;
        let piece = pieces.iter().find(|piece| {
            end = end.saturating_add(piece.bytes);
            at < end
        });
        // An offset past the end is in the last piece.
        let piece = piece.or(pieces.last());
        piece.map_or_else(|| self.head_key(), |piece| self.piece_key(piece.number))
    }

    fn remove<S: Store>(&self, store: &S, pieces: &[u64]) -> Result<()> {
        BatchSize::new(STEP_KEYS).transact_all(store, pieces, |txn, pieces| {
            pieces.iter().try_for_each(|number| txn.delete(&self.piece_key(*number)))
        })
    }
}

/// Maps the content of each piece of a text to the number of the piece.
fn pieces_of<'t>(text: &'t [u8], pieces: &[Piece]) -> HashMap<&'t [u8], u64> {
    let mut rest = text;
    let mut by_bytes = HashMap::with_capacity(pieces.len());
    for piece in pieces {
        let (bytes, behind) = rest.split_at_checked(piece.bytes).unwrap_or((rest, &[]));
        by_bytes.insert(bytes, piece.number);
        rest = behind;
    }
    by_bytes
}
