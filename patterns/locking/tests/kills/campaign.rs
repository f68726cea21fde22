//! Holders are killed at each commit point. Processes that take over are killed as well.

use std::path::Path;
use std::time::Duration;

use keyloom::{Lmdb, Store};
use keyloom_locking::work::OnTakeover;
use keyloom_testing::laws::clear;

use crate::child::{BEGUN, COMMITS, DONE, Process, Role};
use crate::rename::{Drive, FILES, OPTIONS, Place, both_directories, open};

const NOW: u64 = 1_000_000;
/// A holder commits in about 100 µs in a debug build.
const RACE: u64 = 600;
/// A rescuer makes all its commits in about 2 ms.
const RESCUE: u64 = 2_000;

/// The clock after all leases have ended, `times` times.
fn later(times: u64) -> u64 {
    let over = OPTIONS.lease + OPTIONS.grace;
    NOW + times * u64::try_from(over.as_millis()).unwrap()
}

fn rounds_per_point() -> u32 {
    std::env::var("KEYLOOM_LOCK_KILLS").map_or(5, |rounds| rounds.parse().unwrap())
}

/// The results of a campaign.
#[derive(Debug, Default)]
struct Counts {
    kills: u32,
    /// Holders that died with some files at the new place and some at the old place.
    half_done: u32,
    /// Rescuers that were killed in the middle of the work.
    rescuers: u32,
    /// Unfinished work that the last process finished or rolled back.
    recovered: u64,
}

/// The possible places of the files after the recovery.
fn expected(on_takeover: OnTakeover, acknowledged: u64, is_exact: bool) -> Vec<Place> {
    let from = match on_takeover {
        OnTakeover::RollForward => BEGUN,
        OnTakeover::RollBack => DONE,
    };
    match (acknowledged >= from, is_exact) {
        (true, _) => vec![Place::New],
        (false, true) => vec![Place::Old],
        // The deciding commit may have been made, but not acknowledged.
        (false, false) => vec![Place::Old, Place::New],
    }
}

fn prepare(path: &Path) {
    let store = open(path);
    clear(&store);
    Drive::open(&store, NOW).fill(&store);
}

/// Kills a holder after the commit `point`, exactly or at a random time later.
fn kill_holder(path: &Path, role: Role, point: u64, is_exact: bool) -> u64 {
    let mut holder = Process::start(path, role, Some(NOW));
    holder.run_to(point);
    match is_exact {
        true => holder.kill(),
        false => holder.run_and_kill(Duration::from_micros(fastrand::u64(..RACE))),
    }
}

fn is_half_done(places: &[Place]) -> bool {
    places.contains(&Place::Old) && places.contains(&Place::New)
}

fn round(path: &Path, on_takeover: OnTakeover, point: u64, is_exact: bool, counts: &mut Counts) {
    prepare(path);
    let acknowledged = kill_holder(path, Role::Holder, point, is_exact);
    counts.kills += 1;
    let text = format!("{on_takeover:?}, killed at {point}, acknowledged {acknowledged}");
    {
        let store = open(path);
        let drive = Drive::open(&store, NOW);
        let places = drive.places(&store.snapshot().unwrap()).expect(&text);
        counts.half_done += u32::from(is_half_done(&places));
    }
    if fastrand::bool() {
        let rescuer = Process::start(path, Role::Rescuer(on_takeover), Some(later(1)));
        rescuer.run_and_kill(Duration::from_micros(fastrand::u64(..RESCUE)));
        counts.kills += 1;
    }
    let store = open(path);
    let drive = Drive::open(&store, later(2));
    let unfinished = drive.locks.unfinished(&store.snapshot().unwrap()).unwrap();
    counts.rescuers += u32::from(unfinished.iter().any(|(_, work)| work.takeovers > 0));
    counts.recovered += recover(&store, &drive, on_takeover);
    let places = drive.places(&store.snapshot().unwrap()).expect(&text);
    let allowed = expected(on_takeover, acknowledged, is_exact);
    let is_allowed = allowed.iter().any(|place| places == [*place; FILES]);
    assert!(is_allowed, "{text}: {places:?}, not {allowed:?}");
    judge_locks(&store, &drive, &text);
}

fn recover(store: &Lmdb, drive: &Drive, on_takeover: OnTakeover) -> u64 {
    let locks = &drive.locks;
    let session = store.transact(|txn| locks.begin_session(txn, "last", &OPTIONS)).unwrap();
    let recovered = locks.recover(store, session, &drive.operations(on_takeover)).unwrap();
    // The lock is free, even if no work was recorded under it.
    let free = store.transact(|txn| locks.try_lock(txn, session, &both_directories())).unwrap();
    store.transact(|txn| locks.release(txn, free)).unwrap();
    store.transact(|txn| locks.end_session(txn, session)).unwrap();
    recovered
}

/// Nothing of the dead sessions remains.
fn judge_locks(store: &Lmdb, drive: &Drive, text: &str) {
    let locks = &drive.locks;
    locks.sweep(store).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(locks.check(&snapshot).unwrap().is_empty(), "{text}");
    assert!(locks.unfinished(&snapshot).unwrap().is_empty(), "{text}");
    assert!(locks.requests(&snapshot).unwrap().is_empty(), "{text}");
    assert!(locks.sessions(&snapshot).unwrap().is_empty(), "{text}");
}

fn campaign(on_takeover: OnTakeover) {
    let directory = tempfile::tempdir().unwrap();
    let mut counts = Counts::default();
    for point in 0..=COMMITS {
        for _ in 0..rounds_per_point() {
            round(directory.path(), on_takeover, point, true, &mut counts);
            round(directory.path(), on_takeover, point, false, &mut counts);
        }
    }
    println!("{on_takeover:?}, {} commit points: {counts:?}", COMMITS + 1);
    assert!(counts.half_done > 0 && counts.recovered > 0);
}

#[test]
fn renames_of_killed_processes_are_completed() {
    campaign(OnTakeover::RollForward);
}

#[test]
fn renames_of_killed_processes_are_undone() {
    campaign(OnTakeover::RollBack);
}

/// The negative control: without recorded work, the same recovery leaves a rename half done, and
/// the same check finds it.
#[test]
fn renames_without_recorded_work_stay_half_done() {
    let directory = tempfile::tempdir().unwrap();
    let mut half_done = 0;
    for point in 0..COMMITS - 1 {
        prepare(directory.path());
        kill_holder(directory.path(), Role::Unrecorded, point, true);
        let store = open(directory.path());
        let drive = Drive::open(&store, later(1));
        assert_eq!(recover(&store, &drive, OnTakeover::RollForward), 0);
        let places = drive.places(&store.snapshot().unwrap()).unwrap();
        half_done += u32::from(places != [Place::Old; FILES] && places != [Place::New; FILES]);
    }
    // After three of the four steps there are files at both places.
    assert_eq!(half_done, 3);
}
