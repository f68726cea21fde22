//! Reports on a field of integers.

use keyloom::{Metered, Order, Store};
use keyloom_bitmaps::{CHUNK_IDS, Report, ValueSum};
use proptest::prelude::*;

use super::breakdowns::{INTERSECTED, WALKED, WAYS, report};
use super::fixture::{Ask, Fixture, User, Users, ask, crowd, users};
use keyloom_testing::laws::{counts, very_long_property};

/// The integers of the audience, with their ids.
fn integers(ask: &Ask, users: &Users) -> Vec<(u64, i64)> {
    ask.of(users).filter_map(|(id, user)| Some((id.into(), user.cents?))).collect()
}

/// By ascending id, then by the integer: a stable sort keeps the ids of equal integers in order.
fn ranked(mut integers: Vec<(u64, i64)>, order: Order) -> Vec<(u64, i64)> {
    integers.sort_by(|a, b| match order {
        Order::Ascending => a.1.cmp(&b.1),
        Order::Descending => b.1.cmp(&a.1),
    });
    integers
}

/// The smallest integer that at least this percentage of all do not exceed.
fn percentile(integers: &[(u64, i64)], percent: f64) -> i64 {
    let up_to = |bound: i64| integers.iter().filter(|row| row.1 <= bound).count() as f64;
    let reached = |bound: &i64| up_to(*bound) * 100.0 >= percent * integers.len() as f64;
    integers.iter().map(|row| row.1).filter(reached).min().unwrap()
}

fn agree(store: &impl Store, users: &Users, ask: &Ask, page: usize, value: i64) {
    let fixture = Fixture::holding(store, users);
    let snapshot = store.snapshot().unwrap();
    let expected = integers(ask, users);
    let sum = expected.iter().map(|row| i128::from(row.1)).sum();
    let sum = ValueSum { sum, count: expected.len() as u64 };
    let extremes = expected.iter().map(|row| row.1).min();
    let extremes = extremes.zip(expected.iter().map(|row| row.1).max());
    let percents = [0.0, 12.5, 50.0, 75.0, 100.0, 99.0, 50.0, 1.0, 33.0];
    let percentiles = percents.map(|percent| extremes.map(|_| percentile(&expected, percent)));
    let percentiles: Option<Vec<i64>> = percentiles.into_iter().collect();
    let smaller = expected.iter().filter(|row| row.1 < value).count() as u64;
    for way in WAYS {
        let report = report(&fixture, ask, way);
        assert_eq!(report.sum(&snapshot, "cents").unwrap(), sum);
        assert_eq!(report.min_max(&snapshot, "cents").unwrap(), extremes);
        // Few of them are selected, many are sorted.
        for few in [percents.len(), 5] {
            let found = report.percentiles(&snapshot, "cents", &percents[..few]).unwrap();
            assert_eq!(found.as_deref(), percentiles.as_ref().map(|all| &all[..few]));
        }
        assert_eq!(report.rank(&snapshot, "cents", value).unwrap(), smaller);
        for order in [Order::Ascending, Order::Descending] {
            let mut pages = Vec::new();
            loop {
                let after = pages.last().copied();
                let found = report.ranked(&snapshot, "cents", order, after, page).unwrap();
                assert!(found.len() <= page);
                if found.is_empty() {
                    break;
                }
                pages.extend(found);
            }
            assert_eq!(pages, ranked(expected.clone(), order));
        }
    }
}

pub fn reports_on_integers_say_what_looking_at_every_record_says(store: &impl Store) {
    let value = prop_oneof![-3..4_i64, Just(i64::MAX), Just(i64::MIN)];
    very_long_property((users(), ask(), 1..6_usize, value), |(users, ask, page, value)| {
        agree(store, &users, &ask, page, value);
    });
}

pub fn integers_of_many_chunks_are_reported_whole(store: &impl Store) {
    let users = crowd(3, 1_000);
    for ask in [Ask::City(0), Ask::Everybody, Ask::Ids(0, CHUNK_IDS as u32 + 3)] {
        agree(store, &users, &ask, 700, 5);
    }
}

