//! Time-bucket roll-ups.

use keyloom::key::Subspace;
use keyloom::{Error, List, Memory, Metered, Store};
use keyloom_tables::Maintained;
use keyloom_tables::Table;
use keyloom_tables::aggregate::{Event, RollUp};
use proptest::prelude::*;

use crate::aggregate::fixture::{Click, Clicks, WIDTHS, apply, history};
use keyloom_testing::laws::{clear, long_property};

fn naive<'c>(all: impl IntoIterator<Item = &'c Click>, site: &str, from: i64, to: i64) -> i64 {
    let inside = |click: &&Click| click.site == site && (from..to).contains(&click.second);
    all.into_iter().filter(inside).map(|click| click.bytes).sum()
}

pub fn an_interval_reads_raw_entries_at_its_edges_only(store: &(impl Store + Clone)) {
    let clicks = Clicks::new();
    let edge = prop_oneof![-200_000..200_000i64, Just(i64::MIN), Just(i64::MAX), -5..5i64];
    let wide = (edge.clone(), edge).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let interval = prop_oneof![wide, (-60..60i64, 0..200i64).prop_map(|(a, b)| (a, a + b))];
    let cases = (history(), prop::collection::vec(interval, 1..20));
    long_property(cases, |(history, intervals)| {
        clear(store);
        let oracle = apply(&clicks, store, &history);
        let snapshot = store.snapshot().unwrap();
        for (from, to) in intervals {
            for site in ["", "a", "a\0", "\0", "b.org"] {
                let (total, explain) = clicks.roll_up.total(&snapshot, site, from..to).unwrap();
                assert_eq!(total, naive(oracle.values(), site, from, to), "{site:?} {from}..{to}");
                assert!(explain.planned <= 2 * WIDTHS.len() as u64 + 1);
            }
            let (none, _) = clicks.roll_up.total(&snapshot, "a", to..from).unwrap();
            assert_eq!(none, if from == to { naive(oracle.values(), "a", from, to) } else { 0 });
        }
    });

    // An event every ten seconds for three days; raw events are read only at the edges of the
    // interval.
    clear(store);
    let table = clicks.bare().with(&clicks.roll_up);
    let click = |n: u32| Click { site: "a".into(), user: 1, second: i64::from(n) * 10, bytes: 1 };
    store.transact(|txn| table.put_many(txn, (0..25_920).map(|n| (n, click(n))))).unwrap();
    let metered = Metered::new(store.clone());
    let snapshot = metered.snapshot().unwrap();
    let (from, to) = (25, 3 * 86_400 - 5);
    let (found, cost) = metered.measure(|_| clicks.roll_up.total(&snapshot, "a", from..to));
    let (total, explain) = found.unwrap();
    assert_eq!(total, 25_920 - 3 - 1 + 1);
    // 3 events, 59 minutes, 23 hours; 1 day; 23 hours, 59 minutes, 5 events (and one outside).
    assert_eq!((cost.ranges, explain.planned), (7, 7));
    assert_eq!((cost.keys_read, explain.keys_scanned), (3 + 59 + 23 + 1 + 23 + 59 + 6, 174));
    let (whole, cost) = metered.measure(|_| clicks.roll_up.total(&snapshot, "a", 0..86_400));
    assert_eq!((whole.unwrap().0, cost.ranges, cost.keys_read), (8_640, 1, 1));
    // A put that moves an event writes the raw entry, and the buckets that differ.
    let (_, cost) = metered.measure(|s| {
        s.transact(|txn| table.put(txn, &7, &Click { second: 75, ..click(7) })).unwrap();
    });
    assert_eq!(cost.keys_written, 3, "the record, one event gone and one new, in the same buckets");
}

/// Groups of which one is a prefix of another, or of another group and an event; with their
/// amounts.
const GROUPS: [(&[i64], i64); 5] =
    [(&[], 1), (&[2], 10), (&[2, 5], 100), (&[2, 5, 5], 1_000), (&[2, 6], 10_000)];

#[test]
fn groups_of_different_length_do_not_mix() {
    let space = Subspace::new("r");
    let roll_up = RollUp::new(&space, &[10, 100], |id: &u32, time: &i64| {
        let (group, amount) = GROUPS[*id as usize % 5];
        Some(Event::new(List(group), *time, amount))
    })
    .unwrap();
    let table = Table::<u32, i64>::new(&Subspace::new("t")).with(&roll_up);
    let store = Memory::new();
    store.transact(|txn| table.put_many(txn, (0..200).map(|id| (id, i64::from(id))))).unwrap();
    let snapshot = store.snapshot().unwrap();
    for times in [0..200, 3..8, 5..6, 0..10, 7..173, 90..110] {
        let count = |rest: i64| times.clone().filter(|time| time % 5 == rest).count() as i64;
        let at = || times.clone();
        let found = GROUPS.map(|(group, _)| roll_up.total(&snapshot, List(group), at()));
        let wanted = [1, 10, 100, 1_000, 10_000].into_iter().zip(0..);
        let wanted: Vec<i64> = wanted.map(|(amount, rest)| amount * count(rest)).collect();
        assert_eq!(found.map(|found| found.unwrap().0)[..], wanted, "{times:?}");
    }
    let mut of_pair = roll_up.events().range(&snapshot, (List(GROUPS[2].0),)).unwrap();
    let first = of_pair.next().unwrap().unwrap();
    assert_eq!(first.parts_as::<(List<Vec<i64>>, i64, i64)>().unwrap(), (List(vec![2, 5]), 2, 100));
}

#[test]
fn widths_that_do_not_fill_each_other_are_refused() {
    let make = |widths: &[i64]| {
        RollUp::<u32, i64, ()>::new(&Subspace::new("r"), widths, |_, time| {
            Some(Event::new((), *time, 1))
        })
    };
    for widths in [&[][..], &[0], &[-60], &[60, 90], &[3_600, 60], &[60, 60]] {
        let error = make(widths).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { what: "the widths", .. }), "{error}");
    }
    let roll_up = make(&[7, 21]).unwrap();
    let table = Table::<u32, i64>::new(&Subspace::new("t")).with(&roll_up);
    let store = Memory::new();
    let times = [i64::MIN, i64::MIN + 1, -1, 0, 6, 7, 21, i64::MAX - 1, i64::MAX];
    store.transact(|txn| table.put_many(txn, (0..).zip(times))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let total = |times| roll_up.total(&snapshot, (), times).unwrap().0;
    assert_eq!(total(i64::MIN..i64::MAX), 8, "an interval ends before its end");
    assert_eq!((total(0..7), total(-1..22), total(i64::MIN..0)), (2, 5, 3));
    assert_eq!(roll_up.check(&snapshot, &table).unwrap(), []);
}
