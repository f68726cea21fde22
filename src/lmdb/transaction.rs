//! A transaction of the LMDB store.

use std::cell::Cell;
use std::io;
use std::ops::Bound;

use heed::types::Bytes;
use heed::{Env, MdbError, PutFlags, RwTxn, WithoutTls};

use super::gate::{Holder, Ticket};
use super::owned_by::OwnedBy;
use super::room;
use super::sorted::{self, Put};
use super::writer_lock::ProcessTurn;
use super::{LmdbEntries, Shared, get};
use crate::backend::{ChangedKeys, WriterTurn};
use crate::deadline::Deadline;
use crate::{
    Error, HeldPages, KeyBuf, KeyRange, Limits, LmdbError, Order, Reader, Result, StorageError,
    Transaction, TransactionState, Writer, check_key, check_value,
};

/// A transaction of an [`Lmdb`](crate::Lmdb) store.
#[derive(Debug)]
pub struct LmdbTransaction<'s> {
    // The fields are dropped in this order: the engine's transaction, then the ticket of the gate,
    // then the turns. Dropping a turn admits the next writer, of this process or of another one.
    txn: OwnedBy<RwTxn<'s>>,
    shared: &'s Shared,
    _ticket: Ticket<'s>,
    _process_turn: ProcessTurn<'s>,
    _turn: WriterTurn<'s>,
    /// Set when the map or the disk was full. The engine then refuses every further call.
    full: Cell<Option<Full>>,
    /// When to try to append after the last key. An append needs no search and leaves full pages
    /// instead of half-full pages. If the key is not after the last key, the try costs one read.
    at_end: Tries,
    state: TransactionState,
    changed: ChangedKeys,
}

/// Whether the map or the disk was full, and the readers that keep freed pages.
#[derive(Clone, Copy, Debug)]
enum Full {
    Map(HeldPages),
    Disk(HeldPages),
}

impl Full {
    /// The error of a call that follows the first call without space.
    fn again(self, shared: &Shared) -> Error {
        let source = || io::Error::from(io::ErrorKind::StorageFull).into();
        match self {
            Self::Map(held) => shared.map_full_held(held),
            Self::Disk(held) => Error::Storage(StorageError::DiskFull {
                path: shared.path.clone(),
                source: source(),
                held,
            }),
        }
    }

    /// Whether a retry of the transaction can succeed.
    fn can_end(self, shared: &Shared) -> bool {
        match self {
            Self::Map(held) => held.dead_readers > 0 || shared.can_grow(),
            Self::Disk(held) => held.dead_readers > 0,
        }
    }
}

/// When to try a faster way of putting, which works only for some entries. After each failure the
/// number of puts until the next try grows.
#[derive(Debug)]
struct Tries {
    /// The number of puts before the next try.
    pass: u32,
    /// The number of puts from the last failed try to the next try. A further failure doubles this
    /// number.
    then: u32,
}

impl Tries {
    /// Tries at the first put.
    const EACH: Self = Self { pass: 0, then: 1 };
    /// Tries only after some puts, so not in small transactions.
    const LATER: Self = Self { pass: 8, then: 8 };
    // A failed try is a wasted operation. In the long run, at most one try fails per 256 puts. With
    // a higher limit, entries that can be put together are found later.
    const MOST: u32 = 256;

    fn is_due(&mut self) -> bool {
        self.pass = self.pass.saturating_sub(1);
        self.pass == 0
    }

    fn succeeded(&mut self) {
        self.then = 1;
    }

    fn failed(&mut self) {
        self.then = (self.then * 2).min(Self::MOST);
        self.pass = self.then;
    }
}

