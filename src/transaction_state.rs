//! The state of the patterns in a transaction.

use std::sync::Arc;

use crate::{Error, KeyBuf, Result};

/// The state that patterns keep in a transaction: the error of their first failed write, and cached
/// values.
///
/// Each transaction of a backend holds a `TransactionState`, returns it from
/// [`Writer::state`](crate::Writer::state), and calls [`check`](TransactionState::check) at the
/// beginning of [`Transaction::commit`](crate::Transaction::commit). A wrapper returns the state of
/// the inner transaction.
///
/// ```
/// use keyloom::{Error, TransactionState};
/// let mut state = TransactionState::default();
/// assert!(state.check().is_ok());
/// state.note(&Error::ReadOnly);
/// state.note(&Error::EmptyKey);
/// let Err(Error::CommitRefused { source }) = state.check() else { panic!("it is refused") };
/// assert!(matches!(*source, Error::ReadOnly), "the first error");
/// ```
#[derive(Clone, Debug, Default)]
pub struct TransactionState {
    cause: Option<Box<Error>>,
    /// The number of writes of patterns that have begun and not ended. A write that panics never
    /// ends.
    unfinished: u32,
    remembered: Vec<(KeyBuf, Option<Arc<[u8]>>)>,
    woken: Vec<KeyBuf>,
}

/// The error of a transaction in which a write of a pattern has begun and not ended.
#[derive(Debug, thiserror::Error)]
#[error("a write of a pattern panicked")]
struct Unfinished;

impl TransactionState {
    /// Makes the transaction refuse to commit. The first cause is kept.
    #[cold]
    pub fn note(&mut self, cause: &Error) {
        self.cause.get_or_insert_with(|| Box::new(cause.clone()));
    }

    /// Whether the first failed write may succeed when the transaction runs again.
    pub(crate) fn must_restart(&self) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.is_retryable())
    }

    /// Notes a key for [`Writer::wake`](crate::Writer::wake).
    pub(crate) fn wake(&mut self, key: &[u8]) {
        if !self.woken.iter().any(|other| **other == *key) {
            self.woken.push(KeyBuf::from_slice(key));
        }
    }

    /// The keys whose listeners the commit [wakes](crate::Writer::wake). A backend that notifies
    /// its listeners of commits must also notify the listeners of these keys.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Writer};
    /// let store = Memory::new();
    /// let mut txn = store.begin()?;
    /// txn.wake(b"bell");
    /// assert!(txn.state().woken().eq([b"bell"]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn woken(&self) -> impl Iterator<Item = &[u8]> {
        self.woken.iter().map(|key| &**key)
    }

    /// Removes everything that concerns the previous body in a transaction of several bodies. Its
    /// wakes stay.
    pub(crate) fn begin_body(&mut self) {
        *self = Self { woken: std::mem::take(&mut self.woken), ..Self::default() };
    }

    /// Records the beginning of a write of a pattern.
    pub(crate) fn begin(&mut self) {
        self.unfinished += 1;
    }

    /// Records the end of a write of a pattern, whether it succeeded or failed.
    pub(crate) fn end(&mut self) {
        self.unfinished -= 1;
    }

    /// Checks that the transaction may commit.
    ///
    /// # Errors
    /// [`Error::CommitRefused`] after a write of a pattern that failed, with its error as the
    /// source, or that panicked.
    pub fn check(&self) -> Result<()> {
        match &self.cause {
            Some(cause) => Err(Error::CommitRefused { source: cause.clone() }),
            None if self.unfinished > 0 => {
                Err(Error::CommitRefused { source: Box::new(Error::other(Unfinished)) })
            }
            None => Ok(()),
        }
    }

    /// Caches the value that this transaction has read at `key`, so that the key is read only once,
    /// however many writes need it. For the few keys that every write of a pattern needs.
    ///
    /// The value is shared, because most transactions read the same value, and a pattern often
    /// holds it already.
    ///
    /// A pattern that writes to such a key must call [`forget`](TransactionState::forget), because
    /// a write of the store does not update the cache.
    ///
    /// ```
    /// use keyloom::TransactionState;
    /// let mut state = TransactionState::default();
    /// assert_eq!(state.remembered(b"key"), None);
    /// state.remember(b"key", None);
    /// assert_eq!(state.remembered(b"key"), Some(None));
    /// state.remember(b"key", Some(b"value"[..].into()));
    /// assert_eq!(state.remembered(b"key"), Some(Some(&b"value"[..])));
    /// state.forget(b"key");
    /// assert_eq!(state.remembered(b"key"), None);
    /// ```
    pub fn remember(&mut self, key: &[u8], value: Option<Arc<[u8]>>) {
        self.forget(key);
        self.remembered.push((KeyBuf::from_slice(key), value));
    }

    /// The [cached](TransactionState::remember) value of `key`, if there is one; `Some(None)` if
    /// the store had no value.
    pub fn remembered(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let found = self.remembered.iter().find(|(other, _)| **other == *key);
        found.map(|(_, value)| value.as_deref())
    }

    /// Removes the cached value of `key`.
    pub fn forget(&mut self, key: &[u8]) {
        self.remembered.retain(|(other, _)| **other != *key);
    }
}
