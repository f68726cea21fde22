//! The command line.

use std::path::{Path, PathBuf};

use crate::TourResult;

const HELP: &str = "\
The patterns of keyloom on real data.

Usage: tour [OPTIONS] [STORE]

  STORE         the directory of the store [default: keyloom-tour in the system's temporary directory]
  --data DIR    where the data files are [default: examples/data of the source]
  -h, --help    this text
";

pub struct Options {
    pub store: PathBuf,
    pub data: PathBuf,
}

impl Options {
    /// `None` when help was asked for and given.
    pub fn from_arguments() -> TourResult<Option<Self>> {
        use lexopt::prelude::*;
        let mut store = None;
        let mut data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Short('h') | Long("help") => {
                    print!("{HELP}");
                    return Ok(None);
                }
                Long("data") => data = arguments.value()?.into(),
                Value(path) if store.is_none() => store = Some(path.into()),
                _ => return Err(format!("{}; see --help", argument.unexpected()).into()),
            }
        }
        let store = store.unwrap_or_else(|| std::env::temp_dir().join("keyloom-tour"));
        Ok(Some(Self { store, data }))
    }
}
