//! The population of Paris, which two clerks correct concurrently.

use keyloom::{Store, Subspace, Writer};
use keyloom_patterns::{RecordConflict, Table, VersionedTable};

use crate::cities::City;
use crate::options::Options;
use crate::report::{act, grouped, say};
use crate::{Step, Tour, TourResult, TourStore};

const PARIS: u32 = 2_988_507;

pub struct AtomicAggregates {
    cities: Table<u32, City>,
    populations: VersionedTable<u32, u64>,
    space: Subspace,
}

impl AtomicAggregates {
    pub fn new(tour: &Tour<'_>) -> Self {
        let space = Subspace::new("tour").child("atomic_aggregates");
        Self { cities: tour.cities.table.clone(), populations: VersionedTable::new(&space), space }
    }
}

impl Step for AtomicAggregates {
    fn name(&self) -> &'static str {
        "atomic aggregates"
    }

    /// Replaces the data in each run, so that every run has the same versions.
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        let paris = self.cities.get(&store.snapshot()?, &PARIS)?.ok_or("there is no Paris")?;
        store.transact(|txn| {
            txn.delete_range(self.space.self_and_children())?;
            self.populations.create(txn, &PARIS, paris.population)
        })?;
        let people = grouped(paris.population);
        say!("population of Paris, from the table of cities: {people}, version 1");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let correct = |version, population| {
            store.transact(|txn| self.populations.update(txn, &PARIS, version, population))
        };
        let what = "Two clerks have seen version 1. One corrects the population of Paris:";
        act(store, what, |_| {
            let version = correct(1, 2_145_906)?;
            Ok(vec![format!("done, it has version {version} now")])
        })?;
        act(store, "And so does the other one:", |_| {
            let Err(error) = correct(1, 2_113_705) else { return Ok(vec!["lost".into()]) };
            let conflict = error.downcast_ref::<RecordConflict<u64>>();
            let current = conflict.and_then(|conflict| conflict.current.as_ref());
            let current = current.ok_or("refused for another reason")?;
            let (version, value) = (current.version, grouped(current.value));
            Ok(vec![error.to_string(), format!("with it comes version {version}: {value}")])
        })
    }
}
