//! Box queries, compared with a filter over all numbers.

use std::ops::RangeBounds;

use keyloom::Store;
use keyloom_spatial::curve::Morton;
use keyloom_tables::{Continuation, Scan};
use proptest::prelude::*;

use super::super::keys::index_of;
use super::fixture::{Numbers, Range, numbers, ranges};
use keyloom_testing::laws::{clear, long_property};

type Query<const N: usize> = ([Range; N], usize);

fn case<const N: usize>() -> impl Strategy<Value = (Vec<[f64; N]>, Vec<Query<N>>)> {
    let all = prop::collection::vec(numbers(), 0..60);
    (all, prop::collection::vec((ranges(), 1..40_usize), 4))
}

fn boxes_hold_what_they_should<const N: usize>(store: &impl Store)
where
    u64: Morton<N, Coordinate = u32>,
{
    long_property(case::<N>(), |(all, queries)| {
        clear(store);
        let numbers = Numbers::<N>::new();
        numbers.put(store, &all);
        let snapshot = store.snapshot().unwrap();
        for (ranges, most) in queries {
            let has = |numbers: &[f64; N]| {
                ranges.iter().zip(numbers).all(|(range, number)| range.contains(number))
            };
            let expected: Vec<u32> =
                (0..).zip(&all).filter(|(_, numbers)| has(numbers)).map(|(id, _)| id).collect();
            let query = numbers.index.within(ranges).unwrap().in_ranges(most).unwrap();
            let mut points = query.clone().points(&snapshot).unwrap();
            let mut found: Vec<u32> = points
                .by_ref()
                .map(|point| {
                    let point = point.unwrap();
                    let id = index_of(point.record_key().unwrap());
                    assert_eq!(point.values(), all[id as usize]);
                    id
                })
                .collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{ranges:?} in {most} ranges");
            assert_eq!(points.explain().keys_returned, expected.len() as u64);
            assert!(points.explain().planned <= most as u64);
            let as_many_as_pay = numbers.index.within(ranges).unwrap();
            assert_eq!(as_many_as_pay.count(&snapshot).unwrap(), expected.len() as u64);
            let is_odd = |id: &u32| index_of(*id) % 2 == 1;
            let odd = expected.iter().filter(|id| *id % 2 == 1).count();
            assert_eq!(query.only(&is_odd).count(&snapshot).unwrap(), odd as u64);
        }
    });
}

#[test]
fn a_query_takes_more_ranges_where_they_pay() {
    let golden = |n: u32, by: u32| f64::from(n * by % 10_007) / 10_007.0 * 16.0 - 8.0;
    let all: Vec<[f64; 4]> =
        (0..10_000).map(|n| [6_180, 4_142, 7_320, 2_360].map(|by| golden(n, by))).collect();
    let numbers = Numbers::<4>::new();
    let store = keyloom::Memory::new();
    numbers.put(&store, &all);
    let snapshot = store.snapshot().unwrap();
    let range = -3.3..4.7;
    let query = numbers.index.within([(); 4].map(|()| range.clone())).unwrap();
    let expected = all.iter().filter(|numbers| numbers.iter().all(|n| range.contains(n))).count();
    let few = query.clone().in_ranges(4).unwrap().points(&snapshot).unwrap();
    assert_eq!(few.map(Result::unwrap).count(), expected);
    let mut points = query.points(&snapshot).unwrap();
    assert_eq!(points.by_ref().map(Result::unwrap).count(), expected);
    assert!(expected > 300 && points.explain().planned > 4, "{expected}: {}", points.explain());
}

pub fn boxes_of_two_numbers_hold_what_they_should(store: &impl Store) {
    boxes_hold_what_they_should::<2>(store);
}

pub fn boxes_of_three_numbers_hold_what_they_should(store: &impl Store) {
    boxes_hold_what_they_should::<3>(store);
}

pub fn boxes_of_four_numbers_hold_what_they_should(store: &impl Store) {
    boxes_hold_what_they_should::<4>(store);
}

pub fn pages_join_to_the_whole(store: &impl Store) {
    let limits = prop::collection::vec(1..9_usize, 5);
    long_property((case::<3>(), limits), |((all, queries), limits)| {
        clear(store);
        let numbers = Numbers::<3>::new();
        numbers.put(store, &all);
        let snapshot = store.snapshot().unwrap();
        for ((ranges, most), limit) in queries.into_iter().zip(limits) {
            let query = numbers.index.within(ranges).unwrap().in_ranges(most).unwrap();
            let points = query.clone().points(&snapshot).unwrap();
            let whole: Vec<_> =
                points.map(|point| point.unwrap().entry().entry_key().to_vec()).collect();
            let (mut joined, mut after) = (Vec::new(), None::<Continuation>);
            loop {
                let page = query.clone().page(&snapshot, limit, after.as_ref()).unwrap();
                assert!(page.items.len() <= limit);
                joined.extend(page.items.iter().map(|point| point.entry().entry_key().to_vec()));
                match page.next {
                    // Converted to bytes and back, as a program does for a client.
                    Some(next) => after = Some(Continuation::from_bytes(next.as_bytes())),
                    None => break,
                }
            }
            assert_eq!(joined, whole);
        }
    });
}
