//! A commit is all or nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::compare::{agree, agree_on_many, blob, ensure, get, many_writes, plant, same};
use super::{Finding, Outcome};
use keyloom::{KeyRange, Store, Transaction, Writer};

pub(super) fn a_commit_keeps_every_write<S: Store>(store: &S) -> Outcome {
    let writes = many_writes(store);
    // Scattered, so that the writes are not adjacent in the engine. Different numbers have
    // different keys.
    let key = |n: u32| n.wrapping_mul(40_503_u32).to_be_bytes();
    // Every fourth write deletes a key.
    let deleted: Vec<_> = (1..writes).step_by(4).map(key).collect();
    let mut model = plant(store, &deleted)?;
    let mut txn = store.begin()?;
    for n in 0..writes {
        match n % 4 {
            1 => txn.delete(&key(n))?,
            _ => txn.put(&key(n), &n.to_be_bytes())?,
        }
    }
    txn.commit()?;
    model.clear();
    model.extend((0..writes).filter(|n| n % 4 != 1).map(|n| (blob(key(n)), blob(n.to_be_bytes()))));
    agree_on_many("after the commit", &store.snapshot()?, &model)
}

pub(super) fn a_commit_applies_writes_in_their_order<S: Store>(store: &S) -> Outcome {
    let mut model = plant(store, &[b"a", b"b", b"c"])?;
    let mut txn = store.begin()?;
    txn.put(b"a", b"1")?;
    txn.delete_range(KeyRange::half_open(b"a", b"c"))?;
    txn.put(b"b", b"2")?;
    txn.delete(b"c")?;
    txn.put(b"c", b"3")?;
    txn.put(b"c", b"4")?;
    txn.put(b"d", b"5")?;
    txn.delete(b"d")?;
    txn.commit()?;
    model.clear();
    model.insert(blob(b"b"), blob(b"2"));
    model.insert(blob(b"c"), blob(b"4"));
    agree("after the commit", &store.snapshot()?, &model)
}

pub(super) fn an_empty_transaction_commits<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &[b"a"])?;
    store.begin()?.commit()?;
    let txn = store.begin()?;
    agree("in a transaction that only reads", &txn, &model)?;
    txn.commit()?;
    agree("afterwards", &store.snapshot()?, &model)
}

/// A writer keeps two keys equal while readers compare them. The keys are far apart, with other
/// keys between them.
pub(super) fn readers_see_whole_transactions_only<S: Store>(store: &S) -> Outcome {
    const ROUNDS: u32 = 200;
    let between: Vec<[u8; 2]> = (0..100).map(|n| [b'm', n]).collect();
    plant(store, &between)?;
    let write = |n: u32| {
        store.transact(|txn| {
            txn.put(b"first", &n.to_be_bytes())?;
            txn.put(b"second", &n.to_be_bytes())
        })
    };
    write(0)?;
    let done = AtomicBool::new(false);
    let look = || -> Outcome {
        let mut newest = None;
        while !done.load(Ordering::Relaxed) {
            let snapshot = store.snapshot()?;
            let first = get(&snapshot, b"first")?;
            let second = get(&snapshot, b"second")?;
            same("the second key beside the first", &second, &first)?;
            ensure(first >= newest, "a later snapshot showed an earlier state")?;
            newest = first;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let readers = [scope.spawn(look), scope.spawn(look)];
        let written = (1..=ROUNDS).try_for_each(write);
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap_or_else(|_| Err(Finding("a reader panicked".into())))?;
        }
        Ok(written?)
    })
}
