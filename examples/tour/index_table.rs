//! An index that comes later: by name, built over the cities that are there, covering where they are.

use std::ops::ControlFlow;
use std::time::Instant;

use keyloom::{Desc, Order, Store, Subspace};
use keyloom_patterns::general::index_table::BuildOptions;
use keyloom_patterns::{Index, IndexCatalog, Table, entry};

use crate::cities::City;
use crate::options::Options;
use crate::report::{ask, grouped, say, some_of};
use crate::{Step, TourResult, TourStore};

pub struct IndexTable {
    cities: Table<u32, City>,
    catalog: IndexCatalog<u32, City>,
}

impl IndexTable {
    pub fn new() -> Self {
        let space = Subspace::new("tour");
        let by_name = Index::new(&space.child("by_name"), |_id, city: &City| {
            entry((&city.name, Desc(city.population))).covering((&city.country, &city.admin1))
        });
        let catalog = IndexCatalog::new(&space.child("indexes")).with("by_name", 1, &by_name);
        let cities = Table::new(&space.child("cities")).with(&catalog);
        Self { cities, catalog }
    }
}

impl Step for IndexTable {
    fn name(&self) -> &'static str {
        "index table"
    }

    fn load(&self, store: &TourStore, _options: &Options) -> TourResult {
        if self.catalog.readable(&store.snapshot()?, "by_name").is_ok() {
            say!("by_name    in the store already");
            return Ok(());
        }
        let started = Instant::now();
        let options = BuildOptions { batch: 10_000, ..BuildOptions::default() };
        let mut batches = 0;
        let done = self.catalog.build(store, &self.cities, "by_name", &options, |_| {
            batches += 1;
            ControlFlow::Continue(())
        })?;
        let (records, seconds) = (grouped(done.records), started.elapsed().as_secs_f64());
        say!("by_name    built over {records} cities in {batches} transactions, {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(
            store,
            "Which places are called San José, the largest first? (covered: no record is read)",
            |snapshot| {
                let by_name = self.catalog.readable(snapshot, "by_name")?;
                let mut places = Vec::new();
                for found in by_name.range(snapshot, "San José", Order::Ascending)? {
                    let found = found?;
                    let (_name, Desc(population)) = found.parts::<(&str, Desc<u64>)>()?;
                    let (country, region) = found.covered::<(&str, &str)>()?;
                    places.push(format!("{country}, region {region}: {}", grouped(population)));
                }
                Ok((some_of(&places, 3, "places"), ()))
            },
        )?;
        ask(store, "Which indexes does the catalog have?", |snapshot| {
            let states = self.catalog.states(snapshot)?;
            let told =
                states.iter().map(|i| format!("{} is {}, {}", i.name, i.state, i.definition));
            Ok((told.collect(), ()))
        })
    }
}
