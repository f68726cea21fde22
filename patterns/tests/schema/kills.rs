//! A process is killed while it builds, disables, drops and writes.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store};
use keyloom_patterns::schema::State;
use keyloom_patterns::{Attached, Maintained, RepairOptions, Schema};

use crate::fixture::{
    Build, Bytes, Disable, Drain, Drop, KINDS, KindWork, Sale, Shop, StateOf, sale,
};

const PATH: &str = "KEYLOOM_SCHEMA_PATH";
const SEED: &str = "KEYLOOM_SCHEMA_SEED";
const STOP: &str = "KEYLOOM_SCHEMA_STOP";
const STARTED: &str = "started";
const COMMITS: &str = "commits: ";

fn open(path: &Path) -> Lmdb {
    // The writes of a killed process survive without fsync.
    Lmdb::options().durability(Durability::MayLoseStore).open(path).unwrap()
}

/// A sale of record `id`. Serial numbers are unique across records.
fn of(id: u32, n: u32) -> Sale {
    Sale { serial: Some(id), ..sale(n) }
}

/// Not a test of its own: a child process that runs until the test below kills it.
#[test]
fn in_a_process_of_its_own() {
    let (Ok(path), Ok(seed)) = (std::env::var(PATH), std::env::var(SEED)) else { return };
    let store = open(Path::new(&path));
    let mut rng = fastrand::Rng::with_seed(seed.parse().unwrap());
    println!("{STARTED}");
    loop {
        let is_deferred = rng.bool();
        let shop = Shop::try_open(&store, is_deferred).unwrap();
        if rng.u8(..4) == 0 {
            let name = if is_deferred { "deferred shop" } else { "shop" };
            let schema = Schema::open(&store, name).unwrap();
            let stop =
                |_: &_| if rng.bool() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            drop(schema.drop_table_with("sales", 20, stop));
            continue;
        }
        for _ in 0..20 {
            let (kind, id) = (rng.usize(..KINDS), rng.u32(..60));
            match rng.u8(..9) {
                0 => shop.with_kind(kind, Disable(&store)).unwrap_or_default(),
                1..4 => drop(shop.with_kind(kind, Build(&store, rng.usize(1..8)))),
                4 => drop(shop.with_kind(kind, Drop(&store, rng.usize(1..4)))),
                5 => drop(shop.with_kind(kind, Drain(&store, rng.usize(1..4)))),
                6 => drop(store.transact(|txn| shop.sales.delete(txn, &id))),
                _ => {
                    let records = (0..4).map(|n| ((id + n) % 60, of((id + n) % 60, rng.u32(..50))));
                    let records: Vec<_> = records.collect();
                    store.transact(|txn| shop.sales.put_many(txn, &records)).unwrap();
                }
            }
        }
    }
}

/// Checks that the killed process left a consistent state, and that its work can be finished.
fn look(path: &Path) {
    let store = open(path);
    [false, true].into_iter().for_each(|is_deferred| look_at(&store, is_deferred));
}

fn look_at(store: &Lmdb, is_deferred: bool) {
    let shop = Shop::try_open(store, is_deferred).unwrap();
    let snapshot = store.snapshot().unwrap();
    let records = shop.sales.range(&snapshot, ..).unwrap();
    let records: Vec<_> = records.collect::<Result<_, _>>().unwrap();
    drop(snapshot);
    let fresh = Memory::new();
    let wanted = Shop::try_open(&fresh, is_deferred).unwrap();
    fresh.transact(|txn| wanted.sales.put_many(txn, &records)).unwrap();
    for kind in 0..KINDS {
        let bytes = wanted.with_kind(kind, Bytes(&fresh));
        if shop.with_kind(kind, StateOf(store)).unwrap() == State::Readable {
            assert_eq!(shop.with_kind(kind, Bytes(store)), bytes, "kind {kind} as it was left");
        }
        assert!(shop.with_kind(kind, Build(store, usize::MAX)).unwrap());
        assert_eq!(shop.with_kind(kind, Bytes(store)), bytes, "kind {kind} when it is built");
    }
}

