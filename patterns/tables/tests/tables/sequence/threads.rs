//! Threads that append concurrently, and a concurrent reader.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use keyloom::{Store, Subspace};
use keyloom_tables::AppendLog;
use keyloom_tables::sequence::{IdBlocks, Sequence, Sharded, ShardedId};

use keyloom_testing::laws::clear;

const THREADS: u64 = 4;
const EACH: u64 = 30;

/// Runs `work` in every thread and then sets `done`.
fn in_threads(done: &AtomicBool, work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for me in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(me));
        }
    });
    done.store(true, Ordering::Release);
}

/// In a dense sequence, reading all entries after the last one seen misses no entry.
pub fn numbers_are_dense_and_in_the_order_of_the_commits(store: &(impl Store + Clone)) {
    clear(store);
    let log = AppendLog::<u8, (u64, u64)>::new(&Subspace::new("log"));
    let done = AtomicBool::new(false);
    let mut seen: Vec<(u64, (u64, u64))> = Vec::new();
    thread::scope(|scope| {
        let log = &log;
        let done = &done;
        scope.spawn(move || {
            in_threads(done, |me| {
                for n in 0..EACH {
                    store.transact(|txn| log.append(txn, &1, &(me, n))).unwrap();
                }
            });
        });
        loop {
            let last_look = done.load(Ordering::Acquire);
            let behind = seen.last().map_or(0, |(number, _)| *number) + 1;
            let snapshot = store.snapshot().unwrap();
            let new = log.range(&snapshot, &1, behind..).unwrap();
            seen.extend(new.map(Result::unwrap).map(|((_, number), value)| (number, value)));
            drop(snapshot);
            if last_look {
                break;
            }
            thread::yield_now();
        }
    });
    let numbers: Vec<u64> = seen.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=THREADS * EACH).collect::<Vec<_>>());
    for me in 0..THREADS {
        let own = seen.iter().filter(|(_, value)| value.0 == me).map(|(_, value)| value.1);
        assert!(own.eq(0..EACH), "the records of thread {me} are in its order");
    }
}

pub fn blocks_give_no_number_twice(store: &(impl Store + Clone)) {
    clear(store);
    let sequence = Sequence::<u8>::new(&Subspace::new("numbers"));
    // Simulates two processes with two threads each.
    let processes = [7, 10].map(|size| IdBlocks::new(&sequence, size));
    let numbers = std::sync::Mutex::new(Vec::new());
    in_threads(&AtomicBool::new(false), |me| {
        let blocks = &processes[me as usize % 2];
        let own: Vec<u64> = (0..EACH).map(|_| blocks.next(store, &1).unwrap()).collect();
        numbers.lock().unwrap().extend(own);
    });
    let mut numbers = numbers.into_inner().unwrap();
    numbers.sort_unstable();
    assert!(numbers.is_sorted_by(|a, b| a < b), "no number comes twice");
    assert_eq!(numbers.len() as u64, THREADS * EACH);
    let last = sequence.last(&store.snapshot().unwrap(), &1).unwrap();
    assert!(*numbers.last().unwrap() <= last, "all of them were reserved");
    // Any of the threads may have reserved a block at the same moment as another thread.
    assert!(last <= THREADS * EACH + THREADS * 10, "{last} were reserved");
    // Another container has its own numbers.
    assert_eq!(processes[0].next(store, &2).unwrap(), 1);
}

pub fn who_follows_the_shards_sees_each_record_once(store: &(impl Store + Clone)) {
    clear(store);
    let shards = NonZeroU32::new(3).unwrap();
    let records = Sharded::<u8, (u64, u64)>::new(&Subspace::new("sharded"), shards);
    let done = AtomicBool::new(false);
    let mut seen: Vec<(ShardedId, (u64, u64))> = Vec::new();
    thread::scope(|scope| {
        let records = &records;
        let done = &done;
        scope.spawn(move || {
            in_threads(done, |me| {
                for n in 0..EACH {
                    store.transact(|txn| records.append(txn, &1, me, &(me, n))).unwrap();
                }
            });
        });
        let mut positions = Vec::new();
        loop {
            let last_look = done.load(Ordering::Acquire);
            let snapshot = store.snapshot().unwrap();
            loop {
                let new = records.read_new(&snapshot, &1, &mut positions, 4).unwrap();
                if new.is_empty() {
                    break;
                }
                seen.extend(new);
            }
            drop(snapshot);
            if last_look {
                break;
            }
            thread::yield_now();
        }
    });
    assert_eq!(seen.len() as u64, THREADS * EACH, "each once");
    for me in 0..THREADS {
        let own = seen.iter().filter(|(_, value)| value.0 == me).map(|(_, value)| value.1);
        assert!(own.eq(0..EACH), "what thread {me} wrote comes in its order");
    }
    let mut last = BTreeMap::new();
    for (id, _) in &seen {
        let before = last.insert(id.shard, id.number).unwrap_or(0);
        assert_eq!(id.number, before + 1, "shard {} has no gaps", id.shard);
    }
}

/// Two concurrent transactions. Appends to different shards both commit. With appends to one shard,
/// or to one dense sequence, the second transaction must be retried.
#[test]
fn writers_to_different_shards_do_not_conflict() {
    use keyloom::Transaction;
    let store = keyloom_testing::optimistic_memory();
    let shards = NonZeroU32::new(2).unwrap();
    let sharded = Sharded::<u8, u8>::new(&Subspace::new("sharded"), shards);
    let both = |writers: [u64; 2]| {
        let mut open = [store.begin().unwrap(), store.begin().unwrap()];
        for (txn, writer) in open.iter_mut().zip(writers) {
            sharded.append(txn, &1, writer, &0).unwrap();
        }
        open.map(|txn| txn.commit().is_ok())
    };
    assert_eq!(both([0, 1]), [true, true]);
    assert_eq!(both([0, 2]), [true, false]);
    let dense = AppendLog::<u8, u8>::new(&Subspace::new("dense"));
    let mut open = [store.begin().unwrap(), store.begin().unwrap()];
    open.iter_mut().for_each(|txn| assert_eq!(dense.append(txn, &1, &0).unwrap(), 1));
    assert_eq!(open.map(|txn| txn.commit().is_ok()), [true, false]);
}
