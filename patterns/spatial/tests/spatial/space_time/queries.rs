//! Queries, compared with a filter over all events.

use std::ops::RangeBounds;

use keyloom::{Order, Reader, Store};
use keyloom_kit::pack_one;
use keyloom_spatial::Circle;
use keyloom_spatial::space_time::SpaceTimeQuery;
use keyloom_spatial::{Area, GeoCell};
use keyloom_tables::{Continuation, Scan};
use proptest::prelude::*;

use super::super::keys::{index_of, key};
use super::fixture::{
    Event, Events, Shape, Times, WIDTH_MS, area, earthquakes, event, position, time, times,
};
use keyloom_testing::laws::{clear, long_property};

fn expected(events: &[Event], area: &impl Area, times: &impl RangeBounds<i64>) -> Vec<u32> {
    let has =
        |event: &Event| area.contains(&position(event.0, event.1)) && times.contains(&event.2);
    let found = (0..).map(key).zip(events).filter(|(_, event)| has(event));
    sorted(found.map(|(id, _)| id))
}

fn sorted(ids: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ids: Vec<u32> = ids.collect();
    ids.sort_unstable();
    ids
}

/// The ids that a query finds, sorted. Checks that each event occurs once and is unchanged.
fn found(
    events: &[Event],
    reader: &impl Reader,
    query: SpaceTimeQuery<'_, u32, impl Area>,
) -> Vec<u32> {
    let mut points = query.points(reader).unwrap();
    let ids = sorted(points.by_ref().map(|event| {
        let event = event.unwrap();
        let id = event.record_key().unwrap();
        let (latitude, longitude, time) = events[index_of(id) as usize];
        assert_eq!((event.position(), event.time()), (position(latitude, longitude), time));
        id
    }));
    assert_eq!(points.explain().keys_returned, ids.len() as u64);
    ids
}

type Query = (Shape, Times, usize);

fn case() -> impl Strategy<Value = (Vec<Event>, i64, Vec<Query>)> {
    let width = prop::sample::select(vec![1, 7, WIDTH_MS, 1 << 40, i64::MAX]);
    let events = prop::collection::vec(event(), 0..60);
    (events, width, prop::collection::vec((area(), times(), 1..40_usize), 4))
}

pub fn every_query_finds_what_a_look_at_all_events_finds(store: &impl Store) {
    long_property(case(), |(events, width, queries)| {
        clear(store);
        let all = Events::new(width.unsigned_abs());
        all.put(store, &events);
        let snapshot = store.snapshot().unwrap();
        for query in queries {
            let (area, times, ranges) = &query;
            let asked = all.index.within(area, *times).in_ranges(*ranges).unwrap();
            let expected = expected(&events, area, times);
            assert_eq!(found(&events, &snapshot, asked.clone()), expected, "{query:?}");
            assert_eq!(asked.clone().count(&snapshot).unwrap(), expected.len() as u64);
            let as_many_as_pay = all.index.within(area, *times);
            assert_eq!(as_many_as_pay.count(&snapshot).unwrap(), expected.len() as u64);
            for order in [Order::Ascending, Order::Descending] {
                let mut sorted: Vec<(i64, u32)> =
                    expected.iter().map(|id| (events[index_of(*id) as usize].2, *id)).collect();
                sorted.sort_by_key(|(time, id)| (*time, pack_one(id).to_vec()));
                if order == Order::Descending {
                    sorted.reverse();
                }
                let by_time = asked.clone().by_time(&snapshot, order).unwrap().map(|event| {
                    let event = event.unwrap();
                    (event.time(), event.record_key().unwrap())
                });
                assert_eq!(by_time.collect::<Vec<_>>(), sorted, "{query:?} {order:?}");
            }
            let is_odd = |id: &u32| id % 2 == 1;
            let odd: Vec<u32> = expected.into_iter().filter(is_odd).collect();
            assert_eq!(found(&events, &snapshot, asked.only(&is_odd)), odd);
        }
    });
}

