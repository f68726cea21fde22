//! Reports on a field of integers.

use keyloom::{Error, Metered, Order, Reader, Store, Subspace};
use keyloom_bitmaps::{BitmapExpr, CHUNK_IDS, InvertedIndex, Report, ValueSum};
use keyloom_kit::{Continuation, Page};
use keyloom_tables::Table;
use proptest::prelude::*;

use super::breakdowns::{INTERSECTED, WALKED, WAYS, Way, report};
use super::fixture::{Ask, Fixture, User, Users, ask, crowd, users};
use keyloom_testing::laws::{clear, counts, very_long_property};

/// The integers of the audience, with their ids.
fn integers(ask: &Ask, users: &Users) -> Vec<(u64, i64)> {
    ask.of(users).filter_map(|(id, user)| Some((id.into(), user.cents?))).collect()
}

/// By integer, then by ascending id: a stable sort keeps the ids of equal integers in order.
fn ranked(mut integers: Vec<(u64, i64)>, order: Order) -> Vec<(u64, i64)> {
    integers.sort_by(|a, b| match order {
        Order::Ascending => a.1.cmp(&b.1),
        Order::Descending => b.1.cmp(&a.1),
    });
    integers
}

/// The smallest integer that is not exceeded by at least this percentage of all integers.
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
        // Few percentiles use a selection, many use a sort.
        for few in [percents.len(), 5] {
            let found = report.percentiles(&snapshot, "cents", &percents[..few]).unwrap();
            assert_eq!(found.as_deref(), percentiles.as_ref().map(|all| &all[..few]));
        }
        assert_eq!(report.rank(&snapshot, "cents", value).unwrap(), smaller);
        for order in [Order::Ascending, Order::Descending] {
            let whole = report.ranked(&snapshot, "cents", order, usize::MAX, None).unwrap();
            assert_eq!(whole, Page { items: ranked(expected.clone(), order), next: None });
            assert_eq!(pages(&report, &snapshot, order, page), whole.items);
        }
    }
}

/// The rows of all pages. Each page starts after the stored continuation of the previous one.
fn pages(
    report: &Report<'_, u32, User>,
    snapshot: &impl Reader,
    order: Order,
    limit: usize,
) -> Vec<(u64, i64)> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let found = report.ranked(snapshot, "cents", order, limit, after.as_ref()).unwrap();
        assert!(found.items.len() == limit || found.next.is_none(), "a page is full or the last");
        rows.extend(found.items);
        let Some(next) = found.next else { return rows };
        after = Some(Continuation::from_bytes(next.as_bytes()));
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

/// A page starts after a row that no longer exists.
pub fn a_page_begins_after_a_deleted_row(store: &impl Store) {
    let fixture = Fixture::holding(store, &crowd(1, 40));
    let page = |way: Way, after: Option<&Continuation>| {
        let report = way(fixture.index.report(fixture.index.all()));
        let snapshot = store.snapshot().unwrap();
        report.ranked(&snapshot, "cents", Order::Descending, 2, after).unwrap()
    };
    let first = page(WALKED, None);
    assert_eq!(first.items, [(9, 9), (19, 9)]);
    store.transact(|txn| fixture.table.delete(txn, &19)).unwrap();
    let next = [WALKED, INTERSECTED].map(|way| page(way, first.next.as_ref()));
    assert_eq!(next[0].items, [(29, 9), (39, 9)]);
    assert_eq!(next[0], next[1], "a page of one way continues one of the other");
    let others: Vec<u32> = (0..39).collect();
    store.transact(|txn| fixture.table.delete_many(txn, &others)).unwrap();
    for way in WAYS {
        let end = page(way, next[0].next.as_ref());
        assert_eq!(end, Page { items: Vec::new(), next: None }, "all rows of the page are gone");
    }
}

