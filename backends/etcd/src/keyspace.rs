//! The keys of a store among all keys of a cluster.

use bytes::Bytes;

use keyloom::backend::Span;

/// The keys of one store: those that begin with its name and a slash.
#[derive(Clone, Debug)]
pub(super) struct Keyspace {
    /// The name and a slash.
    prefix: Vec<u8>,
    /// The first key after all keys with the prefix.
    end: Vec<u8>,
    /// The key that every transaction with deletes writes. It sorts before the prefix, so no range
    /// of the store contains it. The keys of other stores contain a slash, so they differ from the
    /// mark.
    mark: Vec<u8>,
}

impl Keyspace {
    pub(super) fn new(name: &str) -> Self {
        let with = |tail: &str| [name, tail].concat().into_bytes();
        // '0' is the character after the slash.
        Self { prefix: with("/"), end: with("0"), mark: with(".deleted") }
    }

    /// The key in etcd.
    pub(super) fn outer(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    /// The bounds of a span in etcd.
    pub(super) fn bounds(&self, span: &Span) -> (Vec<u8>, Vec<u8>) {
        let end = span.end.as_deref().map_or_else(|| self.end.clone(), |end| self.outer(end));
        (self.outer(&span.start), end)
    }

    /// The key in the store.
    pub(super) fn inner(&self, key: Vec<u8>) -> Bytes {
        let mut key = Bytes::from(key);
        key.split_off(self.prefix.len().min(key.len()))
    }

    pub(super) fn mark(&self) -> Vec<u8> {
        self.mark.clone()
    }

    /// The number of bytes that the prefix adds to a key in etcd.
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix.len()
    }
}
