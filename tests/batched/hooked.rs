//! A memory store whose operations can be made to fail, to panic and to wait.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyloom::{
    KeyRange, Limits, Memory, Order, Reader, Result, RetryPolicy, Store, Transaction,
    TransactionState, Writer,
};

/// A function that is called with the number of the operation.
type Hook = Box<dyn Fn(usize) -> Result<()> + Send + Sync>;

/// A memory store with hooks. A get of the key `poison` fails and ends the transaction, as on some
/// servers: all later operations fail.
pub struct Hooked {
    pub memory: Memory,
    pub policy: RetryPolicy,
    begins: AtomicUsize,
    commits: AtomicUsize,
    on_begin: Hook,
    on_commit: Hook,
}

impl Hooked {
    pub fn new(
        on_begin: impl Fn(usize) -> Result<()> + Send + Sync + 'static,
        on_commit: impl Fn(usize) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            memory: Memory::new(),
            policy: RetryPolicy::default(),
            begins: AtomicUsize::new(0),
            commits: AtomicUsize::new(0),
            on_begin: Box::new(on_begin),
            on_commit: Box::new(on_commit),
        }
    }
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}

impl Store for Hooked {
    type Snapshot<'s> = <Memory as Store>::Snapshot<'s>;
    type Transaction<'s> = HookedTransaction<'s>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        self.memory.snapshot()
    }

    fn begin(&self) -> Result<HookedTransaction<'_>> {
        (self.on_begin)(self.begins.fetch_add(1, Relaxed))?;
        Ok(HookedTransaction {
            inner: self.memory.begin()?,
            is_over: Cell::new(false),
            store: self,
        })
    }

    fn limits(&self) -> Limits {
        self.memory.limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.policy
    }
}

pub struct HookedTransaction<'s> {
    inner: <Memory as Store>::Transaction<'s>,
    is_over: Cell<bool>,
    store: &'s Hooked,
}

impl HookedTransaction<'_> {
    fn check(&self) -> Result<()> {
        if self.is_over.get() { Err(keyloom::Error::ReadOnly) } else { Ok(()) }
    }
}

impl<'s> Reader for HookedTransaction<'s> {
    type Bytes<'r>
        = &'r [u8]
    where
        Self: 'r;
    type Entries<'r>
        = <<Memory as Store>::Transaction<'s> as Reader>::Entries<'r>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        if key == b"poison" {
            self.is_over.set(true);
        }
        self.check()?;
        self.inner.get(key)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        self.check()?;
        self.inner.range(range, order)
    }
}

impl Writer for HookedTransaction<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check()?;
        self.inner.put(key, value)
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn state(&mut self) -> &mut TransactionState {
        self.inner.state()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.check()?;
        self.inner.delete(key)
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.check()?;
        self.inner.delete_range(range)
    }
}

impl Transaction for HookedTransaction<'_> {
    fn commit(self) -> Result<()> {
        self.check()?;
        (self.store.on_commit)(self.store.commits.fetch_add(1, Relaxed))?;
        self.inner.commit()
    }
}
