//! Damaged queues.

use keyloom::{AnyStore, KeyRange, Reader, Store, Writer};
use keyloom_locking::WorkQueue;
use keyloom_locking::queue::JobId;
use keyloom_tables::{Rule, Schema, SchemaError, UnreadableEntry};
use keyloom_testing::laws::dump_all;

use super::{assert_sound, fill, open, payloads};

/// Deletes each key of the queue in turn, and repairs the queue.
pub fn damage_is_found_and_repaired(store: &AnyStore) {
    let (queue, _) = open(store);
    let job = keyloom_locking::queue::NewJob::new("acme", 7).key("order 17");
    store.transact(|txn| queue.enqueue(txn, job.clone())).unwrap();
    let other = keyloom_locking::queue::NewJob::new("globex", 8).delay(super::VISIBILITY);
    store.transact(|txn| queue.enqueue(txn, other.clone())).unwrap();
    let whole = dump_all(store);
    let (mut found, mut kept) = (0, 0);
    for (key, value) in &whole {
        // The schema is not data of the queue.
        if key.starts_with(&keyloom::pack(&"keyloom")) {
            continue;
        }
        store.transact(|txn| txn.delete(key)).unwrap();
        assert!(!queue.check(&store.snapshot().unwrap()).unwrap().is_empty(), "{key:?}");
        queue.repair(store).unwrap();
        assert_sound(store, &queue);
        found += 1;
        // The position of a tenant in the round is chosen again; everything else is as before.
        if store.snapshot().unwrap().get(key).unwrap().as_deref() == Some(&value[..]) {
            kept += 1;
        }
        store
            .transact(|txn| {
                txn.delete_range(KeyRange::all())?;
                whole.iter().try_for_each(|(key, value)| txn.put(key, value))
            })
            .unwrap();
    }
    // Two jobs, two payloads, and their derived data.
    assert!(found >= 11 && kept >= 5, "{found} {kept}");
}

