//! Ranked indexes: counts of any range, ranks, positions.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use fastrand::Rng;
use keyloom::{Desc, Metered, Store, Writer};
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::within;
use keyloom_tables::{Maintained, Progress};

use crate::aggregate::fixture::{Click, Clicks, sample};
use keyloom_testing::ids::number;
use keyloom_testing::laws::clear;

/// Sites in order; each key is a prefix of the next one.
const SITES: [&str; 3] = ["", "a", "a\0"];

/// Site, bytes in descending order, id: the order of the index.
type Sorted = BTreeSet<(String, std::cmp::Reverse<i64>, u32)>;

fn sorted(click: &Click, id: u32) -> (String, std::cmp::Reverse<i64>, u32) {
    (click.site.clone(), std::cmp::Reverse(click.bytes), id)
}

pub fn ranks_counts_and_positions_are_those_of_a_sorted_list(store: &(impl Store + Clone)) {
    clear(store);
    let clicks = Clicks::new();
    let table = clicks.bare().with(&clicks.ranked);
    let (mut random, mut oracle) = (Rng::with_seed(7), Sorted::new());
    let mut there = std::collections::BTreeMap::<u32, Click>::new();
    for round in 0..40 {
        store
            .transact(|txn| {
                // A retried transaction must use the same random numbers.
                let (mut random, mut there) = (random.clone(), there.clone());
                for _ in 0..25 {
                    step(&mut random, &mut there, round, |id, click| match click {
                        Some(click) => table.put(txn, &id, click),
                        None => table.delete(txn, &id).map(drop),
                    })?;
                }
                Ok(())
            })
            .unwrap();
        for _ in 0..25 {
            step(&mut random, &mut there, round, |_, _| Ok(())).unwrap();
        }
        oracle = there.iter().map(|(id, click)| sorted(click, *id)).collect();
        assert_eq!(clicks.ranked.check(&store.snapshot().unwrap(), &table).unwrap(), []);
        if round % 8 == 7 {
            agrees(&clicks, store, &oracle);
        }
    }
    assert!(oracle.len() > 150, "{}", oracle.len());

    // Writes in another order lead to the same bytes.
    let maintained = clicks.derived(store);
    clear(store);
    let records: Vec<_> = there.iter().rev().map(|(id, click)| (*id, click.clone())).collect();
    store.transact(|txn| table.put_many(txn, &records)).unwrap();
    assert_eq!(clicks.derived(store), maintained);
    // A rebuild also leads to the same bytes.
    clear(store);
    store.transact(|txn| clicks.bare().put_many(txn, &records)).unwrap();
    let options = RepairOptions { batch: 10, resume: None };
    clicks.ranked.repair_with(store, &table, &options, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(clicks.derived(store), maintained);
    // Deleting all records leaves no entry.
    store.transact(|txn| table.delete_many(txn, there.keys())).unwrap();
    assert!(clicks.derived(store).is_empty());
}

fn step(
    random: &mut Rng,
    there: &mut std::collections::BTreeMap<u32, Click>,
    round: u32,
    mut perform: impl FnMut(u32, Option<&Click>) -> keyloom::Result<()>,
) -> keyloom::Result<()> {
    let id = number(random.u64(..400)) as u32;
    let site = SITES[random.usize(..3)].to_owned();
    let click = Click { site, bytes: random.i64(-5..40), ..sample(0) };
    // The index first grows, then grows and shrinks at random.
    let put = random.u32(..10) < if round < 20 { 9 } else { 5 };
    perform(id, put.then_some(&click))?;
    match put {
        true => there.insert(id, click),
        false => there.remove(&id),
    };
    Ok(())
}

fn agrees(clicks: &Clicks, store: &impl Store, oracle: &Sorted) {
    let (ranked, snapshot) = (&clicks.ranked, store.snapshot().unwrap());
    let all: Vec<_> = oracle.iter().collect();
    assert_eq!(ranked.count(&snapshot, ..).unwrap(), all.len() as u64);
    assert_eq!(ranked.count(&snapshot, "no such site").unwrap(), 0);
    for (n, (_, _, id)) in all.iter().enumerate() {
        let found = ranked.nth(&snapshot, (), n as u64).unwrap().expect("there are as many");
        assert_eq!(found.record_key().unwrap(), *id);
    }
    assert!(ranked.nth(&snapshot, (), all.len() as u64).unwrap().is_none());
    for site in SITES {
        let of_site: Vec<_> = all.iter().filter(|entry| entry.0 == site).collect();
        assert_eq!(ranked.count(&snapshot, site).unwrap(), of_site.len() as u64);
        for bytes in -7..42 {
            let before = of_site.iter().filter(|entry| entry.1.0 > bytes).count() as u64;
            assert_eq!(ranked.rank(&snapshot, site, (site, Desc(bytes))).unwrap(), before);
            let upto = within(..=(site, Desc(bytes)));
            let through =
                all.iter().filter(|e| ***e <= (site.into(), std::cmp::Reverse(bytes), u32::MAX));
            assert_eq!(ranked.count(&snapshot, upto).unwrap(), through.count() as u64);
        }
        let last = of_site.len() as u64 - 1;
        let found = ranked.nth(&snapshot, site, last).unwrap().expect("the last one");
        assert_eq!(found.record_key().unwrap(), of_site[last as usize].2);
        assert!(ranked.nth(&snapshot, site, last + 1).unwrap().is_none());
        // The first and last entries of a group are read without the counts.
        let top = ranked.index().query().prefix(site).limit(3).page(&snapshot).unwrap();
        let top: Vec<u32> = top.items.iter().map(|found| found.record_key().unwrap()).collect();
        assert_eq!(top, of_site.iter().take(3).map(|entry| entry.2).collect::<Vec<_>>());
    }
    // If the parts are outside the selection, either all or none of its entries come before them.
    let [before, site, after] = SITES;
    assert_eq!(ranked.rank(&snapshot, site, before).unwrap(), 0);
    let in_site = ranked.count(&snapshot, site).unwrap();
    assert_eq!(ranked.rank(&snapshot, site, after).unwrap(), in_site);
}

pub fn damaged_counts_are_found_and_repaired_while_others_write(store: &(impl Store + Clone)) {
    clear(store);
    let clicks = Clicks::new();
    let table = clicks.bare().with(&clicks.ranked);
    store.transact(|txn| table.put_many(txn, (0..600).map(|id| (id, sample(id))))).unwrap();
    let counts = clicks.space.child("ranked").child("counts");
    let keys = keyloom_testing::laws::dump(&store.snapshot().unwrap(), counts.range());
    let mut damaged = 0;
    store
        .transact(|txn| {
            damaged = 0;
            for (n, key) in keys.keys().enumerate().filter(|(n, _)| n % 3 == 0) {
                damaged += 1;
                match n % 4 {
                    0 => txn.add(key, 4)?,
                    1 => txn.delete(key)?,
                    2 => txn.put(key, b"none")?,
                    _ => txn.put(&[&key[..], b"\x15\x07"].concat(), &9_u64.to_le_bytes())?,
                }
            }
            Ok(())
        })
        .unwrap();
    assert!(damaged > 10, "{damaged} of {}", keys.len());
    let found = clicks.ranked.check(&store.snapshot().unwrap(), &table).unwrap();
    assert!(found.len() >= damaged, "{found:?}");
    // An undecodable node makes writers fail, so it is removed before other writes.
    store
        .transact(|txn| {
            let junk: Vec<_> = keys.keys().enumerate().filter(|(n, _)| n % 12 == 6).collect();
            junk.into_iter().try_for_each(|(_, key)| txn.put(key, &1_u64.to_le_bytes()))
        })
        .unwrap();
    let round = Cell::new(0);
    let options = RepairOptions { batch: 40, resume: None };
    let write = |_: &_| {
        let n = round.get();
        round.set(n + 1);
        store
            .transact(|txn| {
                (0..20).try_for_each(|k| {
                    let id = (n * 37 + k * 29) % 600;
                    match k % 3 {
                        0 => table.delete(txn, &id).map(drop),
                        _ => table.put(txn, &(id + k), &sample(n * 31 + k)),
                    }
                })
            })
            .unwrap();
        ControlFlow::Continue(())
    };
    clicks.ranked.repair_with(store, &table, &options, write).unwrap();
    assert!(round.get() > 30, "{}", round.get());
    assert_eq!(clicks.ranked.check(&store.snapshot().unwrap(), &table).unwrap(), []);
}

/// The last nodes of a batch are deleted, and some are inserted again, before the next batch. Their
/// counts are neither lost nor wrong.
pub fn a_repair_whose_last_node_is_deleted_meanwhile_ends_right(store: &(impl Store + Clone)) {
    let clicks = Clicks::new();
    let table = clicks.bare().with(&clicks.ranked);
    let counts = clicks.space.child("ranked").child("counts");
    for (stops, comes_back) in [(false, false), (false, true), (true, false), (true, true)] {
        clear(store);
        store.transact(|txn| table.put_many(txn, (0..600).map(|id| (id, sample(id))))).unwrap();
        let keys = keyloom_testing::laws::dump(&store.snapshot().unwrap(), counts.range());
        store.transact(|txn| keys.keys().try_for_each(|key| txn.add(key, 1_000))).unwrap();
        let deleted = Cell::new(0);
        let delete = |done: &Progress| {
            let last = done.position.last.as_deref().unwrap_or_default();
            if let Ok((_, _, _, id)) = counts.unpack::<(u8, String, Desc<i64>, u32)>(last) {
                deleted.set(deleted.get() + 1);
                store.transact(|txn| table.delete(txn, &id)).unwrap();
                if comes_back {
                    store.transact(|txn| table.put(txn, &id, &sample(id))).unwrap();
                }
            }
            if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut options = RepairOptions { batch: 40, resume: None };
        for round in 0.. {
            let done = clicks.ranked.repair_with(store, &table, &options, delete).unwrap();
            if done.finished {
                break;
            }
            assert!(stops && round < 200);
            options.resume = Some(done.position);
        }
        assert!(deleted.get() > 5, "{}", deleted.get());
        let found = clicks.ranked.check(&store.snapshot().unwrap(), &table).unwrap();
        assert_eq!(found, [], "stops: {stops}, comes back: {comes_back}");
    }
}

#[test]
fn cost_of_ranks_is_independent_of_the_number_of_entries() {
    let store = Metered::new(keyloom::Memory::new());
    let clicks = Clicks::new();
    let table = clicks.bare().with(&clicks.ranked);
    let records = || (0..20_000).map(|id| (id, sample(id)));
    let (done, cost) = store.measure(|s| s.transact(|txn| table.put_many(txn, records())));
    done.unwrap();
    // Four ranges for each put, and three more on each further level, which one in 16 entries
    // reaches.
    let [ranges, keys] = [cost.ranges, cost.keys_read].map(|n| n as f64 / 20_000.0);
    assert!((4.1..4.3).contains(&ranges) && keys < 7.0, "{ranges} ranges, {keys} keys per put");
    let snapshot = store.snapshot().unwrap();
    let (mut keys, mut most) = (0, 0);
    for bytes in 0..100 {
        let (rank, cost) = store
            .measure(|_| clicks.ranked.rank(&snapshot, "site 1", ("site 1", Desc(bytes * 10))));
        assert!(rank.unwrap() < 7_000);
        assert_eq!(cost.ranges, 10);
        (keys, most) = (keys + cost.keys_read, most.max(cost.keys_read));
    }
    assert!(keys / 100 <= 160 && most <= 400, "{} on average, {most} at the most", keys / 100);
    let (_, cost) = store.measure(|_| clicks.ranked.nth(&snapshot, (), 11_111).unwrap().unwrap());
    assert_eq!(cost.ranges, 15);
    assert!(cost.keys_read <= 400, "{cost}");
    // A put that moves an entry deletes one entry and inserts one, each with four levels.
    let moved = Click { bytes: 5, ..sample(70) };
    let (done, cost) = store.measure(|s| s.transact(|txn| table.put(txn, &70, &moved)));
    done.unwrap();
    assert_eq!(cost.gets, 1);
    assert!((8..=14).contains(&cost.ranges) && cost.keys_written <= 20, "{cost}");
    // A put that moves no entry writes only the record.
    let (done, cost) = store
        .measure(|s| s.transact(|txn| table.put(txn, &70, &Click { second: 1, ..moved.clone() })));
    done.unwrap();
    assert_eq!((cost.gets, cost.ranges, cost.keys_written), (1, 0, 1));
}

#[test]
fn checks_and_repairs_cost_what_the_documentation_says() {
    let store = Metered::new(keyloom::Memory::new());
    let clicks = Clicks::new();
    store.transact(|txn| clicks.table.put_many(txn, (0..500).map(|id| (id, sample(id))))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let table = &clicks.table;
    // Gets, ranges, keys written, commits.
    let cost = |work: &dyn Fn()| {
        let cost = store.measure(|_| work()).1;
        (cost.gets, cost.ranges, cost.keys_written, cost.commits)
    };
    // Records and entries in one chunk each, a get for the counterpart of each, and four levels.
    let check = || assert_eq!(clicks.ranked.check(&snapshot, table).unwrap(), []);
    assert_eq!(cost(&check), (1_000, 2 + 8, 0, 0));
    let check = || assert_eq!(clicks.roll_up.check(&snapshot, table).unwrap(), []);
    assert_eq!(cost(&check).1, 2 + 2);
    let check = || assert_eq!(clicks.users.check(&snapshot, table).unwrap(), []);
    assert_eq!(cost(&check), (0, 2, 0, 0));
    let options = RepairOptions::default();
    let on = |_: &_| ControlFlow::Continue(());
    let repair = || {
        let done = clicks.totals.repair_with(&store, table, &options, on).unwrap();
        assert!(done.finished && done.records == 500 && done.written == 0);
    };
    assert_eq!(cost(&repair), (0, 2, 0, 1));
    let repair = || drop(clicks.ranked.repair_with(&store, table, &options, on).unwrap());
    assert_eq!(cost(&repair), (1_000, 2 + 8, 0, 2 + 4));
    // Records with 0 bytes have no entry.
    let none = (0..500).filter(|id| sample(*id).bytes == 0).count() as u64;
    let repair = || {
        let done = clicks.roll_up.repair_with(&store, table, &options, on).unwrap();
        assert!(done.finished && done.records == 2 * 500 && done.written == 0);
    };
    assert_eq!(cost(&repair), (1_000 - 2 * none, 2 + 2, 0, 2 + 1));
    let rebuild = || {
        let written = store.transact(|txn| clicks.users.rebuild(txn, table)).unwrap();
        assert_eq!(written, 3);
    };
    assert_eq!(cost(&rebuild), (0, 1, 1 + 3, 1));
    // The costs of queries.
    let ask = || assert_eq!(clicks.ranked.count(&snapshot, ..).unwrap(), 500);
    assert_eq!(cost(&ask), (0, 10, 0, 0));
    let ask = || assert!(clicks.users.estimate(&snapshot, "site 1").unwrap() > 10.0);
    assert_eq!(cost(&ask), (1, 0, 0, 0));
    let ask = || assert!(clicks.users.estimate_together(&snapshot, ()).unwrap() > 10.0);
    assert_eq!(cost(&ask), (0, 1, 0, 0));
}

/// All records are lost, so all counts are stale: more than a transaction takes.
#[test]
fn more_stale_counts_than_a_transaction_takes_are_repaired() {
    use keyloom::{Limits, Memory, Order, Reader};
    let limits = Limits::default().with_max_transaction(None, Some(100));
    let store = Memory::builder().limits(limits).build();
    let clicks = Clicks::new();
    let table = clicks.bare().with(&clicks.ranked);
    let ids: Vec<u32> = (0..10_000).collect();
    let mut size = keyloom_tables::BatchSize::new(10);
    size.transact_all(&store, &ids, |txn, some| {
        table.put_many(txn, some.iter().map(|id| (*id, sample(*id))))
    })
    .unwrap();
    let mut lost: Vec<Vec<u8>> = Vec::new();
    for entry in store.snapshot().unwrap().range(table.space().range(), Order::Ascending).unwrap() {
        lost.push(entry.unwrap().0.to_vec());
    }
    let mut size = keyloom_tables::BatchSize::new(100);
    size.transact_all(&store, &lost, |txn, some| some.iter().try_for_each(|key| txn.delete(key)))
        .unwrap();
    let faults = || clicks.ranked.check(&store.snapshot().unwrap(), &table).unwrap().len();
    assert!(faults() > 5_000, "{}", faults());
    let mut commits = 0;
    let on_commit = |_: &_| {
        commits += 1;
        ControlFlow::Continue(())
    };
    let options = RepairOptions::default();
    assert!(clicks.ranked.repair_with(&store, &table, &options, on_commit).unwrap().finished);
    assert!(commits > 100, "{commits}");
    assert_eq!(faults(), 0);
}
