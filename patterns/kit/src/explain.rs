//! Counts the reads of a query.

use std::fmt;
use std::iter::FusedIterator;

use keyloom::Result;

/// The read counts so far of a query that may read more entries than it returns.
///
/// ```
/// use keyloom_tables::Explain;
/// let explain = Explain { planned: 9, ranges: 12, keys_scanned: 390, keys_returned: 300 };
/// let text = "9 ranges planned, 12 begun, 390 keys scanned, 300 returned";
/// assert_eq!(explain.to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explain {
    /// The planned ranges, including those that were replaced by several smaller ones.
    pub planned: u64,
    /// Ranges begun, as in [`Cost::ranges`](keyloom::Cost::ranges), including those begun after
    /// skipped entries. Each range is a seek in a local store and a round trip in a remote store.
    pub ranges: u64,
    /// Keys read, including those that were returned.
    pub keys_scanned: u64,
    /// Keys or groups returned.
    pub keys_returned: u64,
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { planned, ranges, keys_scanned, keys_returned } = self;
        let s = |count: &u64| if *count == 1 { "" } else { "s" };
        write!(f, "{planned} range{} planned, {ranges} begun, ", s(planned))?;
        write!(f, "{keys_scanned} key{} scanned, {keys_returned} returned", s(keys_scanned))
    }
}

/// The results of a query that counts its reads.
///
/// ```
/// use keyloom::{Memory, Store, Subspace, Writer};
/// use keyloom_tables::{Grouping, Scan};
/// let log = Subspace::new("log"); // machine, second
/// let store = Memory::new();
/// store.transact(|txn| (0..9).try_for_each(|n| txn.put(&log.pack(&(n % 3, n)), b"")))?;
/// let snapshot = store.snapshot()?;
/// let mut machines = Grouping::new(&log, 1).values(&snapshot, ..)?;
/// assert_eq!(machines.by_ref().collect::<keyloom::Result<Vec<u8>>>()?, [0, 1, 2]);
/// assert_eq!(machines.explain().keys_scanned, 9);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub trait Scan: FusedIterator {
    /// The reads of the query so far.
    fn explain(&self) -> Explain;
}

/// The state of a [`scan`], which counts its reads, as a [`Walk`](crate::Walk) does.
pub trait Reading {
    /// The reads so far.
    fn reads(&self) -> Explain;
}

impl<S: Scan> Reading for S {
    fn reads(&self) -> Explain {
        self.explain()
    }
}

/// The items that `step` returns, up to the end or the first error.
pub fn scan<W: Reading, T>(
    walk: W,
    step: impl FnMut(&mut W) -> Result<Option<T>>,
) -> impl Scan<Item = Result<T>> {
    Steps { walk, step, has_ended: false }
}

struct Steps<W, F> {
    walk: W,
    step: F,
    has_ended: bool,
}

impl<W, T, F: FnMut(&mut W) -> Result<Option<T>>> Iterator for Steps<W, F> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let next = (self.step)(&mut self.walk).transpose();
        self.has_ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl<W, T, F: FnMut(&mut W) -> Result<Option<T>>> FusedIterator for Steps<W, F> {}

impl<W: Reading, T, F: FnMut(&mut W) -> Result<Option<T>>> Scan for Steps<W, F> {
    fn explain(&self) -> Explain {
        self.walk.reads()
    }
}
