//! Negative controls: the campaign on a store whose isolation was taken away in part.
//!
//! They are part of the campaign, since a backend on which nothing was ever found may be one on
//! which nothing could be: on a slow store transactions may never meet.

use std::convert::Infallible;

use keyloom::Store;
use keyloom_mutant_stores::{Flaw, Weakened, Weakness};

use crate::{Name, Report, campaign};

/// What snapshots rule out, whatever is compared.
const OF_NO_SNAPSHOT: &[Name] = &[Name::G0, Name::G1a, Name::G1b, Name::G1c, Name::Internal];
const OF_LOST_UPDATES: &[Name] = &[Name::LostUpdate, Name::LostAppend, Name::IncompatibleOrder];

/// The mistakes that the conformance suite must find, as far as they are of isolation, and the name
/// under which they show.
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

/// So many campaigns are made of the transactions that a weakness is given to show.
const PARTS: usize = 8;

/// What a campaign must find, and what it must not.
pub type Expected = (&'static [Name], Vec<Name>);

/// Weakens a store and panics unless the campaign finds the anomaly that this weakness is known
/// for, and none that it rules out.
///
/// There are `transactions` in all, in several campaigns, and no more of these once it has shown.
pub fn is_caught<S: Store + Clone>(
    store: S,
    weakness: Weakness,
    transactions: usize,
    writers: usize,
) -> Report {
    // What must not show has all the time not to.
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

/// Runs up to `tries` campaigns, until one has found the expected anomalies. Each receives its
/// number. An anomaly needs two concurrent transactions, and on a busy machine there may be none in
/// a whole campaign. An anomaly that must not occur ends the loop at once. Returns the last report
/// and how it differs from the expected one.
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

/// What a weakness is known for, and what it rules out, of all that was found.
pub fn expected(weakness: Weakness, report: &Report) -> Expected {
    match weakness {
        Weakness::None => (&[], report.names().into_keys().collect()),
        Weakness::LostUpdates => (&[Name::LostUpdate, Name::LostAppend], OF_NO_SNAPSHOT.to_vec()),
        Weakness::WriteSkew => {
            (&[Name::G2Item], [OF_NO_SNAPSHOT, OF_LOST_UPDATES, &[Name::GSingle]].concat())
        }
        Weakness::Phantoms => (&[Name::G2], [OF_NO_SNAPSHOT, OF_LOST_UPDATES].concat()),
        // It is serializable.
        Weakness::StaleSnapshots => {
            let names = report.names().into_keys();
            (&[Name::GSingleRealTime], names.filter(|name| !name.is_of_real_time()).collect())
        }
    }
}
