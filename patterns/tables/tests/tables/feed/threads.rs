//! Concurrent producers and consumers.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use keyloom::{DynWriter, Reader, Store, Writer};
use keyloom_testing::laws::clear;

use super::{feed, table};

const PRODUCERS: u64 = 3;
const EACH: u64 = 25;

/// Two threads share one consumer whose work is in the store: its counts are equal to the writes.
pub fn each_change_is_processed_once_and_in_order(store: &(impl Store + Clone)) {
    clear(store);
    let feed = feed();
    let table = table(&feed);
    let consumer = feed.consumer("sum");
    store.transact(|txn| consumer.start(txn, 0)).unwrap();
    let producing = AtomicUsize::new(PRODUCERS as usize);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (table, producing) = (&table, &producing);
            scope.spawn(move || {
                for n in 0..EACH {
                    let key = (format!("{producer}"), n % 5);
                    store.transact(|txn| table.put(txn, &key, &n.to_string())).unwrap();
                }
                producing.fetch_sub(1, SeqCst);
            });
        }
        for _ in 0..2 {
            let (consumer, producing) = (&consumer, &producing);
            scope.spawn(move || {
                loop {
                    let is_last = producing.load(SeqCst) == 0;
                    let work = |txn: &mut DynWriter<'_>, number: u64| {
                        // In order: the change before this one was the last one processed.
                        assert_eq!(txn.counter(b"last")?, number as i64 - 1);
                        txn.add(b"last", 1)
                    };
                    let processed = store
                        .transact(|txn| {
                            consumer.process(txn, 4, |txn, change| work(txn, change.number))
                        })
                        .unwrap();
                    if processed == 0 && is_last {
                        break;
                    }
                }
            });
        }
    });
    let snapshot = store.snapshot().unwrap();
    let all = (PRODUCERS * EACH) as i64;
    assert_eq!(snapshot.counter(b"last").unwrap(), all);
    assert_eq!(consumer.position(&snapshot).unwrap(), Some(all as u64));
    // The changes of each producer are in order, since each waits for its commit.
    let changes = feed.read(&snapshot, 0, 1_000).unwrap();
    for producer in 0..PRODUCERS {
        let own = changes.iter().filter(|change| change.key.0 == producer.to_string());
        let values: Vec<_> = own.map(|change| change.new.clone().unwrap()).collect();
        assert_eq!(values, (0..EACH).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

pub fn shares_divide_the_changes_by_records(store: &(impl Store + Clone)) {
    clear(store);
    let feed = feed();
    let table = table(&feed);
    let shares = [0, 1, 2].map(|share| feed.consumer("workers").share(share, 3));
    for share in &shares {
        store.transact(|txn| share.start(txn, 0)).unwrap();
    }
    let put = |n: u64| ((format!("{}", n % 40), n % 7), n.to_string());
    store.transact(|txn| table.put_many(txn, (0..90).map(put))).unwrap();
    store.transact(|txn| table.put_many(txn, (90..200).map(put))).unwrap();
    let all = feed.read(&store.snapshot().unwrap(), 0, 1_000).unwrap();
    let mut divided = Vec::new();
    for share in &shares {
        let mut own = Vec::new();
        loop {
            let batch = share.poll(&store.snapshot().unwrap(), 30).unwrap();
            if batch.last == share.position(&store.snapshot().unwrap()).unwrap().unwrap() {
                break;
            }
            own.extend(batch.changes);
            store.transact(|txn| share.acknowledge(txn, batch.last)).unwrap();
        }
        assert!(own.len() > all.len() / 6, "{} of {}", own.len(), all.len());
        assert!(own.is_sorted_by_key(|change| change.number));
        divided.extend(own);
    }
    divided.sort_by_key(|change| change.number);
    assert_eq!(divided, all);
}

pub fn a_waiting_consumer_learns_of_a_change(store: &(impl Store + Clone)) {
    clear(store);
    let feed = feed();
    let table = table(&feed);
    let consumer = feed.consumer("waiter");
    store.transact(|txn| consumer.start(txn, 0)).unwrap();
    assert!(!consumer.wait(store, Duration::from_millis(5)).unwrap());
    for round in 0..3_u64 {
        thread::scope(|scope| {
            let waiter = scope.spawn(|| consumer.wait(store, Duration::from_secs(60)).unwrap());
            store.transact(|txn| table.put(txn, &("key".into(), round), &"new".into())).unwrap();
            assert!(waiter.join().unwrap());
        });
        assert!(consumer.wait(store, Duration::ZERO).unwrap(), "there is one");
        store.transact(|txn| consumer.process(txn, 10, |_, _| Ok(()))).unwrap();
    }
    assert!(!consumer.wait(store, Duration::from_millis(5)).unwrap());
}
