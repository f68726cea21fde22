//! The cost of a search.

use std::fmt;

use keyloom::Cost;

/// The cost of a search.
///
/// ```
/// use keyloom_text::SearchExplain;
/// let explain = SearchExplain { lists: 2, ranges: 3, keys_read: 9, ..Default::default() };
/// assert_eq!(
///     explain.to_string(),
///     "2 lists, 0 gets, 3 ranges, 9 keys read, 0 round trips, 0 hits"
/// );
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchExplain {
    /// Posting lists: one per term, one per term that a pattern matches, and one list of lengths
    /// per field for each word of a combined query.
    pub lists: u64,
    /// Keys requested one by one or in batches.
    pub gets: u64,
    /// Range reads.
    pub ranges: u64,
    /// Keys read: statistics, terms of the dictionary, blocks, positions and filters.
    pub keys_read: u64,
    /// Round trips to a remote store: one for each get, batch of gets, range, batch of ranges, and
    /// further page of a range.
    pub round_trips: u64,
    /// Documents found.
    pub hits: u64,
}

impl fmt::Display for SearchExplain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lists, gets, ranges, keys_read, round_trips, hits } = self;
        write!(
            f,
            "{lists} lists, {gets} gets, {ranges} ranges, {keys_read} keys read, {round_trips} round trips, {hits} hits"
        )
    }
}

impl SearchExplain {
    /// The cost of a search, without lists and hits.
    pub(super) fn of(spent: Cost) -> Self {
        let Cost { gets, ranges, keys_read, round_trips, .. } = spent;
        Self { gets, ranges, keys_read, round_trips, ..Self::default() }
    }
}
