//! The keys of a store among all keys of a cluster.

use bytes::{Bytes, BytesMut};
use foundationdb::future::FdbValues;

use keyloom::backend::Span;
use keyloom::{Entry, prefix_end};

/// The keys of one store: those that begin with its prefix.
#[derive(Clone, Debug)]
pub(super) struct Keyspace {
    prefix: Vec<u8>,
    /// The first key after all keys of the store.
    end: Vec<u8>,
}

/// The first key that belongs to FoundationDB itself.
const SYSTEM: &[u8] = b"\xFF";

impl Keyspace {
    pub(super) fn new(prefix: &[u8]) -> Self {
        let end = prefix_end(prefix).map_or_else(|| SYSTEM.to_vec(), |end| end.to_vec());
        Self { prefix: prefix.to_vec(), end }
    }

    /// The key in FoundationDB.
    pub(super) fn outer(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    /// The bounds of a span in FoundationDB.
    pub(super) fn bounds(&self, span: &Span) -> (Vec<u8>, Vec<u8>) {
        let end = span.end.as_deref().map_or_else(|| self.end.clone(), |end| self.outer(end));
        (self.outer(&span.start), end)
    }

    /// The key in the store.
    pub(super) fn inner<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.get(self.prefix.len()..).unwrap_or_default()
    }

    /// The entries with keys of the store, in one allocation.
    pub(super) fn entries(&self, values: &FdbValues) -> Vec<Entry<Bytes>> {
        let bytes = values.iter().map(|entry| entry.key().len() + entry.value().len()).sum();
        let mut page = BytesMut::with_capacity(bytes);
        for entry in values {
            page.extend_from_slice(self.inner(entry.key()));
            page.extend_from_slice(entry.value());
        }
        let mut page = page.freeze();
        let mut take = |bytes: &[u8]| -> Bytes { page.split_to(bytes.len()) };
        values.iter().map(|entry| (take(self.inner(entry.key())), take(entry.value()))).collect()
    }

    /// The number of bytes that the prefix adds to a key in FoundationDB.
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix.len()
    }
}
