//! The costs in the documentation.

use keyloom::{AnyStore, Cost, DynWriter, Metered, Result, Store};
use keyloom_locking::queue::{NewJob, QueueOptions};
use keyloom_locking::{ManualClock, WorkQueue};
use keyloom_tables::Schema;
use keyloom_testing::laws::{clear, counts, writing};

use super::{START, VISIBILITY, fill, open, open_with, options};

pub fn costs_are_those_of_the_documentation(store: &AnyStore) {
    let (queue, clock) = open(store);
    let store = Metered::new(store.clone());
    // [gets, ranges, keys read, keys written]
    let add = |job: NewJob<u32>| writing(&store, |txn| queue.enqueue(txn, job.clone()).map(drop));
    assert_eq!(add(NewJob::new("acme", 1)), [5, 0, 3, 5], "the first job of a tenant");
    assert_eq!(add(NewJob::new("acme", 2)), [3, 0, 3, 3]);
    assert_eq!(add(NewJob::new("acme", 3).key("k")), [7, 0, 4, 4]);
    assert_eq!(add(NewJob::new("acme", 3).key("k")), [2, 0, 2, 0], "a duplicate");
    let (held, cost) = store.measure(|store| queue.dequeue(store, 3).unwrap());
    // 3 gets, and 3 for each job; 3 ranges, and 5 for the tenant.
    assert_eq!((held.len(), counts(cost), cost.commits), (3, [12, 8, 16, 9], 1));
    assert_eq!(cost.round_trips, 8);
    clock.advance(VISIBILITY / 2);
    let extend = |txn: &mut DynWriter<'_>| queue.extend(txn, &held[1], VISIBILITY).map(drop);
    assert_eq!(writing(&store, extend), [4, 0, 4, 3]);
    assert_eq!(writing(&store, |txn| queue.release(txn, &held[1])), [4, 0, 4, 3]);
    let fail = |txn: &mut DynWriter<'_>| queue.fail(txn, &held[0], "no").map(drop);
    assert_eq!(writing(&store, fail), [4, 0, 4, 3]);
    let keyed = usize::from(held[2].job.key.is_none());
    let complete = |txn: &mut DynWriter<'_>| queue.complete(txn, &held[2]);
    // A completed key is remembered: 3 more gets and 3 more keys.
    assert_eq!(writing(&store, complete), [[6, 0, 5, 6], [3, 0, 3, 3]][keyed]);
    // A recurring job is put back, like a failed one.
    clear(store.inner());
    let (queue, _clock) = open(store.inner());
    let again = NewJob::new("acme", 4).repeat_every(VISIBILITY);
    store.transact(|txn| queue.enqueue(txn, again.clone())).unwrap();
    let held = queue.dequeue(&store, 1).unwrap().remove(0);
    assert_eq!(writing(&store, |txn| queue.complete(txn, &held)), [4, 0, 4, 3]);
}

/// Changing the state of a job writes as much for a payload of a megabyte as for a small one.
pub fn a_payload_is_written_once(store: &AnyStore) {
    let costs = [1, 1_000_000].map(|bytes| {
        clear(store);
        let schema = Schema::open(store, "test").unwrap();
        let options = options(&ManualClock::at(START));
        let queue = WorkQueue::<String>::open_with(&schema, "jobs", options).unwrap();
        let store = Metered::new(store.clone());
        let payload = "x".repeat(bytes);
        let (_, cost) = store.measure(|store| {
            store.transact(|txn| queue.enqueue(txn, ("acme", payload.clone()))).unwrap()
        });
        assert!(cost.bytes_written >= bytes as u64);
        let (held, leasing) = store.measure(|store| queue.dequeue(store, 1).unwrap().remove(0));
        assert_eq!(held.job.payload, payload);
        let written = |change: &dyn Fn(&mut DynWriter<'_>) -> Result<()>| {
            let (_, cost) = store.measure(|store| {
                store.transact(|txn| change(&mut DynWriter::new(txn))).unwrap();
            });
            assert!(cost.bytes_read < 1_000, "{cost}");
            cost.bytes_written
        };
        let extending = written(&|txn| queue.extend(txn, &held, VISIBILITY).map(drop));
        let releasing = written(&|txn| queue.release(txn, &held));
        let held = queue.dequeue(&store, 1).unwrap().remove(0);
        let completing = written(&|txn| queue.complete(txn, &held));
        // A recurring job keeps its payload.
        let again = NewJob::new("acme", payload).repeat_every(VISIBILITY);
        store.transact(|txn| queue.enqueue(txn, again.clone())).unwrap();
        let held = queue.dequeue(&store, 1).unwrap().remove(0);
        let repeating = written(&|txn| queue.complete(txn, &held));
        (leasing.bytes_written, extending, releasing, completing, repeating)
    });
    assert_eq!(costs[0], costs[1]);
}

