//! The tour: the patterns of keyloom on real data, one step per pattern.
//!
//! ```text
//! cargo run --release --example tour
//! cargo run --release --example tour -- --help
//! ```

mod cities;
mod composite_key_index;
mod options;
mod report;

use std::error::Error;
use std::process::ExitCode;

use keyloom::{Lmdb, Metered};

use options::Options;

/// Every step works on this store, so that each answer comes with what it touched.
type TourStore = Metered<Lmdb>;
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

fn steps() -> Vec<Box<dyn Step>> {
    vec![Box::new(composite_key_index::CompositeKeyIndex::new())]
}

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
    let store = Metered::new(Lmdb::open(&options.store)?);
    println!("store      {} (LMDB, every commit synced)", options.store.display());
    for step in steps() {
        println!("\n== {} ==", step.name());
        step.load(&store, &options)?;
        step.ask(&store)?;
    }
    let sizes = store.inner().statistics()?;
    let megabytes = sizes.file_bytes as f64 / 1e6;
    println!(
        "\n{} keys in a file of {megabytes:.1} MB; run it again to use them as they are",
        sizes.entries
    );
    Ok(())
}
