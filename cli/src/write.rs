//! `keyloom put` and `keyloom rm`.

use std::io::{IsTerminal, Read, Write as _};

use clap::Args;
use keyloom::{AnyStore, KeyBuf, KeyRange, Order, Reader, Store, Writer};
use keyloom_kit::BatchSize;
use serde_json::json;

use crate::address::{Access, open};
use crate::catalog::Catalog;
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::selection::{Selection, one_key};
use crate::shown;
use crate::value::{As, fault};
use crate::word::bytes_of_hex;

/// The maximum number of keys per transaction, if the store accepts as many.
const BATCH: usize = 1_000;

/// Options of all commands that write.
#[derive(Debug, Args)]
pub struct Permission {
    /// Allows this command to change the store
    #[arg(long)]
    pub write: bool,
    /// Allows to change tables and indexes of a schema, which then may no longer agree
    #[arg(long)]
    pub bypass_schema: bool,
}

impl Permission {
    /// The access that the command may use, or an error without `--write`.
    pub fn access(&self, create: bool) -> Result<Access> {
        match self.write {
            true if create => Ok(Access::Create),
            true => Ok(Access::Write),
            false => Err(Failure::new("this changes the store; repeat the command with --write")),
        }
    }

    fn open(&self, address: &str) -> Result<AnyStore> {
        open(address, self.access(false)?)
    }

    /// Refuses to write keys of a schema: a key that is written directly is missing in the indexes
    /// of its table.
    fn check(&self, store: &AnyStore, range: &KeyRange<'_>) -> Result {
        if self.bypass_schema {
            return Ok(());
        }
        match Catalog::complete(store)?.within(range) {
            None => Ok(()),
            Some(name) => Err(Failure::new(format!(
                "the keys belong to {name}, whose indexes this command does not maintain; change them by their program, or repeat the command with --bypass-schema"
            ))),
        }
    }
}

/// Sets the value of a key.
#[derive(Debug, Args)]
pub struct Put {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The key: a tuple such as ("orders", 7), or 0x and hexadecimal digits
    pub key: String,
    /// The value; - reads it from the standard input
    pub value: String,
    /// The form of VALUE: utf8 and auto take it as it is, json checks it, messagepack converts JSON
    #[arg(long = "as", value_enum, default_value_t)]
    pub wanted: As,
    #[command(flatten)]
    permission: Permission,
}

impl Put {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let key = one_key(&self.key)?;
        let value = encoded(given(&self.value)?, self.wanted)?;
        let store = self.permission.open(&self.address)?;
        self.permission.check(&store, &KeyRange::single(&key))?;
        self.check_value(&Catalog::read(&store), &key, &value)?;
        let was_there = store.transact(|txn| {
            let was_there = txn.get(&key)?.is_some();
            txn.put(&key, &value).map(|()| was_there)
        })?;
        let shown = shown::key(&key);
        out.either(
            || json!({ "key": shown, "bytes": value.len(), "replaced": was_there }),
            || {
                let done = if was_there { "replaced" } else { "added" };
                format!("{done} {shown} ({} bytes)", value.len())
            },
        )?;
        Ok(Outcome::Fine)
    }
}

impl Put {
    /// Refuses a key that looks like that of a record, and a value that is no record of its table.
    fn check_value(&self, catalog: &Catalog, key: &[u8], value: &[u8]) -> Result {
        if let Some(hint) = catalog.hint(key).filter(|_| !self.permission.bypass_schema) {
            let repeat = "or repeat the command with --bypass-schema";
            return Err(Failure::new(format!("{hint} Write it by its program, {repeat}")));
        }
        let fault = catalog.part_of(key).and_then(|part| fault(value, part));
        match fault.filter(|_| self.wanted != As::Hex) {
            None => Ok(()),
            Some(fault) => Err(Failure::new(format!(
                "the value is not a record of this table: {fault}; write it by its program, or give its bytes with --as hex"
            ))),
        }
    }
}

fn given(value: &str) -> Result<Vec<u8>> {
    if value != "-" {
        return Ok(value.as_bytes().to_vec());
    }
    let mut read = Vec::new();
    let failed = |error| Failure::new(format!("the standard input cannot be read: {error}"));
    std::io::stdin().read_to_end(&mut read).map_err(failed)?;
    Ok(read)
}

fn encoded(value: Vec<u8>, wanted: As) -> Result<Vec<u8>> {
    let refused = |why: &str| Failure::new(format!("the value is not usable: {why}"));
    let parsed = || {
        serde_json::from_slice::<serde_json::Value>(&value)
            .map_err(|error| refused(&format!("it is not JSON: {error}")))
    };
    match wanted {
        As::Auto | As::Utf8 => Ok(value),
        As::Json => parsed().map(|_| ()).map(|()| value),
        As::Messagepack => rmp_serde::to_vec_named(&parsed()?)
            .map_err(|error| refused(&format!("it does not convert: {error}"))),
        As::Hex => {
            let text = str::from_utf8(&value).unwrap_or_default().trim();
            let hex = text.strip_prefix("0x").unwrap_or(text);
            bytes_of_hex(hex).ok_or_else(|| refused("it is not pairs of hexadecimal digits"))
        }
        As::Postcard => Err(refused(
            "Postcard needs the type of the record; write it by its program, or give its bytes with --as hex",
        )),
    }
}

