//! Negative controls: the campaign on a store whose isolation is weakened.
//!
//! The controls are part of each campaign. If the campaign finds nothing on a backend, it may be
//! unable to find anything there: on a slow store, transactions may never be concurrent.

use std::convert::Infallible;

use keyloom::Store;
use keyloom_mutant_stores::{Flaw, Weakened, Weakness};

use crate::{Name, Report, campaign};

/// Anomalies that snapshots rule out, with any validation.
const OF_NO_SNAPSHOT: &[Name] = &[Name::G0, Name::G1a, Name::G1b, Name::G1c, Name::Internal];
const OF_LOST_UPDATES: &[Name] = &[Name::LostUpdate, Name::LostAppend, Name::IncompatibleOrder];

/// Flaws of isolation that the conformance suite must find, and the anomalies under which they
/// appear.
pub const FLAWS: [(Flaw, Name); 11] = [
    (Flaw::DirtyRead, Name::G1a),
    (Flaw::MovingSnapshot, Name::Internal),
    (Flaw::CommitHalfDone, Name::LostAppend),
    (Flaw::CommitInTwoSteps, Name::G1b),
    (Flaw::LostWrite, Name::LostAppend),
    (Flaw::ForgottenDelete, Name::GSingle),
    (Flaw::RollbackKeeps, Name::G1a),
    (Flaw::ConflictKeeps, Name::G1a),
    (Flaw::BlindRanges, Name::Internal),
    (Flaw::DeleteRangeKeepsFirst, Name::GSingle),
    (Flaw::SortedBatch, Name::Unwritten),
];

/// The number of campaigns among which the transactions for one weakness are divided.
const PARTS: usize = 8;

/// The anomalies that a campaign must find, and those that it must not find.
pub type Expected = (&'static [Name], Vec<Name>);

/// Weakens a store. Panics unless the campaign finds the characteristic anomaly of this weakness,
/// and none that the weakness rules out.
///
/// The total is `transactions`, divided among several campaigns, which stop as soon as the anomaly
/// was found.
pub fn is_caught<S: Store + Clone>(
    store: S,
    weakness: Weakness,
    transactions: usize,
    writers: usize,
) -> Report {
    // Anomalies that must not occur are searched for in one full-length campaign.
    let parts = if weakness == Weakness::None { 1 } else { PARTS };
    let done: Result<_, Infallible> = until_shown(
        parts,
        |report| expected(weakness, report),
        |_| {
            let weakened = Weakened::new(store.clone(), weakness);
            Ok(campaign(&weakened, transactions.div_ceil(parts), writers))
        },
    );
    let Ok((report, shown)) = done;
    shown.unwrap_or_else(|why| panic!("{weakness:?}: {why}: {report}"));
    report
}

/// Runs up to `tries` campaigns, until one has found the expected anomalies. Each gets its number.
/// An anomaly needs two concurrent transactions, and on a busy machine a whole campaign may have
/// none. An anomaly that must not occur ends the loop at once. Returns the last report and its
/// difference from the expectation.
///
/// # Errors
/// The first error of a campaign.
pub fn until_shown<E>(
    tries: usize,
    expected: impl Fn(&Report) -> Expected,
    mut campaign: impl FnMut(usize) -> Result<Report, E>,
) -> Result<(Report, Result<(), String>), E> {
    let mut number = 0;
    loop {
        let report = campaign(number)?;
        number += 1;
        let (must, must_not) = expected(&report);
        let missing = must.iter().find(|name| !report.has(**name));
        let shown = match (must_not.iter().find(|name| report.has(**name)), missing) {
            (Some(name), _) => Err(format!("{name} was found, which is ruled out")),
            (None, Some(_)) if number < tries => continue,
            (None, Some(name)) => Err(format!("{name} was not found in {tries} campaigns")),
            (None, None) => Ok(()),
        };
        return Ok((report, shown));
    }
}

/// The characteristic anomalies of a weakness among all that were found, and those that it rules
/// out.
pub fn expected(weakness: Weakness, report: &Report) -> Expected {
    match weakness {
        Weakness::None => (&[], report.names().into_keys().collect()),
        Weakness::LostUpdates => (&[Name::LostUpdate, Name::LostAppend], OF_NO_SNAPSHOT.to_vec()),
        Weakness::WriteSkew => {
            (&[Name::G2Item], [OF_NO_SNAPSHOT, OF_LOST_UPDATES, &[Name::GSingle]].concat())
        }
        Weakness::Phantoms => (&[Name::G2], [OF_NO_SNAPSHOT, OF_LOST_UPDATES].concat()),
        // This weakness is serializable.
        Weakness::StaleSnapshots => {
            let names = report.names().into_keys();
            (&[Name::GSingleRealTime], names.filter(|name| !name.is_of_real_time()).collect())
        }
    }
}
