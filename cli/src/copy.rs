//! `keyloom copy`: all entries of one store to another.

use clap::Args;
use keyloom::{AnyStore, KeyBuf, KeyRange, Order, Reader, Store, Writer};
use serde_json::json;

use crate::address::{Access, open};
use crate::batches::Batches;
use crate::digest::Digest;
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::shown;

/// Copies all entries, and compares both stores. Continues a copy that was interrupted.
#[derive(Debug, Args)]
pub struct Copy {
    /// The store to read
    pub from: String,
    /// The store to write, which is empty or holds the beginning of FROM
    pub to: String,
    /// Allows this command to change TO
    #[arg(long)]
    pub write: bool,
    /// Creates TO if it is missing
    #[arg(long)]
    pub create: bool,
}

impl Copy {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let (from, to) = self.open()?;
        let snapshot = from.snapshot()?;
        let after = continued(&snapshot, &to)?;
        let mut range = KeyRange::all();
        if let Some(after) = &after {
            note(&format!("continues after {}", shown::key(after)));
            range = range.after(after);
        }
        let mut batches =
            Batches::new(&to, "copied", |sorted| Ok(to.transact(|txn| txn.put_sorted(sorted))?));
        for entry in snapshot.range(range, Order::Ascending)? {
            let (key, value) = entry?;
            batches.push(key, value)?;
        }
        batches.finish()?;
        compare(&snapshot, &to, batches.written(), out)
    }

    fn open(&self) -> Result<(AnyStore, AnyStore)> {
        if !self.write {
            return Err(Failure::new("this changes TO; repeat the command with --write"));
        }
        let from = open(&self.from, Access::Read)?;
        let access = if self.create { Access::Create } else { Access::Write };
        Ok((from, open(&self.to, access)?))
    }
}

/// The last key of `to`, after which an interrupted copy continues.
fn continued(from: &impl Reader, to: &AnyStore) -> Result<Option<KeyBuf>> {
    let snapshot = to.snapshot()?;
    let Some((key, value)) = snapshot.last(KeyRange::all())? else { return Ok(None) };
    // A copy commits in the order of the keys, so the last entry must be an entry of FROM.
    match from.get(&key)?.is_some_and(|same| same[..] == value[..]) {
        true => Ok(Some(KeyBuf::from_slice(&key))),
        false => Err(Failure::new(format!(
            "TO holds other data: its last key {} is not the same in FROM; copy to an empty store",
            shown::key(&key)
        ))),
    }
}

fn compare(from: &impl Reader, to: &AnyStore, copied: u64, out: &mut Output) -> Result<Outcome> {
    let (expected, found) = (Digest::of(from)?, Digest::of(&to.snapshot()?)?);
    let (entries, hex) = (expected.entries(), found.sha256());
    if expected.sha256() != hex {
        return Err(Failure::new(format!(
            "the stores differ: {} entries in FROM, {} in TO; list the keys with `keyloom diff`",
            grouped(entries),
            grouped(found.entries())
        )));
    }
    out.either(
        || json!({ "copied": copied, "entries": entries, "sha256": hex }),
        || {
            let (copied, entries) = (grouped(copied), grouped(entries));
            format!("copied {copied} entries; both stores hold {entries}, SHA-256 {hex}")
        },
    )?;
    Ok(Outcome::Fine)
}
