//! Negative controls: the campaign on a store whose isolation was taken away in part.
//!
//! They are part of the campaign, since a backend on which nothing was ever found may be one on which
//! nothing could be: on a slow store transactions may never meet.

use keyloom::Store;
use keyloom_bent::{Weakened, Weakness};

use super::{Name, Report, campaign};

/// What snapshots rule out, whatever is compared.
const OF_NO_SNAPSHOT: &[Name] = &[Name::G0, Name::G1a, Name::G1b, Name::G1c, Name::Internal];
const OF_LOST_UPDATES: &[Name] = &[Name::LostUpdate, Name::LostAppend, Name::IncompatibleOrder];

/// Weakens a store and panics unless the campaign finds the anomaly that this weakness is known
/// for, and none that it rules out.
pub fn is_caught<S: Store>(
    store: S,
    weakness: Weakness,
    transactions: usize,
    writers: usize,
) -> Report {
    let report = campaign(&Weakened::new(store, weakness), transactions, writers);
    let must_not = |names: &[Name]| {
        for name in names.iter().chain(OF_NO_SNAPSHOT) {
            assert!(!report.has(*name), "{weakness:?} rules out {name}: {report}");
        }
    };
    let must = |name| assert!(report.has(name), "{weakness:?} allows {name}: {report}");
    match weakness {
        Weakness::None => report.assert_clean(),
        Weakness::LostUpdates => {
            must(Name::LostUpdate);
            must(Name::LostAppend);
            must_not(&[]);
        }
        Weakness::WriteSkew => {
            must(Name::G2Item);
            must_not(&[OF_LOST_UPDATES, &[Name::GSingle]].concat());
        }
        Weakness::Phantoms => {
            must(Name::G2);
            must_not(OF_LOST_UPDATES);
        }
        Weakness::StaleSnapshots => {
            must(Name::GSingleRealTime);
            let other = report.names().into_keys().find(|name| !name.is_of_real_time());
            assert_eq!(other, None, "it is serializable: {report}");
        }
    }
    report
}
