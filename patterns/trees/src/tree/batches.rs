//! Repairs of listed faults.

use keyloom::{Result, Store};
use keyloom_kit::BatchSize;

/// Repairs items in batches, one transaction each; returns how many keys that changed, as `repair`
/// counts them.
pub(crate) fn in_batches<S: Store, I>(
    store: &S,
    size: &mut BatchSize,
    mut rest: &[I],
    mut repair: impl FnMut(&mut S::Transaction<'_>, &I) -> Result<u64>,
) -> Result<u64> {
    let mut repaired = 0;
    while !rest.is_empty() {
        let (next, done) = size.transact(store, |txn, batch| {
            let (some, next) = rest.split_at(batch.min(rest.len()));
            let mut done = 0;
            for item in some {
                done += repair(txn, item)?;
            }
            Ok((next, done))
        })?;
        rest = next;
        repaired += done;
    }
    Ok(repaired)
}