/// Four faults: a missing payload, a payload that does not decode, a payload without a job, and a
/// key of another kind.
pub fn damaged_payloads_are_found_and_do_not_block_others(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "acme", 20);
    let ids = queue.peek(&store.snapshot().unwrap(), "acme", 3).unwrap();
    let payload = |n: usize| queue.payloads().space().pack(&ids[n].0);
    let foreign = queue.payloads().space().pack("no id");
    store
        .transact(|txn| {
            txn.delete(&payload(0))?;
            txn.put(&payload(1), b"\xFF")?;
            txn.delete(&queue.jobs().space().pack(&ids[2].0))?;
            txn.put(&foreign, b"")
        })
        .unwrap();
    let rules = |store: &AnyStore| {
        let faults = queue.check(&store.snapshot().unwrap()).unwrap();
        let of_payloads =
            faults.into_iter().filter(|fault| queue.payloads().space().contains(&fault.key));
        let mut rules: Vec<_> = of_payloads.map(|fault| (fault.key, fault.rule)).collect();
        rules.sort_by(|a, b| a.0.cmp(&b.0));
        rules
    };
    let mut wanted = vec![
        (payload(0), Rule::Missing),
        (payload(1), Rule::Undecodable),
        (payload(2), Rule::Dangling),
        (foreign.clone(), Rule::Dangling),
    ];
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(rules(store), wanted);
    assert_eq!(queue.get(&store.snapshot().unwrap(), ids[0].0).unwrap(), None);
    let lost: Vec<u32> = ids.iter().map(|(_, job)| job.payload).collect();
    let mut delivered = queue.dequeue(store, 10).unwrap();
    delivered.extend(queue.dequeue(store, 10).unwrap());
    assert_eq!(payloads(&delivered), (0..20).filter(|n| !lost.contains(n)).collect::<Vec<_>>());

    // Dead letters are listed up to an undecodable one, and after it.
    let (middle, rest) = (delivered.len() / 2, delivered.len() - 1);
    for delivery in &delivered {
        store.transact(|txn| queue.bury(txn, delivery, "no")).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let dead = queue.dead_letters(&snapshot, None, 99, None).unwrap().items;
    let (gone, damaged) = (dead[1].0, dead[middle].0);
    drop(snapshot);
    store
        .transact(|txn| {
            txn.delete(&queue.payloads().space().pack(&gone))?;
            txn.put(&queue.payloads().space().pack(&damaged), b"\xFF")
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let first = queue.dead_letters(&snapshot, None, 99, None).unwrap();
    assert_eq!(first.items.len(), middle - 1);
    let next = first.next.unwrap();
    let error = queue.dead_letters(&snapshot, None, 99, Some(&next)).unwrap_err();
    let after = &error.downcast_ref::<UnreadableEntry>().unwrap().next;
    let last = queue.dead_letters(&snapshot, None, 99, Some(after)).unwrap();
    assert_eq!((last.items.len(), last.next), (rest - middle, None));
    drop(snapshot);

    queue.repair(store).unwrap();
    assert!(rules(store).iter().all(|(_, rule)| *rule == Rule::Undecodable));
    for id in [ids[1].0, damaged] {
        assert!(store.transact(|txn| queue.delete(txn, id)).unwrap());
    }
    assert_sound(store, &queue);
    let left = queue.counts(&store.snapshot().unwrap(), None).unwrap();
    assert_eq!((left.ready, left.dead), (0, delivered.len() as u64 - 2));
}

pub fn damaged_jobs_do_not_block_others(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "acme", 20);
    let ids: Vec<_> = queue.peek(&store.snapshot().unwrap(), "acme", 3).unwrap();
    let by_state = |id: &keyloom_locking::queue::JobId| {
        let all = dump_all(store);
        let keys = all.keys().filter(|key| key.windows(16).any(|part| part == id.as_bytes()));
        keys.max_by_key(|key| key.len()).unwrap().clone()
    };
    let damaged = by_state(&ids[1].0);
    store
        .transact(|txn| {
            txn.put(&queue.jobs().space().pack(&ids[0].0), b"\xFF")?;
            txn.put(&damaged, b"")?;
            txn.delete(&queue.jobs().space().pack(&ids[2].0))
        })
        .unwrap();
    let mut delivered = Vec::new();
    loop {
        let some = queue.dequeue(store, 5).unwrap();
        if some.is_empty() {
            break;
        }
        delivered.extend(some);
    }
    let lost: Vec<u32> = ids.iter().map(|(_, job)| job.payload).collect();
    let wanted: Vec<u32> = (0..20).filter(|n| !lost.contains(n)).collect();
    assert_eq!(payloads(&delivered), wanted);
    assert!(queue.check(&store.snapshot().unwrap()).unwrap().len() >= 3);
    store.transact(|txn| queue.delete(txn, ids[0].0)).unwrap();
    queue.repair(store).unwrap();
    assert_sound(store, &queue);
    assert_eq!(queue.dequeue(store, 5).unwrap().len(), 1);
}

/// The last dead letter has a continuation, too, after which the listing ends.
pub fn the_last_dead_letter_can_be_skipped(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "acme", 2);
    for delivery in queue.dequeue(store, 2).unwrap() {
        store.transact(|txn| queue.bury(txn, &delivery, "no")).unwrap();
    }
    let list = |after: Option<&_>| {
        queue.dead_letters(&store.snapshot().unwrap(), None, 9, after).map_err(Box::new)
    };
    let [_, (last, _)] = &list(None).unwrap().items[..] else { panic!("two") };
    let payload = queue.payloads().space().pack(last);
    store.transact(|txn| txn.put(&payload, b"\xFF")).unwrap();
    let first = list(None).unwrap();
    assert_eq!(first.items.len(), 1);
    let error = list(first.next.as_ref()).unwrap_err();
    let next = &error.downcast_ref::<UnreadableEntry>().unwrap().next;
    let end = list(Some(next)).unwrap();
    assert_eq!((end.items.len(), end.next), (0, None));
    assert_eq!(queue.peek(&store.snapshot().unwrap(), "acme", 9).unwrap(), []);
}

/// A job record that includes its payload: the format before payloads had their own table.
#[derive(serde::Serialize, serde::Deserialize)]
struct Whole<J> {
    tenant: String,
    payload: J,
    priority: keyloom_locking::queue::Priority,
    state: keyloom_locking::queue::JobState,
    attempts: u32,
    token: u64,
    enqueued_at: u64,
    key: Option<String>,
    last_error: Option<String>,
}

/// The queue is refused for all payload types, even for the unit type, which has no bytes.
pub fn a_queue_of_whole_jobs_is_refused(store: &AnyStore) {
    keyloom_testing::laws::clear(store);
    let old = Schema::open(store, "old").unwrap();
    old.table::<JobId, Whole<()>>("units.jobs").unwrap();
    old.table::<JobId, Whole<u32>>("numbers.jobs").unwrap();
    let schema = Schema::open(store, "old").unwrap();
    let units = WorkQueue::<()>::open(&schema, "units").map(drop).unwrap_err();
    let numbers = WorkQueue::<u32>::open(&schema, "numbers").map(drop).unwrap_err();
    for error in [units, numbers] {
        assert!(
            matches!(error.downcast_ref(), Some(SchemaError::ChangedRecord { .. })),
            "{error:?}"
        );
    }
    let schema = Schema::open(store, "old").unwrap();
    schema.drop_table("units.jobs").unwrap();
    WorkQueue::<()>::open(&schema, "units").unwrap();
}

