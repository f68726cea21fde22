//! The conditions of changes, and the errors of changes that do not meet them.

use std::fmt;

use super::{ExternalVersion, VersionedRecord};

/// The condition of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// There is no record.
    Absent,
    /// The record has this version.
    Version(u64),
    /// The record has the given value.
    Value,
    /// The versions of the record and of its tombstone are smaller than this one. With
    /// [`ExternalVersion::GreaterOrEqual`], they may also be equal to it.
    External(ExternalVersion),
}

/// The error of a change whose condition the record does not meet. Nothing was written. Read the
/// record and decide again.
///
/// [`transact`](keyloom::Store::transact) returns this error like any error of the program. It does
/// not retry the transaction, since the same change would fail again:
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::{VersionedTable, RecordConflict};
/// let prices = VersionedTable::<String, u32>::new(&Subspace::new("prices"));
/// let store = Memory::new();
/// store.transact(|txn| prices.create(txn, &"tea".into(), 250))?;
/// let error = store.transact(|txn| prices.update(txn, &"tea".into(), 8, 300)).unwrap_err();
/// let text = error.to_string();
/// assert!(text.starts_with(r#"the record ("prices", "record", "tea") has version 1"#));
/// let conflict = error.downcast_ref::<RecordConflict<u32>>().expect("it is one");
/// let current = conflict.current.as_ref().expect("there is a record");
/// assert_eq!((current.version, current.value), (1, 250));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RecordConflict<V> {
    /// The key of the record in printable form.
    pub key: Box<str>,
    /// The condition of the change.
    pub expected: Expected,
    /// The current record with its version, `None` if there is no record.
    pub current: Option<VersionedRecord<V>>,
    /// The version of the tombstone of the record, if the tombstone refused the external change.
    pub deleted: Option<u64>,
    /// The largest version of the records that the table has deleted without an external version,
    /// if this version refused the external change.
    pub deleted_here: Option<u64>,
}

impl<V> fmt::Display for RecordConflict<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record {} ", self.key)?;
        let version = self.current.as_ref().map(|current| current.version);
        match (self.expected, version) {
            (Expected::Absent, Some(found)) => write!(f, "already exists, at version {found}")?,
            (Expected::Absent, None) => f.write_str("does not exist")?,
            (Expected::Version(expected), Some(found)) => {
                write!(f, "has version {found}, version {expected} was expected")?;
            }
            (Expected::Version(expected), None) => {
                write!(f, "does not exist, version {expected} was expected")?;
            }
            (Expected::Value, Some(found)) => {
                write!(f, "has another value than expected, at version {found}")?;
            }
            (Expected::Value, None) => f.write_str("does not exist, a value was expected")?,
            (Expected::External(given), found) => return self.fmt_external(f, given, found),
        }
        f.write_str("; read it again and decide again")
    }
}

impl<V> RecordConflict<V> {
    fn fmt_external(
        &self,
        f: &mut fmt::Formatter<'_>,
        given: ExternalVersion,
        found: Option<u64>,
    ) -> fmt::Result {
        if let Some(version) = self.deleted_here {
            return write!(
                f,
                "is absent, and the table has deleted a record of version {version} without an external version, {given} was expected; let all versions of a table come from one source"
            );
        }
        match (found, self.deleted) {
            (Some(found), _) => write!(f, "has version {found}")?,
            (None, Some(deleted)) => write!(f, "was deleted at version {deleted}")?,
            (None, None) => f.write_str("does not exist")?,
        }
        write!(f, ", {given} was expected; the change is older, so leave it out")
    }
}

// Implemented by hand, so that `V` need not implement `Debug`.
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

/// The error of an append to a full list. Nothing was written. Remove items, or raise the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the list {key} holds {items} items, the limit is {limit}; remove some, or raise the limit"
)]
pub struct Full {
    /// The key of the list in printable form.
    pub key: Box<str>,
    /// The number of items in the list.
    pub items: usize,
    /// The maximum number of items.
    pub limit: usize,
}
