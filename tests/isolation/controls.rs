//! The campaign can fail: a store whose isolation is weakened is caught, by the anomaly that this
//! weakness allows and not by one that it rules out.

use keyloom::{Fault, Faulty, Memory, Store};
use keyloom_bent::{Bent, Flaw, Weakened, Weakness};

use super::isolation::{Name, Report, campaign};

/// Fewer than where nothing is to be found: the first few show it.
const TRANSACTIONS: usize = 4_000;
const WRITERS: usize = 8;

fn optimistic() -> Memory {
    Memory::builder().optimistic(true).build()
}

fn weakened<S: Store>(store: S, weakness: Weakness) -> Report {
    campaign(&Weakened::new(store, weakness), TRANSACTIONS, WRITERS)
}

#[track_caller]
fn is_found_without(report: &Report, found: &[Name], impossible: &[Name]) {
    for name in found {
        assert!(report.has(*name), "{name} should be found: {report}");
    }
    for name in impossible {
        assert!(!report.has(*name), "{name} should not be possible: {report}");
    }
}

/// What snapshots rule out, whatever is compared.
const OF_NO_SNAPSHOT: &[Name] = &[Name::G0, Name::G1a, Name::G1b, Name::G1c, Name::Internal];

#[test]
fn the_wrapper_without_a_weakness_is_serializable() {
    weakened(optimistic(), Weakness::None).assert_clean();
    weakened(Memory::new(), Weakness::None).assert_clean();
}

#[test]
fn lost_updates_are_caught() {
    for store in [optimistic(), Memory::new()] {
        let report = weakened(store, Weakness::LostUpdates);
        is_found_without(&report, &[Name::LostUpdate, Name::LostAppend], OF_NO_SNAPSHOT);
    }
}

#[test]
fn write_skew_under_snapshot_isolation_is_caught() {
    for store in [optimistic(), Memory::new()] {
        let report = weakened(store, Weakness::WriteSkew);
        let ruled_out = [OF_NO_SNAPSHOT, &[Name::LostUpdate, Name::LostAppend, Name::GSingle]];
        is_found_without(&report, &[Name::G2Item], &ruled_out.concat());
    }
}

#[test]
fn phantoms_are_caught() {
    for store in [optimistic(), Memory::new()] {
        let report = weakened(store, Weakness::Phantoms);
        let ruled_out = [OF_NO_SNAPSHOT, &[Name::LostUpdate, Name::LostAppend]];
        is_found_without(&report, &[Name::G2], &ruled_out.concat());
    }
}
