//! The traits that a remote backend implements.

use bytes::Bytes;

use super::{Buffer, Span};
use keyloom::{AtomicOp, Entry, Error, Order, Result, TransactionState, VersionstampedKey};

/// Whether the server executes an operation natively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// The server has executed the operation, or will execute it at the commit.
    Done,
    /// The server cannot execute the operation, so the transaction reads and writes instead.
    Unknown,
}

/// Some entries of a span, and whether there are more after them.
#[derive(Debug)]
pub struct Fetched {
    /// The entries, in the requested order.
    pub entries: Vec<Entry<Bytes>>,
    /// Whether the span contains more entries after these.
    pub more: bool,
}

/// The error for an answer that has no entries but reports more: repeating the request would not
/// end.
#[derive(Debug, thiserror::Error)]
#[error("the session returned no entries of a range, and says that there are more")]
struct NoProgress;

/// Returns an error if no answer to a request has an entry although there are more.
pub(super) fn refuse_no_progress(answers: &[Fetched]) -> Result<()> {
    match answers.iter().any(|one| one.more) && answers.iter().all(|one| one.entries.is_empty()) {
        true => Err(Error::Backend(NoProgress.into())),
        false => Ok(()),
    }
}

/// Reads from a server at one revision. Each read takes one round trip, unless the backend splits
/// it into several requests.
pub trait Session {
    /// The largest number of spans for [`fetch_many`](Session::fetch_many).
    const MOST_SPANS: usize;

    /// The values of `keys`, in their order.
    ///
    /// # Errors
    /// The errors of the server.
    fn values(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>>;

    /// At most `limit` entries of `span`, from its beginning in `order`; at least one if there are
    /// [more](Fetched::more).
    ///
    /// # Errors
    /// The errors of the server.
    fn fetch(&self, span: &Span, order: Order, limit: usize) -> Result<Fetched>;

    /// At most `limit` entries of each span, in ascending order. The answer may end after any
    /// entry; then `more` is set for the span of that entry and for all later spans. The answer has
    /// at least one entry if there are more.
    ///
    /// # Errors
    /// The errors of the server.
    fn fetch_many(&self, spans: &[Span], limit: usize) -> Result<Vec<Fetched>>;

    /// Sets whether the commit checks the reads from now on, and returns the previous setting; see
    /// [`Writer::snapshot_read`](keyloom::Writer::snapshot_read). The default checks all reads.
    fn check_reads(&self, _is_checked: bool) -> bool {
        true
    }

    /// The number of keys in `span`; `None` if the server cannot count.
    ///
    /// # Errors
    /// The errors of the server.
    fn count(&self, span: &Span) -> Result<Option<u64>>;
}

/// One write.
#[derive(Clone, Debug)]
pub enum Write<'w> {
    /// A key and its new value.
    Put(&'w [u8], &'w [u8]),
    /// A key to delete.
    Delete(&'w [u8]),
    /// A span whose keys are deleted.
    DeleteSpan(Span),
}

/// A session that can also write.
pub trait WriteSession: Session {
    /// Adds a write to `buffer`. A client with a write buffer of its own overrides this method.
    ///
    /// # Errors
    /// The errors of the server.
    fn write(&mut self, buffer: &mut Buffer, write: Write<'_>) -> Result<()> {
        match write {
            Write::Put(key, value) => buffer.put(key, Bytes::copy_from_slice(value)),
            Write::Delete(key) => buffer.delete(key),
            Write::DeleteSpan(span) => buffer.delete_span(span),
        }
        Ok(())
    }

    /// Executes `operation` without a read, if the server can.
    ///
    /// # Errors
    /// The errors of the server.
    fn apply(&mut self, _key: &[u8], _operation: &AtomicOp<'_>) -> Result<Native> {
        Ok(Native::Unknown)
    }

    /// Writes a value under a key that the server completes at commit, if the server supports it.
    ///
    /// # Errors
    /// The errors of the server.
    fn put_versionstamped(
        &mut self,
        _key: &VersionstampedKey<'_>,
        _value: &[u8],
    ) -> Result<Native> {
        Ok(Native::Unknown)
    }

    /// The number of bytes that a write counts toward the limit of a transaction.
    fn weight(&self, write: &Write<'_>) -> usize {
        match write {
            Write::Put(key, value) => key.len() + value.len(),
            Write::Delete(key) => key.len(),
            Write::DeleteSpan(_) => 0,
        }
    }

    /// Sends the writes in `buffer` before the commit, if it has grown large and the server takes
    /// writes before the commit.
    ///
    /// # Errors
    /// The errors of the server.
    fn relieve(&mut self, buffer: &mut Buffer) -> Result<()>;

    /// Sends the remaining writes and commits. A server that notifies of commits also notifies of
    /// the keys that `state` [wakes](TransactionState::woken).
    ///
    /// # Errors
    /// The errors of the server.
    fn commit(self, buffer: Buffer, state: &TransactionState) -> Result<()>;

    /// See [`Transaction::must_restart`](keyloom::Transaction::must_restart).
    fn must_restart(&self) -> bool;
}
