//! The promised order, and the orders that are not promised.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::ops::{Bound, RangeBounds};

use keyloom::{Order, Store, Subspace};
use keyloom_tables::sequence::{
    Sharded, ShardedId, Uuid, first_id_at, id_time_ms, ids_between, time_ordered_id,
};
use keyloom_tables::{TimeBuckets, in_order};
use proptest::collection::btree_set;
use proptest::prelude::*;

use keyloom_testing::laws::{clear, property};

const DAY_MS: u64 = 86_400_000;

pub fn records_of_time_lie_in_the_buckets_of_their_ids(store: &(impl Store + Clone)) {
    let records = TimeBuckets::<(String, u8), u64>::daily(&Subspace::new("time"));
    // Container keys with common prefixes and suffixes.
    let (ours, other) = (("a".to_owned(), 0), ("a\0".to_owned(), 20));
    let time = || prop_oneof![0..5 * DAY_MS, (0..6u64).prop_map(|day| day * DAY_MS)];
    let bound = prop_oneof![
        time().prop_map(Bound::Included),
        time().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ];
    let case = (btree_set(time(), 0..20), bound.clone(), bound, 0..6u64);
    property(case, |(times, start, end, day)| {
        clear(store);
        // A repeated key, and the same keys in another container.
        store
            .transact(|txn| {
                times.iter().chain(times.first()).try_for_each(|ms| {
                    records.put(txn, &ours, first_id_at(*ms), ms)?;
                    records.put(txn, &other, first_id_at(*ms), &0)
                })
            })
            .unwrap();
        let snapshot = store.snapshot().unwrap();
        let mut wanted: Vec<u64> =
            times.iter().copied().filter(|ms| (start, end).contains(ms)).collect();
        for order in [Order::Ascending, Order::Descending] {
            let found = records
                .range(&snapshot, &ours, in_order(ids_between((start, end)), order))
                .unwrap();
            assert_eq!(found.map(|record| record.unwrap().1).collect::<Vec<_>>(), wanted);
            wanted.reverse();
        }
        let of_day: Vec<u64> = times.iter().copied().filter(|ms| ms / DAY_MS == day).collect();
        let found = records.bucket(&snapshot, &ours, day).unwrap();
        assert_eq!(found.map(|record| record.unwrap().1).collect::<Vec<_>>(), of_day);
        let days: BTreeSet<u64> = times.iter().map(|ms| ms / DAY_MS).collect();
        assert!(records.buckets(&snapshot, &ours).unwrap().iter().eq(&days));
        drop(snapshot);

        store.transact(|txn| records.delete_before(txn, &ours, day)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let left = |container| {
            let all = records.range(&snapshot, container, ..).unwrap();
            all.map(|record| record.unwrap().1).collect::<Vec<_>>()
        };
        let kept: Vec<u64> = times.iter().copied().filter(|ms| ms / DAY_MS >= day).collect();
        assert_eq!(left(&ours), kept);
        assert_eq!(left(&other).len(), times.len());
        for ms in &times {
            let found = records.get(&snapshot, &ours, first_id_at(*ms)).unwrap();
            assert_eq!(found, kept.contains(ms).then_some(*ms));
        }
    });
}

#[test]
fn ids_of_a_process_ascend_and_show_their_time() {
    let now = || {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        u64::try_from(since.as_millis()).unwrap()
    };
    let before = now();
    let ids: Vec<Uuid> = (0..20_000).map(|_| time_ordered_id()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "each is larger than the one before");
    let after = now();
    let times = ids.iter().map(|id| id_time_ms(id).unwrap());
    // When all ids of a millisecond are used, ids of the next millisecond are allocated early.
    assert!(times.clone().all(|time| (before..=after + 20).contains(&time)));
    assert_eq!(id_time_ms(&Uuid::nil()), None, "it is of no version");
    assert_eq!(id_time_ms(&first_id_at(u64::MAX)), Some((1 << 48) - 1));
    let last = first_id_at(u64::MAX);
    let last_ms = (1 << 48) - 1;
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let bounds = [
        (ids_between(..=u64::MAX), true),
        (ids_between(..=last_ms), true),
        (ids_between(0..u64::MAX), true),
        (ids_between(..last_ms), false),
        (ids_between((Excluded(last_ms), Unbounded)), false),
        (ids_between((Included(u64::MAX), Unbounded)), false),
    ];
    for (n, (range, holds)) in bounds.into_iter().enumerate() {
        assert_eq!(range.contains(&last), holds, "{n}: {range:?}");
    }
    let first = first_id_at(before);
    assert!(first <= ids[0] && id_time_ms(&first) == Some(before));
}

#[test]
fn ids_of_threads_are_unique() {
    let threads =
        || std::thread::spawn(|| (0..5_000).map(|_| time_ordered_id()).collect::<Vec<_>>());
    let all: Vec<_> = (0..4).map(|_| threads()).collect();
    let all: Vec<Uuid> = all.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 20_000);
}

/// Within a shard, ids are in commit order; between shards there is no order. A reader with one
/// last id is the negative control: it misses a record. A reader with one position per shard does
/// not.
pub fn between_shards_there_is_no_order_and_one_last_id_loses_records(
    store: &(impl Store + Clone),
) {
    clear(store);
    let shards = NonZeroU32::new(2).unwrap();
    let records = Sharded::<u8, String>::new(&Subspace::new("sharded"), shards);
    let append = |writer, text: &str| {
        store.transact(|txn| records.append(txn, &1, writer, &text.into())).unwrap()
    };
    let all_behind = |last: Option<ShardedId>| {
        let snapshot = store.snapshot().unwrap();
        let all = records.records().range(&snapshot, (1u8,)).unwrap();
        let ids = all.map(|record| record.unwrap().0);
        let ids = ids.map(|(_, shard, number)| ShardedId { shard, number });
        ids.filter(|id| last.is_none_or(|last| *id > last)).collect::<Vec<_>>()
    };
    let mut seen = Vec::new();
    let mut new = || {
        let snapshot = store.snapshot().unwrap();
        let new = records.read_new(&snapshot, &1, &mut seen, 10).unwrap();
        new.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };

    let early = append(1, "early");
    let last = all_behind(None).last().copied();
    assert_eq!((last, new()), (Some(early), vec!["early".to_owned()]));
    // This append commits later, with a smaller id.
    let late = append(0, "late");
    assert!(late < early);
    assert_eq!(all_behind(last), [], "one last id: the late record is lost");
    assert_eq!(new(), ["late"], "one position per shard: it is found");
    // The appends of one writer stay in order.
    let own = [append(3, "a"), append(3, "b")];
    assert!(own.is_sorted() && own[0].shard == 1);
    assert_eq!(new(), ["a", "b"]);
}
