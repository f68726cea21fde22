//! The results of a search.

/// A record that matches a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<K> {
    /// The key of the record.
    pub key: K,
    /// The score of the record: greater is better.
    pub score: f64,
}

/// A record that matches a query, with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordHit<K, V> {
    /// The key of the record.
    pub key: K,
    /// The record.
    pub value: V,
    /// The score of the record: greater is better.
    pub score: f64,
}
