//! A store with atomicity for single keys only.
//!
//! A transaction is one write without a read, and commits immediately. A snapshot is not isolated:
//! each get reads the current state, and so does each step of a range.

use std::sync::Arc;

use keyloom::{
    Error, KeyRange, Limits, Memory, Order, Reader, Result, Store, Transaction, TransactionState,
    Writer,
};

use crate::property_index::turns::Turns;

#[derive(Clone)]
pub struct PerKey {
    pub inner: Memory,
    pub turns: Arc<Turns>,
}

impl PerKey {
    pub fn new() -> Self {
        Self { inner: Memory::new(), turns: Arc::default() }
    }
}

impl Store for PerKey {
    type Snapshot<'s> = PerKeyReader;
    type Transaction<'s> = OneWrite;

    fn snapshot(&self) -> Result<PerKeyReader> {
        Ok(PerKeyReader(self.clone()))
    }

    fn begin(&self) -> Result<OneWrite> {
        Ok(OneWrite { store: self.clone(), write: None, state: TransactionState::default() })
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }
}

pub struct PerKeyReader(PerKey);

impl Reader for PerKeyReader {
    type Bytes<'r> = Vec<u8>;
    type Entries<'r> = PerKeyEntries;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.turns.operation()?;
        Ok(self.0.inner.snapshot()?.get(key)?.map(<[u8]>::to_vec))
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<PerKeyEntries> {
        Ok(PerKeyEntries { store: self.0.clone(), rest: Some(range.into_owned()), order })
    }
}

/// A range in which each step is a separate operation.
pub struct PerKeyEntries {
    store: PerKey,
    rest: Option<KeyRange<'static>>,
    order: Order,
}

impl Iterator for PerKeyEntries {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        if let Err(error) = self.store.turns.operation() {
            return Some(Err(error));
        }
        let snapshot = self.store.inner.snapshot().unwrap();
        let found = match self.order {
            Order::Ascending => snapshot.first(rest.clone()),
            Order::Descending => snapshot.last(rest.clone()),
        };
        let (key, value) = found.unwrap()?;
        self.rest = Some(rest.resume(self.order, key).into_owned());
        Some(Ok((key.to_vec(), value.to_vec())))
    }
}

pub struct OneWrite {
    store: PerKey,
    write: Option<(Vec<u8>, Option<Vec<u8>>)>,
    state: TransactionState,
}

fn beyond_a_key<T>() -> Result<T> {
    Err(Error::other("this store is atomic for one write of one key"))
}

impl Reader for OneWrite {
    type Bytes<'r> = Vec<u8>;
    type Entries<'r> = PerKeyEntries;

    fn get(&self, _: &[u8]) -> Result<Option<Vec<u8>>> {
        beyond_a_key()
    }

    fn range(&self, _: KeyRange<'_>, _: Order) -> Result<PerKeyEntries> {
        beyond_a_key()
    }
}

impl OneWrite {
    fn write(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if self.write.is_some() {
            return beyond_a_key();
        }
        self.write = Some((key.to_vec(), value.map(<[u8]>::to_vec)));
        Ok(())
    }
}

impl Writer for OneWrite {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(key, Some(value))
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }

    fn limits(&self) -> Limits {
        self.store.limits()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write(key, None)
    }

    fn delete_range(&mut self, _: KeyRange<'_>) -> Result<()> {
        beyond_a_key()
    }
}

impl Transaction for OneWrite {
    fn commit(self) -> Result<()> {
        self.state.check()?;
        let Some((key, value)) = self.write else { return Ok(()) };
        self.store.turns.operation()?;
        self.store.inner.transact(|txn| match &value {
            Some(value) => txn.put(&key, value),
            None => txn.delete(&key),
        })
    }
}

#[test]
fn the_store_takes_one_write_and_no_read_in_a_transaction() {
    let store = PerKey::new();
    let refused = |done: Result<()>| assert!(done.unwrap_err().to_string().contains("one key"));
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    refused(store.transact(|txn| {
        txn.put(b"b", b"1")?;
        txn.put(b"c", b"1")
    }));
    refused(store.transact(|txn| txn.get(b"a").map(drop)));
    refused(store.transact(|txn| txn.delete_range(KeyRange::all())));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 1);
    // The range is not a snapshot: it returns later writes.
    let mut walk = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    assert_eq!(walk.next().unwrap().unwrap().0, b"a");
    store.transact(|txn| txn.put(b"b", b"2")).unwrap();
    assert_eq!(walk.next().unwrap().unwrap().0, b"b");
    assert!(walk.next().is_none());
}