/// Removes a key, or all keys with a prefix.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct Rm {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The key: a tuple such as ("orders", 7), or 0x and hexadecimal digits
    #[arg(group = "what")]
    pub key: Option<String>,
    /// Removes all keys that this pattern selects, such as ("orders", 7, ..2025)
    #[arg(long, group = "what")]
    pub prefix: Option<String>,
    /// Does not ask before it removes the keys of a prefix
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    permission: Permission,
}

impl Rm {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        match (&self.key, &self.prefix) {
            (Some(key), _) => self.one(&one_key(key)?, out),
            (None, prefix) => self.all(prefix.as_deref().unwrap_or_default(), out),
        }
    }

    fn one(&self, key: &KeyBuf, out: &mut Output) -> Result<Outcome> {
        let store = self.permission.open(&self.address)?;
        self.permission.check(&store, &KeyRange::single(key))?;
        let was_there = store.transact(|txn| {
            let was_there = txn.get(key)?.is_some();
            txn.delete(key).map(|()| was_there)
        })?;
        let shown = shown::key(key);
        if !was_there {
            note(&format!("there is no key {shown}"));
            return Ok(Outcome::Different);
        }
        out.either(|| json!({ "key": shown, "removed": 1 }), || format!("removed {shown}"))?;
        Ok(Outcome::Fine)
    }

    fn all(&self, prefix: &str, out: &mut Output) -> Result<Outcome> {
        let store = self.permission.open(&self.address)?;
        let selection = Selection::prefix(Some(prefix), &Catalog::read(&store))?;
        self.permission.check(&store, &selection.range)?;
        let count = count(&store, &selection)?;
        if count > 0 && !self.yes && !asked(count)? {
            return Err(Failure::new("nothing was removed"));
        }
        let (mut removed, mut size) = (0, BatchSize::new(BATCH));
        let mut rest = Some(selection.range.clone());
        while let Some(range) = rest {
            let (some, last) = size
                .transact(&store, |txn, most| remove_some(txn, &selection, range.clone(), most))?;
            removed += some;
            rest = last.map(|last| range.after(&last).into_owned());
        }
        if removed == 0 {
            note("there is no such key");
            return Ok(Outcome::Different);
        }
        out.either(
            || json!({ "prefix": prefix, "removed": removed }),
            || format!("removed {} keys", grouped(removed)),
        )?;
        Ok(Outcome::Fine)
    }
}

fn count(store: &AnyStore, selection: &Selection) -> Result<u64> {
    let snapshot = store.snapshot()?;
    let mut count = 0;
    for entry in snapshot.range(selection.range.clone(), Order::Ascending)? {
        count += u64::from(selection.has(&entry?.0));
    }
    Ok(count)
}

pub fn asked(count: u64) -> Result<bool> {
    let count = grouped(count);
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(format!(
            "this removes {count} keys; repeat the command with --yes, or on a terminal"
        )));
    }
    write!(std::io::stderr(), "Remove {count} keys? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Removes the first keys of the selection in `range`, at most `most`. Returns their number, and
/// the last one if there may be more.
fn remove_some(
    txn: &mut impl Writer,
    selection: &Selection,
    range: KeyRange<'static>,
    most: usize,
) -> keyloom::Result<(u64, Option<KeyBuf>)> {
    let mut keys = Vec::new();
    for entry in txn.range(range, Order::Ascending)? {
        let (key, _) = entry?;
        if selection.has(&key) {
            keys.push(KeyBuf::from_slice(&key));
        }
        if keys.len() == most {
            break;
        }
    }
    keys.iter().try_for_each(|key| txn.delete(key))?;
    let last = keys.last().filter(|_| keys.len() == most).cloned();
    Ok((keys.len() as u64, last))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use keyloom::{Limits, Memory};

    use super::*;

    /// A server may accept fewer writes in a transaction than a batch has keys.
    #[test]
    fn a_prefix_is_removed_within_the_limits_of_the_store() {
        let limits = Limits::etcd().with_max_transaction(None, Some(100));
        let store = Memory::builder().limits(limits).build();
        for tens in 0..30_u8 {
            let keys = (0..10_u8).map(|n| [b'k', tens, n]);
            store.transact(|txn| keys.clone().try_for_each(|key| txn.put(&key, b""))).unwrap();
        }
        let store = AnyStore::Memory(store);
        let catalog = Catalog::read(&store);
        let selection = Selection::prefix(Some("0x6b"), &catalog).unwrap();
        let remove = |most: usize| {
            let range = selection.range.clone();
            store.transact(|txn| remove_some(txn, &selection, range.clone(), most))
        };
        assert!(remove(BATCH).unwrap_err().is_batch_too_large());
        let removed = BatchSize::new(BATCH).transact(&store, |txn, most| {
            remove_some(txn, &selection, selection.range.clone(), most)
        });
        let (removed, last) = removed.unwrap();
        assert!((1..=100).contains(&removed) && last.is_some());
    }
}
