//! The writes of a transaction that its server has not seen yet.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use bytes::Bytes;

use super::{Span, Spans};
use crate::{KeyBuf, Order};

/// Writes that wait to be sent: for each key the last one, and the ranges that were deleted before
/// them.
#[derive(Default)]
pub struct Buffer {
    /// `None`: deleted.
    keys: BTreeMap<KeyBuf, Option<Bytes>>,
    /// What the server has here is not there any more.
    cleared: Spans,
    bytes: usize,
}

/// Keys and what was written to them, in order; `None`: deleted.
pub(super) type Writes<'b> = Box<dyn Iterator<Item = (&'b KeyBuf, Option<&'b Bytes>)> + 'b>;

/// What a [`Buffer`] knows of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Value(Bytes),
    Absent,
    /// Only the server knows.
    No,
}

impl Buffer {
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) {
        self.set(key, Some(Bytes::copy_from_slice(value)));
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.set(key, None);
    }

    fn set(&mut self, key: &[u8], value: Option<Bytes>) {
        self.bytes += weight(key, value.as_ref());
        if let Some(old) = self.keys.insert(KeyBuf::from_slice(key), value) {
            self.bytes -= weight(key, old.as_ref());
        }
    }

    pub(crate) fn delete_span(&mut self, span: Span) {
        let gone: Vec<KeyBuf> =
            self.keys.range::<[u8], _>(bounds(&span)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            if let Some(old) = self.keys.remove(&key) {
                self.bytes -= weight(&key, old.as_ref());
            }
        }
        self.cleared.insert(span);
    }

    pub(crate) fn get(&self, key: &[u8]) -> Known {
        match self.keys.get(key) {
            Some(Some(value)) => Known::Value(value.clone()),
            Some(None) => Known::Absent,
            None if self.cleared.contains(key) => Known::Absent,
            None => Known::No,
        }
    }

    /// Whether what the server says of `key` still holds.
    pub(crate) fn leaves(&self, key: &[u8]) -> bool {
        !self.keys.contains_key(key) && !self.cleared.contains(key)
    }

    /// The writes to single keys of `span`, in `order`.
    pub(crate) fn writes_in<'b>(&'b self, span: Option<&Span>, order: Order) -> Writes<'b> {
        let Some(span) = span else { return Box::new(std::iter::empty()) };
        let writes =
            self.keys.range::<[u8], _>(bounds(span)).map(|(key, value)| (key, value.as_ref()));
        match order {
            Order::Ascending => Box::new(writes),
            Order::Descending => Box::new(writes.rev()),
        }
    }

    /// What a walk through `span` in `order` has still to ask for, when it is about to enter a range
    /// that was deleted.
    pub(super) fn beyond_cleared(&self, span: Span, order: Order) -> Option<Span> {
        self.cleared.beyond(span, order)
    }

    /// Whether nothing was written in `span`.
    pub(super) fn leaves_whole(&self, span: &Span) -> bool {
        self.keys.range::<[u8], _>(bounds(span)).next().is_none() && !self.cleared.meet(span)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.cleared.is_empty()
    }

    /// Bytes of the keys and values that wait.
    #[cfg(feature = "postgres")] // The others take no writes ahead.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many writes wait.
    pub(crate) fn len(&self) -> usize {
        self.keys.len() + self.cleared.len()
    }

    /// The ranges to delete, and then the keys to set (`None`: to delete).
    #[cfg(any(feature = "postgres", feature = "etcd"))] // The third keeps nothing here.
    pub(crate) fn into_parts(self) -> (Spans, BTreeMap<KeyBuf, Option<Bytes>>) {
        (self.cleared, self.keys)
    }
}

impl fmt::Debug for Buffer {
    /// How much there is, and nothing of what it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("writes", &self.len()).field("bytes", &self.bytes).finish()
    }
}

fn weight(key: &[u8], value: Option<&Bytes>) -> usize {
    key.len() + value.map_or(0, Bytes::len)
}

fn bounds(span: &Span) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let end = span.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(&span.start), end)
}