pub fn pages_join_to_the_whole(store: &impl Store) {
    let limits = prop::collection::vec(1..9_usize, 5);
    long_property((case(), limits), |((events, width, queries), limits)| {
        clear(store);
        let all = Events::new(width.unsigned_abs());
        all.put(store, &events);
        let snapshot = store.snapshot().unwrap();
        for ((area, times, ranges), limit) in queries.iter().zip(limits) {
            let query = all.index.within(area, *times).in_ranges(*ranges).unwrap();
            let keys = query.clone().points(&snapshot).unwrap();
            let whole: Vec<_> =
                keys.map(|event| event.unwrap().entry().entry_key().to_vec()).collect();
            let (mut joined, mut after) = (Vec::new(), None::<Continuation>);
            loop {
                let page = query.clone().page(&snapshot, limit, after.as_ref()).unwrap();
                assert!(page.items.len() <= limit);
                joined.extend(page.items.iter().map(|event| event.entry().entry_key().to_vec()));
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

pub fn bins_in_which_nothing_is_cost_nothing(store: &impl Store) {
    clear(store);
    let all = Events::new(1);
    let times = [i64::MIN, -9_000, -1, 0, 1, 12_345_678, i64::MAX];
    let events = times.map(|time| (1.0, 2.0, time));
    all.put(store, &events);
    let snapshot = store.snapshot().unwrap();
    let near = Circle::new(position(1.0, 2.0), 1_000.0).unwrap();
    let mut points = all.index.within(near, ..).in_ranges(3).unwrap().points(&snapshot).unwrap();
    let found: Vec<i64> = points.by_ref().map(|event| event.unwrap().time()).collect();
    assert_eq!(found, times);
    let explain = points.explain();
    let bins = times.len() as u64;
    // Two ranges for other widths; for each bin, one range to find it and the ranges inside it. The
    // last bin is the last possible one.
    assert!(explain.ranges <= 2 + bins * (1 + 3), "{explain}");
    assert!(explain.keys_scanned <= 2 * bins, "{explain}");
    let (from, to) = (2, 12_345_677);
    let mut none = all.index.within(GeoCell::WORLD, from..=to).points(&snapshot).unwrap();
    assert!(none.next().is_none());
    assert_eq!((none.explain().ranges, none.explain().keys_scanned), (3, 0));
}

pub fn earthquakes_are_found_where_and_when_they_were(store: &impl Store) {
    let events = earthquakes();
    assert_eq!(events.len(), 1_707);
    let (first, last) = events
        .iter()
        .fold((i64::MAX, i64::MIN), |(first, last), event| (first.min(event.2), last.max(event.2)));
    const HOUR: i64 = 60 * 60 * 1_000;
    for width in [HOUR, 24 * HOUR, 7 * 24 * HOUR] {
        clear(store);
        let all = Events::new(width.unsigned_abs());
        all.put(store, &events);
        assert_eq!(all.faults(store), [""; 0]);
        let mut hits = 0;
        for (number, at) in events.iter().enumerate().step_by(61) {
            // A new snapshot for each query, because some stores limit snapshots to a few seconds.
            let snapshot = store.snapshot().unwrap();
            let metres = [1_000.0, 50_000.0, 500_000.0, 5_000_000.0][number % 4];
            let hours = [1, 7, 30, 200][number / 4 % 4];
            let near = Circle::new(position(at.0, at.1), metres).unwrap();
            let times = at.2 - hours * HOUR..at.2 + hours * HOUR;
            let expected = expected(&events, &near, &times);
            hits += expected.len();
            assert_eq!(found(&events, &snapshot, all.index.within(near, times)), expected);
        }
        assert!(hits > 1_000, "{hits}");
        let snapshot = store.snapshot().unwrap();
        let whole = all.index.within(GeoCell::WORLD, first..=last);
        assert_eq!(whole.count(&snapshot).unwrap(), 1_707);
        let rest = all.index.within(GeoCell::WORLD, first + 1..last);
        assert_eq!(rest.count(&snapshot).unwrap(), 1_705);
    }
}

#[test]
fn a_query_takes_more_ranges_where_they_pay() {
    let spread = |n: i64, by: i64| (n * by % 20_011) as f64 / 20_011.0;
    let events: Vec<Event> = (0..20_000)
        .map(|n| (spread(n, 6_180) * 160.0 - 80.0, spread(n, 4_142) * 360.0 - 180.0, n * 7 % 3_000))
        .collect();
    let store = keyloom::Memory::new();
    let all = Events::new(4_000);
    all.put(&store, &events);
    let snapshot = store.snapshot().unwrap();
    let near = Circle::new(position(10.0, 20.0), 2_500_000.0).unwrap();
    for times in [0..3_000, 100..2_900] {
        let query = all.index.within(near, times.clone());
        assert_eq!(found(&events, &snapshot, query.clone()), expected(&events, &near, &times));
        let mut points = query.points(&snapshot).unwrap();
        assert!(points.by_ref().map(Result::unwrap).count() > 100);
        assert!(points.explain().planned > 4, "{times:?}: {}", points.explain());
    }
}

#[test]
fn times_are_divided_as_bounds_say() {
    let strategy = (time(), time());
    keyloom_testing::laws::property(strategy, |(from, to)| {
        let store = keyloom::Memory::new();
        let all = Events::new(7);
        all.put(&store, &[(0.0, 0.0, from), (0.0, 0.0, to)]);
        let snapshot = store.snapshot().unwrap();
        let count = |times: Times| {
            all.index.within(GeoCell::WORLD, times).count(&snapshot).unwrap() as usize
        };
        use std::ops::Bound::{Excluded, Included, Unbounded};
        for times in [
            (Included(from), Included(to)),
            (Excluded(from), Included(to)),
            (Included(from), Excluded(to)),
            (Excluded(from), Excluded(to)),
            (Excluded(from), Unbounded),
            (Unbounded, Excluded(to)),
        ] {
            let expected = [from, to].iter().filter(|time| times.contains(time)).count();
            assert_eq!(count(times), expected, "{times:?}");
        }
    });
}
