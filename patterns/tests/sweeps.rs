//! Sweeps remove data that a pattern no longer needs. Each sweep in bounded transactions satisfies
//! one law. However a sweep is stopped or fails, the next sweep removes the rest, with or without
//! the position. The counts of all these sweeps add up to those of an uninterrupted one. (The sweep
//! of a property index covers one item, without batches.)

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use keyloom::{Fault, Faulty, KeyBuf, KeyRange, Memory, Result, Store, Subspace, Writer};
use keyloom_kit::{in_batches, page_behind};
use keyloom_patterns::documents::files::Files;
use keyloom_patterns::entity::wide_column::Keep;
use keyloom_patterns::locking::queue::{NewJob, QueueOptions};
use keyloom_patterns::locking::recipes::Recipes;
use keyloom_patterns::locking::{
    Expiry, LeaseOptions, Lock, LockPath, Locks, ManualClock, Session, WorkQueue,
};
use keyloom_patterns::versioned::ExternalVersion::Greater;
use keyloom_patterns::{
    AppendLog, Progress, RepairOptions, RepairPosition, Schema, Table, VersionedTable, WideColumns,
};
use keyloom_testing::laws::{Dump, dump_all};

type OnCommit<'p> = &'p mut dyn FnMut(&Progress) -> ControlFlow<()>;

fn restore(store: &Memory, dump: &Dump) {
    store
        .transact(|txn| {
            txn.delete_range(KeyRange::all())?;
            dump.iter().try_for_each(|(key, value)| txn.put(key, value))
        })
        .unwrap();
}

