//! Negative controls: the campaign on a store whose isolation was taken away in part.
//!
//! They are part of the campaign, since a backend on which nothing was ever found may be one on which
//! nothing could be: on a slow store transactions may never meet.

use keyloom::Store;
use keyloom_bent::{Flaw, Weakened, Weakness};

use crate::{Name, Report, campaign};

/// What snapshots rule out, whatever is compared.
const OF_NO_SNAPSHOT: &[Name] = &[Name::G0, Name::G1a, Name::G1b, Name::G1c, Name::Internal];
const OF_LOST_UPDATES: &[Name] = &[Name::LostUpdate, Name::LostAppend, Name::IncompatibleOrder];

/// The mistakes that the conformance suite must find, as far as they are of isolation, and the name under
/// which they show.
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

/// Weakens a store and panics unless the campaign finds the anomaly that this weakness is known
/// for, and none that it rules out.
///
/// An anomaly shows early or late: there are `transactions` in all, in several campaigns, and no more of these
/// once it has shown.
pub fn is_caught<S: Store + Clone>(
    store: S,
    weakness: Weakness,
    transactions: usize,
    writers: usize,
) -> Report {
    // What must not show has all the time not to.
    let parts = if weakness == Weakness::None { 1 } else { PARTS };
    let mut part = 1;
    loop {
        let weakened = Weakened::new(store.clone(), weakness);
        let report = campaign(&weakened, transactions.div_ceil(parts), writers);
        let (must, must_not) = expected(weakness, &report);
        let is_late = must.iter().any(|name| !report.has(*name));
        if part < parts && is_late && !must_not.iter().any(|name| report.has(*name)) {
            part += 1;
            continue;
        }
        shows(weakness, &report).unwrap_or_else(|why| panic!("{why}: {report}"));
        return report;
    }
}

/// Whether a campaign has found the anomaly that a weakness is known for, and none that it rules out.
///
/// # Errors
/// In what it differs.
pub fn shows(weakness: Weakness, report: &Report) -> Result<(), String> {
    let (must, must_not) = expected(weakness, report);
    match (must.iter().find(|name| !report.has(**name)), must_not.iter().find(|n| report.has(**n)))
    {
        (Some(name), _) => Err(format!("{weakness:?} allows {name}, which was not found")),
        (_, Some(name)) => Err(format!("{weakness:?} rules out {name}")),
        (None, None) => Ok(()),
    }
}

/// What a weakness is known for, and what it rules out, of all that was found.
fn expected(weakness: Weakness, report: &Report) -> (&'static [Name], Vec<Name>) {
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
