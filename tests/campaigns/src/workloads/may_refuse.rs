//! Operations whose refusal is a valid result.

use keyloom::{
    AtomicOp, DynWriter, KeyRange, Limits, Order, Reader, Result, TransactionState, Writer,
};

/// A part of a transaction that commits although one of its operations was refused. It is for
/// operations that write nothing when they are refused, which the campaigns verify.
pub struct MayRefuse<'t, 'w> {
    txn: &'t mut DynWriter<'w>,
    state: TransactionState,
}

impl<'t, 'w> MayRefuse<'t, 'w> {
    pub fn new(txn: &'t mut DynWriter<'w>) -> Self {
        Self { txn, state: TransactionState::default() }
    }
}

impl<'w> Reader for MayRefuse<'_, 'w> {
    type Bytes<'r>
        = <DynWriter<'w> as Reader>::Bytes<'r>
    where
        Self: 'r;
    type Entries<'r>
        = <DynWriter<'w> as Reader>::Entries<'r>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.txn.get(key)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        self.txn.range(range, order)
    }
}

impl Writer for MayRefuse<'_, '_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.txn.put(key, value)
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        self.txn.put_sorted(entries)
    }

    fn limits(&self) -> Limits {
        self.txn.limits()
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.txn.delete(key)
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.txn.delete_range(range)
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        self.txn.apply(key, operation)
    }
}
