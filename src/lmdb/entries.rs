//! The entries of a range: the engine's iterators with one bound, and the check of the other bound.

use std::fmt;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use heed::types::Bytes;
use heed::{RoIter, RoRange, RoRevIter, RoRevRange, RoTxn, WithoutTls};

use super::Shared;
use crate::{KeyBuf, KeyRange, Order, Result, successor};

/// The entries of a range of an [`Lmdb`](crate::Lmdb) store.
///
/// The engine's binding copies each bound of a range to the heap. So it receives only the bound
/// where the walk starts. The other bound is stored on the stack and compared with each key.
pub struct LmdbEntries<'r> {
    walk: Walk<'r>,
    /// The bound that ends the walk: for an ascending walk, the first key after the range; for a
    /// descending walk, the first key of the range.
    stop: Option<KeyBuf>,
    /// The next result, except for entries of an ascending walk, which bypass this field. The
    /// compiler keeps a result in memory if another function may write to it, so every entry of a
    /// scan would pass through memory.
    found: Option<Result<Entry<'r>>>,
    shared: &'r Shared,
}

enum Walk<'r> {
    // A walk that starts at an end of the database compares no bound, and is a little faster.
    FromFirst(RoIter<'r, Bytes, Bytes>),
    Ascending(RoRange<'r, Bytes, Bytes>),
    FromLast(RoRevIter<'r, Bytes, Bytes>),
    Descending(RoRevRange<'r, Bytes, Bytes>),
    /// The iterator has ended. Needed because the engine would continue after an error.
    Ended,
}

impl<'r> LmdbEntries<'r> {
    pub(super) fn open(
        shared: &'r Shared,
        txn: &'r RoTxn<'_, WithoutTls>,
        range: &KeyRange<'_>,
        order: Order,
    ) -> Result<Self> {
        let Some((start, end)) = range.normalized() else {
            return Ok(Self { walk: Walk::Ended, stop: None, found: None, shared });
        };
        let database = &shared.database;
        let (walk, stop) = match order {
            Order::Ascending => {
                let walk = match start {
                    Unbounded => database.iter(txn).map(Walk::FromFirst),
                    _ => database.range(txn, &(start, Unbounded)).map(Walk::Ascending),
                };
                (walk, first_behind(end))
            }
            Order::Descending => {
                let walk = match end {
                    Unbounded => database.rev_iter(txn).map(Walk::FromLast),
                    _ => database.rev_range(txn, &(Unbounded, end)).map(Walk::Descending),
                };
                (walk, least_of(start))
            }
        };
        let walk = walk.map_err(|error| shared.explain(error))?;
        Ok(Self { walk, stop, found: None, shared })
    }

    /// Ends the walk. `next` returns the error, if there is one, through `found`.
    #[cold]
    #[inline(never)]
    fn end(&mut self, error: Option<heed::Error>) {
        self.walk = Walk::Ended;
        self.found = error.map(|error| Err(self.shared.explain(error)));
    }
}

/// The first key after a range with this end.
fn first_behind(end: Bound<&[u8]>) -> Option<KeyBuf> {
    match end {
        Excluded(key) => Some(KeyBuf::from_slice(key)),
        Included(key) => Some(successor(key)),
        Unbounded => None,
    }
}

/// The first key that a range with this start may contain.
fn least_of(start: Bound<&[u8]>) -> Option<KeyBuf> {
    match start {
        Included(key) => Some(KeyBuf::from_slice(key)),
        Excluded(key) => Some(successor(key)),
        Unbounded => None,
    }
}

type Entry<'r> = (&'r [u8], &'r [u8]);

/// Returns the next entry of `$walk` if `$is_inside` holds for its key, otherwise the error that
/// ended the walk, if any. This is a macro, expanded for each kind of walk: if one function
/// returned the results of all kinds, every entry would pass through memory, which costs a tenth of
/// a scan.
macro_rules! step {
    ($walk:expr, $stop:expr, $is_inside:expr) => {
        match $walk.next() {
            Some(Ok((key, value))) => match $stop {
                Some(stop) if !$is_inside(key, stop.as_slice()) => None,
                _ => return Some(Ok((key, value))),
            },
            Some(Err(error)) => Some(error),
            None => None,
        }
    };
}

impl<'r> LmdbEntries<'r> {
    /// Reads the next entry of a descending walk into `found`.
    #[inline(never)]
    fn descend(&mut self) {
        self.found = self.next_descending();
    }

    fn next_descending(&mut self) -> Option<Result<Entry<'r>>> {
        let error = match &mut self.walk {
            Walk::FromLast(walk) => step!(walk, &self.stop, is_not_below),
            Walk::Descending(walk) => step!(walk, &self.stop, is_not_below),
            Walk::FromFirst(_) | Walk::Ascending(_) | Walk::Ended => None,
        };
        self.end(error);
        self.found.take()
    }
}

#[inline]
fn is_below(key: &[u8], stop: &[u8]) -> bool {
    key < stop
}

#[inline]
fn is_not_below(key: &[u8], stop: &[u8]) -> bool {
    key >= stop
}

impl<'r> Iterator for LmdbEntries<'r> {
    type Item = Result<Entry<'r>>;

    // An ascending scan is inlined into the loop of the caller, like the engine's own iterator.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let error = match &mut self.walk {
            Walk::FromFirst(walk) => step!(walk, &self.stop, is_below),
            Walk::Ascending(walk) => step!(walk, &self.stop, is_below),
            _ => {
                self.descend();
                return self.found.take();
            }
        };
        self.end(error);
        self.found.take()
    }
}

impl fmt::Debug for LmdbEntries<'_> {
    /// Omits keys and values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LmdbEntries").finish_non_exhaustive()
    }
}
