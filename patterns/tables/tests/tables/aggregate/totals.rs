//! Counts and sums per group.

use std::ops::ControlFlow;

use keyloom::{Error, Memory, Metered, Result, Store, Writer};
use keyloom_tables::aggregate::{Totals, contribution};
use keyloom_tables::derived::RepairOptions;

use crate::aggregate::fixture::{Click, Clicks, sample};
use keyloom_tables::{Maintained, Progress, Schema};
use keyloom_testing::laws::{clear, dump};

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let clicks = Clicks::new();
    let table = clicks.bare().with(&clicks.totals);
    let metered = Metered::new(store.clone());
    let put = |id: u32, click: &Click| {
        let (done, cost) = metered.measure(|s| s.transact(|txn| table.put(txn, &id, click)));
        done.unwrap();
        (cost.gets, cost.ranges, cost.keys_written)
    };
    let click = Click { site: "a".into(), user: 1, second: 5, bytes: 7 };
    assert_eq!(put(1, &click), (1, 0, 3), "the record, the count, the sum");
    assert_eq!(put(1, &Click { second: 6, ..click.clone() }), (1, 0, 1), "the same totals");
    assert_eq!(put(1, &Click { bytes: 8, ..click.clone() }), (1, 0, 2), "the same count");
    assert_eq!(put(1, &Click { site: "b".into(), bytes: 8, ..click }), (1, 0, 5), "two sites");
    let (_, cost) = metered.measure(|s| s.transact(|txn| table.delete(txn, &1)).unwrap());
    assert_eq!((cost.gets, cost.ranges, cost.keys_written), (1, 0, 3));

    store.transact(|txn| table.put_many(txn, (0..30).map(|id| (id, sample(id))))).unwrap();
    let snapshot = metered.snapshot().unwrap();
    let reading = |work: &dyn Fn()| {
        let cost = metered.measure(|_| work()).1;
        (cost.gets, cost.ranges, cost.keys_read)
    };
    let totals = &clicks.totals;
    let get = || assert!(totals.get(&snapshot, ("site 0", "bytes")).unwrap() > 0);
    assert_eq!(reading(&get), (1, 0, 1));
    let all = || {
        let all = totals.range(&snapshot, ..).unwrap();
        assert_eq!(all.map(Result::unwrap).count(), 6);
    };
    assert_eq!(reading(&all), (0, 1, 10), "six, and four that came down to 0");
    assert_eq!(reading(&|| assert!(totals.sum(&snapshot, "site 1").unwrap() > 0)), (0, 1, 2));
    let check = || assert_eq!(totals.check(&snapshot, &table).unwrap(), []);
    assert_eq!(reading(&check), (0, 2, 40), "30 records, 10 totals");
}

