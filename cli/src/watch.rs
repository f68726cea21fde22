//! `keyloom watch`: changes that other programs make.

use std::time::{Duration, Instant};

use clap::Args;
use keyloom::{AnyStore, KeyBuf, Reader, Store};

use crate::address::{Access, open};
use crate::catalog::Catalog;
use crate::change::{Changes, Report};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::pages::pages;
use crate::selection::{Selection, one_key};
use crate::shown;
use crate::value::{As, Format};

/// The longest wait for a change. After it, the command checks whether it has reached its end.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The most bytes of keys and values of a prefix that are kept.
const MOST_KEPT: usize = 1 << 28;

/// Prints the changes of a key or of a prefix, until it is stopped.
///
/// Each line has the old and the new value. A change that is undone before the command reads the
/// key again is not printed. On redb and fjall no other program can write while a command has the
/// store open, so there this command is refused.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct Watch {
    /// The store: lmdb:DIRECTORY, postgres://…, etcd://…
    pub address: String,
    /// The key: a tuple such as ("orders", 7), or 0x and hexadecimal digits
    #[arg(group = "what")]
    pub key: Option<String>,
    /// Watches all keys that this pattern selects, or a table. Reads all of them in each round, and
    /// keeps a copy in memory, at most 256 MiB
    #[arg(long, group = "what")]
    pub prefix: Option<String>,
    /// The pause between two rounds of --prefix
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, requires = "prefix")]
    pub every: Duration,
    /// Ends after this many changes
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Ends after this time; then the status is 1 if there were fewer changes than --count
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// The form of the values
    #[arg(long = "as", value_enum, default_value_t)]
    pub wanted: As,
    /// Shows long values in full
    #[arg(long)]
    pub full: bool,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is a number of seconds, such as 0.5")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

impl Watch {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        refuse_exclusive(&self.address)?;
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let end = self.duration.and_then(|duration| Instant::now().checked_add(duration));
        let format = Format { wanted: self.wanted, full: self.full };
        let mut changes = Changes { out, catalog: &catalog, format, left: self.count, end };
        match (&self.key, &self.prefix) {
            (Some(key), _) => of_key(&store, &one_key(key)?, &mut changes)?,
            (None, prefix) => {
                let selection = Selection::prefix(prefix.as_deref(), &catalog)?;
                of_prefix(&store, &selection, self.every, &mut changes)?;
            }
        }
        Ok(changes.outcome())
    }
}

/// Refuses stores that one process has for itself.
fn refuse_exclusive(address: &str) -> Result {
    match address.split_once(':') {
        Some((scheme @ ("redb" | "fjall" | "memory"), _)) => Err(Failure::new(format!(
            "no other program can write to a store of {scheme} while this command has it open; call `Store::wait_for_change` in the program that writes"
        ))),
        _ => Ok(()),
    }
}

fn of_key(store: &AnyStore, key: &KeyBuf, changes: &mut Changes<'_>) -> Result {
    let read = || Ok::<_, Failure>(store.snapshot()?.get(key)?.map(|value| value.to_vec()));
    let mut seen = read()?;
    note(&format!("watches {}", shown::key(key)));
    while let Some(pause) = changes.pause(LONGEST_WAIT) {
        if !store.wait_for_change(key, seen.as_deref(), pause)? {
            continue;
        }
        let new = read()?;
        if new != seen {
            changes.add(key, seen.as_deref(), new.as_deref())?;
            seen = new;
        }
    }
    Ok(())
}

fn of_prefix(
    store: &AnyStore,
    selection: &Selection,
    every: Duration,
    changes: &mut Changes<'_>,
) -> Result {
    let mut seen = round(store, selection, Vec::new(), &mut |_, _, _| Ok(()))?;
    note(&format!("watches {} keys", grouped(seen.len() as u64)));
    while let Some(pause) = changes.pause(every) {
        std::thread::sleep(pause);
        seen = round(store, selection, seen, &mut |key, old, new| changes.add(key, old, new))?;
    }
    Ok(())
}

type Kept = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads the selected entries, reports the differences from the entries of the round before, and
/// returns the entries. Pages have snapshots of their own, so a change between two pages may be
/// reported one round later.
fn round(
    store: &AnyStore,
    selection: &Selection,
    before: Kept,
    report: &mut Report<'_>,
) -> Result<Kept> {
    let (mut before, mut kept, mut bytes) = (before.into_iter().peekable(), Vec::new(), 0);
    pages(store, &selection.range, |_, entries| {
        for (key, value) in entries.iter().filter(|(key, _)| selection.has(key)) {
            while let Some((gone, old)) = before.next_if(|(old, _)| old[..] < **key) {
                report(&gone, Some(&old), None)?;
            }
            let old = before.next_if(|(old, _)| old[..] == **key).map(|(_, value)| value);
            if old.as_deref() != Some(*value) {
                report(key, old.as_deref(), Some(*value))?;
            }
            bytes += key.len() + value.len();
            if bytes > MOST_KEPT {
                return Err(Failure::new(
                    "the keys and values of the prefix have more than 256 MiB, which this command would keep in memory; watch a longer prefix, or one key",
                ));
            }
            kept.push((key.to_vec(), value.to_vec()));
        }
        Ok(())
    })?;
    before.try_for_each(|(gone, old)| report(&gone, Some(&old), None))?;
    Ok(kept)
}
