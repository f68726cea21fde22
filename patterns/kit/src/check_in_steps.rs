//! Runs checks that take longer than the lifetime of a snapshot.

use std::collections::BTreeSet;

use keyloom::{KeyBuf, Result, Snapshots, Store};

use crate::inconsistency::{Inconsistency, Rule};

/// Runs a check of any pattern over [`Snapshots`], a series of snapshots that are each read for a
/// short time. So tables of any size can be checked on stores whose snapshots expire.
///
/// In one snapshot, a check is exact. Over several snapshots, it may report a concurrent change as
/// a fault. If it does report faults, it runs a second time, and only the faults that both runs
/// report are returned. If the second run needs only one snapshot, all of its faults are returned.
/// Both runs may report data that changes all the time, such as the total of a busy group. In this
/// case check again, in one snapshot if the store allows it.
///
/// To stop the check, or to bound it, wrap the reader in a [`Budgeted`](keyloom::Budgeted).
///
/// ```
/// use keyloom::{Faulty, Memory, Store, Writer};
/// use keyloom_tables::{Rule, Schema, check_in_steps, entry};
/// let store = Faulty::new(Memory::new());
/// let schema = Schema::open(&store, "library")?;
/// let books = schema.table::<u32, String>("books")?;
/// let by_title = schema.index(&books, "by_title", 1, |_, title| entry(title))?;
/// store.transact(|txn| books.put_many(txn, (0..500).map(|n| (n, format!("Volume {n}")))))?;
/// store.transact(|txn| books.delete_without_derived(txn, &7))?;
///
/// // A store on which a snapshot can be read 100 times.
/// store.expire_after(100);
/// assert!(by_title.check(&store.snapshot()?).is_err());
/// let faults = check_in_steps(&store, |reader| by_title.check(reader))?;
/// assert_eq!(faults.len(), 1);
/// assert_eq!(faults[0].rule, Rule::Dangling);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// The errors of `check`.
pub fn check_in_steps<S: Store>(
    store: &S,
    mut check: impl FnMut(&Snapshots<'_, S>) -> Result<Vec<Inconsistency>>,
) -> Result<Vec<Inconsistency>> {
    let mut run = || {
        let snapshots = Snapshots::new(store);
        let faults = check(&snapshots)?;
        Ok::<_, keyloom::Error>((faults, snapshots.taken() <= 1))
    };
    let (faults, is_exact) = run()?;
    if is_exact || faults.is_empty() {
        return Ok(faults);
    }
    let first: BTreeSet<(KeyBuf, Rule)> =
        faults.into_iter().map(|fault| (fault.key, fault.rule)).collect();
    let (mut faults, is_exact) = run()?;
    faults.retain(|fault| is_exact || first.contains(&(fault.key.clone(), fault.rule)));
    Ok(faults)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use keyloom::{Faulty, KeyRange, Memory, Reader, Writer};

    use super::*;

    /// The result of a check that finds different faults in each run, and the number of runs.
    fn reported(longest: u64, passes: [&[u8]; 2]) -> (Vec<u8>, usize) {
        let store = Faulty::new(Memory::new());
        store.transact(|txn| (0..100_u8).try_for_each(|n| txn.put(&[n], b""))).unwrap();
        store.expire_after(longest);
        let (mut passes, mut runs) = (passes.into_iter(), 0);
        let faults = check_in_steps(&store, |reader| {
            runs += 1;
            assert_eq!(reader.count(KeyRange::all())?, 100);
            let fault = |key: &u8| Inconsistency::new(KeyBuf::from_slice(&[*key]), Rule::Missing);
            Ok(passes.next().unwrap().iter().map(fault).collect())
        });
        (faults.unwrap().iter().map(|fault| fault.key[0]).collect(), runs)
    }

    #[test]
    fn faults_between_two_snapshots_are_confirmed() {
        assert_eq!(reported(30, [&[1, 2], &[2, 3]]), (vec![2], 2));
        assert_eq!(reported(30, [&[], &[2, 3]]), (vec![], 1));
        assert_eq!(reported(30, [&[1], &[]]), (vec![], 2));
    }

    #[test]
    fn faults_of_one_snapshot_are_exact() {
        assert_eq!(reported(1_000, [&[1, 2], &[2, 3]]), (vec![1, 2], 1));
    }
}
