//! Builds that encounter another writer of the same records in every batch.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use keyloom::{Error, Limits, Memory, RetryPolicy, Store, Transaction, Writer};
use keyloom_patterns::{Attached, Index, Schema, Table, entry};

const RECORDS: u32 = 100;

type Numbers = Table<u32, u32>;

/// A writer that runs whenever the build visits a record.
#[derive(Default)]
struct Rival {
    meets: OnceLock<(Memory, Numbers)>,
    committed: AtomicU32,
    refused: AtomicU32,
    /// Whether the rival bypasses the table, and so every fence.
    is_blind: bool,
}

thread_local! {
    /// Writes of the rival also call the function of the index.
    static IS_WRITING: Cell<bool> = const { Cell::new(false) };
}

impl Rival {
    fn visit(&self, key: u32, number: u32) {
        let Some((store, numbers)) = self.meets.get() else { return };
        if IS_WRITING.replace(true) {
            return;
        }
        let written = self.write(store, numbers, key, number);
        IS_WRITING.set(false);
        let count = if written.is_ok() { &self.committed } else { &self.refused };
        count.fetch_add(1, Relaxed);
    }

    fn write(
        &self,
        store: &Memory,
        numbers: &Numbers,
        key: u32,
        number: u32,
    ) -> keyloom::Result<()> {
        let mut txn = store.begin()?;
        match self.is_blind {
            false => numbers.put(&mut txn, &key, &(number + 1))?,
            true => txn.put(&numbers.space().pack(&key), &[0])?,
        }
        txn.commit()
    }
}

fn filled(rival: &Arc<Rival>) -> (Memory, Attached<Index<u32, u32, u32>>) {
    let policy = RetryPolicy { max_attempts: 8, ..RetryPolicy::default() };
    let store = Memory::builder().optimistic(true).retry_policy(policy).build();
    let schema = Schema::open(&store, "app").unwrap();
    let numbers = schema.table::<u32, u32>("numbers").unwrap();
    store.transact(|txn| numbers.put_many(txn, (0..RECORDS).map(|n| (n, n)))).unwrap();
    let meets = Arc::clone(rival);
    let index = schema.index(&numbers, "by_number", 1, move |key, number: &u32| {
        meets.visit(*key, *number);
        entry(number)
    });
    rival.meets.set((store.clone(), numbers)).unwrap();
    (store, index.unwrap())
}

#[test]
fn a_build_that_meets_a_writer_in_every_batch_ends() {
    let rival = Arc::new(Rival::default());
    let (store, index) = filled(&rival);
    assert_eq!(index.build(&store).unwrap().records, u64::from(RECORDS));
    let [committed, refused] = [&rival.committed, &rival.refused].map(|count| count.load(Relaxed));
    assert!(committed > 1 && refused > 1, "{committed} writes, {refused} refused");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(index.at(&snapshot).unwrap().count(&snapshot, ..).unwrap(), u64::from(RECORDS));
    assert!(index.check(&snapshot).unwrap().is_empty());
}

/// The control: without a fence, the same build gives up.
#[test]
fn a_build_that_meets_a_writer_without_a_fence_is_given_up() {
    let rival = Arc::new(Rival { is_blind: true, ..Rival::default() });
    let (store, index) = filled(&rival);
    let error = index.build(&store).unwrap_err();
    assert!(matches!(error, Error::RetriesExhausted { .. }), "{error}");
    assert_eq!(rival.refused.load(Relaxed), 0);
}

/// A store whose transactions have few operations.
fn narrow(operations: usize) -> Memory {
    let limits = Limits::default().with_max_transaction(None, Some(operations));
    Memory::builder().limits(limits).build()
}

#[test]
fn a_batch_that_exceeds_a_limit_of_the_store_is_halved() {
    let store = narrow(30);
    let schema = Schema::open(&store, "app").unwrap();
    let numbers = schema.table::<u32, u32>("numbers").unwrap();
    for some in (0..100).collect::<Vec<u32>>().chunks(10) {
        store.transact(|txn| numbers.put_many(txn, some.iter().map(|n| (*n, *n)))).unwrap();
    }
    let index = schema.index(&numbers, "by_number", 1, |_, number: &u32| entry(number)).unwrap();
    // The control: one transaction is too large for the batch. The first batch only begins.
    store.transact(|txn| index.build_batch(txn, 1)).unwrap();
    let error = store.transact(|txn| index.build_batch(txn, 100).map(drop)).unwrap_err();
    assert!(error.is_batch_too_large(), "{error}");
    let mut visited = vec![0];
    let built = index.build_with(&store, 100, |progress| {
        visited.push(progress.records);
        ControlFlow::Continue(())
    });
    assert!(built.unwrap().finished);
    let batches: Vec<u64> = visited.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(batches.iter().all(|batch| *batch < 30) && batches[0] > 7, "{batches:?}");

    let mut removed = vec![0];
    let dropped = index.drop_with(&store, 7, |progress| {
        removed.push(progress.removed);
        ControlFlow::Continue(())
    });
    assert_eq!(dropped.unwrap().removed, 100);
    let batches: Vec<u64> = removed.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(batches.iter().all(|batch| *batch <= 7) && batches.len() > 14, "{batches:?}");
}
