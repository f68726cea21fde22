//! Where the keys of a store lie among all keys of a cluster.

use bytes::Bytes;

use crate::remote::Span;

/// The keys of one store: those that begin with its name and a slash.
#[derive(Clone, Debug)]
pub(super) struct Keyspace {
    /// The name and a slash.
    prefix: Vec<u8>,
    /// The first key behind all that begin with the prefix.
    end: Vec<u8>,
    /// The key that every transaction writes which deletes something. It lies before the prefix, so
    /// no range of the store holds it, and no other store has a key there: theirs have a slash.
    mark: Vec<u8>,
}

impl Keyspace {
    pub(super) fn new(name: &str) -> Self {
        let with = |tail: &str| [name, tail].concat().into_bytes();
        // '0' is the character behind the slash.
        Self { prefix: with("/"), end: with("0"), mark: with(".deleted") }
    }

    /// The key as etcd knows it.
    pub(super) fn outer(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    /// The bounds of a span as etcd knows them.
    pub(super) fn bounds(&self, span: &Span) -> (Vec<u8>, Vec<u8>) {
        let end = span.end.as_deref().map_or_else(|| self.end.clone(), |end| self.outer(end));
        (self.outer(&span.start), end)
    }

    /// The key as the store knows it.
    pub(super) fn inner(&self, key: Vec<u8>) -> Bytes {
        let mut key = Bytes::from(key);
        key.split_off(self.prefix.len().min(key.len()))
    }

    pub(super) fn mark(&self) -> Vec<u8> {
        self.mark.clone()
    }

    /// How much longer a key is for etcd.
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix.len()
    }
}
