//! The cities of Andorra by size, in a store that commits one key at a time.

use keyloom::{Result, Store, Subspace};
use keyloom_patterns::Table;
use keyloom_patterns::property_index::{PropertyIndex, Stamps};

use crate::cities::City;
use crate::options::Options;
use crate::report::{ask, grouped};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "index without transactions",
    title: "Index data in a store without transactions",
    chapter: "book/src/property_index.md",
    layout: r#"("tour", "sizes", 1, country, ..., population, id, time, writer)"#,
    data: &["sizes"],
    shown: "cities of Andorra",
};

const COUNTRY: &str = "AD";

pub struct IndexWithoutTransactions {
    cities: Table<u32, City>,
    sizes: PropertyIndex<String, u32, u64>,
}

impl IndexWithoutTransactions {
    pub fn new(tour: &Tour<'_>) -> Self {
        let sizes = PropertyIndex::new(&Subspace::new("tour").child("sizes"));
        Self { cities: tour.cities.table.clone(), sizes }
    }
}

impl Step for IndexWithoutTransactions {
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        let snapshot = store.snapshot()?;
        let cities = self.cities.range(&snapshot, ..)?;
        let cities = cities.filter(|row| row.as_ref().map_or(true, |(_, c)| c.country == COUNTRY));
        let cities = cities.collect::<Result<Vec<_>>>()?;
        drop(snapshot);
        let mut stamps = Stamps::new(1);
        for (id, city) in cities {
            self.sizes.set(store, &mut stamps, &COUNTRY.to_owned(), &id, &city.population)?;
        }
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(store, "Which cities of Andorra have 10,000 inhabitants and more?", |snapshot| {
            let mut lines = Vec::new();
            for found in self.sizes.items_within(snapshot, &COUNTRY.to_owned(), 10_000..)? {
                let (population, id) = found?;
                let name = self.cities.get(snapshot, &id)?.map_or(String::new(), |city| city.name);
                lines.push(format!("{name}: {}", grouped(population)));
            }
            Ok((lines, ()))
        })
    }
}