/// An empty queue is read once. On servers, the reads of an operation are fetched together.
pub fn operations_cost_few_round_trips(store: &(impl Store + Clone)) {
    let is_remote = store.round_trips().is_some();
    let (queue, clock) = open(store);
    let store = Metered::new(store.clone());
    let expect = |cost: Cost, commits: u64, round_trips: u64| {
        assert_eq!(cost.commits, commits);
        assert!(!is_remote || cost.round_trips == round_trips, "{cost}, not {round_trips}");
    };
    let snapshot = store.measure(|store| drop(store.snapshot().unwrap())).1.round_trips;
    let empty = || {
        let (none, cost) = store.measure(|store| queue.dequeue(store, 1).unwrap());
        assert!(none.is_empty());
        cost
    };
    let transact = |body: &dyn Fn(&mut DynWriter<'_>) -> Result<()>| {
        let (done, cost) =
            store.measure(|store| store.transact(|txn| body(&mut DynWriter::new(txn))));
        done.unwrap();
        cost
    };
    let add = |job: NewJob<u32>| transact(&|txn| queue.enqueue(txn, job.clone()).map(drop));

    expect(empty(), 0, snapshot + 2);
    expect(add(NewJob::new("acme", 1)), 1, 3);
    expect(add(NewJob::new("acme", 2)), 1, 2);
    expect(add(NewJob::new("acme", 3)), 1, 2);
    let (held, cost) = store.measure(|store| queue.dequeue(store, 3).unwrap());
    assert_eq!(held.len(), 3);
    expect(cost, 1, snapshot + 5);
    expect(transact(&|txn| queue.extend(txn, &held[0], VISIBILITY).map(drop)), 1, 2);
    expect(transact(&|txn| queue.release(txn, &held[1])), 1, 2);
    let again = queue.dequeue(&store, 1).unwrap();
    for delivery in [&held[0], &again[0], &held[2]] {
        expect(transact(&|txn| queue.complete(txn, delivery)), 1, 2);
    }
    // The tenant remains for a while, and is then removed.
    expect(empty(), 0, snapshot + 4);
    expect(add(NewJob::new("acme", 4).key("k")), 1, 4);
    let last = queue.dequeue(&store, 1).unwrap();
    transact(&|txn| queue.complete(txn, &last[0]));
    clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(empty().commits, 1);
    expect(empty(), 0, snapshot + 2);
}

pub fn deliveries_do_not_read_more_of_longer_queues(store: &AnyStore) {
    let mut costs = Vec::new();
    for length in [300, 3_000] {
        clear(store);
        let (queue, _) = open(store);
        fill(store, &queue, "acme", length);
        for n in 0..length / 10 {
            let job = NewJob::new(format!("sleeper {n}"), 1).delay(super::VISIBILITY);
            store.transact(|txn| queue.enqueue(txn, job.clone())).unwrap();
        }
        let store = Metered::new(store.clone());
        let cost = |n: usize| {
            let (held, cost) = store.measure(|store| queue.dequeue(store, n).unwrap());
            assert_eq!(held.len(), n);
            counts(cost)
        };
        costs.push([1, 10].map(cost));
    }
    assert_eq!(costs[0], costs[1]);
    println!("{costs:?}");
    let [[.., one, _], [.., ten, _]] = costs[0];
    assert!(one <= 16 + 20 && ten <= 160 + 60, "{costs:?}");
    // A control: a larger spread reads more.
    clear(store);
    let clock = keyloom_locking::ManualClock::at(super::START);
    let queue = open_with(store, QueueOptions { spread: 200, ..options(&clock) });
    fill(store, &queue, "acme", 300);
    let store = Metered::new(store.clone());
    let (_, cost) = store.measure(|store| queue.dequeue(store, 1).unwrap());
    assert!(cost.keys_read > 200);
}
