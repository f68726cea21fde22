//! Sweeps: cost, concurrency, damage, faults.

use std::ops::ControlFlow;

use keyloom::{AnyStore, Metered, Store, Writer};
use keyloom_tables::RepairOptions;
use keyloom_testing::laws::{self, clear, counts, dump_all, writing};

use super::{Login, open};

fn batch(batch: usize) -> RepairOptions {
    RepairOptions { batch, ..RepairOptions::default() }
}

/// The cost of a sweep does not depend on the number of live records.
pub fn sweeps_read_only_expired_records(store: &AnyStore) {
    let mut costs = Vec::new();
    for live in [100, 1_000] {
        clear(store);
        let logins = open(store);
        for key in 0..live {
            logins.put(store, key, Some(10_000));
        }
        for key in live..live + 50 {
            logins.put(store, key, Some(5));
        }
        let metered = Metered::new(store.clone());
        let (done, cost) = metered.measure(|store| logins.expiry.sweep(store, 9_999).unwrap());
        assert_eq!((done.removed, done.entries, done.finished), (50, 50, true));
        costs.push(counts(cost));
    }
    assert_eq!(costs[0], costs[1]);
}

pub fn costs_are_those_of_the_documentation(store: &AnyStore) {
    let logins = open(store);
    (0..10).for_each(|key| logins.put(store, key, Some(5)));
    let store = &Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| counts(store.measure(|_| work()).1);
    let expiry = &logins.expiry;
    assert_eq!(reading(&|| drop(expiry.get(&snapshot, &1, 4))), [1, 0, 1, 0]);
    assert_eq!(reading(&|| drop(expiry.count_expired(&snapshot, 5))), [1, 1, 11, 0]);
    assert_eq!(reading(&|| drop(expiry.next_deadline(&snapshot))), [1, 1, 2, 0]);
    let live = || assert_eq!(expiry.live(&snapshot, .., 5).unwrap().count(), 0);
    assert_eq!(reading(&live), [0, 1, 10, 0]);
    drop(snapshot);
    let touch = |until| {
        writing(store, |txn| {
            expiry.touch(txn, &3, 4, |login: &mut Login| login.until = Some(until)).map(drop)
        })
    };
    assert_eq!(touch(6), [3, 0, 3, 3]);
    let (_, cost) = store.measure(|store| expiry.sweep(store, 5).unwrap());
    // The reads are the entry of the table, and each record twice. The writes remove each record
    // and its two entries.
    assert_eq!(counts(cost), [20, 1, 29, 27]);
}

pub fn two_sweepers_remove_each_record_once(store: &AnyStore) {
    let logins = open(store);
    (0..300).for_each(|key| logins.put(store, key, Some(u64::from(key) + 1)));
    (300..310).for_each(|key| logins.put(store, key, None));
    let removed: u64 = std::thread::scope(|scope| {
        let sweep =
            || logins.expiry.sweep_with(store, 200, &batch(7), |_| ControlFlow::Continue(()));
        let sweepers: Vec<_> = (0..4).map(|_| scope.spawn(sweep)).collect();
        sweepers.into_iter().map(|one| one.join().unwrap().unwrap().removed).sum()
    });
    assert_eq!(removed, 200);
    assert_eq!(logins.table.count(&store.snapshot().unwrap(), ()).unwrap(), 110);
    logins.assert_sound(store);
}

pub fn sweeps_stop_and_resume(store: &AnyStore) {
    let logins = open(store);
    (0..50).for_each(|key| logins.put(store, key, Some(5)));
    let expiry = &logins.expiry;
    let stopped = expiry.sweep_with(store, 5, &batch(20), |_| ControlFlow::Break(())).unwrap();
    assert_eq!((stopped.removed, stopped.finished), (20, false));
    let resume = RepairOptions { resume: Some(stopped.position), ..batch(20) };
    let mut seen = Vec::new();
    let rest = expiry.sweep_with(store, 5, &resume, |progress| {
        seen.push(progress.removed);
        ControlFlow::Continue(())
    });
    assert!(rest.unwrap().finished);
    assert_eq!(seen, [20, 30]);
    assert_eq!(expiry.sweep(store, u64::MAX).unwrap().entries, 0);
    logins.assert_sound(store);
}

