//! Streaming group-by.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::key::Subspace;
use keyloom::{Error, Memory, Order, Reader, Result, Store, Writer};
use keyloom_tables::Grouping;
use keyloom_tables::aggregate::Summary;
use proptest::collection::btree_set;

use keyloom_testing::laws::{clear, long_property};

pub fn group_by_gives_what_a_map_of_groups_gives(store: &(impl Store + Clone)) {
    let space = Subspace::new("keys");
    long_property(btree_set((0..4u8, 0..3u8, -50..50i64), 0..60), |keys| {
        clear(store);
        let put = |txn: &mut dyn FnMut(&[u8]) -> Result<()>| {
            keys.iter().try_for_each(|key| txn(&space.pack(key)))
        };
        store.transact(|txn| put(&mut |key| txn.put(key, b""))).unwrap();
        let snapshot = store.snapshot().unwrap();
        let by = Grouping::new(&space, 1);
        for order in [Order::Ascending, Order::Descending] {
            let mut expected = BTreeMap::<u8, (Vec<i64>, BTreeSet<u8>)>::new();
            for (group, part, number) in &keys {
                let (numbers, parts) = expected.entry(*group).or_default();
                numbers.push(*number);
                parts.insert(*part);
            }
            let entries = snapshot.range(space.range(), order).unwrap();
            let start = (Summary::default(), 0, None);
            let folded = by.fold(entries, start, |(numbers, parts, last), member| {
                let (part, number) = member.rest::<(u8, i64)>()?;
                numbers.add(number);
                *parts += u64::from(last.replace(part) != Some(part));
                assert_eq!((member.value(), member.key().is_empty()), (&b""[..], false));
                Ok(())
            });
            let mut found: Vec<(u8, Summary, u64)> = folded
                .map(|folded| {
                    let (key, (numbers, parts, _)) = folded.unwrap();
                    (by.group(&key).unwrap(), numbers, parts)
                })
                .collect();
            if order == Order::Descending {
                found.reverse();
            }
            let expected: Vec<(u8, Summary, u64)> = expected
                .into_iter()
                .map(|(group, (numbers, parts))| {
                    let summary = Summary {
                        count: numbers.len() as u64,
                        sum: numbers.iter().map(|n| i128::from(*n)).sum(),
                        min: numbers.iter().min().copied(),
                        max: numbers.iter().max().copied(),
                    };
                    (group, summary, parts.len() as u64)
                })
                .collect();
            assert_eq!(found, expected);
        }
    });
}

#[test]
fn an_error_ends_the_groups_and_nothing_half_folded_comes_out() {
    let space = Subspace::new("keys");
    let store = Memory::new();
    store
        .transact(|txn| (0..6u8).try_for_each(|n| txn.put(&space.pack(&(n / 2, n)), b"")))
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let by = Grouping::new(&space, 1);
    let entries = snapshot.range(space.range(), Order::Ascending).unwrap();
    let mut folded = by.fold(entries, 0, |count, member| match member.rest::<u8>()? {
        3 => Err(Error::other("no three")),
        _ => {
            *count += 1;
            Ok(())
        }
    });
    assert_eq!(folded.next().unwrap().unwrap().1, 2);
    assert_eq!(folded.next().unwrap().unwrap_err().to_string(), "no three");
    assert!(folded.next().is_none());
    assert_eq!(Summary::default().mean(), None);
}
