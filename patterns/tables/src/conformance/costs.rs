//! Laws that limit the costs of puts.

use keyloom::{Cost, Metered, Result, Store, Transaction};

use super::field::{Change, Field, RECORDS};
use super::{Fidelity, Outcome, Subject, ensure};

/// The cost of changes in one transaction.
fn cost<T: Subject, S: Store>(
    field: &Field<'_, T>,
    store: &Metered<S>,
    changes: &[Change],
) -> Result<Cost> {
    let (outcome, cost) = store.measure(|store| {
        let mut txn = store.begin()?;
        field.make(&mut txn, changes)?;
        txn.commit()
    });
    outcome.map(|()| cost)
}

pub(super) fn unchanged<T: Subject, S: Store + Clone>(subject: &T, store: &S, _: u64) -> Outcome {
    let store = &Metered::new(store.clone());
    let field = Field::filled(subject, store, RECORDS)?;
    let all: Vec<Change> = (0..RECORDS).map(|n| (n, Some(0))).collect();
    for changes in all.chunks(1).chain([&*all]) {
        let written = cost(&field, store, changes)?.keys_written;
        let records = changes.len();
        ensure!(written == records as u64, "{records} unchanged records: {written} keys written");
    }
    Ok(())
}

/// Compares the cost of a put in a table of 40 records with its cost in a table of 270 records:
/// gets, ranges, keys read, keys written and round trips.
pub(super) fn growth<T: Subject, S: Store + Clone>(subject: &T, store: &S, _: u64) -> Outcome {
    let store = &Metered::new(store.clone());
    let [few, many] = [40, 270].map(|records| {
        let mut most = [0; 5];
        let mut field = Field::filled(subject, store, records)?;
        for n in (0..records + 20).step_by(7) {
            let version = if T::FIDELITY == Fidelity::Growing { 0 } else { 1 + n % 9 };
            let change = [(n, Some(version))];
            let cost = cost(&field, store, &change)?;
            field.note(&change);
            let counts =
                [cost.gets, cost.ranges, cost.keys_read, cost.keys_written, cost.round_trips];
            for (most, count) in most.iter_mut().zip(counts) {
                *most = count.max(*most);
            }
        }
        Outcome::Ok(most)
    });
    let (few, many) = (few?, many?);
    let names = ["gets", "ranges", "keys read", "keys written", "round trips"];
    for ((name, few), many) in names.into_iter().zip(few).zip(many) {
        // Allow for a put that splits a node of 64 keys.
        ensure!(many <= 2 * few + 64, "{name} of a put: {few} among 40 records, {many} among 270");
    }
    Ok(())
}