/// A page begins after a row that is no longer there.
pub fn a_page_begins_after_a_deleted_row(store: &impl Store) {
    let fixture = Fixture::holding(store, &crowd(1, 40));
    let page = |after, order| {
        let (report, snapshot) = (fixture.index.report(fixture.index.all()), store.snapshot());
        report.ranked(&snapshot.unwrap(), "cents", order, after, 2).unwrap()
    };
    assert_eq!(page(None, Order::Descending), [(9, 9), (19, 9)]);
    store.transact(|txn| fixture.table.delete(txn, &19)).unwrap();
    assert_eq!(page(Some((19, 9)), Order::Descending), [(29, 9), (39, 9)]);
    assert_eq!(page(Some((u64::MAX, 9)), Order::Descending), [(8, 8), (18, 8)]);
    assert_eq!(page(Some((u64::MAX, i64::MAX)), Order::Ascending), []);
    assert_eq!(page(Some((0, i64::MIN)), Order::Descending), []);
}

/// Gets, ranges, keys read, keys written.
pub fn reports_on_integers_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let fixture = Fixture::holding(store, &crowd(4, 60));
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    // The audience has 4 chunks, and its ids are in 4 blocks; the integers up to 9 have a slice of
    // existence, and four bits.
    let sum = |way| {
        let report = report(&fixture, &Ask::City(1), way);
        counts(store.measure(|_| report.sum(&snapshot, "cents").unwrap()).1)
    };
    assert_eq!(sum(WALKED), [4, 1, 4 + 4, 0]);
    assert_eq!(sum(INTERSECTED), [0, 2, 4 + 4 * 5, 0]);
    assert_eq!(sum(|report| report), sum(WALKED), "80 ids are looked up");

    let cost = |way, work: &dyn Fn(Report<'_, u32, User>)| {
        let report = report(&fixture, &Ask::City(1), way);
        counts(store.measure(|_| work(report)).1)
    };
    let min_max = |report: Report<'_, u32, User>| {
        assert_eq!(report.min_max(&snapshot, "cents").unwrap(), Some((0, 9)));
    };
    let median = |report: Report<'_, u32, User>| {
        drop(report.percentiles(&snapshot, "cents", &[50.0]).unwrap());
    };
    let rank = |report: Report<'_, u32, User>| {
        assert_eq!(report.rank(&snapshot, "cents", 0).unwrap(), 0);
    };
    for work in [&min_max as &dyn Fn(Report<'_, u32, User>), &median, &rank] {
        assert_eq!(cost(WALKED, work), [4, 1, 4 + 4, 0]);
    }
    assert_eq!(cost(INTERSECTED, &min_max), [0, 1 + 2, 4 + 2 * (4 * 5), 0], "two passes");
    assert_eq!(cost(INTERSECTED, &median), [0, 2, 4 + 4 * 5, 0]);
    assert_eq!(cost(INTERSECTED, &rank), [0, 2, 4 + 4 * 5, 0]);

    let page = |way| {
        let report = report(&fixture, &Ask::City(1), way);
        let page = || report.ranked(&snapshot, "cents", Order::Descending, None, 3).unwrap();
        counts(store.measure(|_| page()).1)
    };
    assert_eq!(page(WALKED), [4, 1, 4 + 4, 0]);
    assert_eq!(page(INTERSECTED), [0, 2, 4 + 4 * 5, 0]);
}

/// An audience of everybody reads the slices, although a walk is possible.
pub fn a_large_audience_reads_the_slices(store: &(impl Store + Clone)) {
    let user = |id: u32| User { city: None, tags: Vec::new(), cents: Some(i64::from(id % 2)) };
    let users: Users = (0..CHUNK_IDS as u32).map(|id| (id, user(id))).collect();
    let fixture = Fixture::holding(store, &users);
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    let report = fixture.index.report(fixture.index.all());
    let (sum, cost) = store.measure(|_| report.sum(&snapshot, "cents").unwrap());
    let half = CHUNK_IDS / 2;
    assert_eq!(sum, ValueSum { sum: i128::from(half), count: CHUNK_IDS });
    assert_eq!(counts(cost), [0, 2, 1 + 2, 0]);
}
