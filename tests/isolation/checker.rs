//! The checker: whether some serial order of the transactions explains what they saw, and whether
//! that order can agree with the clock.
//!
//! The way of Elle (Kingsbury and Alvaro, 2020). A list that only grows tells in which order it was
//! written, and what is read of it tells which writes a transaction came after and before. A cycle
//! of that is a proof that there is no such order. It is not the reverse: a history without an
//! anomaly is one that shows none.

use super::anomaly::Anomaly;
use super::cycles::cycles;
use super::digest::Digest;
use super::graph::dependencies;
use super::history::{Attempt, History, Outcome};
use super::versions::Versions;

/// Every anomaly of a history, those of single lists first.
///
/// Of cycles in one tangle a few of each kind are reported: there can be as many as there are
/// subsets of the transactions.
pub fn check(history: &History) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    // An aborted transaction may have read anything: it was told to forget it.
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
