//! The command line.

use crate::report::say;
use std::path::{Path, PathBuf};

use crate::TourResult;

const HELP: &str = "\
The patterns of keyloom on real data.

Usage: tour [OPTIONS]

  --store ADDRESS  the store [default: lmdb:keyloom-tour in the system's temporary directory]
                     memory:
                     lmdb:DIRECTORY, or DIRECTORY alone
                     redb:FILE
                     postgres://user:password@host:port/database?table=name
                     etcd://host:port,host:port/name
                     fdb:CLUSTER_FILE?name=name
                   the last three with `cargo run --features postgres,etcd,foundationdb`
  --data DIR       where the data files are [default: examples/data of the source]
  --step NAME      the answers of this step alone, with the data of those before it
  --list           the names of the steps
  -h, --help       this text
";

pub struct Options {
    /// The address of the store, for [`AnyStore::open_with`](keyloom::AnyStore::open_with).
    pub store: String,
    pub data: PathBuf,
    /// The name of one step, or a part of it.
    pub step: Option<String>,
    pub is_list: bool,
}

impl Options {
    /// Returns `None` after printing the help.
    pub fn from_arguments() -> TourResult<Option<Self>> {
        use lexopt::prelude::*;
        let mut store = None;
        let mut data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
        let (mut step, mut is_list) = (None, false);
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Short('h') | Long("help") => {
                    say!("{}", HELP.trim_end());
                    return Ok(None);
                }
                Long("store") => store = Some(arguments.value()?.string()?),
                Long("step") => step = Some(arguments.value()?.string()?),
                Long("list") => is_list = true,
                Long("data") => data = arguments.value()?.into(),
                _ => return Err(format!("{}; see --help", argument.unexpected()).into()),
            }
        }
        let default = || format!("lmdb:{}", std::env::temp_dir().join("keyloom-tour").display());
        let store = address(store.unwrap_or_else(default))?;
        Ok(Some(Self { store, data, step, is_list }))
    }
}

/// A bare path is the directory of an LMDB store. Missing parent directories are created.
fn address(given: String) -> TourResult<String> {
    let address = if given.contains(':') { given } else { format!("lmdb:{given}") };
    let path = ["lmdb:", "redb:"].iter().find_map(|scheme| address.strip_prefix(scheme));
    if let Some(parent) = path.and_then(|path| Path::new(path).parent()) {
        std::fs::create_dir_all(parent).map_err(|error| {
            format!("the directory {} cannot be made: {error}", parent.display())
        })?;
    }
    Ok(address)
}
