//! Laws of queries with a limited number of reads.

use keyloom::{Budget, Budgeted, Store};

use super::field::Field;
use super::{Outcome, Subject, ensure};

/// The number of budgets that are tried for each history.
const TRIED: u64 = 12;

/// Runs queries with budgets from zero up to the number of reads that they need. The budgets differ
/// between histories.
pub(super) fn whole_or_refused<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    let field = Field::with_history(subject, store, seed)?;
    let snapshot = store.snapshot()?;
    let derived = field.derived.at(&snapshot)?;
    let answers = |reads: Option<u64>| {
        let budget = reads.map_or(Budget::new(), |most| Budget::new().reads(most));
        let reader = Budgeted::new(&snapshot, budget);
        (subject.answers(derived, &reader), reader.reads())
    };
    let (wanted, needed) = answers(None);
    let wanted = wanted?;
    let step = (needed / TRIED).max(1);
    for most in (seed % step..needed).step_by(step as usize) {
        match answers(Some(most)).0 {
            Err(error) if error.is_over_budget() => {}
            Err(error) => ensure!(false, "{most} of {needed} reads: another error: {error}"),
            Ok(answers) => ensure!(false, "{most} of {needed} reads: answers {answers:?}"),
        }
    }
    let all = answers(Some(needed)).0?;
    ensure!(all == wanted, "{needed} of {needed} reads: {all:?}, without a limit {wanted:?}");
    Ok(())
}