/// No id follows the largest one, so the next rows have another integer.
pub fn a_page_begins_after_the_largest_id(store: &impl Store) {
    clear(store);
    let space = Subspace::new("test");
    let index = InvertedIndex::with_keys_as_ids(&space.child("index"))
        .integers("cents", |_id: &u64, cents: &i64| Some(*cents));
    let table = Table::<u64, i64>::new(&space.child("cents")).with(&index);
    let rows = [(3, i64::MIN), (5, 9), (u64::MAX, 9), (7, 10)];
    store.transact(|txn| table.put_many(txn, rows)).unwrap();
    let snapshot = store.snapshot().unwrap();
    for report in [index.report(index.all()).walk(), index.report(index.all()).intersect()] {
        let page = |order, after: Option<&Continuation>| {
            report.ranked(&snapshot, "cents", order, 3, after).unwrap()
        };
        for (order, first, last) in [
            (Order::Ascending, [(3, i64::MIN), (5, 9), (u64::MAX, 9)], (7, 10)),
            (Order::Descending, [(7, 10), (5, 9), (u64::MAX, 9)], (3, i64::MIN)),
        ] {
            let found = page(order, None);
            assert_eq!(found.items, first);
            let rest = page(order, found.next.as_ref());
            assert_eq!(rest, Page { items: vec![last], next: None });
        }
    }
}

pub fn a_page_refuses_continuations_of_other_reports(store: &impl Store) {
    let fixture = Fixture::holding(store, &crowd(1, 40));
    let (index, snapshot) = (&fixture.index, store.snapshot().unwrap());
    let audience = index.all() - index.term("city", 1_u8).unwrap();
    let page = |audience: &BitmapExpr, order, limit, after: &Continuation| {
        index.report(audience).ranked(&snapshot, "cents", order, limit, Some(after))
    };
    let first = index.report(&audience).ranked(&snapshot, "cents", Order::Ascending, 2, None);
    let next = first.unwrap().next.unwrap();
    let refused = |page: keyloom::Result<Page<(u64, i64)>>, why: &str| {
        let error = page.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    };
    // Another limit is still the same query, and a limit of 0 returns one row.
    assert_eq!(page(&audience, Order::Ascending, 0, &next).unwrap().items.len(), 1);
    refused(page(&audience, Order::Descending, 2, &next), "another query");
    refused(page(&index.all(), Order::Ascending, 2, &next), "another query");
    let of_ids = audience.page(&snapshot, .., 2, None).unwrap().next.unwrap();
    refused(page(&audience, Order::Ascending, 2, &of_ids), "another query");
    // The same audience and order, but another field.
    let other = InvertedIndex::with_keys_as_ids(index.space())
        .integers("size", |_id: &u32, user: &User| user.cents);
    let all = index.report(index.all()).ranked(&snapshot, "cents", Order::Ascending, 2, None);
    let all = all.unwrap().next;
    let of_size = other.report(index.all());
    let found = of_size.ranked(&snapshot, "size", Order::Ascending, 2, all.as_ref());
    refused(found, "another query");
    let bytes = next.as_bytes();
    let cut = Continuation::from_bytes(&bytes[..bytes.len() - 1]);
    refused(page(&audience, Order::Ascending, 2, &cut), "damaged");
    refused(page(&audience, Order::Ascending, 2, &Continuation::from_bytes(b"")), "not a cont");
    let newer = Continuation::from_bytes(&[&[bytes[0] + 1], &bytes[1..]].concat());
    let error = page(&audience, Order::Ascending, 2, &newer).unwrap_err();
    assert!(matches!(error, Error::NewerFormat { .. }), "{error}");
}

/// Gets, ranges, keys read, keys written.
pub fn reports_on_integers_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let fixture = Fixture::holding(store, &crowd(4, 60));
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    // The audience has 4 chunks, and its ids are in 4 blocks. The integers up to 9 have five
    // slices: existence and four bits.
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
        let page = || report.ranked(&snapshot, "cents", Order::Descending, 3, None).unwrap();
        counts(store.measure(|_| page()).1)
    };
    assert_eq!(page(WALKED), [4, 1, 4 + 4, 0]);
    assert_eq!(page(INTERSECTED), [0, 2, 4 + 4 * 5, 0]);
}

/// An audience of all users reads the slices, although a walk would be possible.
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