/// A violation of the law, if there is one.
fn violation(
    store: &Memory,
    sweep: impl Fn(&Faulty<Memory>, &RepairOptions, OnCommit<'_>) -> Result<Progress>,
) -> Option<String> {
    macro_rules! require {
        ($holds:expr, $($words:tt)*) => {
            if !$holds {
                return Some(format!($($words)*));
            }
        };
    }
    let (faulty, before) = (Faulty::new(store.clone()), dump_all(store));
    let in_one = |batch: usize| {
        let options = RepairOptions { batch, ..RepairOptions::default() };
        sweep(&faulty, &options, &mut |_| ControlFlow::Continue(()))
    };
    let done = in_one(1_000).unwrap();
    let after = dump_all(store);
    require!(done.finished && done.removed > 6, "it removes too little: {done:?}");
    require!(after != before, "it counts what it does not remove");
    let again = in_one(1_000).unwrap();
    require!(again.finished && again.removed == 0, "a second one removes more: {again:?}");
    require!(dump_all(store) == after, "a second one changes something");

    for batch in [1, 3, 1_000] {
        restore(store, &before);
        let (mut removed, mut resume, mut commits) = (0, None, 0);
        loop {
            let options = RepairOptions { batch, resume };
            let part = sweep(&faulty, &options, &mut |_| ControlFlow::Break(())).unwrap();
            removed += part.removed;
            commits += 1;
            if part.finished {
                break;
            }
            require!(commits < 10_000, "batches of {batch} never end");
            resume = Some(part.position);
        }
        require!(removed == done.removed, "batches of {batch} remove {removed}");
        require!(batch > 3 || commits > 2, "{commits} commits for batches of {batch}");
        require!(dump_all(store) == after, "batches of {batch} leave something else");
    }
    for most in 1..6 {
        restore(store, &before);
        let mut commits = 0;
        let options = RepairOptions { batch: 3, ..RepairOptions::default() };
        let stopped = sweep(&faulty, &options, &mut |_| {
            commits += 1;
            if commits < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let removed = stopped.unwrap().removed + in_one(3).unwrap().removed;
        require!(removed == done.removed, "stopped after {most}, all remove {removed}");
        require!(dump_all(store) == after, "stopped after {most}, something else is left");
    }

    // A position of other data is refused or ignored; no data is skipped.
    for last in [&b"\0"[..], b"\xFF\xFF"] {
        restore(store, &before);
        let position =
            RepairPosition { last: Some(KeyBuf::from_slice(last)), ..Default::default() };
        let options = RepairOptions { resume: Some(position), ..RepairOptions::default() };
        match sweep(&faulty, &options, &mut |_| ControlFlow::Continue(())) {
            Err(_) => require!(dump_all(store) == before, "it refuses {last:?} too late"),
            Ok(some) => require!(some.removed == done.removed, "{last:?}: {some:?}"),
        }
    }

    let mut faults = 0;
    for n in 0.. {
        restore(store, &before);
        faulty.fail_at(n, Fault::Error);
        let broken = in_one(3);
        faulty.clear_fault();
        if broken.is_ok() {
            break;
        }
        faults += 1;
        in_one(3).unwrap();
        require!(dump_all(store) == after, "a fault at {n} leaves something else");
    }
    require!(faults > 6, "{faults} operations could fail");
    None
}

fn holds(
    store: &Memory,
    sweep: impl Fn(&Faulty<Memory>, &RepairOptions, OnCommit<'_>) -> Result<Progress>,
) {
    assert_eq!(violation(store, sweep), None);
}

/// A log of 20 records of "ada", and containers whose names share prefixes and suffixes with hers.
fn log(store: &Memory) -> AppendLog<String, u32> {
    let log = AppendLog::new(&Subspace::new("log"));
    store
        .transact(|txn| {
            for (name, records) in [("", 3), ("ada", 20), ("ada\0", 3), ("bada", 3)] {
                (0..records).try_for_each(|n| log.append(txn, &name.into(), &n).map(drop))?;
            }
            Ok(())
        })
        .unwrap();
    log
}

#[test]
fn append_logs() {
    let store = Memory::new();
    let (log, ada) = (log(&store), "ada".to_owned());
    holds(&store, |store, options, on_commit| log.sweep_with(store, &ada, 4, options, on_commit));
    let left = log.records().count(&store.snapshot().unwrap(), ()).unwrap();
    assert_eq!(left, 4 + 9);
}

#[test]
fn versioned_tables() {
    let store = Memory::new();
    let table = VersionedTable::<u32, u32>::new(&Subspace::new("table"));
    for id in 0..20 {
        store
            .transact(|txn| {
                table.put_external(txn, &id, Greater(1), 7)?;
                table.delete_external(txn, &id, Greater(u64::from(id) + 2)).map(drop)
            })
            .unwrap();
    }
    holds(&store, |store, options, on_commit| table.sweep_with(store, 15, options, on_commit));
}

#[test]
fn wide_columns() {
    let store = Memory::new();
    let columns = WideColumns::<u32>::new(&Subspace::new("columns"));
    store
        .transact(|txn| {
            for (row, time) in (0..3).flat_map(|row| (0..6).map(move |time| (row, time))) {
                columns.put(txn, &row, "f", "c", time, b"x")?;
                columns.put(txn, &row, "f", "c\0", time, b"y")?;
            }
            columns.delete(txn, &1, "f", "c", 9)
        })
        .unwrap();
    let one = Keep::Versions(NonZeroUsize::MIN);
    holds(&store, |store, options, on_commit| columns.sweep_with(store, one, options, on_commit));
}

#[test]
fn files() {
    let store = Memory::new();
    let files = Files::open(&Schema::open(&store, "f").unwrap()).unwrap();
    store
        .transact(|txn| {
            files.create_directory(txn, "/a")?;
            files.create_directory(txn, "/a/b")?;
            (0..9).try_for_each(|n| files.write(txn, &format!("/a/b/{n}"), b"text").map(drop))?;
            files.write(txn, "/c", b"stays").map(drop)
        })
        .unwrap();
    // The removal ends after its first transaction.
    let faulty = Faulty::new(store.clone());
    let whole = dump_all(&store);
    for n in 0.. {
        restore(&store, &whole);
        faulty.fail_at(n, Fault::Error);
        let removed = files.remove_all(&faulty, "/a");
        let is_gone = files.get(&store.snapshot().unwrap(), "/a").unwrap().is_none();
        if removed.is_err() && is_gone {
            break;
        }
    }
    holds(&store, |store, options, on_commit| files.sweep_with(store, options, on_commit));
    assert_eq!(files.check(&store.snapshot().unwrap()).unwrap(), []);
}

#[test]
fn records_that_expire() {
    let store = Memory::new();
    let schema = Schema::open(&store, "s").unwrap();
    let pages: Table<u32, u64> = schema.table("pages").unwrap();
    let expiry = Expiry::new(&schema, &pages, "deadline", 1, |_, end| Some(*end)).unwrap();
    store.transact(|txn| pages.put_many(txn, (0..30).map(|n| (n, u64::from(n % 15))))).unwrap();
    holds(&store, |store, options, on_commit| expiry.sweep_with(store, 9, options, on_commit));
}

#[test]
fn work_queues() {
    let (store, clock) = (Memory::new(), ManualClock::at(1_000_000));
    let schema = Schema::open(&store, "s").unwrap();
    let options = QueueOptions { clock: Arc::new(clock.clone()), ..QueueOptions::default() };
    let queue = WorkQueue::<u32>::open_with(&schema, "jobs", options).unwrap();
    for n in 0..12 {
        let job = NewJob::new("tenant", n).key(format!("job {n}"));
        store.transact(|txn| queue.enqueue(txn, job.clone())).unwrap();
        let [delivery] = &queue.dequeue(&store, 1).unwrap()[..] else { panic!("no job") };
        store.transact(|txn| queue.complete(txn, delivery)).unwrap();
    }
    clock.advance(Duration::from_secs(90 * 86_400));
    holds(&store, |store, options, on_commit| queue.sweep_with(store, options, on_commit));
}

#[test]
fn locks() {
    let (store, clock) = (Memory::new(), ManualClock::at(1_000_000));
    let schema = Schema::open(&store, "s").unwrap();
    let locks = Locks::open(&schema, "locks").unwrap().with_clock(clock.clone());
    let session = |name: &str| {
        store.transact(|txn| locks.begin_session(txn, name, &LeaseOptions::default())).unwrap()
    };
    for name in ["", "ada", "ada\0", "bob"] {
        let session = session(&name.replace('\0', "."));
        for n in 0..5 {
            let lock = [Lock::exclusive(LockPath::of([name, &n.to_string()]))];
            store.transact(|txn| locks.try_lock(txn, session, &lock)).unwrap();
        }
    }
    clock.advance(Duration::from_secs(86_400));
    let lives = session("carol");
    holds(&store, |store, options, on_commit| locks.sweep_with(store, options, on_commit));
    let left = locks.sessions(&store.snapshot().unwrap()).unwrap();
    assert_eq!(left.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [lives]);
}

#[test]
fn recipes() {
    let (store, clock) = (Memory::new(), ManualClock::at(1_000_000));
    let schema = Schema::open(&store, "s").unwrap();
    let locks = Locks::open(&schema, "locks").unwrap().with_clock(clock.clone());
    let recipes = Recipes::open(&schema, &locks, "recipes").unwrap();
    let session = |name: &str| {
        Session::without_heartbeat(&store, &locks, name, LeaseOptions::default()).unwrap()
    };
    let semaphore = |n: u32| recipes.semaphore(&LockPath::of([n]), 2).unwrap();
    let dead = session("ada");
    for n in 0..12 {
        std::mem::forget(semaphore(n).try_acquire(&dead).unwrap());
    }
    // As if the process had been killed.
    std::mem::forget(dead);
    clock.advance(Duration::from_secs(86_400));
    let lives = session("bob");
    let _held = semaphore(3).try_acquire(&lives).unwrap();
    holds(&store, |store, options, on_commit| recipes.sweep_with(store, options, on_commit));
    let left = semaphore(3).sessions(&store.snapshot().unwrap()).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// The controls: each of these sweeps of the records up to number 16 violates the law.
#[test]
fn sweeps_that_break_the_law_are_found() {
    #[derive(Clone, Copy, Debug)]
    enum Flaw {
        None,
        EndsAfterOneBatch,
        SkipsAfterTheBatch,
        CountsVisits,
    }
    let found = |flaw: Flaw| {
        let store = Memory::new();
        let log = log(&store);
        violation(&store, |store, options, on_commit| {
            in_batches(store, options, on_commit, |txn, batch, done| {
                let ada = log.records().space().child(&"ada");
                let last = done.position.last.as_deref();
                let page = page_behind(last, txn, log.records().space(), batch)?;
                let keys = page.entries.iter().map(|(key, _)| KeyBuf::from_slice(key));
                let keys: Vec<KeyBuf> = keys.collect();
                let (last, more) = (keys.last().cloned(), page.last.is_some());
                drop(page);
                let old = |key: &&KeyBuf| ada.unpack::<u64>(key).is_ok_and(|number| number <= 16);
                for key in keys.iter().filter(old) {
                    txn.delete(key)?;
                    done.removed += u64::from(!matches!(flaw, Flaw::CountsVisits));
                }
                if matches!(flaw, Flaw::CountsVisits) {
                    done.removed += keys.len() as u64;
                }
                done.position.last = last.or_else(|| done.position.last.take());
                if let (Flaw::SkipsAfterTheBatch, Some(last)) = (flaw, &mut done.position.last) {
                    // Changes the position to the key of the next record.
                    *last.last_mut().unwrap() += 1;
                }
                done.finished = match flaw {
                    Flaw::EndsAfterOneBatch => true,
                    _ => !more,
                };
                Ok(())
            })
        })
    };
    assert_eq!(found(Flaw::None), None);
    for flaw in [Flaw::EndsAfterOneBatch, Flaw::SkipsAfterTheBatch, Flaw::CountsVisits] {
        assert!(found(flaw).is_some(), "{flaw:?}");
    }
}
