//! The entries of the queue of deferred data.

use keyloom::{Error, KeyBuf, Result, Subspace};

use super::error::SchemaError;
use crate::table::{QUEUE_FORMAT, queue_key};

/// Returns the key of a queued record in its table.
pub(super) fn record_key(queue: &Subspace, table: &Subspace, queued: &[u8]) -> KeyBuf {
    queue_key(table, queue, queued)
}

/// The encoded record in an entry of a queue; `None` if there was no record.
///
/// # Errors
/// [`Error::NewerFormat`]; [`SchemaError::Damaged`].
pub(super) fn read_queued(bytes: &[u8]) -> Result<Option<&[u8]>> {
    match bytes {
        [QUEUE_FORMAT, 0] => Ok(None),
        [QUEUE_FORMAT, 1, record @ ..] => Ok(Some(record)),
        [format, ..] if *format > QUEUE_FORMAT => Err(Error::NewerFormat {
            what: "the queue of deferred data".into(),
            found: (*format).into(),
            supported: QUEUE_FORMAT.into(),
        }),
        _ => Err(SchemaError::Damaged.into()),
    }
}
