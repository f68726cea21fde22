//! Snapshots, transactions and the entries that they read.

use std::fmt;

use fjall::{Iter, OptimisticWriteTx, Readable, Slice};
use keyloom::backend::ChangedKeys;
use keyloom::{
    Error, KeyRange, Limits, Order, Reader, Result, Transaction, TransactionState, Writer,
    check_key, check_value,
};

use super::{MAX_VALUE_BYTES, Named, Shared, limits, named};

#[derive(Clone)]
pub struct FjallSnapshot<'s> {
    pub(super) snapshot: fjall::Snapshot,
    pub(super) shared: &'s Shared,
}

pub struct FjallTransaction<'s> {
    pub(super) txn: OptimisticWriteTx,
    pub(super) shared: &'s Shared,
    pub(super) state: TransactionState,
    pub(super) changed: ChangedKeys,
}

pub struct FjallEntries<'r> {
    /// `None` once the iterator has ended or failed.
    entries: Option<Iter>,
    order: Order,
    shared: &'r Shared,
}

impl Iterator for FjallEntries<'_> {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entries = self.entries.as_mut()?;
        let next = match self.order {
            Order::Ascending => entries.next(),
            Order::Descending => entries.next_back(),
        };
        let next = next.map(|entry| entry.into_inner().named(&self.shared.path));
        if !matches!(next, Some(Ok(_))) {
            self.entries = None;
        }
        next
    }
}

macro_rules! reads {
    ($reader:ident, $field:ident) => {
        impl Reader for $reader<'_> {
            type Bytes<'r>
                = Slice
            where
                Self: 'r;
            type Entries<'r>
                = FjallEntries<'r>
            where
                Self: 'r;

            fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
                check_key(key)?;
                self.$field.get(self.shared.keys(), key).named(&self.shared.path)
            }

            fn range(&self, range: KeyRange<'_>, order: Order) -> Result<FjallEntries<'_>> {
                let bounds = range.normalized();
                let entries =
                    bounds.map(|bounds| self.$field.range::<&[u8], _>(self.shared.keys(), bounds));
                Ok(FjallEntries { entries, order, shared: self.shared })
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

reads!(FjallSnapshot, snapshot);
reads!(FjallTransaction, txn);

impl Writer for FjallTransaction<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(key, value, MAX_VALUE_BYTES)?;
        self.changed.note(key);
        self.txn.insert(self.shared.keys(), key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.changed.note(key);
        self.txn.remove(self.shared.keys(), key);
        Ok(())
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.changed.note_any();
        // fjall has no range tombstones in transactions, so each key is deleted.
        let keys = self.range(range, Order::Ascending)?.map(|entry| Ok(entry?.0));
        for key in keys.collect::<Result<Vec<Slice>>>()? {
            self.txn.remove(self.shared.keys(), key);
        }
        Ok(())
    }

    fn limits(&self) -> Limits {
        limits()
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }
}

impl Transaction for FjallTransaction<'_> {
    fn commit(self) -> Result<()> {
        self.state.check()?;
        let Self { txn, shared, mut changed, state, .. } = self;
        changed.note_woken(&state);
        shared.process.check(&shared.path)?;
        match txn.commit() {
            Ok(Ok(())) => {
                shared.signal.notify(changed);
                Ok(())
            }
            Ok(Err(fjall::Conflict)) => {
                Err(Error::Conflict { what: "a key that the transaction has read".into() })
            }
            // The journal may contain the commit, so the next open may replay it.
            Err(error) => {
                let source = named(&shared.path, error);
                Err(Error::CommitUnknown { source: source.into() })
            }
        }
    }
}
