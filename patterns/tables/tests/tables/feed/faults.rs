//! Costs, faults and conflicts.

use std::ops::ControlFlow;

use keyloom::{DynWriter, Metered, Reader, Result, Store, Writer};
use keyloom_tables::feed::FeedError;
use keyloom_tables::{Maintained, RepairOptions};
use keyloom_testing::laws::{
    clear, conflicts_are_retried_to_the_same_end, counts, faults_leave_nothing_half_done, writing,
};

use super::{feed, table};

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let store = Metered::new(store.clone());
    let feed = feed();
    let (with, without) =
        (table(&feed), keyloom_tables::Table::new(&keyloom::Subspace::new("plain")));
    let (key, value) = (("a".to_owned(), 1), "value".to_owned());
    // Gets, ranges, keys read, keys written: the feed adds exactly one written key.
    assert_eq!(writing(&store, |txn| without.put(txn, &key, &value)), [0, 0, 0, 1]);
    assert_eq!(writing(&store, |txn| with.put(txn, &key, &value)), [1, 1, 0, 2]);
    assert_eq!(writing(&store, |txn| with.put(txn, &key, &value)), [1, 1, 2, 2]);
    assert_eq!(writing(&store, |txn| with.delete(txn, &key).map(drop)), [1, 1, 2, 2]);
    assert_eq!(writing(&store, |txn| with.delete(txn, &key).map(drop)), [1, 0, 0, 0], "no change");
    let many: Vec<_> = (0..100).map(|n| (("b".to_owned(), n), value.clone())).collect();
    assert_eq!(writing(&store, |txn| with.put_many(txn, &many)), [100, 1, 1, 200]);

    let consumer = feed.consumer("all");
    assert_eq!(writing(&store, |txn| consumer.start(txn, 0)), [1, 2, 1, 1]);
    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| counts(store.measure(|_| work()).1);
    assert_eq!(reading(&|| assert_eq!(feed.last(&snapshot).unwrap(), 103)), [0, 1, 1, 0]);
    let poll = || assert_eq!(consumer.poll(&snapshot, 50).unwrap().changes.len(), 50);
    assert_eq!(reading(&poll), [1, 1, 51, 0]);
    drop(snapshot);
    assert_eq!(writing(&store, |txn| consumer.acknowledge(txn, 20)), [1, 1, 2, 1]);
    let process = |txn: &mut DynWriter<'_>| consumer.process(txn, 50, |_, _| Ok(())).map(drop);
    assert_eq!(writing(&store, process), [1, 1, 51, 1]);
    let swept = store.measure(|store| feed.sweep(store).unwrap());
    assert_eq!((swept.0.removed, counts(swept.1)), (70, [0, 3, 3, 1]));
    let swept = store.measure(|store| feed.sweep(store).unwrap());
    assert_eq!((swept.0.removed, counts(swept.1)), (0, [0, 3, 3, 0]));
}

fn prepare(store: &impl Store) {
    let feed = feed();
    store
        .transact(|txn| {
            feed.consumer("all").start(txn, 0)?;
            table(&feed).put_many(txn, (0..4).map(|n| (("a".to_owned(), n), n.to_string())))
        })
        .unwrap();
}

fn change(txn: &mut DynWriter<'_>) -> Result<()> {
    let feed = feed();
    let table = table(&feed);
    table.put(txn, &("a".into(), 1), &"changed".into())?;
    table.delete(txn, &("a".into(), 2))?;
    feed.consumer("all").process(txn, 3, |txn, _| txn.add(b"seen", 1))?;
    table.put_many(txn, (3..6).map(|n| (("b".to_owned(), n), n.to_string())))?;
    feed.consumer("other").start(txn, 2)?;
    feed.consumer("other").seek(txn, 5)
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    faults_leave_nothing_half_done(store, prepare, change, |store| {
        let (feed, snapshot) = (feed(), store.snapshot().unwrap());
        let mut wrong: Vec<_> =
            feed.check(&snapshot, &table(&feed)).unwrap().iter().map(ToString::to_string).collect();
        // The feed has a change for each value, and the counter is equal to the number of processed
        // changes.
        let position = feed.consumer("all").position(&snapshot).unwrap().unwrap();
        if snapshot.counter(b"seen").unwrap() != position as i64 {
            wrong.push(format!("{position} changes were processed"));
        }
        let changes = feed.read(&snapshot, 0, 100).unwrap();
        let mut records = std::collections::BTreeMap::new();
        for change in changes {
            match change.new {
                Some(new) => _ = records.insert(change.key, new),
                None => _ = records.remove(&change.key),
            }
        }
        let stored: Result<std::collections::BTreeMap<_, _>> =
            table(&feed).range(&snapshot, ..).unwrap().collect();
        if stored.unwrap() != records {
            wrong.push("a replay of the changes gives other records".into());
        }
        wrong
    });
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    conflicts_are_retried_to_the_same_end(store, prepare, change);
}

