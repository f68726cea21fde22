//! Eight writers on the same keys, and a checker that searches for cycles.

use keyloom_mutant_stores::Weakness;

use keyloom_list_append::{Plan, campaign, campaign_of, transactions, weakened};
use keyloom_testing::servers::stores::postgres::open;

const WRITERS: usize = 8;

#[test]
fn postgres_is_serializable() {
    let Some(store) = open() else { return };
    // Snapshots are REPEATABLE READ: see the documentation of the store.
    let plan = Plan { snapshots_in_commit_order: true, ..Plan::new(transactions(20_000), WRITERS) };
    let report = campaign_of(&*store, &plan);
    // PostgreSQL itself may fail to detect a conflict of a transaction that waits for a lock for a
    // second (see forgotten_conflict.sh). A few anomalies of this kind are tolerated, and were
    // printed.
    assert!(report.is_of_forgotten_conflicts(), "{report}");
}

/// A real isolation level that is too weak, on the real server: `REPEATABLE READ`, checked as if it
/// were serializable.
#[test]
fn repeatable_read_is_caught() {
    let Some(store) = open() else { return };
    let caught = |_| !campaign(&*store, 8_000, WRITERS).anomalies.is_empty();
    // The anomaly needs a rare interleaving, which occurs about ten times in a run.
    assert!((0..5).any(caught), "read-only anomalies are not found");
}

#[test]
fn weakened_isolation_is_caught() {
    let Some(store) = open() else { return };
    for weakness in [Weakness::LostUpdates, Weakness::WriteSkew, Weakness::Phantoms] {
        weakened::is_caught(store.clone(), weakness, 4_000, WRITERS);
    }
}