#[test]
fn many_records_at_once_cost_what_the_documentation_says() {
    let clicks = Clicks::new();
    let load = |table: &keyloom_tables::Table<u32, Click>| {
        let store = Metered::new(keyloom::Memory::new());
        let records: Vec<_> = (0..300).map(|id| (id, sample(id))).collect();
        let (done, cost) = store.measure(|s| s.transact(|txn| table.put_many(txn, &records)));
        done.unwrap();
        let buckets = dump(&store.snapshot().unwrap(), clicks.roll_up.buckets().space().range());
        ((cost.gets, cost.ranges, cost.keys_written, cost.round_trips), buckets.len() as u64, store)
    };
    // The records are read in one round trip, then two totals of each of three sites, then the
    // commit.
    let (cost, _, store) = load(&clicks.bare().with(&clicks.totals));
    assert_eq!(cost, (300, 0, 300 + 6, 2));
    let more = |id| (id, Click { bytes: 1, ..sample(id + 1) });
    let more: Vec<_> = (200..500).map(more).collect();
    let table = clicks.bare().with(&clicks.totals);
    let (done, cost) = store.measure(|s| s.transact(|txn| table.put_many(txn, &more)));
    done.unwrap();
    assert_eq!((cost.keys_written, cost.round_trips), (300 + 6, 2));
    assert_eq!(clicks.totals.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    // A raw entry for each record with an amount, and each bucket once.
    let (cost, buckets, _) = load(&clicks.bare().with(&clicks.roll_up));
    let events = (0..300).filter(|id| sample(*id).bytes != 0).count() as u64;
    assert!(buckets < 700, "{buckets}");
    assert_eq!(cost, (300, 0, 300 + events + buckets, 2));
    // The sketches of three sites, read in one round trip.
    let (cost, ..) = load(&clicks.bare().with(&clicks.users));
    assert_eq!(cost, (300 + 3, 0, 300 + 3, 3));
    // A ranked index reads once per entry.
    let (cost, ..) = load(&clicks.bare().with(&clicks.ranked));
    assert!((4 * 300..5 * 300).contains(&cost.1) && cost.3 == cost.1 + 2, "{cost:?}");
}

pub fn a_repair_continues_where_it_was_stopped(store: &(impl Store + Clone)) {
    clear(store);
    let clicks = Clicks::new();
    store.transact(|txn| clicks.bare().put_many(txn, (0..60).map(|id| (id, sample(id))))).unwrap();
    let mut options = RepairOptions { batch: 1, resume: None };
    let mut written = 0;
    loop {
        let stop = |_: &_| ControlFlow::Break(());
        let done = clicks.totals.repair_with(store, &clicks.table, &options, stop).unwrap();
        written += done.written;
        if done.finished {
            break;
        }
        options.resume = Some(done.position);
    }
    assert_eq!(written, 6, "nothing is added twice");
    assert_eq!(clicks.totals.check(&store.snapshot().unwrap(), &clicks.table).unwrap(), []);
    // The same for the ranked index, whose counts are repaired after its entries.
    let mut options = RepairOptions { batch: 7, resume: None };
    let mut rounds = 0;
    loop {
        let stop = |_: &_| ControlFlow::Break(());
        let done = clicks.ranked.repair_with(store, &clicks.table, &options, stop).unwrap();
        rounds += 1;
        assert!(rounds < 200);
        if done.finished {
            break;
        }
        options.resume = Some(done.position);
    }
    assert!(rounds > 20, "{rounds}");
    assert_eq!(clicks.ranked.check(&store.snapshot().unwrap(), &clicks.table).unwrap(), []);
    // The same for a roll-up, whose buckets are repaired after its events; no amount is added
    // twice.
    let mut options = RepairOptions { batch: 7, resume: None };
    let (mut rounds, mut written) = (0, 0);
    loop {
        let stop = |_: &_| ControlFlow::Break(());
        let done = clicks.roll_up.repair_with(store, &clicks.table, &options, stop).unwrap();
        (rounds, written) = (rounds + 1, written + done.written);
        assert!(rounds < 200);
        if done.finished {
            break;
        }
        options.resume = Some(done.position);
    }
    let there = dump(&store.snapshot().unwrap(), clicks.space.child("roll_up").range());
    assert_eq!(written, there.len() as u64, "nothing is added twice");
    assert!(rounds as u64 > written / 7, "{rounds}");
    assert_eq!(clicks.roll_up.check(&store.snapshot().unwrap(), &clicks.table).unwrap(), []);
    // A resume position of another table.
    let last = Some(keyloom::pack(&("elsewhere", 1)));
    options.resume =
        options.resume.map(|position| keyloom_tables::derived::RepairPosition { last, ..position });
    let on = |_: &_| ControlFlow::Continue(());
    let error = clicks.totals.repair_with(store, &clicks.table, &options, on).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    let error = clicks.ranked.repair_with(store, &clicks.table, &options, on).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    let error = clicks.roll_up.repair_with(store, &clicks.table, &options, on).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
}

#[test]
fn totals_and_their_table_must_lie_apart() {
    let clicks = Clicks::new();
    let store = keyloom::Memory::new();
    let inside = Totals::new(clicks.table.space(), |_: &u32, _: &Click| contribution("n", 1));
    let snapshot = store.snapshot().unwrap();
    assert!(matches!(inside.check(&snapshot, &clicks.table), Err(Error::InvalidArgument { .. })));
}

#[test]
fn writers_of_one_total_do_not_conflict_with_atomic_add() {
    let clicks = Clicks::new();
    let store = keyloom_testing::optimistic_memory();
    let conflicts_in =
        |table: &keyloom_tables::Table<u32, Click>, ids: [u32; 2], sites: [&str; 2]| {
            let mut both = [store.begin().unwrap(), store.begin().unwrap()];
            for (txn, (id, site)) in both.iter_mut().zip(ids.into_iter().zip(sites)) {
                table.put(txn, &id, &Click { site: site.into(), ..sample(id) }).unwrap();
            }
            let outcomes = both.map(keyloom::Transaction::commit);
            outcomes.iter().filter(|outcome| outcome.is_err()).count()
        };
    let conflicts = |table: &_, ids| conflicts_in(table, ids, ["hot", "hot"]);
    assert_eq!(conflicts(&clicks.bare().with(&clicks.totals), [1, 2]), 0);
    assert_eq!(clicks.totals.get(&store.snapshot().unwrap(), ("hot", "clicks")).unwrap(), 2);
    assert_eq!(conflicts(&clicks.bare().with(&clicks.roll_up), [3, 4]), 0);
    // Writes of a ranked index read its counts, so they conflict even if the groups are far apart.
    let ranked = clicks.bare().with(&clicks.ranked);
    assert_eq!(conflicts(&ranked, [5, 6]), 1);
    store.transact(|txn| ranked.put_many(txn, (100..1_100).map(|id| (id, sample(id))))).unwrap();
    for n in 0..50 {
        assert_eq!(conflicts_in(&ranked, [2_000 + n, 3_000 + n], ["site 0", "site 2"]), 1);
    }
}

/// A build stops at a record that does not decode. Its remedies, a delete or a put, take nothing
/// from totals that do not have the record yet.
#[test]
fn totals_being_built_do_not_lose_a_record_that_they_lack() {
    for (is_put, left) in [(false, 9), (true, 10)] {
        let store = Memory::new();
        let schema = Schema::open(&store, "numbers").unwrap();
        let table = schema.table::<u32, String>("numbers").unwrap();
        let records = (0..10).map(|n| (n, n.to_string()));
        store.transact(|txn| table.put_many(txn, records.clone())).unwrap();
        store.transact(|txn| txn.put(&table.space().pack(&7_u32), b"\xFF\xFF\xFF")).unwrap();
        let totals = schema.derive(&table, "count", 1, |space| {
            Ok(Totals::of_keys(space, |_: &u32| contribution((), 1)))
        });
        let totals = totals.unwrap();
        let until = |done: &Progress| match done.records < 4 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        assert!(!totals.build_with(&store, 2, until).unwrap().finished);
        let remedy = store.transact(|txn| match is_put {
            true => table.put(txn, &7, &"seven".to_owned()),
            false => table.delete(txn, &7).map(drop),
        });
        remedy.unwrap();
        assert!(totals.build(&store).unwrap().finished);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(totals.at(&snapshot).unwrap().get(&snapshot, ()).unwrap(), left);
        assert_eq!(totals.check(&snapshot).unwrap(), []);
    }
}
