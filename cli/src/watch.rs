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
/// The most memory for the entries of a prefix.
const MOST_KEPT: usize = 1 << 28;
/// The memory of an entry beside its bytes: two `Vec`s of 24 bytes, in a list that may have room
/// for as many again, and what the allocator adds to two allocations.
const OVERHEAD: usize = 160;
/// The shortest pause between two rounds. Without a pause, rounds would occupy the store.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

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
    /// The pause between two rounds of --prefix, at least 0.01
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = pause, requires = "prefix")]
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

/// A number of seconds of an argument.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is a number of seconds, such as 0.5")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn pause(text: &str) -> std::result::Result<Duration, String> {
    let pause = seconds(text)?;
    if pause < SHORTEST_PAUSE {
        return Err("the shortest pause is 0.01".into());
    }
    Ok(pause)
}

impl Watch {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        refuse_exclusive(&self.address)?;
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let end = self.duration.and_then(|duration| Instant::now().checked_add(duration));
        let format = Format { wanted: self.wanted, full: self.full };
        let mut changes = Changes { out, catalog, format, left: self.count, end };
        match (&self.key, &self.prefix) {
            (Some(key), _) => of_key(&store, &one_key(key)?, &mut changes)?,
            (None, prefix) => of_prefix(&store, prefix.as_deref(), self.every, &mut changes)?,
        }
        Ok(changes.outcome())
    }
}

/// Refuses stores that only one process can open.
fn refuse_exclusive(address: &str) -> Result {
    match address.split_once(':') {
        Some((scheme @ ("redb" | "fjall" | "memory"), _)) => Err(Failure::new(format!(
            "no other program can write to a store of {scheme} while this command has it open; watch in the program that writes (Store::wait_for_change)"
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
            changes.catalog = Catalog::with_faults(store).0;
            changes.add(key, seen.as_deref(), new.as_deref())?;
            seen = new;
        }
    }
    Ok(())
}

fn of_prefix(
    store: &AnyStore,
    prefix: Option<&str>,
    every: Duration,
    changes: &mut Changes<'_>,
) -> Result {
    let mut selection = Selection::prefix(prefix, &changes.catalog)?;
    let mut seen = round(store, &selection, Vec::new(), &mut |_, _, _| Ok(()))?;
    note(&format!("watches {} keys", grouped(seen.len() as u64)));
    while let Some(pause) = changes.pause(every) {
        std::thread::sleep(pause);
        // Another program may have added a table, or moved it. A name that is gone keeps its keys.
        changes.catalog = Catalog::with_faults(store).0;
        selection = Selection::prefix(prefix, &changes.catalog).unwrap_or(selection);
        seen = round(store, &selection, seen, &mut |key, old, new| changes.add(key, old, new))?;
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
            bytes += memory(key, value);
            if bytes > MOST_KEPT {
                return Err(Failure::new(
                    "the entries of the prefix need more than 256 MiB of memory; watch a longer prefix, or one key",
                ));
            }
            kept.push((key.to_vec(), value.to_vec()));
        }
        Ok(())
    })?;
    before.try_for_each(|(gone, old)| report(&gone, Some(&old), None))?;
    Ok(kept)
}

/// The memory of an entry.
fn memory(key: &[u8], value: &[u8]) -> usize {
    OVERHEAD + key.len() + value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_entry_needs_memory() {
        let kept = size_of::<(Vec<u8>, Vec<u8>)>();
        assert!(memory(b"", b"") >= 3 * kept);
        assert_eq!(memory(b"key", b"value") - memory(b"", b""), 8);
    }
}
