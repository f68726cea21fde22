//! The common parts of the tests of several patterns.

use std::collections::BTreeMap;
use std::fmt::Debug;

use keyloom::{
    Cost, DynWriter, Fault, Faulty, KeyRange, Metered, Order, Reader, Result, Store, Transaction,
    Writer,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

pub type Dump = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn clear(store: &impl Store) {
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

pub fn dump(reader: &impl Reader, range: KeyRange<'_>) -> Dump {
    let entries = reader.range(range, Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

pub fn dump_all(store: &impl Store) -> Dump {
    dump(&store.snapshot().unwrap(), KeyRange::all())
}

/// Runs a property with the default number of cases: 256, or a number from the environment.
pub fn property<T: Debug>(strategy: impl Strategy<Value = T>, law: impl Fn(T)) {
    cases(ProptestConfig::default().cases, strategy, law);
}

/// Like [`property`], with a quarter of the cases for each store, for long cases.
pub fn long_property<T: Debug>(strategy: impl Strategy<Value = T>, law: impl Fn(T)) {
    cases(ProptestConfig::default().cases / 4, strategy, law);
}

/// Like [`property`], with a sixteenth of the cases, for very long cases.
pub fn very_long_property<T: Debug>(strategy: impl Strategy<Value = T>, law: impl Fn(T)) {
    cases(ProptestConfig::default().cases / 16, strategy, law);
}

fn cases<T: Debug>(cases: u32, strategy: impl Strategy<Value = T>, law: impl Fn(T)) {
    let config = ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() };
    let check = |case| {
        law(case);
        Ok(())
    };
    TestRunner::new(config).run(&strategy, check).unwrap();
}

/// The numbers of the operations at which a test injects faults, one after another. With the full
/// number of cases these are all operations; otherwise the first ones, and every third one after
/// them, with a random start.
pub fn failing_operations() -> impl Iterator<Item = u64> {
    const FIRST: u64 = 24;
    let is_full = ProptestConfig::default().cases >= 256;
    let (from, step) = if is_full { (FIRST, 1) } else { (FIRST + fastrand::u64(..3), 3) };
    (0..FIRST).chain((from..).step_by(step))
}

/// Gets, ranges, keys read, keys written.
pub fn counts(cost: Cost) -> [u64; 4] {
    [cost.gets, cost.ranges, cost.keys_read, cost.keys_written]
}

/// The cost of `work` in a separate transaction, as [`counts`].
pub fn writing<S: Store>(
    store: &Metered<S>,
    work: impl FnOnce(&mut DynWriter<'_>) -> Result<()>,
) -> [u64; 4] {
    let (_, cost) = store.measure(|store| {
        let mut txn = store.begin().unwrap();
        work(&mut DynWriter::new(&mut txn)).unwrap();
        txn.commit().unwrap();
    });
    counts(cost)
}

/// The lower bound of the round trips of `work` and its commit, in a separate transaction. It is
/// exact on a store with a server; an embedded store reports only the bound.
pub fn waits<S: Store>(
    store: &Metered<S>,
    work: impl FnOnce(&mut DynWriter<'_>) -> Result<()>,
) -> u64 {
    let mut work = Some(work);
    let (_, cost) = store.measure(|store| {
        let mut txn = store.begin().unwrap();
        work.take().unwrap()(&mut DynWriter::new(&mut txn)).unwrap();
        txn.commit().unwrap();
    });
    cost.round_trips
}

/// Makes every operation of `change` fail in turn, and its commit in every way. The change must be
/// applied as a whole or not at all, with the same bytes as without a fault, and both states must
/// be sound by `check`.
pub fn faults_leave_nothing_half_done<S: Store + Clone>(
    store: &S,
    prepare: impl Fn(&S),
    change: impl Fn(&mut DynWriter<'_>) -> Result<()>,
    check: impl Fn(&S) -> Vec<String>,
) {
    let faulty = Faulty::new(store.clone());
    let changed = || faulty.transact(|txn| change(&mut DynWriter::new(txn)));
    clear(store);
    prepare(store);
    faulty.clear_fault();
    changed().unwrap();
    let operations = faulty.operations();
    let wanted = dump_all(store);
    assert_eq!(check(store), [""; 0]);
    clear(store);
    prepare(store);
    let before = dump_all(store);
    assert_eq!(check(store), [""; 0]);
    assert_ne!(before, wanted);
    assert!(operations > 4, "the change has only {operations} operations that can fail");
    // The kinds of faults differ only at a commit, the last operation. Equal bytes were checked
    // before, so they are not checked again.
    let faults = failing_operations().take_while(|n| n + 1 < operations);
    let faults = faults.map(|n| (n, Fault::Error));
    let at_commit = [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted];
    for (n, fault) in faults.chain(at_commit.map(|fault| (operations - 1, fault))) {
        faulty.fail_at(n, fault);
        let error = changed().unwrap_err();
        assert_eq!(error.maybe_committed(), fault != Fault::Error, "{error}");
        let wanted = if fault == Fault::UnknownButCommitted { &wanted } else { &before };
        assert_eq!(&dump_all(store), wanted, "{error}");
        assert!(error.to_string().contains("made to fail"), "{error}");
    }
}

/// Makes every operation of `change` conflict in turn: the change is retried, with the same result.
pub fn conflicts_are_retried_to_the_same_end<S: Store + Clone>(
    store: &S,
    prepare: impl Fn(&S),
    change: impl Fn(&mut DynWriter<'_>) -> Result<()>,
) {
    let faulty = Faulty::new(store.clone());
    let mut wanted = None;
    // The first run has no conflict.
    for n in std::iter::once(0).chain(failing_operations().map(|n| n + 1)) {
        clear(store);
        prepare(store);
        faulty.clear_fault();
        if n > 0 {
            faulty.fail_at(n - 1, Fault::Conflict);
        }
        faulty.transact(|txn| change(&mut DynWriter::new(txn))).unwrap();
        let missed = n > 0 && faulty.operations() < n;
        let after = dump_all(store);
        assert_eq!(&after, wanted.get_or_insert(after.clone()), "a conflict at operation {n}");
        if missed {
            assert!(n > 5, "the change has only {n} operations that can conflict");
            break;
        }
    }
}

/// Runs a guarded write that is refused before anything is written. Checks that the transaction
/// does not commit.
#[track_caller]
pub fn refused<S: Store>(
    store: &S,
    work: impl FnOnce(&mut DynWriter<'_>) -> Result<()>,
) -> keyloom::Error {
    let before = dump_all(store);
    let mut txn = store.begin().unwrap();
    let error = work(&mut DynWriter::new(&mut txn)).unwrap_err();
    assert_eq!(dump(&txn, KeyRange::all()), before, "something was written before: {error}");
    let committed = txn.commit();
    assert!(matches!(committed, Err(keyloom::Error::CommitRefused { .. })), "{committed:?}");
    error
}
