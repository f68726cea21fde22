//! `keyloom du`: which prefixes take the most bytes?

use std::cell::RefCell;
use std::cmp::Reverse;

use clap::Args;
use keyloom::Store;
use keyloom_kit::sample;

use crate::address::{Access, open};
use crate::catalog::Catalog;
use crate::failure::{Outcome, Result};
use crate::ls::{Row, print};
use crate::measure::EXACT;
use crate::output::Output;
use crate::progress::Progress;
use crate::selection::Selection;
use crate::tree::{Options, groups};

/// The maximum number of groups of a level that are compared.
const MOST_COMPARED: usize = 10_000;

/// Lists the prefixes with the most bytes.
#[derive(Debug, Args)]
pub struct Du {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// Only keys with this prefix: a tuple, or the name of a table
    pub prefix: Option<String>,
    /// The number of elements of a prefix
    #[arg(long, default_value_t = 1)]
    pub depth: usize,
    /// The most prefixes to list
    #[arg(long, short = 'n', default_value_t = 20)]
    pub limit: usize,
    /// Counts all entries, however many there are
    #[arg(long)]
    pub exact: bool,
}

impl Du {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let selection = Selection::prefix(self.prefix.as_deref(), &catalog)?;
        let exact = if self.exact { u64::MAX } else { EXACT };
        let depth = self.depth.max(1);
        let snapshot = store.snapshot()?;
        // Each level of groups counts all entries.
        let expected = sample(&snapshot, &selection.range)?.entries * depth as f64;
        let progress = RefCell::new(Progress::of_about("counted", expected));
        let options = Options {
            fixed: selection.fixed,
            depth,
            most: MOST_COMPARED,
            exact,
            progress: self.exact.then_some(&progress),
        };
        let all = groups(&snapshot, selection.range, &[], options)?;
        if self.exact {
            progress.borrow().finish();
        }
        let total = Row::total(all.iter());
        // A group comes before the groups within it.
        let deeper = all.iter().skip(1).map(|group| group.level).chain([0]).collect::<Vec<_>>();
        let innermost = all.into_iter().zip(deeper).filter(|(group, next)| *next <= group.level);
        let mut largest: Vec<_> = innermost.map(|(group, _)| group).collect();
        largest.sort_by_key(|group| Reverse(group.size.bytes));
        largest.truncate(self.limit);
        let row = |mut group: crate::tree::Group| {
            // The rows are sorted by size, so no tree is shown.
            group.level = 0;
            let part = catalog.part_of(&group.prefix).filter(|_| !group.is_rest);
            Row { group, part }
        };
        let rows: Vec<_> = largest.into_iter().map(row).collect();
        print(out, &rows, total, !catalog.parts.is_empty())?;
        Ok(Outcome::Fine)
    }
}
