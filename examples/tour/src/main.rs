//! The tour: the patterns of keyloom on real data, one step per pattern.
//!
//! ```text
//! cargo run --release -p keyloom-tour
//! cargo run --release -p keyloom-tour -- --help
//! cargo run --release -p keyloom-tour --no-default-features --features text
//! cargo run --release -p keyloom-tour --features postgres -- --store postgres://user@host/database
//! ```

mod aggregate;
mod bitmaps;
mod cities;
mod countries;
mod denormalize;
#[cfg(feature = "documents")]
mod documents;
mod entity;
mod feed;
#[cfg(feature = "graph")]
mod graph;
mod index;
mod index_table;
mod join;
#[cfg(feature = "locking")]
mod locking;
mod options;
mod property_index;
mod report;
mod schema_changes;
mod sequence;
mod spatial;
#[cfg(feature = "text")]
mod text;
#[cfg(feature = "text")]
mod text_groups;
mod trees;
mod versioned;

use std::error::Error;
use std::process::ExitCode;

use keyloom::{AnyStore, KeyRange, Metered, Opener, Reader, Store};
use keyloom_patterns::{Schema, Table};
use keyloom_redb::Redb;

use cities::Cities;
use countries::Country;
use options::Options;
use report::say;

/// The store of all steps; counts the reads and writes of each answer.
type TourStore = Metered<AnyStore>;

/// The backends of other crates, with their schemes. To run the tour on another backend, add it
/// here.
const BACKENDS: &[(&str, Opener)] = &[
    ("redb", Redb::open_address),
    #[cfg(feature = "postgres")]
    ("postgres", keyloom_postgres::Postgres::open_address),
    #[cfg(feature = "etcd")]
    ("etcd", keyloom_etcd::Etcd::open_address),
    #[cfg(feature = "foundationdb")]
    ("fdb", keyloom_foundationdb::FoundationDb::open_address),
];
type TourResult<T = ()> = Result<T, Box<dyn Error>>;

/// One pattern on real data.
trait Step {
    /// The name of the pattern, as in the catalogue.
    fn name(&self) -> &'static str;

    /// Stores the data of the step, if it is not stored yet.
    fn load(&self, store: &TourStore, options: &Options) -> TourResult;

    /// Runs the queries of the step.
    fn ask(&self, store: &TourStore) -> TourResult;
}

/// Data that several steps share.
struct Tour<'s> {
    schema: Schema<'s, TourStore>,
    cities: Cities,
    countries: Table<String, Country>,
}

/// Creates a step, and declares its derived data.
type NewStep = fn(&Tour<'_>) -> keyloom::Result<Box<dyn Step>>;

const STEPS: &[NewStep] = &[
    |tour| Ok(Box::new(index::CompositeKeyIndex::new(tour))),
    |_| Ok(Box::new(index_table::IndexTable)),
    |_| Ok(Box::new(schema_changes::SchemaChange)),
    |tour| Ok(Box::new(aggregate::Aggregation::new(tour)?)),
    |tour| Ok(Box::new(entity::Aggregated::new(tour))),
    |tour| Ok(Box::new(versioned::AtomicAggregates::new(tour))),
    |tour| Ok(Box::new(sequence::EnumerableKeys::new(tour))),
    |tour| Ok(Box::new(feed::Feeds::new(tour))),
    |tour| Ok(Box::new(spatial::DimensionalityReduction::new(tour)?)),
    |tour| Ok(Box::new(bitmaps::Inverted::new(tour)?)),
    #[cfg(feature = "text")]
    |tour| Ok(Box::new(text::FullText::new(tour)?)),
    #[cfg(feature = "text")]
    |tour| Ok(Box::new(text_groups::TextsOfGroups::new(tour)?)),
    #[cfg(feature = "documents")]
    |tour| Ok(Box::new(documents::Relations::new(tour)?)),
    |tour| Ok(Box::new(trees::Hierarchies::new(tour)?)),
    #[cfg(feature = "graph")]
    |tour| Ok(Box::new(graph::AdjacencyLists::new(tour)?)),
    |tour| Ok(Box::new(join::JoinsStep::new(tour))),
    |tour| Ok(Box::new(denormalize::Denormalization::new(tour)?)),
    #[cfg(feature = "locking")]
    |tour| Ok(Box::new(locking::LocksAndWork::new(tour)?)),
    |tour| Ok(Box::new(property_index::IndexWithoutTransactions::new(tour))),
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
    if options.is_list {
        names()?.iter().for_each(|name| say!("{name}"));
        return Ok(());
    }
    let store = AnyStore::open_with(&options.store, BACKENDS)?;
    say!("store      {store}{}", nature(&store));
    let store = Metered::new(store);
    let schema = Schema::open(&store, "tour")?;
    let cities = Cities::declare(&schema)?;
    let countries = schema.table("countries")?;
    let tour = Tour { schema, cities, countries };
    let chosen = options.step.as_deref().map(choose).transpose()?;
    for (number, new_step) in STEPS.iter().enumerate() {
        let step = new_step(&tour)?;
        say!("\n== {} ==", step.name());
        report::begin(step.name());
        step.load(&store, &options)?;
        if chosen.is_none_or(|chosen| chosen == number) {
            step.ask(&store)?;
        }
        if chosen == Some(number) {
            break;
        }
    }
    say!("");
    report::print_table();
    let keys = store.snapshot()?.count(KeyRange::all())?;
    say!("\n{keys} keys{}", place(store.inner())?);
    Ok(())
}

/// The names of the steps. The steps declare their data in a temporary store.
fn names() -> TourResult<Vec<&'static str>> {
    let store = Metered::new(AnyStore::open("memory:")?);
    let schema = Schema::open(&store, "tour")?;
    let (cities, countries) = (Cities::declare(&schema)?, schema.table("countries")?);
    let tour = Tour { schema, cities, countries };
    STEPS.iter().map(|new_step| Ok(new_step(&tour)?.name())).collect()
}

/// The number of the step with this name, or of the first step whose name contains this word.
fn choose(wanted: &str) -> TourResult<usize> {
    let names = names()?;
    let is_it = |name: &&str| *name == wanted;
    let has_it = |name: &&str| name.contains(wanted);
    let found = names.iter().position(is_it).or_else(|| names.iter().position(has_it));
    found.ok_or_else(|| {
        format!("there is no step {wanted:?}; the steps: {}", names.join("; ")).into()
    })
}

/// A remark on the store that helps to interpret its times.
fn nature(store: &AnyStore) -> &'static str {
    match store {
        AnyStore::Memory(_) => ", gone when the tour ends",
        AnyStore::Lmdb(_) => " (LMDB, every commit synced)",
        _ => "",
    }
}

/// The location of the keys.
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
