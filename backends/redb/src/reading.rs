//! Snapshots, transactions and the bytes and entries that they read.

use std::fmt;
use std::ops::{Bound, Deref};

use keyloom::backend::{ChangedKeys, WriterTurn};
use keyloom::{
    KeyRange, Limits, Order, Reader, Result, Transaction, TransactionState, Writer, check_key,
    check_value,
};
use redb::{
    AccessGuard, Range, ReadOnlyTable, ReadableTable, ReadableTableMetadata, WriteTransaction,
};
use self_cell::self_cell;

use super::{Bytes, MAX_VALUE_BYTES, Named, Shared, Table, limits, named};

self_cell! {
    /// A transaction of redb and its table, which borrows the transaction. If each operation opened
    /// the table, a range could not outlive its operation.
    pub(super) struct Open {
        owner: WriteTransaction,
        #[covariant]
        dependent: Table,
    }
}

pub struct RedbSnapshot<'s> {
    pub(super) table: ReadOnlyTable<Bytes, Bytes>,
    pub(super) shared: &'s Shared,
}

pub struct RedbTransaction<'s> {
    // Dropped in this order: the engine's transaction must end before the next writer may begin.
    pub(super) open: Open,
    pub(super) shared: &'s Shared,
    pub(super) state: TransactionState,
    pub(super) has_written: bool,
    pub(super) changed: ChangedKeys,
    pub(super) _turn: WriterTurn<'s>,
}

pub struct RedbBytes<'r>(AccessGuard<'r, Bytes>);

impl Deref for RedbBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.value()
    }
}

pub struct RedbEntries<'r> {
    /// `None` once the iterator has ended or failed.
    range: Option<Range<'r, Bytes, Bytes>>,
    order: Order,
    shared: &'r Shared,
}

impl<'r> Iterator for RedbEntries<'r> {
    type Item = Result<(RedbBytes<'r>, RedbBytes<'r>)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let range = self.range.as_mut()?;
        let next = match self.order {
            Order::Ascending => range.next(),
            Order::Descending => range.next_back(),
        };
        match next {
            Some(Ok((key, value))) => Some(Ok((RedbBytes(key), RedbBytes(value)))),
            ended => {
                self.range = None;
                ended?.err().map(|error| Err(named(&self.shared.path, error.into())))
            }
        }
    }
}

macro_rules! reads {
    ($reader:ident, $self:ident => $table:expr) => {
        impl Reader for $reader<'_> {
            /// Bytes in a page of redb. The page stays in memory as long as this value.
            type Bytes<'r>
                = RedbBytes<'r>
            where
                Self: 'r;
            type Entries<'r>
                = RedbEntries<'r>
            where
                Self: 'r;

            #[inline]
            fn get(&$self, key: &[u8]) -> Result<Option<RedbBytes<'_>>> {
                check_key(key)?;
                let value = ReadableTable::get($table, key);
                Ok(value.named(&$self.shared.path)?.map(RedbBytes))
            }

            fn range(&$self, range: KeyRange<'_>, order: Order) -> Result<RedbEntries<'_>> {
                let bounds = range.normalized();
                let range = bounds.map(|bounds| ReadableTable::range::<&[u8]>($table, bounds));
                let range = range.transpose().named(&$self.shared.path)?;
                Ok(RedbEntries { range, order, shared: $self.shared })
            }

            fn count(&$self, range: KeyRange<'_>) -> Result<u64> {
                if range.normalized() == Some((Bound::Unbounded, Bound::Unbounded)) {
                    return $table.len().named(&$self.shared.path);
                }
                let mut entries = $self.range(range, Order::Ascending)?;
                entries.try_fold(0, |count, entry| entry.map(|_| count + 1))
            }
        }

        impl fmt::Debug for $reader<'_> {
            /// Omits keys and values.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($reader)).finish_non_exhaustive()
            }
        }
    };
}

reads!(RedbSnapshot, self => &self.table);
reads!(RedbTransaction, self => self.open.borrow_dependent());

impl RedbTransaction<'_> {
    /// A failed write may have changed some pages, so the transaction refuses to commit afterwards.
    fn write(&mut self, write: impl FnOnce(&mut Table<'_>) -> redb::Result<()>) -> Result<()> {
        self.has_written = true;
        let written = self.open.with_dependent_mut(|_, table| write(table));
        written.named(&self.shared.path).inspect_err(|error| self.state.note(error))
    }
}

impl Writer for RedbTransaction<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(key, value, MAX_VALUE_BYTES)?;
        self.changed.note(key);
        self.write(|table| table.insert(key, value).map(drop))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.changed.note(key);
        self.write(|table| table.remove(key).map(drop))
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.changed.note_any();
        match range.normalized() {
            Some(bounds) => self.write(|table| table.retain_in::<&[u8], _>(bounds, |_, _| false)),
            None => Ok(()),
        }
    }

    fn limits(&self) -> Limits {
        limits()
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }
}

impl Transaction for RedbTransaction<'_> {
    fn commit(self) -> Result<()> {
        self.state.check()?;
        let Self { open, shared, has_written, mut changed, _turn: turn, state, .. } = self;
        changed.note_woken(&state);
        shared.process.check(&shared.path)?;
        if has_written {
            shared.commit(open.into_owner())?;
            shared.signal.notify(changed);
        }
        drop(turn);
        Ok(())
    }
}
