//! What operations cost, in gets, ranges and keys.

use keyloom::{Cost, Metered, Order, Store};
use keyloom_patterns::general::index_table::DrainProgress;

use crate::fixture::{NAMES, People, Person, sample, samples};

/// Gets, ranges, keys written.
fn counts(cost: Cost) -> [u64; 3] {
    [cost.gets, cost.ranges, cost.keys_written]
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let people = People::opened(store);
    let metered = Metered::new(store.clone());
    puts(&people, &metered);
    queries(&people, &metered);
    batches(&people, &metered);
}

fn puts<S: Store>(people: &People, store: &Metered<S>) {
    let put = |id: u16, person: &Person| {
        let (done, cost) = store.measure(|s| s.transact(|txn| people.table.put(txn, &id, person)));
        done.unwrap();
        counts(cost)
    };
    // The record, the states, whether the address is free, whether it is queued. Five entries, one of
    // them in the queue.
    assert_eq!(put(1, &sample(1)), [4, 0, 6]);
    assert_eq!(put(1, &sample(1)), [2, 0, 1], "nothing that is indexed changes: one key");
    let swapped = Person { tags: sample(1).tags.into_iter().rev().collect(), ..sample(1) };
    assert_eq!(put(1, &swapped), [2, 0, 1], "nor when a record changes elsewhere");
    // The name is covered by two indexes: an entry in each is written anew, and none moves.
    let renamed = Person { name: "another".into(), ..swapped };
    assert_eq!(put(1, &renamed), [3, 0, 3]);
    // A new address: one entry gone, one new, both looked at.
    let moved = Person { email: Some("new".into()), ..renamed.clone() };
    assert_eq!(put(1, &moved), [4, 0, 3]);
    // Later changes of a record that waits for the next drain: a get and no key.
    let moved_again = Person { city: "Bern".into(), ..moved };
    assert_eq!(put(1, &moved_again), [3, 0, 3]);

    let many = samples(100..150);
    let (done, cost) = store.measure(|s| s.transact(|txn| people.table.put_many(txn, &many)));
    done.unwrap();
    assert_eq!(counts(cost), [50 + 1 + 50 + 50, 0, 50 * 6]);
    if store.inner().round_trips().is_none() {
        assert_eq!(cost.round_trips, 5, "records, states, addresses, queue, commit");
    }
    let ids: Vec<u16> = (100..150).collect();
    let (done, cost) = store.measure(|s| s.transact(|txn| people.table.delete_many(txn, &ids)));
    assert_eq!(done.unwrap(), 50);
    assert_eq!(counts(cost), [50 + 1 + 50 + 50, 0, 50 * 5], "they are queued already");
}

fn queries<S: Store>(people: &People, store: &Metered<S>) {
    store.transact(|txn| people.table.put_many(txn, samples(1..=40))).unwrap();
    people.drain(store);
    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| {
        let cost = store.measure(|_| work()).1;
        (cost.gets, cost.ranges, cost.keys_read)
    };
    assert_eq!(reading(&|| drop(people.catalog.states(&snapshot).unwrap())), (1, 0, 1));
    assert_eq!(
        reading(&|| assert!(people.catalog.readable(&snapshot, "by_city").is_ok())),
        (1, 0, 1)
    );
    assert_eq!(
        reading(&|| assert!(!people.catalog.is_pending(&snapshot, "by_age", &1).unwrap())),
        (1, 0, 0)
    );
    // A query that the entries cover touches no record.
    let covered = || {
        let found = people.by_city.range(&snapshot, "Oslo", Order::Ascending).unwrap();
        let names = found.map(|found| found.unwrap().covered::<(&str, usize)>().unwrap().0.len());
        assert!(names.sum::<usize>() > 20 * 8);
    };
    assert_eq!(reading(&covered), (0, 1, 20));
    for name in ["by_age", "by_tag"] {
        let records = || {
            let order = Order::Ascending;
            let page = people.catalog.records(&snapshot, &people.table, name, (), order, 9, None);
            assert_eq!(page.unwrap().items.len(), 9);
        };
        let cost = store.measure(|_| records()).1;
        assert_eq!((cost.gets, cost.ranges), (1 + 9, 1), "{name}");
        if store.inner().round_trips().is_none() {
            assert_eq!(cost.round_trips, 3);
        }
    }
    let by_value = || assert!(people.by_email.get(&snapshot, "7@example.org").unwrap().is_some());
    assert_eq!(reading(&by_value), (1, 0, 1));
    // Whether it may be opened: the table, the states.
    drop(snapshot);
    let (done, cost) = store.measure(|s| s.transact(|txn| people.catalog.open(txn, &people.table)));
    done.unwrap();
    assert_eq!(counts(cost), [2, 0, 0]);
}

fn batches<S: Store>(people: &People, store: &Metered<S>) {
    let measured = |work: &dyn Fn(&Metered<S>)| counts(store.measure(work).1);
    let entries_each = |name| if name == "by_tag" { 2 } else { 1 };
    for name in NAMES {
        let drop_batch = |batch| {
            measured(&|s: &Metered<S>| {
                s.transact(|txn| people.catalog.drop_batch(txn, name, batch)).map(drop).unwrap();
            })
        };
        let build_batch = |batch| {
            measured(&|s: &Metered<S>| {
                s.transact(|txn| people.catalog.build_batch(txn, &people.table, name, batch))
                    .map(drop)
                    .unwrap();
            })
        };
        // A removed range counts as one key; the first batch also writes the states.
        assert_eq!(drop_batch(10), [1, 1, 3]);
        assert_eq!(drop_batch(10), [1, 1, 1]);
        assert_eq!(drop_batch(1_000), [1, 3, 3]);
        // The states, the table, the position; three subspaces that must be empty.
        assert_eq!(build_batch(10), [3, 3, 2]);
        let looks = if matches!(name, "by_email" | "by_age") { 10 } else { 0 };
        assert_eq!(build_batch(10), [3 + looks, 1, 10 * entries_each(name) + 1], "{name}");
        build_batch(25);
        let rest = if looks > 0 { 5 } else { 0 };
        let last = build_batch(10);
        if looks > 0 {
            assert_eq!(last, [3 + rest, 1, 5 + 1], "the position");
            // Nothing is listed, nothing is queued.
            assert_eq!(build_batch(10), [3, if name == "by_email" { 2 } else { 1 }, 2]);
        } else {
            assert_eq!(last, [3, 1, 5 * entries_each(name) + 2], "it is readable");
        }
        assert_eq!(build_batch(10), [1, 0, 0]);
    }
    let older = |id| (id, Person { age: 99, ..sample(id) });
    store.transact(|txn| people.table.put_many(txn, (1..=5).map(older))).unwrap();
    let drained = measured(&|s: &Metered<S>| {
        let begin = DrainProgress::default;
        let done =
            s.transact(|txn| people.catalog.drain_batch(txn, &people.table, "by_age", 10, begin()));
        let done = done.unwrap();
        assert_eq!((done.drained, done.written, done.finished), (5, 10, true));
    });
    assert_eq!(drained, [2 + 5, 1, 5 + 10]);
    people.is_clean(store);
}
