//! Why a change was refused.

use std::fmt;

use super::VersionedRecord;

/// What a change was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// That there is no record.
    Absent,
    /// That the record has this version.
    Version(u64),
    /// That the record has the value that was given.
    Value,
}

/// A record is not what a change expected. Nothing was written; look at what is there, and decide
/// again.
///
/// It leaves a transaction as an error of the program's own. [`transact`](keyloom::Store::transact)
/// does not run the body again for it, since the same change would be refused again:
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::{VersionedTable, RecordConflict};
/// let prices = VersionedTable::<String, u32>::new(&Subspace::new("prices"));
/// let store = Memory::new();
/// store.transact(|txn| prices.create(txn, &"tea".into(), 250))?;
/// let error = store.transact(|txn| prices.update(txn, &"tea".into(), 8, 300)).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"the record ("prices", "record", "tea") has version 1 and not 8; read it again and decide anew"#
/// );
/// let conflict = error.downcast_ref::<RecordConflict<u32>>().expect("it is one");
/// let current = conflict.current.as_ref().expect("there is a record");
/// assert_eq!((current.version, current.value), (1, 250));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RecordConflict<V> {
    /// The key of the record, printable.
    pub key: Box<str>,
    /// What the change expected.
    pub expected: Expected,
    /// What is there: the record and its version, `None` where there is no record.
    pub current: Option<VersionedRecord<V>>,
}

impl<V> fmt::Display for RecordConflict<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record {} ", self.key)?;
        let version = self.current.as_ref().map(|current| current.version);
        match (self.expected, version) {
            (Expected::Absent, Some(found)) => write!(f, "is there already, at version {found}")?,
            (Expected::Absent, None) => f.write_str("is not there")?,
            (Expected::Version(expected), Some(found)) => {
                write!(f, "has version {found} and not {expected}")?;
            }
            (Expected::Version(expected), None) => {
                write!(f, "is not there, version {expected} was expected")?;
            }
            (Expected::Value, Some(found)) => {
                write!(f, "has another value than expected, at version {found}")?;
            }
            (Expected::Value, None) => f.write_str("is not there, a value was expected")?,
        }
        f.write_str("; read it again and decide anew")
    }
}

// By hand, so that a record which cannot be shown can be in it.
impl<V> fmt::Debug for RecordConflict<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordConflict")
            .field("key", &self.key)
            .field("expected", &self.expected)
            .field("version", &self.current.as_ref().map(|current| current.version))
            .finish_non_exhaustive()
    }
}

impl<V> std::error::Error for RecordConflict<V> {}

/// A list holds as many items as it may. Nothing was written; remove some, or give a larger limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the list {key} holds {items} items, the limit is {limit}; remove some, or raise the limit"
)]
pub struct Full {
    /// The key of the list, printable.
    pub key: Box<str>,
    /// How many items it holds.
    pub items: usize,
    /// How many it may hold.
    pub limit: usize,
}
