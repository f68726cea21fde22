//! Cities joined with their countries.

use std::collections::BTreeMap;

use keyloom::{Result, Store};
use keyloom_patterns::Table;
use keyloom_patterns::join::{BuildSide, Joins, KeySet, Lookup};

use crate::cities::City;
use crate::countries::{self, Country};
use crate::options::Options;
use crate::report::{ask, grouped, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "application-side joins",
    title: "Combine the records of two tables",
    chapter: "book/src/join.md",
    layout: "(cities, id) -> city with the code of its country; (countries, code)",
    data: &["countries"],
    shown: "(hash join)",
};

/// An upper bound of the number of countries.
const MOST_COUNTRIES: usize = 500;

pub struct JoinsStep {
    cities: Table<u32, City>,
    countries: Table<String, Country>,
}

impl JoinsStep {
    pub fn new(tour: &Tour<'_>) -> Self {
        Self { cities: tour.cities.table.clone(), countries: tour.countries.clone() }
    }
}

impl Step for JoinsStep {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        if self.countries.get(&store.snapshot()?, "FR")?.is_some() {
            say!("countries  in the store already");
            return Ok(());
        }
        countries::load(store, &self.countries, &options.data)
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(
            store,
            "In which countries are the cities of more than 13 million? (lookup join)",
            |snapshot| {
                let cities = self.cities.range(snapshot, ..)?;
                let large = cities
                    .filter(|row| row.as_ref().map_or(true, |(_, c)| c.population > 13_000_000));
                let lookup = Lookup::new(&self.countries).remember(MOST_COUNTRIES);
                let joined = large.lookup_join(snapshot, lookup, |(_, city)| city.country.clone());
                let line = |row: Result<((u32, City), _)>| -> Result<_> {
                    let ((_, city), country): (_, std::sync::Arc<Country>) = row?;
                    Ok(format!("{}, {}: {}", city.name, country.name, grouped(city.population)))
                };
                Ok((joined.map(line).collect::<Result<Vec<_>>>()?, ()))
            },
        )?;
        ask(store, "How many cities does each continent have? (hash join)", |snapshot| {
            let countries = self.countries.range(snapshot, ..)?;
            let countries = BuildSide::read(countries, MOST_COUNTRIES)?;
            let cities = self.cities.range(snapshot, ..)?;
            let codes = cities.map(|row| Ok(row?.1.country));
            let mut continents = BTreeMap::<String, u64>::new();
            for row in codes.hash_join(&countries, String::clone) {
                *continents.entry(row?.1.continent.clone()).or_default() += 1;
            }
            let line =
                |(continent, count): (&String, &u64)| format!("{continent}: {}", grouped(*count));
            Ok((continents.iter().map(line).collect(), ()))
        })?;
        ask(store, "Which countries have no city? (anti-join)", |snapshot| {
            let cities = self.cities.range(snapshot, ..)?;
            let codes = KeySet::read(cities.map(|row| Ok(row?.1.country)), MOST_COUNTRIES)?;
            let countries = self.countries.range(snapshot, ..)?;
            let without = countries.anti_join(&codes, |(code, _)| code.clone());
            let names = without.map(|row| Ok(row?.1.name)).collect::<Result<Vec<_>>>()?;
            Ok((vec![names.join("; ")], ()))
        })
    }
}
