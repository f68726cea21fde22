//! Memory, LMDB and an ordered map return the same results for all operations.
//!
//! Each random history runs on every store, and every result is compared with a `BTreeMap`, so the
//! stores also agree with each other. Snapshots stay open across commits, and keys consist of
//! critical bytes.
//!
//! `cargo campaign differential --count 10000000` tests longer.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cell::Cell;

use keyloom::lmdb::Durability;
use keyloom::{KeyRange, Lmdb, Memory, Store, Writer};
use keyloom_conformance::{Operation, operations, replay};
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};

/// The number of random operations. Each runs on three stores.
const OPERATIONS: usize = 50_000;

/// Long enough that snapshots outlive many commits.
const HISTORY_LENGTH: usize = 250;

#[test]
fn memory_lmdb_and_an_ordered_map_answer_alike() {
    let cases = u32::try_from(OPERATIONS.div_ceil(HISTORY_LENGTH)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let lmdb = Lmdb::options().durability(Durability::MayLoseStore).open(directory.path()).unwrap();
    let optimistic = || Memory::builder().optimistic(true).build();
    let (run, kept) = (Cell::new(0), Cell::new(0));
    let found_before = FileFailurePersistence::Direct("proptest-regressions/differential.txt");
    let config = Config {
        cases,
        max_shrink_iters: 5_000,
        failure_persistence: Some(Box::new(found_before)),
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&operations(HISTORY_LENGTH), |history| {
        run.set(run.get() + history.len());
        kept.set(kept.get() + history.iter().filter(|o| matches!(o, Operation::Keep)).count());
        let on = |name: &str, outcome: Result<(), keyloom_conformance::Finding>| {
            outcome.map_err(|finding| TestCaseError::fail(format!("{name}: {finding}")))
        };
        on("memory", replay(&Memory::new(), &history))?;
        on("memory, optimistic", replay(&optimistic(), &history))?;
        // All histories use one file, so that freed pages are reused.
        lmdb.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
        on("lmdb", replay(&lmdb, &history))
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} operations on each of three stores, {} snapshots kept", run.get(), kept.get());
    assert!(run.get() >= OPERATIONS);
}
