//! Holders that are not killed but resume too late, and a session that waits for a killed holder.

use std::time::{Duration, Instant};

use keyloom::Store;
use keyloom_locking::work::OnTakeover;
use keyloom_locking::{LeaseOptions, Session};
use keyloom_testing::laws::{clear, dump_all};

use crate::child::{BEGUN, DONE, Process, Role, SHORT};
use crate::rename::{Drive, FILES, OPTIONS, Place, both_directories, open};

const NOW: u64 = 1_000_000;

/// A process pauses at each point of its work, another process takes over, and the first one
/// resumes.
#[test]
fn a_process_that_wakes_late_commits_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for on_takeover in [OnTakeover::RollForward, OnTakeover::RollBack] {
        for point in BEGUN..DONE {
            let store = open(directory.path());
            clear(&store);
            Drive::open(&store, NOW).fill(&store);
            let mut holder = Process::start(directory.path(), Role::Holder, Some(NOW));
            holder.run_to(point);
            let drive = Drive::open(&store, NOW + 60_000);
            let locks = &drive.locks;
            let session = store.transact(|txn| locks.begin_session(txn, "next", &OPTIONS)).unwrap();
            let operations = drive.operations(on_takeover);
            assert_eq!(locks.recover(&store, session, &operations).unwrap(), 1);
            let before = dump_all(&store);
            let refused = holder.step().unwrap_err();
            assert!(refused.contains("is lost"), "{refused}");
            assert_eq!(dump_all(&store), before);
            let place = match on_takeover {
                OnTakeover::RollForward => Place::New,
                OnTakeover::RollBack => Place::Old,
            };
            assert_eq!(drive.places(&store.snapshot().unwrap()).unwrap(), [place; FILES]);
            holder.kill();
        }
    }
}

/// With the system clock, the waiting session finishes the work after the lease has ended, and not
/// while the heartbeat renews it.
#[test]
fn a_waiting_session_takes_over_from_a_killed_process() {
    let directory = tempfile::tempdir().unwrap();
    for point in [2, BEGUN, BEGUN + 2, DONE - 1] {
        let store = open(directory.path());
        clear(&store);
        let drive = Drive::with_system_clock(&store);
        drive.fill(&store);
        let mut holder = Process::start(directory.path(), Role::Beating, None);
        holder.run_to(point);
        // The wait is longer than the lease and the grace period: the heartbeat keeps the lock.
        std::thread::sleep((SHORT.lease + SHORT.grace) * 2);
        let session = Session::begin_with(&store, &drive.locks, "next", LeaseOptions::default());
        let session = session.unwrap().with_operations(drive.operations(OnTakeover::RollForward));
        assert!(session.try_lock(&both_directories()).is_err());
        holder.kill();
        let killed = Instant::now();
        let guard = session.lock_within(&both_directories(), Duration::from_secs(20)).unwrap();
        println!("killed at {point}: taken over after {:?}", killed.elapsed());
        let place = if point >= BEGUN { Place::New } else { Place::Old };
        assert_eq!(drive.places(&store.snapshot().unwrap()).unwrap(), [place; FILES]);
        guard.release().unwrap();
        session.end().unwrap();
    }
}