/// More damaged entries than a delivery reads at first.
pub fn many_damaged_entries_do_not_block_a_tenant(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "acme", 60);
    let ids = queue.peek(&store.snapshot().unwrap(), "acme", 40).unwrap();
    let all = dump_all(store);
    let entry_of = |id: &keyloom_locking::queue::JobId| {
        let keys = all.keys().filter(|key| key.windows(16).any(|part| part == id.as_bytes()));
        keys.max_by_key(|key| key.len()).unwrap()
    };
    store
        .transact(|txn| {
            ids.iter().try_for_each(|(id, _)| {
                // Another key at the same position, which does not end in an id.
                let entry = entry_of(id);
                txn.delete(entry)?;
                txn.put(&entry[..entry.len() - 1], b"")
            })
        })
        .unwrap();
    let lost: Vec<u32> = ids.iter().map(|(_, job)| job.payload).collect();
    let delivered = payloads(&queue.dequeue(store, 1).unwrap());
    assert!(matches!(delivered[..], [one] if !lost.contains(&one)), "{delivered:?}");
}

/// A tenant whose first 1,000 jobs do not decode still gets the next job.
pub fn many_damaged_jobs_do_not_block_a_tenant(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "acme", 1_001);
    let ids: Vec<_> = queue.peek(&store.snapshot().unwrap(), "acme", 1_001).unwrap();
    store
        .transact(|txn| {
            let damaged = ids.iter().take(1_000);
            let keys = damaged.map(|(id, _)| queue.jobs().space().pack(id));
            keys.into_iter().try_for_each(|key| txn.put(&key, b"\xFF"))
        })
        .unwrap();
    let delivered = queue.dequeue(store, 1).unwrap();
    assert_eq!(payloads(&delivered), [ids[1_000].1.payload]);
}

/// The state of a tenant follows from its jobs: if it does not decode, neither this tenant nor the
/// others stop, and a repair writes it again.
pub fn damaged_tenants_do_not_block_others(store: &AnyStore) {
    for is_repaired in [true, false] {
        let (queue, _) = open(store);
        store.transact(|txn| queue.enqueue(txn, ("acme", 1))).unwrap();
        store.transact(|txn| queue.enqueue(txn, ("globex", 2))).unwrap();
        let of_acme = keyloom::pack(&"acme");
        let whole = dump_all(store);
        // The record of the tenant has the shortest of these keys.
        let of_tenant = whole.keys().filter(|key| key.ends_with(&of_acme));
        let key = of_tenant.min_by_key(|key| key.len()).unwrap();
        store.transact(|txn| txn.put(key, b"")).unwrap();
        assert!(!queue.check(&store.snapshot().unwrap()).unwrap().is_empty());
        let mut delivered = Vec::new();
        match is_repaired {
            true => drop(queue.repair(store).unwrap()),
            false => {
                // Deliveries to the other tenant continue, and a new job restores the state.
                let of_globex = queue.dequeue(store, 5).unwrap();
                assert!(of_globex.iter().any(|delivery| delivery.job.payload == 2));
                delivered.extend(of_globex);
                store.transact(|txn| queue.enqueue(txn, ("acme", 3))).unwrap();
            }
        }
        assert_sound(store, &queue);
        delivered.extend(queue.dequeue(store, 5).unwrap());
        let mut found = payloads(&delivered);
        found.sort_unstable();
        assert_eq!(found, if is_repaired { vec![1, 2] } else { vec![1, 2, 3] });
    }
}

/// A job without its payload is removed after its entries are repaired.
pub fn a_lost_payload_and_a_damaged_key_are_repaired(store: &AnyStore) {
    let (queue, _) = open(store);
    let job = keyloom_locking::queue::NewJob::new("acme", 7).key("order 17");
    let id = store.transact(|txn| queue.enqueue(txn, job.clone())).unwrap().id();
    store.transact(|txn| queue.enqueue(txn, ("globex", 8))).unwrap();
    let end = keyloom::pack(&("acme", "order 17"));
    let whole = dump_all(store);
    let entry = whole.keys().find(|key| key.ends_with(&end)).unwrap();
    store
        .transact(|txn| {
            txn.put(entry, b"x")?;
            txn.delete(&queue.payloads().space().pack(&id))
        })
        .unwrap();
    queue.repair(store).unwrap();
    assert_sound(store, &queue);
    assert_eq!(payloads(&queue.dequeue(store, 5).unwrap()), [8]);
}
