//! Eight writers on the same keys, and a checker that looks for cycles.

use keyloom_mutant_stores::Weakness;

use keyloom_list_append::{Plan, campaign, campaign_of, transactions, weakened};
use keyloom_testing::servers::stores::postgres::open;

const WRITERS: usize = 8;

#[test]
fn postgres_is_serializable() {
    let Some(store) = open() else { return };
    // Snapshots are REPEATABLE READ: see the docs of the store.
    let plan = Plan { snapshots_in_commit_order: true, ..Plan::new(transactions(20_000), WRITERS) };
    let report = campaign_of(&*store, &plan);
    // A transaction that waits for a lock for a second may get through though it should not, which
    // is PostgreSQL's own (see forgotten_conflict.sh). A few of that kind are let pass, and were
    // printed.
    assert!(report.is_of_forgotten_conflicts(), "{report}");
}

/// A real isolation level that is too weak, on the real server: `REPEATABLE READ`, judged as if it
/// were serializable.
#[test]
fn repeatable_read_is_caught() {
    let Some(store) = open() else { return };
    let caught = |_| !campaign(&*store, 8_000, WRITERS).anomalies.is_empty();
    // Writers must meet in a rare way, some ten times in a run.
    assert!((0..5).any(caught), "read-only anomalies are not found");
}

#[test]
fn weakened_isolation_is_caught() {
    let Some(store) = open() else { return };
    for weakness in [Weakness::LostUpdates, Weakness::WriteSkew, Weakness::Phantoms] {
        weakened::is_caught(store.clone(), weakness, 4_000, WRITERS);
    }
}
