//! The tour: the patterns of keyloom on real data, one step per pattern.
//!
//! ```text
//! cargo run --release -p keyloom-tour
//! cargo run --release -p keyloom-tour -- --list
//! cargo run --release -p keyloom-tour -- --verbose --step spatial ./data
//! cargo run --release -p keyloom-tour --no-default-features --features text
//! cargo run --release -p keyloom-tour --features postgres -- --store postgres://user@host/database
//! ```

mod address;
mod aggregate;
mod bitmaps;
mod cities;
mod countries;
mod denormalize;
#[cfg(feature = "documents")]
mod documents;
mod entity;
mod extents;
mod feed;
#[cfg(feature = "graph")]
mod graph;
mod index;
mod index_table;
mod join;
#[cfg(feature = "locking")]
mod locking;
mod options;
mod output;
mod property_index;
#[cfg(feature = "locking")]
mod queue;
mod report;
mod schema_changes;
mod sequence;
mod spatial;
mod steps;
mod summary;
#[cfg(feature = "text")]
mod text;
#[cfg(feature = "text")]
mod text_groups;
mod trees;
mod versioned;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use keyloom::{AnyStore, KeyRange, Metered, Reader, Store};
use keyloom_patterns::{Schema, Table};

use cities::Cities;
use countries::Country;
use options::{Format, Options};
use output::out;
use report::{grouped, say};
use steps::{About, STEPS, Step};
use summary::Done;

/// The store of all steps; counts the reads and writes of each answer.
type TourStore = Metered<AnyStore>;

type TourResult<T = ()> = Result<T, Box<dyn Error>>;

/// Data that several steps share.
struct Tour<'s> {
    schema: Schema<'s, TourStore>,
    cities: Cities,
    countries: Table<String, Country>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::end_progress();
            // Standard error may be closed.
            let _ = writeln!(std::io::stderr(), "tour: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> TourResult {
    let Some(options) = Options::from_arguments()? else { return Ok(()) };
    if options.is_list {
        return list(options.format);
    }
    let chosen = options.step.as_deref().map(steps::choose).transpose()?;
    let address = address::full(&options.store)?;
    let store = Metered::new(address::open(&address)?);
    if options.format != Format::Json {
        out!("store      {}{}", store.inner(), address::nature(store.inner()));
    }
    let done = run_steps(&store, &options, chosen)?;
    if options.format != Format::Json {
        print_end(&store, &address, &done)?;
    }
    Ok(())
}

/// Runs all steps, or the chosen step after the loads of the steps before it.
fn run_steps(store: &TourStore, options: &Options, chosen: Option<usize>) -> TourResult<Vec<Done>> {
    let schema = Schema::open(store, "tour")?;
    let cities = Cities::declare(&schema)?;
    let countries = schema.table("countries")?;
    let tour = Tour { schema, cities, countries };
    let mut all = Vec::new();
    for number in 0..=chosen.unwrap_or(STEPS.len() - 1) {
        let is_asked = chosen.is_none_or(|chosen| chosen == number);
        all.extend(run_step(&tour, store, options, number, is_asked)?);
    }
    Ok(all)
}

/// Loads the data of a step, and runs and prints the step if `is_asked`.
fn run_step(
    tour: &Tour<'_>,
    store: &TourStore,
    options: &Options,
    number: usize,
    is_asked: bool,
) -> TourResult<Option<Done>> {
    let Some((about, new_step)) = STEPS.get(number) else { return Ok(None) };
    say!("\n== {} ==", about.name);
    output::progress(format!("{}: {}", number + 1, about.title));
    let started = Instant::now();
    let step = new_step(tour)?;
    step.load(store, options)?;
    if !is_asked {
        return Ok(None);
    }
    step.ask(store)?;
    let elapsed = started.elapsed().as_secs_f64();
    let (keys, bytes) = about.size(tour, store)?;
    output::end_progress();
    let done = Done { about, figures: report::take_figures(), keys, bytes, elapsed };
    match options.format {
        Format::Summary => done.print(number + 1),
        Format::Json => out!("{}", serde_json::to_string(&done)?),
        Format::Verbose => {}
    }
    Ok(Some(done))
}

/// Prints the table of the steps, and what the tour has left.
fn print_end(store: &TourStore, address: &str, done: &[Done]) -> TourResult {
    out!("");
    summary::print_all(done);
    let keys = grouped(store.snapshot()?.count(KeyRange::all())?);
    out!("\n{keys} keys{}", address::place(store.inner())?);
    if ["lmdb:", "redb:"].iter().any(|scheme| address.starts_with(scheme)) {
        out!("to list them: keyloom ls {address} (installed by: cargo install --path cli)");
    }
    Ok(())
}

/// Prints the steps.
fn list(format: Format) -> TourResult {
    let all = STEPS.iter().map(|(about, _)| about);
    if format == Format::Json {
        for about in all {
            out!("{}", serde_json::to_string(about)?);
        }
        return Ok(());
    }
    let row = |about: &&About| [about.name, about.title, about.chapter].map(str::to_owned).to_vec();
    output::print_table(&all.map(row).collect::<Vec<_>>(), false);
    Ok(())
}
