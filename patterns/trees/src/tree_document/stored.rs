//! How documents are read from a store, and what of them is written.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use keyloom::key::display;
use keyloom::{Error, KeyBuf, Reader, Result, Store, Writer};

use super::TreeDocument;
use super::document::Document;
use super::encoding::{decode, encode};
use super::head::{Head, Piece};
use keyloom_tables::BatchSize;
use keyloom_tables::versioned::{Expected, RecordConflict, VersionedRecord};
use keyloom_tables::{Inconsistency, Rule};

/// How many bytes of pieces are written in one transaction of a [write in
/// steps](TreeDocument::write_in_steps): etcd takes 1.3 MiB, FoundationDB 10 MB.
const STEP_BYTES: usize = 1 << 20;
/// How many pieces are removed in one transaction.
const STEP_KEYS: usize = 1_000;

/// What makes the text of a store that of a document.
pub(super) struct Change {
    pub(super) head: Head,
    /// The text that goes into pieces.
    text: Vec<u8>,
    /// The pieces to be written.
    pub(super) fresh: Vec<(u64, Range<usize>)>,
    /// The numbers of the pieces that are not needed any more.
    obsolete: Vec<u64>,
}

/// Which numbers new pieces get.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    /// Those of the pieces that are replaced, as far as these go.
    Reused,
    /// New ones, so that nobody sees the pieces before the head names them.
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
            // A head is written before the first piece, and stays: pieces without one are a
            // document that lost it.
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

    /// The whole tree, in memory. Costs one get, and where the document has pieces one
    /// [`get_many`](Reader::get_many) of all of them: at most two round trips.
    ///
    /// # Errors
    /// What the store says; what does not decode, naming the key.
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
        // As long as what is there, not as what a damaged head says.
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

    /// Writes a document if its version is still the one that is stored, and tells the new version:
    /// one more, or the same where nothing had been changed, and then nothing is written.
    ///
    /// Costs one get, and what the change costs: the head, and the pieces that are not among those
    /// stored.
    ///
    /// # Errors
    /// [`RecordConflict<()>`](RecordConflict) in an [`Error::Other`], naming both versions, when
    /// another has written since the document was read; nothing was written then. What the store
    /// says: where the document is [too much at once](Error::is_batch_too_large), see
    /// [`write_in_steps`](TreeDocument::write_in_steps).
    pub fn write(&self, txn: &mut impl Writer, document: &Document<V, C>) -> Result<u64> {
        txn.guarded(|txn| {
            let head = self.expect_version(txn, document)?;
            self.replace(txn, document, head.next)
        })
    }

    /// Writes a document over the one that it was read as in the same transaction.
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
        let key = display(&self.head_key()).to_string().into();
        Err(Error::other(RecordConflict { key, expected, current }))
    }

    /// What is to be written, `None` where nothing is.
    ///
    /// A piece that is in the store already stays where it is, wherever in the text it has come to.
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
            // A number that is not known yet is given below.
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

    /// [`write`](TreeDocument::write) of a document that may be more than the store takes in one
    /// transaction: where it is, the pieces are written first, in as many transactions as they
    /// need, under numbers that nobody knows of; one more transaction looks at the version and
    /// writes the head, which makes them the document; then the old pieces are removed. So readers
    /// see the old document or the new one.
    ///
    /// Where the program dies in between, pieces stay that no head names:
    /// [`check`](crate::Tree::check) finds them dangling, [`repair`](crate::Tree::repair) removes
    /// them. The head itself, some 6 bytes per piece, must fit into a transaction.
    ///
    /// ```
    /// use keyloom::{Limits, Memory, Store, Subspace};
    /// use keyloom_trees::{InsertAt, TreeDocument};
    /// let outline = TreeDocument::<String>::new(&Subspace::new("outline"));
    /// let store = Memory::builder().limits(Limits::etcd()).build(); // some 1.5 MB in a transaction
    /// let mut document = outline.read(&store.snapshot()?)?;
    /// document.insert(1, "long", &"four megabytes ".repeat(280_000), InsertAt::last(None))?;
    /// assert!(store.transact(|txn| outline.write(txn, &document)).unwrap_err().is_batch_too_large());
    /// assert_eq!(outline.write_in_steps(&store, &document)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`write`](TreeDocument::write).
    pub fn write_in_steps<S: Store>(&self, store: &S, document: &Document<V, C>) -> Result<u64> {
        match store.transact(|txn| self.write(txn, document)) {
            Err(error) if error.is_batch_too_large() => self.write_hidden(store, document),
            outcome => outcome,
        }
    }

    fn write_hidden<S: Store>(&self, store: &S, document: &Document<V, C>) -> Result<u64> {
        // The numbers are taken before they are used, so that no other writer takes them too.
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
            // Others may have taken numbers since, without having written.
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

    /// All of a document as a change, under numbers that no piece has.
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

    /// The key under which a byte of the text is.
    pub(super) fn key_of(&self, pieces: &[Piece], at: usize) -> KeyBuf {
        let mut end = 0_usize;
        let piece = pieces.iter().find(|piece| {
            end = end.saturating_add(piece.bytes);
            at < end
        });
        // Past the end it is in the last.
        let piece = piece.or(pieces.last());
        piece.map_or_else(|| self.head_key(), |piece| self.piece_key(piece.number))
    }

    fn remove<S: Store>(&self, store: &S, pieces: &[u64]) -> Result<()> {
        BatchSize::new(STEP_KEYS).transact_all(store, pieces, |txn, pieces| {
            pieces.iter().try_for_each(|number| txn.delete(&self.piece_key(*number)))
        })
    }
}

/// The pieces of a text by what they hold.
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
