//! Measures how often a transaction runs until it commits, when many writers conflict.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use keyloom::{Error, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::{BatchSize, Index, Table, entry};

use crate::{FarResult, FarStore};

const WRITERS: u64 = 8;
/// The number of transactions that each writer commits.
const EACH: u64 = 100;
/// The number of records that each part of a sequence contains before the writers start.
const BEFORE: u64 = 1_000;

/// A transaction of a writer. The arguments are the number of the writer, and the number of the
/// transaction.
pub type Body<'b> = &'b (dyn Fn(&mut Txn<'_>, u64, u64) -> Result<()> + Sync);
type Txn<'t> = <FarStore as Store>::Transaction<'t>;

/// The result of `writers` that each committed `each` transactions concurrently.
pub struct Met {
    pub runs_per_commit: f64,
    pub commits_per_second: f64,
}

/// Runs the transactions of all writers concurrently.
pub fn meet(store: &FarStore, writers: u64, each: u64, body: Body<'_>) -> FarResult<Met> {
    let (runs, given_up) = (AtomicU64::default(), AtomicU64::default());
    let started = Instant::now();
    let write = |writer: u64| -> Result<()> {
        for n in 0..each {
            let done = store.transact(|txn| {
                runs.fetch_add(1, Relaxed);
                body(txn, writer, n)
            });
            match done {
                Err(Error::RetriesExhausted { .. }) => given_up.fetch_add(1, Relaxed),
                done => done.map(|()| 0)?,
            };
        }
        Ok(())
    };
    thread::scope(|scope| {
        let writers: Vec<_> =
            (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        let panicked = |_| Err(Error::other("a writer panicked"));
        writers.into_iter().try_for_each(|writer| writer.join().unwrap_or_else(panicked))
    })?;
    let commits = (writers * each - given_up.load(Relaxed)) as f64;
    Ok(Met {
        runs_per_commit: runs.load(Relaxed) as f64 / commits,
        commits_per_second: commits / started.elapsed().as_secs_f64(),
    })
}

pub fn print(store: &FarStore, space: &Subspace) -> FarResult {
    println!("\n{:<64} {:>9} {:>9}", "runs per commit, 8 writers", "counted", "commits/s");
    let line = |what: &str, body: Body<'_>| {
        let Met { runs_per_commit, commits_per_second } = meet(store, WRITERS, EACH, body)?;
        println!("{what:<64} {runs_per_commit:>9.2} {commits_per_second:>9.0}");
        FarResult::Ok(())
    };

    let own = space.child("own");
    fill(store, BEFORE * WRITERS, |txn, n| txn.put(&own.pack(&(n % WRITERS, n / WRITERS)), b""))?;
    line("read and write a key that nobody else has", &|txn, writer, n| {
        let key = own.pack(&(writer, n));
        txn.get(&key)?;
        txn.put(&key, b"1")
    })?;

    let key = space.child("one key").pack(&0);
    line("put one key, without a read", &|txn, writer, n| txn.put(&key, &[writer as u8, n as u8]))?;

    let visits = space.child("visits");
    line("add to one counter", &|txn, _, _| txn.add(&visits.pack(&0), 1))?;
    for counters in [4, 16, 64] {
        line(&format!("add to one of {counters} counters, at random"), &|txn, _, _| {
            txn.add(&visits.pack(&fastrand::u64(..counters)), 1)
        })?;
    }

    let log = space.child("log");
    fill(store, BEFORE, |txn, n| txn.put(&log.pack(&n), b""))?;
    line("read the last key of a sequence and put the next", &|txn, _, _| {
        let last = txn.last(log.range())?.map_or(Ok(0), |(key, _)| log.unpack::<u64>(&key));
        txn.put(&log.pack(&(last? + 1)), b"")
    })?;
    let next = AtomicU64::new(BEFORE * 10);
    line("put behind the last key of a sequence, without a read", &|txn, _, _| {
        txn.put(&log.pack(&next.fetch_add(1, Relaxed)), b"")
    })?;

    let by_name = Index::new(&space.child("by_name"), |_id: &(u64, u64), name: &u64| entry(name));
    let people = Table::<(u64, u64), u64>::new(&space.child("people")).with(&by_name);
    let name = || fastrand::u64(..);
    // First all writers share one part, then each writer has its own part.
    for (parts, what) in [
        (1, "put records of a table behind its last one"),
        (WRITERS, "the same, the key begins with the writer"),
    ] {
        let table = &people;
        fill(store, BEFORE * WRITERS, |txn, n| table.put(txn, &(n % parts, n / parts), &name()))?;
        let next: Vec<AtomicU64> = (0..parts).map(|_| AtomicU64::new(BEFORE * WRITERS)).collect();
        line(what, &|txn, writer, _| {
            let part = writer % parts;
            let number = next.get(part as usize).map_or(0, |next| next.fetch_add(1, Relaxed));
            table.put(txn, &(part, number), &name())
        })?;
        store.transact(|txn| {
            txn.delete_range(table.space().range())?;
            txn.delete_range(space.child("by_name").range())
        })?;
    }
    Ok(())
}

/// Calls `put` for the numbers below `n`, in batches.
fn fill(store: &FarStore, n: u64, put: impl Fn(&mut Txn<'_>, u64) -> Result<()>) -> Result<()> {
    let numbers: Vec<u64> = (0..n).collect();
    let mut size = BatchSize::new(1_000);
    size.transact_all(store, &numbers, |txn, some| some.iter().try_for_each(|n| put(txn, *n)))
}