/// Entries that will be adjacent in the store, the entries after them, and the stored key between
/// these two groups.
type Together<'e> = (&'e [Put<'e>], &'e [Put<'e>], KeyBuf);

/// The least number of adjacent entries for which `sorted::lay` is used, since this costs a few
/// extra puts.
const FEWEST_TOGETHER: usize = 64;

impl<'s> LmdbTransaction<'s> {
    pub(super) fn begin(shared: &'s Shared) -> Result<Self> {
        shared.process.check(&shared.path)?;
        if shared.options.read_only {
            return Err(Error::ReadOnly);
        }
        shared.check_sync()?;
        let deadline = Deadline::new(shared.options.begin_patience);
        let turn = shared.take_turn(&deadline)?;
        shared.grow_if_full(&deadline.within(shared.options.grow_patience))?;
        let of_map = deadline.within(shared.options.grow_patience);
        let lock = || shared.writers.take(&deadline, &shared.path);
        let begin = |env: &'s Env<WithoutTls>| env.write_txn();
        let (txn, ticket, process_turn) =
            shared.enter(Holder::Transaction, &of_map, lock, begin)?;
        let cleared = shared.readers.clear_dead_now_and_then(&shared.env);
        cleared.map_err(|error| shared.explain(error))?;
        let (full, at_end) = (Cell::new(None), Tries::LATER);
        let state = TransactionState::default();
        Ok(Self {
            txn,
            shared,
            _ticket: ticket,
            _process_turn: process_turn,
            _turn: turn,
            full,
            at_end,
            state,
            changed: shared.signal.changed_keys(),
        })
    }

    /// Appends an entry if its key is after all stored keys. Returns whether it was appended.
    fn append(&mut self, key: &[u8], value: &[u8]) -> heed::Result<bool> {
        let flags = PutFlags::APPEND;
        match self.shared.database.put_with_flags(&mut self.txn, flags, key, value) {
            Ok(()) => {
                self.at_end.succeeded();
                Ok(true)
            }
            Err(heed::Error::Mdb(MdbError::KeyExist)) => {
                self.at_end.failed();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Appends entries as long as each key is after all stored keys. Returns the remaining entries.
    ///
    /// All appends use one cursor, which stays on the last page. Without a shared cursor, each
    /// append would descend from the root to this page, and look up each page of this path in the
    /// list of changed pages. This takes as long as the append itself.
    #[allow(unsafe_code)]
    fn append_all<'e>(&mut self, entries: &'e [Put<'e>]) -> heed::Result<&'e [Put<'e>]> {
        // In raw LMDB, a million graph edges with two entries of 13 bytes each take 119 ns per edge
        // with one cursor, and 219 ns with single appends.
        let mut cursor = self.shared.database.iter_mut(&mut self.txn)?;
        let mut rest = entries;
        while let Some(((key, value), behind)) = rest.split_first() {
            // SAFETY: the transaction is borrowed mutably, so no reference into the pages that it
            // changes exists.
            let put =
                unsafe { cursor.put_current_with_options::<Bytes>(PutFlags::APPEND, key, value) };
            match put {
                Ok(()) => rest = behind,
                Err(heed::Error::Mdb(MdbError::KeyExist)) => break,
                Err(error) => return Err(error),
            }
        }
        match rest.len() < entries.len() {
            true => self.at_end.succeeded(),
            false => self.at_end.failed(),
        }
        Ok(rest)
    }

    /// Puts entries in ascending key order. Long runs between two stored keys are put with
    /// `sorted::lay`, runs after all stored keys are appended, and all other entries are put one by
    /// one.
    fn put_in_order(&mut self, entries: &[Put<'_>]) -> heed::Result<()> {
        let (mut rest, mut tries) = (entries, Tries::EACH);
        while rest.len() >= FEWEST_TOGETHER {
            if tries.is_due() {
                // Single puts between two stored keys would leave split pages a quarter to a half
                // empty.
                if let Some((together, behind, next)) = self.together(rest)? {
                    tries.succeeded();
                    sorted::lay(&self.shared.database, &mut self.txn, together, &next)?;
                    rest = behind;
                    continue;
                }
                tries.failed();
            }
            if self.at_end.is_due() {
                let behind = self.append_all(rest)?;
                if behind.len() < rest.len() {
                    rest = behind;
                    continue;
                }
            }
            let Some(((key, value), behind)) = rest.split_first() else { break };
            self.shared.database.put(&mut self.txn, key, value)?;
            rest = behind;
        }
        rest.iter().try_for_each(|(key, value)| self.put_anywhere(key, value))
    }

    /// Splits entries at the next stored key. Returns the entries before this key, the entries
    /// after it, and the key. Returns `None` if too few entries are before the key, or if no stored
    /// key follows.
    fn together<'e>(&self, entries: &'e [Put<'e>]) -> heed::Result<Option<Together<'e>>> {
        let Some((first, _)) = entries.first() else { return Ok(None) };
        let next = self.shared.database.get_greater_than_or_equal_to(&self.txn, first)?;
        let Some((next, _)) = next else { return Ok(None) };
        // Only the entries before the next stored key: later entries are handled by the next
        // iteration.
        let mut last = None;
        let before = entries
            .iter()
            .map(|(key, _)| *key)
            .take_while(|key| *key < next && last.replace(*key).is_none_or(|last| last < *key));
        let before = before.count();
        let parts = entries.split_at_checked(before).filter(|_| before >= FEWEST_TOGETHER);
        Ok(parts.map(|(together, behind)| (together, behind, KeyBuf::from_slice(next))))
    }

    fn put_anywhere(&mut self, key: &[u8], value: &[u8]) -> heed::Result<()> {
        if self.at_end.is_due() && self.append(key, value)? {
            return Ok(());
        }
        self.shared.database.put(&mut self.txn, key, value)
    }

    fn explain(&self, error: heed::Error) -> Error {
        explain(self.shared, &self.full, error)
    }
}

/// Converts the engine's error. Sets `is_full` if the map or the disk was full.
fn explain(shared: &Shared, is_full: &Cell<Option<Full>>, error: heed::Error) -> Error {
    let error = match (error, is_full.get()) {
        (heed::Error::Mdb(MdbError::BadTxn), Some(full)) => return full.again(shared),
        (heed::Error::Mdb(MdbError::MapFull), _) => shared.map_full(),
        // A large transaction writes some of its pages before the commit.
        (other, _) => shared.explain(room::reason(other, &shared.path)),
    };
    match error {
        Error::Lmdb(LmdbError::MapFull { held, .. }) => is_full.set(Some(Full::Map(held))),
        Error::Storage(StorageError::DiskFull { held, .. }) => is_full.set(Some(Full::Disk(held))),
        _ => {}
    }
    error
}

impl Reader for LmdbTransaction<'_> {
    type Bytes<'r>
        = &'r [u8]
    where
        Self: 'r;
    type Entries<'r>
        = LmdbEntries<'r>
    where
        Self: 'r;

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        get(self.shared, &self.txn, key)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<LmdbEntries<'_>> {
        LmdbEntries::open(self.shared, &self.txn, &range, order)
    }
}

impl Writer for LmdbTransaction<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(key, value, Limits::default().max_value_bytes)?;
        self.changed.note(key);
        self.put_anywhere(key, value).map_err(|error| self.explain(error))
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        for (key, value) in entries {
            check_key(key)?;
            check_value(key, value, Limits::default().max_value_bytes)?;
            self.changed.note(key);
        }
        self.put_in_order(entries).map_err(|error| self.explain(error))
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.changed.note(key);
        let deleted = self.shared.database.delete(&mut self.txn, key);
        deleted.map(drop).map_err(|error| self.explain(error))
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.changed.note_any();
        let deleted = match range.normalized() {
            None => Ok(()),
            Some((Bound::Unbounded, Bound::Unbounded)) => self.shared.database.clear(&mut self.txn),
            Some(bounds) => self.shared.database.delete_range(&mut self.txn, &bounds).map(drop),
        };
        deleted.map_err(|error| self.explain(error))
    }
}

impl Transaction for LmdbTransaction<'_> {
    fn commit(self) -> Result<()> {
        self.state.check()?;
        self.shared.process.check(&self.shared.path)?;
        let Self { txn, shared, full, mut changed, state, .. } = self;
        changed.note_woken(&state);
        txn.into_inner().commit().map_err(|error| match error {
            heed::Error::Io(source) if shared.may_be_unusable() => {
                // The write of the meta page failed. The engine restored the page in memory, but
                // the state of the disk is unknown.
                let (path, source) = (shared.path.clone(), Some(source.into()));
                let unusable = Error::Storage(StorageError::Unusable { path, source });
                Error::CommitUnknown { source: unusable.into() }
            }
            other => match room::reason(other, &shared.path) {
                // The call that failed may have been an fsync.
                heed::Error::Io(source) if room::is_eio(&source) => {
                    shared.note_failed_sync(heed::Error::Io(source))
                }
                other => explain(shared, &full, other),
            },
        })?;
        shared.signal.notify(changed);
        Ok(())
    }

    fn must_restart(&self) -> bool {
        self.full.get().is_some_and(|full| full.can_end(self.shared))
    }
}
