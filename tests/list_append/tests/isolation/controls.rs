//! The campaign can fail: it catches a store with weakened isolation by an anomaly that the
//! weakness allows, and reports none that it rules out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use keyloom::{Fault, Faulty, Memory};
use keyloom_mutant_stores::{Flaw, MutantStore, Weakness};

use keyloom_list_append::{campaign, weakened};

/// Fewer transactions than for a sound store, because the first few show the anomaly.
const TRANSACTIONS: usize = 4_000;
const PARTS: usize = 8;
const WRITERS: usize = 8;

fn optimistic() -> Memory {
    Memory::builder().optimistic(true).build()
}

/// Tests the weakness on a store with concurrent transactions, and on a store with one writer at a
/// time.
fn is_caught(weakness: Weakness) {
    weakened::is_caught(optimistic(), weakness, TRANSACTIONS, WRITERS);
    weakened::is_caught(Memory::new(), weakness, TRANSACTIONS, WRITERS);
}

#[test]
fn the_wrapper_without_a_weakness_is_serializable() {
    is_caught(Weakness::None);
}

#[test]
fn lost_updates_are_caught() {
    is_caught(Weakness::LostUpdates);
}

#[test]
fn write_skew_under_snapshot_isolation_is_caught() {
    is_caught(Weakness::WriteSkew);
}

#[test]
fn phantoms_are_caught() {
    is_caught(Weakness::Phantoms);
}

#[test]
fn stale_snapshots_are_caught() {
    is_caught(Weakness::StaleSnapshots);
}

#[test]
fn broken_stores_are_caught() {
    for (flaw, name) in weakened::FLAWS {
        // Most flaws show within the first part.
        let mut parts =
            (0..PARTS).map(|_| campaign(&MutantStore::new(flaw), TRANSACTIONS / PARTS, WRITERS));
        assert!(parts.any(|report| report.has(name)), "{flaw:?} should show {name}");
    }
}

#[test]
fn the_bent_store_without_a_flaw_is_serializable() {
    campaign(&MutantStore::new(Flaw::None), TRANSACTIONS, WRITERS).assert_clean();
}

/// Random errors, conflicts and unknown outcomes, like those of a server that restarts.
#[test]
fn faults_are_no_anomalies() {
    let store = Faulty::new(optimistic());
    let done = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            let faults = [
                Fault::Error,
                Fault::Conflict,
                // These two are ordinary errors, except at a commit.
                Fault::UnknownButCommitted,
                Fault::UnknownAndLost,
                Fault::UnknownButCommitted,
                Fault::UnknownAndLost,
            ];
            while !done.load(Ordering::Relaxed) {
                // One fault per number of operations, not per second: refused writers pause, and
                // the remaining writers would get all the faults.
                if store.operations() > 40 {
                    store.fail_at(fastrand::u64(..40), faults[fastrand::usize(..faults.len())]);
                }
                thread::sleep(Duration::from_micros(500));
            }
            store.clear_fault();
        });
        // Also set if the campaign panics.
        let _ending = Ending(&done);
        campaign(&store, TRANSACTIONS, WRITERS)
    });
    report.assert_clean();
    assert!(report.unknown > 0, "{report}");
}

/// Sets a flag when it is dropped.
struct Ending<'d>(&'d AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
