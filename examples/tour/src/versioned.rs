//! The population of Paris, which two clerks correct concurrently.

use keyloom::{Store, Subspace, Writer};
use keyloom_patterns::{RecordConflict, Table, VersionedTable};

use crate::cities::City;
use crate::options::Options;
use crate::report::{act, grouped, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "atomic aggregates",
    title: "Change a record only if it is unchanged since it was read",
    chapter: "book/src/versioned.md",
    layout: r#"("tour", "atomic_aggregates", "record", id) -> version, population"#,
    data: &["atomic_aggregates"],
    shown: "The other clerk",
};

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
        act(store, "The other clerk has seen version 1 too, and corrects it:", |_| {
            let Err(error) = correct(1, 2_113_705) else { return Ok(vec!["lost".into()]) };
            let conflict = error.downcast_ref::<RecordConflict<u64>>();
            let current = conflict.and_then(|conflict| conflict.current.as_ref());
            let current = current.ok_or("refused for another reason")?;
            let (version, value) = (current.version, grouped(current.value));
            Ok(vec![format!("refused: version {version} is {value}"), error.to_string()])
        })
    }
}
