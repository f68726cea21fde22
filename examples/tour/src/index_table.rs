//! An index that is added later: by name, built over existing cities. It covers country and region.

use std::ops::ControlFlow;
use std::time::Instant;

use keyloom::{Desc, Result};
use keyloom_patterns::{Schema, entry};

use crate::cities::{City, CityIndex};
use crate::options::Options;
use crate::report::{ask, grouped, say, some_of};
use crate::{About, Step, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "index table",
    title: "Add an index to a table that is in use",
    chapter: "book/src/index_table.md",
    layout: "(cities.by_name, name, population descending, id) -> country, region",
    data: &["cities.by_name"],
    shown: "called San José",
};

/// The number of cities per transaction of the build, if the store allows so many.
const BATCH: usize = 10_000;

/// The indexes of this step; other steps declare other derived data of the table.
const INDEXES: [&str; 3] = ["by_name", "by_place", "by_size"];

pub struct IndexTable;

/// The index, as the next version of the program declares it.
fn by_name(schema: &Schema<'_, TourStore>) -> Result<CityIndex<(String, Desc<u64>)>> {
    let cities = schema.table::<u32, City>("cities")?;
    schema.index(&cities, "by_name", 1, |_id, city| {
        entry((&city.name, Desc(city.population))).covering((&city.country, &city.admin1))
    })
}

impl Step for IndexTable {
    fn load(&self, store: &TourStore, _options: &Options) -> TourResult {
        let started = Instant::now();
        let mut batches = 0;
        let by_name = by_name(&Schema::open(store, "tour")?)?;
        let done = by_name.build_with(store, BATCH, |_| {
            batches += 1;
            ControlFlow::Continue(())
        })?;
        if batches == 0 {
            say!("by_name    in the store already");
            return Ok(());
        }
        let (records, seconds) = (grouped(done.records), started.elapsed().as_secs_f64());
        say!("by_name    built over {records} cities in {batches} transactions, {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let schema = Schema::open(store, "tour")?;
        let by_name = by_name(&schema)?;
        ask(
            store,
            "Which places are called San José, the largest first? (covered: no record is read)",
            |snapshot| {
                let mut places = Vec::new();
                for found in by_name.at(snapshot)?.range(snapshot, "San José")? {
                    let found = found?;
                    let (_name, Desc(population)) = found.parts()?;
                    let (country, region) = found.covered::<(&str, &str)>()?;
                    places.push(format!("{country}, region {region}: {}", grouped(population)));
                }
                Ok((some_of(&places, 3, "places"), ()))
            },
        )?;
        ask(store, "Which indexes of cities does the store have?", |_| {
            let cities = schema.tables()?.into_iter().filter(|table| table.name == "cities");
            let indexes = cities
                .flat_map(|table| table.derived)
                .filter(|derived| INDEXES.contains(&&*derived.name))
                .map(|one| format!("{} is {}: {}", one.name, one.state, one.definition));
            Ok((indexes.collect(), ()))
        })
    }
}
