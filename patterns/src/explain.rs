//! What a query touched.

use std::fmt;

/// What a query that can read more than it returns has read so far.
///
/// ```
/// use keyloom_patterns::Explain;
/// let explain = Explain { ranges: 9, seeks: 12, keys_scanned: 390, keys_returned: 300 };
/// assert_eq!(explain.to_string(), "9 ranges, 12 seeks, 390 keys scanned, 300 returned");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explain {
    /// The ranges that were planned, those included that were given up for more and smaller ones.
    pub ranges: u64,
    /// Ranges begun, those included that are begun anew behind what was skipped: seeks in a local store, round
    /// trips on one behind a network.
    pub seeks: u64,
    /// Keys that were met, those that were returned included.
    pub keys_scanned: u64,
    /// Keys, or groups of them, that were returned.
    pub keys_returned: u64,
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranges, seeks, keys_scanned, keys_returned } = self;
        write!(
            f,
            "{ranges} ranges, {seeks} seeks, {keys_scanned} keys scanned, {keys_returned} returned"
        )
    }
}
