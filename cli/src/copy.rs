//! `keyloom copy`: all entries of one store to another.

use clap::Args;
use keyloom::{AnyBytes, AnyStore, KeyBuf, KeyRange, Order, Reader, Store, Writer};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::address::{Access, open};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::progress::Progress;
use crate::shown;

/// The maximum number of entries per transaction.
const MOST_ENTRIES: usize = 1_000;
/// The maximum number of bytes per transaction. Remote stores refuse larger transactions.
const MOST_BYTES: usize = 1 << 20;

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

type Entry<'r> = (AnyBytes<'r>, AnyBytes<'r>);

impl Copy {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let (from, to) = self.open()?;
        let snapshot = from.snapshot()?;
        let after = continued(&snapshot, &to)?;
        let mut progress = Progress::new("copied");
        let mut range = KeyRange::all();
        if let Some(after) = &after {
            note(&format!("continues after {}", shown::key(after)));
            range = range.after(after);
        }
        let mut batch: Vec<Entry<'_>> = Vec::new();
        let mut bytes = 0;
        for entry in snapshot.range(range, Order::Ascending)? {
            let (key, value) = entry?;
            let size = key.len() + value.len();
            if batch.len() == MOST_ENTRIES || (bytes + size > MOST_BYTES && !batch.is_empty()) {
                write(&to, &batch)?;
                progress.add(batch.len(), bytes);
                (bytes, batch) = (0, Vec::new());
            }
            bytes += size;
            batch.push((key, value));
        }
        write(&to, &batch)?;
        progress.add(batch.len(), bytes);
        progress.finish();
        compare(&snapshot, &to, progress.entries(), out)
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

fn write(to: &AnyStore, batch: &[Entry<'_>]) -> Result {
    let sorted: Vec<(&[u8], &[u8])> =
        batch.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    if !sorted.is_empty() {
        to.transact(|txn| txn.put_sorted(&sorted))?;
    }
    Ok(())
}

fn compare(from: &impl Reader, to: &AnyStore, copied: u64, out: &mut Output) -> Result<Outcome> {
    let (expected, entries) = digest(from)?;
    let (found, of_to) = digest(&to.snapshot()?)?;
    let hex = shown::hex(&found);
    if expected != found {
        return Err(Failure::new(format!(
            "the stores differ: {} entries in FROM, {} in TO; list the keys with `keyloom diff`",
            grouped(entries),
            grouped(of_to)
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

/// The digest of all entries. Lengths are hashed too, so that a byte moved from a key to its value
/// changes the digest.
fn digest(reader: &impl Reader) -> Result<([u8; 32], u64)> {
    let (mut hash, mut entries) = (Sha256::new(), 0);
    for entry in reader.range(KeyRange::all(), Order::Ascending)? {
        let (key, value) = entry?;
        for part in [&key[..], &value[..]] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        entries += 1;
    }
    Ok((hash.finalize().into(), entries))
}