pub fn touched_records_survive_a_concurrent_sweep(store: &AnyStore) {
    let logins = open(store);
    (0..100).for_each(|key| logins.put(store, key, Some(5)));
    // Each record is live at time 4, when it is touched, and expired at time 5, when it is swept.
    let touched = std::thread::scope(|scope| {
        let toucher = scope.spawn(|| {
            (0..100)
                .filter(|key| {
                    store
                        .transact(|txn| {
                            let until = |login: &mut Login| login.until = Some(9);
                            logins.expiry.touch(txn, key, 4, until)
                        })
                        .unwrap()
                })
                .count()
        });
        scope.spawn(|| {
            for _ in 0..20 {
                let continued = |_: &_| ControlFlow::Continue(());
                logins.expiry.sweep_with(store, 5, &batch(3), continued).unwrap();
            }
        });
        toucher.join().unwrap()
    });
    logins.expiry.sweep(store, 5).unwrap();
    let left = logins.table.count(&store.snapshot().unwrap(), ()).unwrap();
    assert_eq!(left as usize, touched);
    logins.assert_sound(store);
}

pub fn damage_removes_no_live_record(store: &AnyStore) {
    let logins = open(store);
    (0..20).for_each(|key| logins.put(store, key, Some(u64::from(key))));
    let entries = |reader: &dyn Fn() -> Vec<Vec<u8>>| reader();
    let index = logins.expiry.index().space();
    let keys = entries(&|| {
        let all = dump_all(store);
        all.into_keys().filter(|key| index.contains(key)).collect()
    });
    // Four faults: an entry without a header, a live record's entry with an early time, an entry
    // without a record, and a record that does not decode.
    let header = dump_all(store)[&keys[5]].clone();
    store
        .transact(|txn| {
            txn.put(&keys[1], b"")?;
            txn.put(&index.pack(&(0_u64, 19_u32)), &header)?;
            txn.put(&index.pack(&(0_u64, 99_u32)), &header)?;
            txn.put(&logins.table.space().pack(&2_u32), b"\xFF")
        })
        .unwrap();
    let done =
        logins.expiry.sweep_with(store, 9, &batch(2), |_| ControlFlow::Continue(())).unwrap();
    assert!(done.finished);
    assert_eq!((done.entries, done.removed, done.undecodable), (12, 8, 2));
    let live = logins
        .expiry
        .live(&store.snapshot().unwrap(), (), 9)
        .map(|live| live.filter_map(Result::ok).map(|(key, _)| key).collect::<Vec<_>>());
    assert_eq!(live.unwrap(), (10..20).collect::<Vec<_>>());
    // After the repair, a sweep removes the rest.
    store.transact(|txn| logins.table.delete(txn, &2)).unwrap();
    logins.expiry.index().repair(store).unwrap();
    assert_eq!(logins.expiry.sweep(store, 9).unwrap().removed, 1);
    logins.assert_sound(store);
}

pub fn faults_leave_nothing_half_done(store: &AnyStore) {
    let logins = open(store);
    (0..5).for_each(|key| logins.put(store, key, Some(5)));
    let prepared = dump_all(store);
    let prepare = |store: &AnyStore| {
        store
            .transact(|txn| prepared.iter().try_for_each(|(key, value)| txn.put(key, value)))
            .unwrap();
    };
    laws::faults_leave_nothing_half_done(
        store,
        prepare,
        |txn| {
            let touch = |login: &mut Login| login.until = Some(9);
            logins.expiry.touch(txn, &3, 4, touch).map(drop)
        },
        |store| {
            let snapshot = store.snapshot().unwrap();
            let faults = logins.expiry.index().check(&snapshot).unwrap();
            faults.iter().map(ToString::to_string).collect()
        },
    );
    let faulty = keyloom::Faulty::new(store.clone());
    clear(store);
    prepare(store);
    for n in 0..200 {
        faulty.fail_at(n, keyloom::Fault::Error);
        let swept = logins.expiry.sweep_with(&faulty, 5, &batch(2), |_| ControlFlow::Continue(()));
        logins.assert_sound(store);
        let left = logins.table.count(&store.snapshot().unwrap(), ()).unwrap();
        assert_eq!(swept.is_ok(), left == 0);
        if swept.is_ok() {
            assert!(n > 10);
            return;
        }
        prepare(store);
    }
    panic!("no sweep finished");
}
