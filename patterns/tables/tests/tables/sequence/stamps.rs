//! Records in commit order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use keyloom::key::Versionstamp;
use keyloom::{KeyRange, Memory, Metered, Reader, Store, Subspace, Writer};
use keyloom_tables::sequence::VersionstampedLog;
use proptest::prelude::*;

use keyloom_testing::ids::text;
use keyloom_testing::laws::{
    clear, conflicts_are_retried_to_the_same_end, dump_all, faults_leave_nothing_half_done,
    property, writing,
};

fn events() -> VersionstampedLog<u8, String> {
    VersionstampedLog::new(&Subspace::new("events"))
}

#[derive(Clone, Debug)]
enum Step {
    /// Appends records to a container, in one transaction.
    Append(String, u8),
    /// Deletes the record at a position.
    Delete(String, prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let container = || (0..3_usize).prop_map(text);
    let append = (container(), 1..4_u8).prop_map(|(of, count)| Step::Append(of, count));
    let delete =
        (container(), any::<prop::sample::Index>()).prop_map(|(of, at)| Step::Delete(of, at));
    prop::collection::vec(prop_oneof![3 => append, 1 => delete], 0..12)
}

/// Random steps, compared with a list for each container.
pub fn records_come_in_the_order_of_their_commits(store: &(impl Store + Clone)) {
    // Containers whose keys share prefixes and suffixes.
    let events = VersionstampedLog::<String, String>::new(&Subspace::new("events"));
    property(steps(), |steps| {
        clear(store);
        let mut model: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut stamps: BTreeMap<String, Vec<Versionstamp>> = BTreeMap::new();
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(of, count) => {
                    let new: Vec<String> = (0..count).map(|m| format!("{n}, {m}")).collect();
                    store
                        .transact(|txn| {
                            new.iter().try_for_each(|text| events.append(txn, &of, text))
                        })
                        .unwrap();
                    model.entry(of).or_default().extend(new);
                }
                Step::Delete(of, at) => {
                    let Some(list) = model.get_mut(&of).filter(|list| !list.is_empty()) else {
                        continue;
                    };
                    let at = at.index(list.len());
                    let stamp = stamps[&of][at];
                    assert!(store.transact(|txn| events.delete(txn, &of, stamp)).unwrap());
                    list.remove(at);
                }
            }
            let snapshot = store.snapshot().unwrap();
            for (of, list) in &model {
                let found: Vec<_> = events
                    .range(&snapshot, of, ..)
                    .unwrap()
                    .map(|record| record.map(|((_, stamp), text)| (stamp, text)).unwrap())
                    .collect();
                assert!(found.iter().map(|(_, text)| text).eq(list), "{found:?}");
                assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{found:?}");
                // Pages of two, each after the previous one.
                let (mut seen, mut read) = (None, Vec::new());
                loop {
                    let new = events.read_new(&snapshot, of, seen, 2).unwrap();
                    let Some((last, _)) = new.last() else { break };
                    seen = Some(*last);
                    read.extend(new);
                }
                assert_eq!(read, found);
                for (stamp, text) in &found {
                    assert_eq!(events.get(&snapshot, of, *stamp).unwrap().as_ref(), Some(text));
                }
                stamps.insert(of.clone(), found.into_iter().map(|(stamp, _)| stamp).collect());
            }
        }
    });
}

/// With stamps, reading all entries after the last one seen misses no entry, even during concurrent
/// writes.
pub fn who_follows_the_stamps_sees_each_record_once(store: &(impl Store + Clone)) {
    const THREADS: u64 = 4;
    const EACH: u64 = 30;
    clear(store);
    let log = VersionstampedLog::<u8, (u64, u64)>::new(&Subspace::new("log"));
    let done = AtomicBool::new(false);
    let mut seen: Vec<(Versionstamp, (u64, u64))> = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::scope(|scope| {
                for me in 0..THREADS {
                    let log = &log;
                    scope.spawn(move || {
                        for n in 0..EACH {
                            store.transact(|txn| log.append(txn, &1, &(me, n))).unwrap();
                        }
                    });
                }
            });
            done.store(true, Ordering::Release);
        });
        loop {
            let last_look = done.load(Ordering::Acquire);
            let last = seen.last().map(|(stamp, _)| *stamp);
            seen.extend(log.read_new(&store.snapshot().unwrap(), &1, last, 1_000).unwrap());
            if last_look {
                break;
            }
            thread::yield_now();
        }
    });
    assert_eq!(seen.len() as u64, THREADS * EACH, "each once");
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
    for me in 0..THREADS {
        let own = seen.iter().filter(|(_, value)| value.0 == me).map(|(_, value)| value.1);
        assert!(own.eq(0..EACH), "what thread {me} wrote comes in its order");
    }
}

fn prepare(store: &impl Store) {
    store.transact(|txn| events().append(txn, &1, &"first".into())).unwrap();
}

/// For stores that do not assign stamps at commit, where the bytes are always the same.
#[test]
fn a_fault_or_a_conflict_at_any_append_leaves_nothing_half_done() {
    let store = Memory::new();
    let append = |txn: &mut keyloom::DynWriter<'_>| {
        (0..3).try_for_each(|n| events().append(txn, &n, &format!("text {n}")))?;
        // Adds more operations that can fail.
        txn.add(b"count", 3)?;
        txn.compare_and_clear(b"count", b"")?;
        txn.append_if_fits(b"list", b"x")
    };
    faults_leave_nothing_half_done(&store, prepare, append, |_| Vec::new());
    conflicts_are_retried_to_the_same_end(&store, prepare, append);
}

#[test]
fn stamps_continue_behind_those_of_another_store() {
    let store = Memory::new();
    let events = events();
    store.transact(|txn| events.append(txn, &1, &"counted".into())).unwrap();
    // The data of a store that assigns stamps: a record with a large stamp, and no clock.
    let foreign = Versionstamp::new([0, 0, 0, 9, 0, 0, 0, 0, 0, 3], 7);
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    store.transact(|txn| events.records().put(txn, &(1, foreign), &"foreign".into())).unwrap();
    for text in ["one", "two"] {
        store.transact(|txn| events.append(txn, &1, &text.into())).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let texts = events.read_new(&snapshot, &1, Some(foreign), 9).unwrap();
    assert_eq!(texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 4, "three records and a clock");
}

#[test]
fn an_append_costs_what_the_documentation_says() {
    // The wrapper counts the call as one write. The reads and writes of the inner store are not
    // counted.
    let store = Metered::new(Memory::new());
    let append =
        |store: &Metered<Memory>| writing(store, |txn| events().append(txn, &1, &"text".into()));
    assert_eq!(append(&store), [0, 0, 0, 1]);
    assert_eq!(dump_all(&store).len(), 2, "and the clock");
    append(&store);
    assert_eq!(dump_all(&store).len(), 3);
    let snapshot = store.snapshot().unwrap();
    let (new, cost) = store.measure(|_| events().read_new(&snapshot, &1, None, 9).unwrap());
    assert_eq!((new.len(), cost.gets, cost.ranges, cost.keys_read), (2, 0, 1, 2));
}

#[test]
fn a_key_that_is_too_long_is_refused_and_the_clock_stands_still() {
    let store = Memory::new();
    let events = VersionstampedLog::<String, u8>::new(&Subspace::new("events"));
    let mut txn = store.begin().unwrap();
    assert!(events.append(&mut txn, &"x".repeat(600), &1).is_err());
    assert_eq!(txn.count(KeyRange::all()).unwrap(), 0);
}
