//! The command line.

use std::path::{Path, PathBuf};

use crate::TourResult;
use crate::output::out;
use crate::report;

const HELP: &str = "\
The patterns of keyloom on real data.

Usage: tour [OPTIONS] [ADDRESS]

  ADDRESS          the store [default: lmdb:keyloom-tour in the system's temporary directory]
                     memory:
                     lmdb:DIRECTORY, or the path of the directory: ./data
                     redb:FILE
                     postgres://user:password@host:port/database?table=name
                     etcd://host:port,host:port/name
                     fdb:CLUSTER_FILE?name=name
                   the last three with `cargo run --features postgres,etcd,foundationdb`
  --store ADDRESS  the same
  --data DIR       where the data files are [default: examples/data of the source]
  --step NAME      one step, with the data of those before it: its name, a word of its name or
                   title, or its chapter
  --list           the names, titles and chapters of the steps
  --verbose        all questions with their answers and costs
  --json           one JSON object per step and line, with times in seconds
  -h, --help       this text
";

/// What the tour prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Summary,
    Verbose,
    Json,
}

pub struct Options {
    /// The address of the store, for [`AnyStore::open_with`](keyloom::AnyStore::open_with).
    pub store: String,
    pub data: PathBuf,
    /// The name of one step, or a part of it.
    pub step: Option<String>,
    pub is_list: bool,
    pub format: Format,
}

impl Options {
    /// Returns `None` after printing the help.
    pub fn from_arguments() -> TourResult<Option<Self>> {
        use lexopt::prelude::*;
        let default = || format!("lmdb:{}", std::env::temp_dir().join("keyloom-tour").display());
        let mut store = None;
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
        let (step, is_list, format) = (None, false, Format::Summary);
        let mut options = Self { store: String::new(), data, step, is_list, format };
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Short('h') | Long("help") => {
                    out!("{}", HELP.trim_end());
                    return Ok(None);
                }
                Long("store") => set(&mut store, arguments.value()?.string()?)?,
                Long("step") => options.step = Some(arguments.value()?.string()?),
                Long("list") => options.is_list = true,
                Long("verbose") => options.print_as(Format::Verbose)?,
                Long("json") => options.print_as(Format::Json)?,
                Long("data") => options.data = arguments.value()?.into(),
                Value(value) => set(&mut store, checked(value.string()?)?)?,
                _ => return Err(format!("{}; see --help", argument.unexpected()).into()),
            }
        }
        if options.format == Format::Verbose {
            report::be_verbose();
        }
        options.store = store.unwrap_or_else(default);
        Ok(Some(options))
    }

    fn print_as(&mut self, format: Format) -> TourResult<()> {
        if ![Format::Summary, format].contains(&self.format) {
            return Err("--verbose and --json exclude each other; see --help".into());
        }
        self.format = format;
        Ok(())
    }
}

fn set(store: &mut Option<String>, address: String) -> TourResult<()> {
    match store.replace(address) {
        None => Ok(()),
        Some(first) => {
            Err(format!("there is an address already, {first:?}; give one; see --help").into())
        }
    }
}

/// Refuses a bare word: it may be a misspelt option or the name of a step.
fn checked(given: String) -> TourResult<String> {
    if given.contains([':', '/', '.']) || Path::new(&given).join("data.mdb").is_file() {
        return Ok(given);
    }
    Err(format!(
        "there is no store in {given:?}; for a new one write ./{given}, for a step --step {given}; \
         see --help"
    )
    .into())
}
