//! An index that comes later: by name, built over the cities that are there, covering where they are.

use std::ops::ControlFlow;
use std::time::Instant;

use keyloom::{Desc, Order, Result, Store, Subspace};
use keyloom_patterns::{Attached, BatchSize, Index, Schema, Table, entry};

use crate::cities::City;
use crate::options::Options;
use crate::report::{ask, grouped, say, some_of};
use crate::{Step, TourResult, TourStore};

/// How many cities one transaction visits, where the store takes so many.
const BATCH: usize = 10_000;

pub struct IndexTable {
    /// The cities that the first step has loaded, outside of the schema.
    loaded: Table<u32, City>,
}

impl IndexTable {
    pub fn new() -> Self {
        Self { loaded: Table::new(&Subspace::new("tour").child("cities")) }
    }

    /// The cities of the schema, as a program has them before there is an index by name.
    fn copy(&self, store: &TourStore) -> Result<u64> {
        let cities = Schema::open(store, "tour")?.table::<u32, City>("cities")?;
        let (mut size, mut after, mut copied) = (BatchSize::new(BATCH), None, 0);
        loop {
            let snapshot = store.snapshot()?;
            let page = self.loaded.page(&snapshot, (), Order::Ascending, BATCH, after.as_ref())?;
            drop(snapshot);
            size.transact_all(store, &page.items, |txn, some| cities.put_many(txn, some))?;
            copied += page.items.len() as u64;
            after = page.next;
            if after.is_none() {
                return Ok(copied);
            }
        }
    }
}

type ByName = Index<u32, City, (String, Desc<u64>)>;

/// The index, as the next version of the program declares it.
fn by_name(schema: &Schema<'_, TourStore>) -> Result<Attached<ByName>> {
    let cities = schema.table::<u32, City>("cities")?;
    schema.index(&cities, "by_name", 1, |_id, city| {
        entry((&city.name, Desc(city.population))).covering((&city.country, &city.admin1))
    })
}

impl Step for IndexTable {
    fn name(&self) -> &'static str {
        "index table"
    }

    fn load(&self, store: &TourStore, _options: &Options) -> TourResult {
        let schema = Schema::open(store, "tour")?;
        let is_declared = !schema.tables()?.iter().all(|table| table.derived.is_empty());
        if is_declared && by_name(&schema)?.at(&store.snapshot()?).is_ok() {
            say!("by_name    in the store already");
            return Ok(());
        }
        if !is_declared {
            let copied = self.copy(store)?;
            say!("cities     {} in a table of a schema", grouped(copied));
        }
        let started = Instant::now();
        let mut batches = 0;
        let by_name = by_name(&Schema::open(store, "tour")?)?;
        let done = by_name.build_with(store, BATCH, |_| {
            batches += 1;
            ControlFlow::Continue(())
        })?;
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
                for found in by_name.at(snapshot)?.range(snapshot, "San José", Order::Ascending)? {
                    let found = found?;
                    let (_name, Desc(population)) = found.parts()?;
                    let (country, region) = found.covered::<(&str, &str)>()?;
                    places.push(format!("{country}, region {region}: {}", grouped(population)));
                }
                Ok((some_of(&places, 3, "places"), ()))
            },
        )?;
        ask(store, "Which indexes does the schema have?", |_| {
            let derived = schema.tables()?.into_iter().flat_map(|table| table.derived);
            let indexes =
                derived.map(|one| format!("{} is {}: {}", one.name, one.state, one.definition));
            Ok((indexes.collect(), ()))
        })
    }
}
