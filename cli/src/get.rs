//! `keyloom get`: the value of one key.

use clap::Args;
use keyloom::{Reader, Store};

use crate::address::{Access, open};
use crate::catalog::Catalog;
use crate::failure::{Outcome, Result};
use crate::output::{Output, note};
use crate::scan::object;
use crate::selection::one_key;
use crate::shown;
use crate::value::{As, Format};

/// Shows the value of a key.
#[derive(Debug, Args)]
pub struct Get {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The key: a tuple such as ("orders", 7), or 0x and hexadecimal digits
    pub key: String,
    /// The form of the value
    #[arg(long = "as", value_enum, default_value_t)]
    pub wanted: As,
    /// Shows a long value in full
    #[arg(long)]
    pub full: bool,
}

impl Get {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let key = one_key(&self.key)?;
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let snapshot = store.snapshot()?;
        let Some(value) = snapshot.get(&key)? else {
            note(&format!("there is no key {}", shown::key(&key)));
            catalog.hint(&key).iter().for_each(|hint| note(hint));
            return Ok(Outcome::Different);
        };
        let part = catalog.part_of(&key);
        let format = Format { wanted: self.wanted, full: self.full };
        let shown = format.show(&value, part);
        out.either(|| object(&key, &value, part, &shown), || shown.text.clone())?;
        Ok(Outcome::Fine)
    }
}
