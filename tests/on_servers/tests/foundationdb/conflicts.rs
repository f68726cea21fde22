//! Which transactions conflict, and which do not.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use keyloom::key::Versionstamp;
use keyloom::{
    Error, KeyRange, Order, Reader, Result, Store, Subspace, Transaction, VersionstampedKey, Writer,
};
use keyloom_foundationdb::FoundationDb;
use keyloom_tables::sequence::VersionstampedLog;

use crate::cluster::{fresh, is_conflict, key, plant};

type Txn<'s> = <FoundationDb as Store>::Transaction<'s>;

/// How often `writers` threads ran `body` in total, for `each` commits per thread.
fn runs(
    store: &FoundationDb,
    writers: usize,
    each: usize,
    body: impl Fn(&mut Txn<'_>) -> Result<()> + Sync,
) -> u64 {
    let runs = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(|| {
                for _ in 0..each {
                    let counted = |txn: &mut _| {
                        runs.fetch_add(1, Relaxed);
                        body(txn)
                    };
                    store.transact(counted).unwrap();
                }
            });
        }
    });
    runs.into_inner()
}

#[test]
fn a_counter_of_sixteen_writers_never_conflicts() {
    let store = fresh!();
    let native = runs(&store, 16, 25, |txn| txn.add(b"native", 1));
    let emulated = runs(&store, 16, 25, |txn| {
        let count = txn.counter(b"emulated")?;
        txn.put(b"emulated", &(count + 1).to_le_bytes())
    });
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.counter(b"native").unwrap(), 400);
    assert_eq!(snapshot.counter(b"emulated").unwrap(), 400);
    println!("400 commits: {native} runs with the atomic add, {emulated} with a read and a write");
    assert_eq!(native, 400);
    assert!(emulated > 400, "the writers did not meet: this shows nothing");
}

#[test]
fn the_other_operations_never_conflict_either() {
    let store = fresh!();
    let log = Subspace::new("log");
    let mut prefix = log.prefix().to_vec();
    prefix.push(Versionstamp::TYPE_CODE);
    let number = AtomicU64::new(1);
    let ran = runs(&store, 16, 10, |txn| {
        let number = number.fetch_add(1, Relaxed);
        txn.min(b"min", number)?;
        txn.max(b"max", number)?;
        txn.append_if_fits(b"list", &[7])?;
        txn.compare_and_clear(b"absent", b"")?;
        let key = VersionstampedKey { prefix: &prefix, suffix: b"", clock: b"clock" };
        txn.put_versionstamped(&key, &number.to_le_bytes())
    });
    assert_eq!(ran, 160);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.counter(b"min").unwrap(), 1);
    assert_eq!(snapshot.counter(b"max").unwrap(), 160);
    assert_eq!(snapshot.get(b"list").unwrap().as_deref(), Some(&[7; 160][..]));
    assert_eq!(snapshot.get(b"clock").unwrap(), None, "the clock is for other stores");
    assert_eq!(snapshot.count(log.range()).unwrap(), 160);
}

/// Two concurrent transactions; the one that reads commits last.
fn outcome(
    store: &FoundationDb,
    read: impl Fn(&Txn<'_>),
    write: impl Fn(&mut Txn<'_>) -> Result<()>,
) -> Result<()> {
    let mut txn = store.begin().unwrap();
    read(&txn);
    txn.put(b"elsewhere", b"").unwrap();
    store.transact(write).unwrap();
    txn.commit()
}

#[test]
fn only_what_was_read_conflicts_and_it_is_named() {
    let store = fresh!();
    plant(&*store, 1_000);
    let get = outcome(&store, |txn| drop(txn.get(&key(7)).unwrap()), |txn| txn.delete(&key(7)));
    let Err(Error::Conflict { what }) = get else { panic!("{get:?}") };
    assert!(what.contains("0007"), "{what} does not say where they met");
    let beside =
        outcome(&store, |txn| drop(txn.get(&key(6)).unwrap()), |txn| txn.put(&key(7), b""));
    assert!(beside.is_ok(), "{beside:?}");
    // Only the fetched part of a range conflicts: one page of 128.
    let walk = |txn: &Txn<'_>| {
        txn.range(KeyRange::all(), Order::Ascending).unwrap().take(10).for_each(drop);
    };
    assert!(is_conflict(&outcome(&store, |txn| walk(txn), |txn| txn.put(&key(100), b""))));
    assert!(outcome(&store, |txn| walk(txn), |txn| txn.put(&key(500), b"")).is_ok());
    let Err(Error::Conflict { what }) = outcome(&store, walk, |txn| txn.put(&key(101), b"")) else {
        panic!("the walk has read it")
    };
    assert!(what.contains("the keys from"), "{what}");
    // Many keys at once, with several lengths.
    let many: Vec<Vec<u8>> = (0..200).map(|n| "k".repeat(n % 7 * 40 + 1).into_bytes()).collect();
    let met = outcome(
        &store,
        |txn| drop(txn.get_many(&many).unwrap()),
        |txn| txn.delete_range(KeyRange::all()),
    );
    assert!(is_conflict(&met), "{met:?}");
    plant(&*store, 1_000);
    let gone = |txn: &mut Txn<'_>| txn.delete_range(KeyRange::half_open(&key(50), &key(60)));
    assert!(is_conflict(&outcome(&store, |txn| drop(txn.get(&key(55)).unwrap()), gone)));
}

#[test]
fn a_transaction_that_stamps_reads_first() {
    let store = fresh!();
    let log = VersionstampedLog::<u8, u8>::new(&Subspace::new("log"));
    store.transact(|txn| log.append(txn, &1, &7)).unwrap();
    let (stamp, _) = log.read_new(&store.snapshot().unwrap(), &1, None, 1).unwrap()[0];
    store
        .transact(|txn| {
            assert_eq!(log.get(txn, &1, stamp)?, Some(7));
            log.append(txn, &1, &8)
        })
        .unwrap();
    let mut txn = store.begin().unwrap();
    log.append(&mut txn, &1, &9).unwrap();
    let error = log.read_new(&txn, &1, None, 9).unwrap_err();
    assert!(error.to_string().contains("read first") && !error.is_retryable(), "{error}");
    drop(txn);
    assert_eq!(log.read_new(&store.snapshot().unwrap(), &1, None, 9).unwrap().len(), 2);
}

#[test]
fn a_snapshot_stays_as_it_is_while_others_delete() {
    let store = fresh!();
    plant(&*store, 10);
    let snapshot = store.snapshot().unwrap();
    let seen = snapshot.count(KeyRange::all()).unwrap();
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    assert_eq!(snapshot.count(KeyRange::all()).unwrap(), seen);
}
