//! What a backend adds.
//!
//! Public traits of a private module, because the types that users hold are generic over them.

use bytes::Bytes;

use super::{Buffer, Span};
use crate::{Order, Result};

/// Keys and values as a server sent them: owned, shared when cloned.
pub type Pair = (Bytes, Bytes);

/// Some entries of a span, and whether there are more behind them.
#[derive(Debug)]
pub struct Fetched {
    pub(crate) entries: Vec<Pair>,
    pub(crate) more: bool,
}

/// Reading from a server at one moment. Each method waits for the server once.
pub trait Session {
    /// The values of `keys`, in their order.
    fn values(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>>;

    /// At most `limit` entries of `span`, from its beginning in `order`.
    fn fetch(&self, span: &Span, order: Order, limit: usize) -> Result<Fetched>;

    /// How many keys lie in `span`.
    fn count(&self, span: &Span) -> Result<u64>;
}

/// A session that can also write.
pub trait WriteSession: Session {
    /// Sends what is in `buffer` ahead of the commit, if it has grown large and the server takes
    /// writes before the commit.
    fn relieve(&mut self, buffer: &mut Buffer) -> Result<()>;

    /// Sends the rest and commits.
    fn commit(self, buffer: Buffer) -> Result<()>;

    /// See [`Transaction::must_restart`](crate::Transaction::must_restart).
    fn must_restart(&self) -> bool;
}
