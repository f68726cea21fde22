//! Tests of size estimates.
#![allow(clippy::unwrap_used)]

use keyloom::{KeyRange, Memory, Store, Writer, pack};

use crate::measure::measure;

/// Groups of very different sizes, keys that are prefixes of other keys, and keys that are not
/// tuples.
fn skewed() -> (Memory, u64) {
    let store = Memory::new();
    let entries = store
        .transact(|txn| {
            let mut entries = 0;
            for group in 0..2_000_u64 {
                let members = if group % 17 == 0 { 1_500 } else { group % 7 + 1 };
                for member in 0..members {
                    txn.put(&pack(&("group", group * group, member)), &[7; 10])?;
                    entries += 1;
                }
                txn.put(&pack(&("group", group * group)), b"")?;
                txn.put(&[0xFE, group as u8, (group / 256) as u8], b"")?;
                entries += 2;
            }
            Ok(entries)
        })
        .unwrap();
    (store, entries)
}

#[test]
fn an_estimate_is_within_its_error() {
    let (store, entries) = skewed();
    let snapshot = store.snapshot().unwrap();
    let exact = measure(&snapshot, &KeyRange::all(), u64::MAX).unwrap();
    assert_eq!((exact.entries, exact.error), (entries, None));
    let about = measure(&snapshot, &KeyRange::all(), 1_000).unwrap();
    let off = about.entries.abs_diff(entries) * 100 / entries;
    // The reported error is twice the standard error, so a deviation of twice the reported error
    // has a probability of 1 in 15,000.
    assert!(off <= 2 * about.error.unwrap() + 1, "{about:?} of {entries}");
    assert!(about.error.unwrap() < 50, "{about:?}");
}