#[test]
fn kills_leave_derived_data_of_all_kinds_right() {
    let kills = std::env::var("KEYLOOM_KILLS").map_or(40, |kills| kills.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::new();
    for _ in 0..kills {
        let seed = rng.u64(..);
        println!("seed {seed}");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::in_a_process_of_its_own", "--nocapture"])
            .env(PATH, directory.path())
            .env(SEED, seed.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().ends_with(STARTED)));
        std::thread::sleep(Duration::from_micros(rng.u64(..20_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        look(directory.path());
    }
}

/// All long operations on one kind: a build, a drain, a repair and a drop, in batches of two.
struct LongWork<'s, F>(&'s Lmdb, F);

impl<F: Fn()> KindWork<()> for LongWork<'_, F> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) {
        let Self(store, committed) = self;
        let going_on = |_: &_| {
            committed();
            ControlFlow::Continue(())
        };
        store.transact(|txn| attached.disable(txn)).unwrap();
        committed();
        attached.build_with(store, 2, going_on).unwrap();
        let changed = (0..6).map(|id| (id, of(id, id + 20)));
        store.transact(|txn| attached.table().put_many(txn, changed.clone())).unwrap();
        committed();
        attached.drain_with(store, 2, going_on).unwrap();
        let options = RepairOptions { batch: 2, resume: None };
        let repaired = |_: &_| {
            committed();
            ControlFlow::Continue(())
        };
        attached.repair_with(store, &options, repaired).unwrap();
        attached.drop_with(store, 2, going_on).unwrap();
    }
}

/// Not a test of its own: a child process that aborts after a commit, started by the test below.
#[test]
fn until_a_commit_in_a_process_of_its_own() {
    let (Ok(path), Ok(stop)) = (std::env::var(PATH), std::env::var(STOP)) else { return };
    let (stop, commits): (u32, _) = (stop.parse().unwrap(), Cell::new(0));
    let is_deferred = std::env::var(SEED).unwrap() == "deferred";
    let committed = || {
        commits.set(commits.get() + 1);
        if commits.get() == stop {
            std::process::abort();
        }
    };
    let store = open(Path::new(&path));
    let shop = Shop::try_open(&store, is_deferred).unwrap();
    let sales = (0..9).map(|id| (id, of(id, id)));
    store.transact(|txn| shop.sales.put_many(txn, sales.clone())).unwrap();
    (0..KINDS).for_each(|kind| shop.with_kind(kind, LongWork(&store, committed)));
    println!("{COMMITS}{}", commits.get());
}

/// Runs the work until it aborts after commit number `stop`. Returns the number of commits if the
/// work finished.
fn aborted(path: &Path, is_deferred: bool, stop: u32) -> Option<u32> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::until_a_commit_in_a_process_of_its_own", "--nocapture"])
        .env(PATH, path)
        .env(STOP, stop.to_string())
        .env(SEED, if is_deferred { "deferred" } else { "" })
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let commits = text.split_once(COMMITS).map(|(_, rest)| rest.lines().next().unwrap());
    assert_eq!(output.status.success(), commits.is_some(), "{text}");
    commits.map(|commits| commits.parse().unwrap())
}

/// Tests all commits if `KEYLOOM_KILLS` is set, otherwise some of them.
#[test]
fn long_work_that_dies_after_any_commit_can_be_finished() {
    for is_deferred in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let commits = aborted(directory.path(), is_deferred, u32::MAX).unwrap();
        assert!(commits > 150, "{commits} commits");
        let is_all = std::env::var_os("KEYLOOM_KILLS").is_some();
        let stops: Vec<u32> = match is_all {
            true => (1..=commits).collect(),
            false => (0..15).map(|_| fastrand::u32(1..=commits)).collect(),
        };
        for stop in stops {
            let directory = tempfile::tempdir().unwrap();
            println!("deferred: {is_deferred}, after commit {stop} of {commits}");
            assert_eq!(aborted(directory.path(), is_deferred, stop), None);
            look_at(&open(directory.path()), is_deferred);
        }
    }
}
