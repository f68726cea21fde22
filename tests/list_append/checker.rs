//! The checker: whether some serial order of the transactions explains their reads, and whether
//! this order can agree with the clock.
//!
//! The method is that of Elle (Kingsbury and Alvaro, 2020). An append-only list contains the order
//! of its writes. So each read of a list shows which writes the reader came after and before. A
//! cycle of these dependencies proves that there is no serial order. The reverse does not hold: a
//! history without a cycle may still have an anomaly that no read shows.

use crate::anomaly::{Anomaly, Name};
use crate::cycles::cycles;
use crate::digest::Digest;
use crate::graph::dependencies;
use crate::history::{Attempt, History, Outcome};
use crate::versions::Versions;

/// [`check`], or [`check_with_snapshots_in_commit_order`].
pub fn check_as(history: &History, snapshots_in_commit_order: bool) -> Vec<Anomaly> {
    if snapshots_in_commit_order {
        check_with_snapshots_in_commit_order(history)
    } else {
        check(history)
    }
}

/// [`check`] for a store whose snapshots only guarantee to show commits in commit order.
///
/// Transactions must be serializable among themselves. A concurrent snapshot must be a consistent
/// moment: all of a transaction or nothing, no uncommitted data, and no stale data. But this moment
/// need not be part of the serial order (a cycle with several anti-dependencies).
pub fn check_with_snapshots_in_commit_order(history: &History) -> Vec<Anomaly> {
    let transactions = history.attempts.iter().filter(|attempt| !attempt.by_snapshot);
    let of_transactions =
        History { attempts: transactions.cloned().collect(), end: history.end.clone() };
    let mut anomalies = check(&of_transactions);
    let order = [Name::G2Item, Name::G2, Name::G2ItemRealTime, Name::G2RealTime];
    anomalies.extend(check(history).into_iter().filter(|found| !order.contains(&found.name())));
    anomalies
}

/// Every anomaly of a history; those of single lists come first.
///
/// For each strongly connected component, a few cycles of each kind are reported, because the
/// number of cycles may be exponential.
pub fn check(history: &History) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    // An aborted transaction may have read anything, so its reads do not count.
    let mut forgotten = Vec::new();
    let digest = |(n, attempt): (usize, &Attempt)| {
        let aborted = attempt.outcome == Outcome::Aborted;
        Digest::new(n, attempt, if aborted { &mut forgotten } else { &mut anomalies })
    };
    let digests: Vec<_> = history.attempts.iter().enumerate().map(digest).collect();
    let versions = Versions::new(history, &digests, &mut anomalies);
    anomalies.extend(cycles(&dependencies(&history.attempts, &digests, &versions)));
    anomalies
}
