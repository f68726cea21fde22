//! The tour: the patterns of keyloom on real data, one step per pattern.
//!
//! ```text
//! cargo run --release --example tour
//! cargo run --release --example tour -- --help
//! cargo run --release --example tour --features postgres -- --store postgres://user@host/database
//! ```

mod aggregates;
mod aggregation;
mod atomic_aggregates;
mod cities;
mod composite_key_index;
mod countries;
mod denormalization;
mod dimensionality_reduction;
mod enumerable_keys;
mod hierarchies;
mod index_table;
mod index_without_transactions;
mod inverted_index;
mod joins;
mod options;
mod report;

use std::error::Error;
use std::process::ExitCode;

use keyloom::{AnyStore, KeyRange, Metered, Reader, Store};
use keyloom_patterns::{Schema, Table};

use cities::Cities;
use countries::Country;
use options::Options;
use report::say;

/// Every step works on this store, so that each answer comes with what it touched.
type TourStore = Metered<AnyStore>;
type TourResult<T = ()> = Result<T, Box<dyn Error>>;

/// One pattern on real data.
trait Step {
    /// The name of the pattern, as in the catalogue.
    fn name(&self) -> &'static str;

    /// Puts the data of the step into the store, unless it is there already.
    fn load(&self, store: &TourStore, options: &Options) -> TourResult;

    /// Asks the questions that the pattern answers.
    fn ask(&self, store: &TourStore) -> TourResult;
}

/// What several steps work on.
struct Tour<'s> {
    schema: Schema<'s, TourStore>,
    cities: Cities,
    countries: Table<String, Country>,
}

/// A step, whose derived data are declared when the tour comes to it.
type NewStep = fn(&Tour<'_>) -> keyloom::Result<Box<dyn Step>>;

const STEPS: [NewStep; 12] = [
    |tour| Ok(Box::new(composite_key_index::CompositeKeyIndex::new(tour))),
    |_| Ok(Box::new(index_table::IndexTable)),
    |tour| Ok(Box::new(aggregation::Aggregation::new(tour)?)),
    |tour| Ok(Box::new(aggregates::Aggregated::new(tour))),
    |tour| Ok(Box::new(atomic_aggregates::AtomicAggregates::new(tour))),
    |tour| Ok(Box::new(enumerable_keys::EnumerableKeys::new(tour))),
    |tour| Ok(Box::new(dimensionality_reduction::DimensionalityReduction::new(tour)?)),
    |tour| Ok(Box::new(inverted_index::Inverted::new(tour)?)),
    |tour| Ok(Box::new(hierarchies::Hierarchies::new(tour)?)),
    |tour| Ok(Box::new(joins::JoinsStep::new(tour))),
    |tour| Ok(Box::new(denormalization::Denormalization::new(tour)?)),
    |tour| Ok(Box::new(index_without_transactions::IndexWithoutTransactions::new(tour))),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tour: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> TourResult {
    let Some(options) = Options::from_arguments()? else { return Ok(()) };
    let store = AnyStore::open(&options.store)?;
    say!("store      {store}{}", nature(&store));
    let store = Metered::new(store);
    let schema = Schema::open(&store, "tour")?;
    let cities = Cities::declare(&schema)?;
    let countries = schema.table("countries")?;
    let tour = Tour { schema, cities, countries };
    for new_step in STEPS {
        let step = new_step(&tour)?;
        say!("\n== {} ==", step.name());
        step.load(&store, &options)?;
        step.ask(&store)?;
    }
    let keys = store.snapshot()?.count(KeyRange::all())?;
    say!("\n{keys} keys{}", place(store.inner())?);
    Ok(())
}

/// What to know of a store to read its times.
fn nature(store: &AnyStore) -> &'static str {
    match store {
        AnyStore::Memory(_) => ", gone when the tour ends",
        AnyStore::Lmdb(_) => " (LMDB, every commit synced)",
        _ => "",
    }
}

/// Where the keys are now.
fn place(store: &AnyStore) -> TourResult<String> {
    Ok(match store {
        AnyStore::Memory(_) => " in memory".into(),
        AnyStore::Lmdb(lmdb) => {
            let megabytes = lmdb.statistics()?.file_bytes as f64 / 1e6;
            format!(" in a file of {megabytes:.1} MB; run it again to use them as they are")
        }
        _ => "; run it again to use them as they are".into(),
    })
}
