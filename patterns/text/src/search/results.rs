//! The results of a search.

use super::continuation::SearchContinuation;

/// A record that matches a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<K> {
    /// The key of the record.
    pub key: K,
    /// Its score: greater is better.
    pub score: f64,
}

/// A record that matches a query, with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordHit<K, V> {
    /// The key of the record.
    pub key: K,
    /// The record.
    pub value: V,
    /// Its score: greater is better.
    pub score: f64,
}

/// Some results of a search, and the position of the next page.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPage<T> {
    /// The results, the best first. Of equal scores, the smaller id is first.
    pub items: Vec<T>,
    /// The position of the next page, `None` after the last one. It may be `Some` although no more
    /// results follow.
    pub next: Option<SearchContinuation>,
}
