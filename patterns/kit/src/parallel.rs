//! Reads of one state on several threads.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use keyloom::{KeyRange, Order, Reader, Result, Store};

use super::sample::split;

/// The number of parts for each thread. With more parts, the threads end at more similar times, and
/// each part costs the opening of a range.
const PARTS_PER_THREAD: usize = 8;

/// The largest number of entries that are read on one thread: to divide them would cost more.
const SHORT: usize = 4_096;

/// Calls `work` with disjoint parts of `range`, on up to `threads` threads, and returns the results
/// in the order of the keys.
///
/// All parts are read in one state of the store, whatever is written meanwhile. The parts are found
/// by [sampling](split()) and cover `range`, also where it has no entries. On a store that has no
/// [parallel snapshots](Store::parallel_snapshots), on a store with a server, and for a range of up
/// to 4,096 entries, the range is one part. Cost: that of `work`, and some thousand short ranges
/// for each thread.
///
/// ```
/// use keyloom::{KeyRange, Memory, Reader, Store, Writer, pack};
/// use keyloom_kit::in_parallel;
/// let store = Memory::new();
/// store.transact(|txn| (0..50_000_u32).try_for_each(|n| txn.put(&pack(&n), b"")))?;
/// let counts = in_parallel(&store, KeyRange::all(), 2, |snapshot, part| snapshot.count(part))?;
/// assert!(counts.len() > 2 && counts.iter().sum::<u64>() == 50_000);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// The first error of `work` in the order of the keys; any error of the store. After an error, the
/// parts that no thread has begun are left out.
pub fn in_parallel<S: Store, T: Send>(
    store: &S,
    range: KeyRange<'_>,
    threads: usize,
    work: impl for<'r> Fn(&'r S::Snapshot<'_>, KeyRange<'r>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    in_parallel_each(store, &[range], threads, |snapshot, _, part| work(snapshot, part))
}

/// Like [`in_parallel`], for several ranges of one state of the store, such as a table and its
/// index. `work` also receives the position of its part's range in `ranges`. Returns the results of
/// the first range, then those of the second, and so on.
///
/// ```
/// use keyloom::{KeyRange, Memory, Reader, Store, Writer};
/// use keyloom_kit::in_parallel_each;
/// let store = Memory::new();
/// store.transact(|txn| {
///     txn.put(b"a1", b"")?;
///     txn.put(b"a2", b"")?;
///     txn.put(b"b1", b"")
/// })?;
/// let ranges = [KeyRange::prefix(b"a"), KeyRange::prefix(b"b")];
/// let counts = in_parallel_each(&store, &ranges, 2, |snapshot, range, part| {
///     Ok((range, snapshot.count(part)?))
/// })?;
/// assert_eq!(counts, [(0, 2), (1, 1)]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// The errors of [`in_parallel`].
pub fn in_parallel_each<S: Store, T: Send>(
    store: &S,
    ranges: &[KeyRange<'_>],
    threads: usize,
    work: impl for<'r> Fn(&'r S::Snapshot<'_>, usize, KeyRange<'r>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let mut snapshots = store.parallel_snapshots(threads)?;
    let (Some(own), threads) = (snapshots.pop(), snapshots.len() + 1) else {
        return Ok(Vec::new());
    };
    let mut parts = Vec::new();
    for (of, range) in ranges.iter().enumerate() {
        parts.extend(divided(&own, range, threads)?.into_iter().map(|part| (of, part)));
    }
    let waiting = Mutex::new(parts.iter().enumerate());
    let results = Mutex::new(Vec::with_capacity(parts.len()));
    let run = |snapshot: S::Snapshot<'_>| {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((n, (of, part))) = next else { return };
            let result = work(&snapshot, *of, part.clone());
            if result.is_err() {
                // No thread begins another part.
                waiting.lock().unwrap_or_else(PoisonError::into_inner).by_ref().for_each(drop);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((n, result));
        }
    };
    thread::scope(|scope| {
        for snapshot in snapshots {
            scope.spawn(|| run(snapshot));
        }
        run(own);
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(n, _)| *n);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The parts of a range, for `threads` threads.
fn divided(
    reader: &impl Reader,
    range: &KeyRange<'_>,
    threads: usize,
) -> Result<Vec<KeyRange<'static>>> {
    // A server answers each of the many short ranges of the sampling in a round trip.
    let is_whole = threads == 1
        || reader.prefetched() > 0
        || reader.page(range.clone(), Order::Ascending, SHORT)?.last.is_none();
    match is_whole {
        true => Ok(vec![range.clone().into_owned()]),
        false => split(reader, range, threads * PARTS_PER_THREAD),
    }
}