pub fn a_sweep_that_stops_anywhere_loses_no_change(store: &(impl Store + Clone)) {
    for keep in [None, Some(1), Some(7), Some(1_000)] {
        clear(store);
        let feed = match keep {
            Some(keep) => feed().keep_at_most(keep),
            None => feed(),
        };
        let table = table(&feed);
        let consumer = feed.consumer("all");
        store.transact(|txn| consumer.start(txn, 0)).unwrap();
        let records = || (0..30).map(|n| ((String::new(), n), n.to_string()));
        store.transact(|txn| table.put_many(txn, records())).unwrap();
        store.transact(|txn| consumer.acknowledge(txn, 13)).unwrap();
        // One transaction at a time; each sweep starts again or resumes.
        let mut options = RepairOptions { batch: 4, ..RepairOptions::default() };
        let mut removed = 0;
        for round in 0.. {
            let stop = |_: &_| ControlFlow::Break(());
            let done = feed.sweep_with(store, &options, stop).unwrap();
            removed += done.removed;
            if done.finished {
                break;
            }
            options.resume = (round % 2 == 0).then_some(done.position);
        }
        let kept = keep.map_or(0, |keep: u64| 30_u64.saturating_sub(keep)).clamp(13, 29);
        assert_eq!(removed, kept, "{keep:?}");
        let rest = feed.read(&store.snapshot().unwrap(), kept, 100).unwrap();
        assert_eq!(rest.len() as u64, 30 - kept);
        let polled = consumer.poll(&store.snapshot().unwrap(), 100);
        match kept {
            13 => assert_eq!(polled.unwrap().changes.len(), 17),
            _ => {
                let error = polled.unwrap_err();
                assert!(matches!(error.downcast_ref(), Some(FeedError::Removed { .. })), "{error}");
            }
        }
        // The numbers continue, even after all changes except one were removed.
        store.transact(|txn| table.put(txn, &(String::new(), 0), &"more".into())).unwrap();
        assert_eq!(feed.last(&store.snapshot().unwrap()).unwrap(), 31);
    }
}

/// A consumer acknowledges while other writers append: the two do not conflict. The control is a
/// second consumer of the same name, whose transaction does.
#[test]
fn an_acknowledgement_does_not_conflict_with_new_changes() {
    let store = keyloom::Memory::builder().optimistic(true).build();
    let feed = super::feed();
    let table = super::table(&feed);
    let consumer = feed.consumer("mail");
    let append = |n: u64| store.transact(|txn| table.put(txn, &(String::new(), n), &"x".into()));
    store.transact(|txn| consumer.start(txn, 0)).unwrap();
    (0..10).try_for_each(append).unwrap();
    let mut attempts = 0;
    store
        .transact(|txn| {
            attempts += 1;
            consumer.acknowledge(txn, 5)?;
            append(100 + attempts)
        })
        .unwrap();
    assert_eq!(attempts, 1);
    store
        .transact(|txn| {
            attempts += 1;
            consumer.acknowledge(txn, 6)?;
            match attempts {
                2 => store.transact(|other| consumer.acknowledge(other, 7)),
                _ => Ok(()),
            }
        })
        .unwrap();
    assert_eq!(attempts, 3, "the second attempt follows a conflict");
}
