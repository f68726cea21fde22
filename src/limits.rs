//! The limits of stores, and their checks.

use crate::backend::shown_key;
use crate::{Error, Result};

/// The longest key, in bytes, on every backend: LMDB's limit.
pub const MAX_KEY_BYTES: usize = 511;

/// The limits of a store. `None` means that the store itself has no such limit.
///
/// ```
/// use keyloom::{Memory, Store};
/// assert_eq!(Memory::new().limits().max_key_bytes, 511);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The greatest length of a key: [`MAX_KEY_BYTES`] on every backend.
    pub max_key_bytes: usize,
    /// The greatest length of a value.
    pub max_value_bytes: usize,
    /// The most bytes that one transaction may write, as the store counts them: keys and values,
    /// and some overhead on FoundationDB.
    pub max_transaction_bytes: Option<usize>,
    /// The most writes (puts, deletes, range deletes and atomic operations) of one transaction.
    pub max_transaction_operations: Option<usize>,
    /// How long a snapshot or a transaction may live, in milliseconds.
    pub max_age_ms: Option<u64>,
}

impl Default for Limits {
    /// The widest limits that any backend has: values of 4 GiB - 1 (LMDB), no bound on a
    /// transaction.
    fn default() -> Self {
        Self {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: u32::MAX as usize,
            max_transaction_bytes: None,
            max_transaction_operations: None,
            max_age_ms: None,
        }
    }
}

impl Limits {
    /// Returns these limits with another maximum length of values. A backend uses this in its
    /// `limits`.
    ///
    /// ```
    /// use keyloom::Limits;
    /// let limits = Limits::default().with_max_value_bytes(1 << 20);
    /// assert_eq!(limits.max_value_bytes, 1_048_576);
    /// ```
    #[must_use]
    pub fn with_max_value_bytes(self, max_value_bytes: usize) -> Self {
        Self { max_value_bytes, ..self }
    }

    /// These limits with a limit on the bytes and on the writes of one transaction. A backend uses
    /// this in its `limits`, and counts with [`TransactionSize`](crate::backend::TransactionSize).
    ///
    /// ```
    /// use keyloom::Limits;
    /// let limits = Limits::default().with_max_transaction(Some(1 << 20), None);
    /// assert_eq!(limits.max_transaction_bytes, Some(1_048_576));
    /// ```
    #[must_use]
    pub fn with_max_transaction(self, bytes: Option<usize>, operations: Option<usize>) -> Self {
        Self { max_transaction_bytes: bytes, max_transaction_operations: operations, ..self }
    }

    /// These limits with a maximum age of snapshots and transactions, in milliseconds. A backend
    /// uses this in its `limits`, and a test uses it to check early how a program works with short
    /// snapshots.
    ///
    /// ```
    /// use keyloom::{Limits, Memory, Store};
    /// let limits = Limits::default().with_max_age_ms(Some(20));
    /// assert_eq!(Memory::builder().limits(limits).build().limits().max_age_ms, Some(20));
    /// ```
    #[must_use]
    pub fn with_max_age_ms(self, max_age_ms: Option<u64>) -> Self {
        Self { max_age_ms, ..self }
    }

    /// Limits like those of FoundationDB: values of 100,000 bytes, transactions of 10,000,000 bytes
    /// and five seconds.
    ///
    /// Pass these limits to [`Memory::builder`](crate::Memory::builder) to test early whether a
    /// program stays within them. `Memory` counts only the bytes of keys and values. A cluster
    /// counts each key three or four times, some 70 bytes per write, and also the reads. So leave a
    /// margin, or halve a batch that is [too large](crate::Error::is_batch_too_large).
    pub fn foundationdb() -> Self {
        Self {
            max_value_bytes: 100_000,
            max_transaction_bytes: Some(10_000_000),
            max_age_ms: Some(5_000),
            ..Self::default()
        }
    }

    /// The limits of an `Etcd` store with default options: 4,096 writes and 1,371,136 bytes (1,339
    /// KiB) per transaction. The limit on bytes is the size of a request, 1.5 MiB, minus its
    /// overhead.
    ///
    /// Pass these limits to [`Memory::builder`](crate::Memory::builder) to test early whether a
    /// program stays within them.
    pub fn etcd() -> Self {
        const BYTES: usize = 1_371_136;
        Self {
            // One value and the longest key fit into one request.
            max_value_bytes: BYTES - MAX_KEY_BYTES,
            max_transaction_bytes: Some(BYTES),
            max_transaction_operations: Some(4_096),
            ..Self::default()
        }
    }
}

/// Returns an error if the key is empty or longer than [`MAX_KEY_BYTES`].
///
/// Every operation on a key calls this on every backend, reads included, so that a key that cannot
/// be stored is an error on every store, and never "absent".
///
/// # Errors
/// [`Error::EmptyKey`], [`Error::KeyTooLong`].
#[inline]
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.len().wrapping_sub(1) < MAX_KEY_BYTES { Ok(()) } else { Err(refused_key(key)) }
}

#[cold]
fn refused_key(key: &[u8]) -> Error {
    if key.is_empty() {
        return Error::EmptyKey;
    }
    Error::KeyTooLong { key: shown_key(key), bytes: key.len(), limit: MAX_KEY_BYTES }
}

/// Returns an error for a value that is longer than `limit` bytes.
///
/// # Errors
/// [`Error::ValueTooLong`].
#[inline]
pub fn check_value(key: &[u8], value: &[u8], limit: usize) -> Result<()> {
    if value.len() <= limit {
        return Ok(());
    }
    Err(Error::ValueTooLong { key: shown_key(key), bytes: value.len(), limit })
}

/// The size of the writes of a transaction, compared with the limits of its store.
///
/// ```
/// use keyloom::{Error, Limits, backend::TransactionSize};
/// let (limits, mut size) = (Limits::foundationdb(), TransactionSize::default());
/// size.charge(9_000_000, &limits)?;
/// assert!(matches!(size.charge(9_000_000, &limits), Err(Error::TransactionTooLarge { .. })));
/// assert!(size.check(&limits).is_err(), "nor does it commit");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionSize {
    bytes: usize,
    operations: usize,
}

impl TransactionSize {
    /// Counts one more write of `bytes`. A transaction calls this for every write.
    ///
    /// # Errors
    /// [`Error::TransactionTooLarge`] if the transaction exceeds the limits.
    pub fn charge(&mut self, bytes: usize, limits: &Limits) -> Result<()> {
        self.bytes += bytes;
        self.operations += 1;
        self.check(limits)
    }

    /// Returns an error for a transaction that is too large. A commit calls this, since the program
    /// may have ignored the error of the write.
    ///
    /// # Errors
    /// [`Error::TransactionTooLarge`].
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let counted = [
            ("bytes", self.bytes, limits.max_transaction_bytes),
            ("operations", self.operations, limits.max_transaction_operations),
        ];
        for (unit, actual, limit) in counted {
            if let Some(limit) = limit.filter(|&limit| actual > limit) {
                return Err(Error::TransactionTooLarge { unit, actual, limit });
            }
        }
        Ok(())
    }
}
