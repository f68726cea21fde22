//! A transaction of the LMDB store.

use std::cell::Cell;
use std::ops::Bound;

use heed::{MdbError, PutFlags, RwTxn};

use super::gate::Ticket;
use super::owned_by::OwnedBy;
use super::room;
use super::{LmdbEntries, Shared, get};
use crate::writer_slot::WriterTurn;
use crate::{
    Error, KeyRange, Limits, Order, Reader, Result, Transaction, Writer, check_key, check_value,
};

/// A transaction of an [`Lmdb`](crate::Lmdb) store.
#[derive(Debug)]
pub struct LmdbTransaction<'s> {
    // The order of the fields is the order in which they end: the engine's transaction, then the
    // place at the gate, then the turn of the next writer.
    txn: OwnedBy<RwTxn<'s>>,
    shared: &'s Shared,
    _ticket: Ticket<'s>,
    _turn: WriterTurn<'s>,
    /// The map was found full: the engine refuses everything further.
    full: Cell<bool>,
    at_end: AtEnd,
}

/// When a put should be tried at the end of the store, behind every key.
///
/// There it costs no search, and the engine leaves pages full that it would leave half full: it is
/// meant for loads in the order of the keys. A try elsewhere costs a look at the last key, so those
/// that fail are made more and more seldom.
#[derive(Debug)]
struct AtEnd {
    /// How many puts go by before the next try.
    pass: u32,
    /// How many will, if that one fails.
    then: u32,
}

impl AtEnd {
    /// Small transactions do not try at all.
    const FIRST: u32 = 8;
    const MOST: u32 = 256;

    fn is_worth_a_try(&mut self) -> bool {
        self.pass = self.pass.saturating_sub(1);
        self.pass == 0
    }

    fn was_there(&mut self) {
        self.then = 1;
    }

    fn was_elsewhere(&mut self) {
        self.then = (self.then * 2).min(Self::MOST);
        self.pass = self.then;
    }
}

impl Default for AtEnd {
    fn default() -> Self {
        Self { pass: Self::FIRST, then: Self::FIRST }
    }
}

impl<'s> LmdbTransaction<'s> {
    pub(super) fn begin(shared: &'s Shared) -> Result<Self> {
        shared.process.check(&shared.path)?;
        if shared.options.read_only {
            return Err(Error::ReadOnly);
        }
        shared.check_sync()?;
        let turn = shared.writer.take()?;
        shared.grow_if_full()?;
        let (txn, ticket) = shared.enter(|env| env.write_txn())?;
        let (full, at_end) = (Cell::new(false), AtEnd::default());
        Ok(Self { txn, shared, _ticket: ticket, _turn: turn, full, at_end })
    }

    /// Puts an entry if it lies behind all that is in the store, and tells whether it does.
    fn append(&mut self, key: &[u8], value: &[u8]) -> heed::Result<bool> {
        let flags = PutFlags::APPEND;
        match self.shared.database.put_with_flags(&mut self.txn, flags, key, value) {
            Ok(()) => {
                self.at_end.was_there();
                Ok(true)
            }
            Err(heed::Error::Mdb(MdbError::KeyExist)) => {
                self.at_end.was_elsewhere();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn put_anywhere(&mut self, key: &[u8], value: &[u8]) -> heed::Result<()> {
        if self.at_end.is_worth_a_try() && self.append(key, value)? {
            return Ok(());
        }
        self.shared.database.put(&mut self.txn, key, value)
    }

    fn explain(&self, error: heed::Error) -> Error {
        match error {
            heed::Error::Mdb(MdbError::BadTxn) if self.full.get() => self.shared.map_full(),
            heed::Error::Mdb(MdbError::MapFull) => {
                self.full.set(true);
                self.shared.map_full()
            }
            other => self.shared.explain(other),
        }
    }
}

/// "Input/output error": the same number on every Unix.
const EIO: i32 = 5;

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
        self.put_anywhere(key, value).map_err(|error| self.explain(error))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        let deleted = self.shared.database.delete(&mut self.txn, key);
        deleted.map(drop).map_err(|error| self.explain(error))
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
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
        self.shared.process.check(&self.shared.path)?;
        let Self { txn, shared, full, .. } = self;
        txn.into_inner().commit().map_err(|error| match error {
            heed::Error::Mdb(MdbError::BadTxn) if full.get() => shared.map_full(),
            heed::Error::Io(source) if shared.may_be_unusable() => {
                // The page that makes the transaction valid was being written. The engine took it
                // back in memory, but what is on the disk nobody knows.
                let unusable = Error::Unusable { path: shared.path.clone(), source: Some(source) };
                Error::CommitUnknown { source: unusable.into() }
            }
            // The engine reports a write that the disk took only a part of, the usual first sign
            // of a full one, as this; and so does a disk that fails.
            heed::Error::Io(source) if source.raw_os_error() == Some(EIO) => {
                match room::is_left(&shared.path.join("data.mdb")) {
                    true => shared.note_failed_sync(heed::Error::Io(source)),
                    false => Error::DiskFull { path: shared.path.clone(), source },
                }
            }
            other => shared.explain(other),
        })
    }

    fn must_restart(&self) -> bool {
        self.full.get() && self.shared.can_grow()
    }
}
