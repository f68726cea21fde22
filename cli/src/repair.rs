//! `keyloom repair`: removes index entries whose record does not exist.

use clap::Args;
use keyloom::{AnyStore, KeyRange, Result as StoreResult, Store, Writer};
use serde_json::json;

use crate::address::{Access, open};
use crate::batches::most_entries;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Outcome, Result};
use crate::indexed::{Joined, record_keys};
use crate::output::{Output, grouped, note};
use crate::pages::pages;
use crate::progress::Progress;
use crate::shown;
use crate::style::{Role, paint};

/// Removes entries of indexes whose record does not exist, which `check` calls dangling.
///
/// Each entry is checked again in the transaction that removes it. Only the program that derives
/// entries can add missing ones. Status 1 if faults stay.
#[derive(Debug, Args)]
pub struct Repair {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The indexes to repair, such as people.by_town
    #[arg(required = true)]
    pub names: Vec<String>,
    /// Allows this command to change the store
    #[arg(long)]
    pub write: bool,
}

/// An index, and the table of its records.
#[derive(Clone, Copy, Debug)]
struct Index<'c> {
    catalog: &'c Catalog,
    part: &'c Part,
    table: &'c Part,
}

/// What a repair has done.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    removed: u64,
    /// Bytes that are not entries of an index, which stay.
    unread: u64,
    /// Whether dangling entries stay, since their index has pending changes.
    is_behind: bool,
}

/// An entry without a record.
struct Dangling<'e> {
    key: &'e [u8],
    /// The key that the record would have.
    record: Vec<u8>,
}

impl Repair {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, if self.write { Access::Write } else { Access::Read })?;
        let catalog = Catalog::read(&store);
        let named = self.names.iter().map(|name| repairable(&catalog, name));
        let indexes = named.collect::<Result<Vec<_>>>()?;
        if !self.write {
            return Err(Failure::new(
                "this changes the store; list the faults with `keyloom check`, and repeat the command with --write",
            ));
        }
        let (mut done, mut progress) = (Done::default(), Progress::new("read"));
        for index in indexes {
            index.repair(&store, out, &mut done, &mut progress).map_err(
                |failure| match failure {
                    Failure::Closed => Failure::Closed,
                    other => {
                        let removed = grouped(done.removed);
                        Failure::new(format!("{other}; {removed} entries were removed"))
                    }
                },
            )?;
        }
        progress.finish();
        report(progress.entries(), done);
        let is_all = !done.is_behind && done.unread == 0;
        Ok(if is_all { Outcome::Fine } else { Outcome::Different })
    }
}

fn report(entries: u64, done: Done) {
    let [entries, removed, unread] = [entries, done.removed, done.unread].map(grouped);
    note(&format!("{entries} entries read, {removed} removed"));
    if done.is_behind {
        note(
            "entries of an index with pending changes stay; repeat the command after its program has applied them",
        );
    }
    if done.unread > 0 {
        let by_program = "the program that writes them has a repair";
        note(&format!("not entries of an index, so they stay: {unread}; {by_program}"));
    }
}

/// The index with this name, if this command can repair it.
fn repairable<'c>(catalog: &'c Catalog, name: &str) -> Result<Index<'c>> {
    let part = catalog.require(name)?;
    let refused = |why: &str| {
        Err(Failure::new(format!(
            "{:?} cannot be repaired without its program: {why}; the program that writes them has a repair",
            part.name
        )))
    };
    match catalog.table_of(part) {
        Some(table) if part.is_index() && part.state == "readable" => {
            Ok(Index { catalog, part, table })
        }
        Some(_) if part.is_index() => refused(&format!("its state is {}", part.state)),
        Some(_) => refused(&format!("its entries are of the kind {}", part.kind)),
        None => refused("its table is unknown"),
    }
}

impl Index<'_> {
    /// Removes the dangling entries.
    fn repair(
        &self,
        store: &AnyStore,
        out: &mut Output,
        done: &mut Done,
        progress: &mut Progress,
    ) -> Result {
        let most = most_entries(&store.limits());
        pages(store, &KeyRange::prefix(self.part.space.prefix()), |snapshot, entries| {
            let mut dangling = Vec::new();
            for joined in Joined::read(snapshot, self.part, self.table, entries)? {
                match joined {
                    Joined::NoEntry { .. } => done.unread += 1,
                    Joined::Dangling { key, record } => dangling.push(Dangling { key, record }),
                    Joined::Record { .. } => {}
                }
            }
            for some in dangling.chunks(most) {
                let Some(removed) = store.transact(|txn| self.remove(txn, some))? else {
                    done.is_behind = true;
                    break;
                };
                done.removed += removed.len() as u64;
                removed.iter().try_for_each(|entry| self.print(entry, out))?;
                out.flush()?;
            }
            let bytes = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
            progress.add(entries.len(), bytes);
            Ok(())
        })
    }

    /// Removes those of the entries that still have no record, and returns them; `None` if the
    /// index has pending changes, which may remove entries too.
    fn remove<'d, 'e>(
        &self,
        txn: &mut impl Writer,
        some: &'d [Dangling<'e>],
    ) -> StoreResult<Option<Vec<&'d Dangling<'e>>>> {
        if self.catalog.is_behind(txn, self.part)? {
            return Ok(None);
        }
        let keys: Vec<&[u8]> = some.iter().map(|entry| entry.key).collect();
        let values = txn.get_many(&keys)?;
        let records: Vec<Vec<Vec<u8>>> = some
            .iter()
            .zip(&values)
            .map(|(entry, value)| match value {
                Some(value) => record_keys(self.part, self.table, (entry.key, &**value)),
                None => Vec::new(),
            })
            .collect();
        let all: Vec<&[u8]> = records.iter().flatten().map(Vec::as_slice).collect();
        let mut found = txn.get_many(&all)?.into_iter();
        // Another program may have changed the entry, or added the record.
        let still = some.iter().zip(&records).filter(|(entry, records)| {
            let exists = found.by_ref().take(records.len()).filter(Option::is_some).count() > 0;
            !exists && records.first() == Some(&entry.record)
        });
        let dangling: Vec<_> = still.map(|(entry, _)| entry).collect();
        drop((found, values));
        dangling.iter().try_for_each(|entry| txn.delete(entry.key))?;
        Ok(Some(dangling))
    }

    fn print(&self, entry: &Dangling<'_>, out: &mut Output) -> Result {
        let Part { schema, name, .. } = self.part;
        let [key, record] = [entry.key, &entry.record].map(shown::key);
        out.either(
            || json!({"schema": schema, "name": name, "removed": key, "record": record}),
            || {
                let name = paint(Role::Name, &name.escape_debug().to_string());
                format!("removed {key} of {name}: there is no record {record}")
            },
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use keyloom::{Memory, Reader};
    use keyloom_tables::{Schema, entry};

    use super::*;

    #[test]
    fn an_entry_whose_record_came_back_stays() {
        let store = AnyStore::Memory(Memory::new());
        let schema = Schema::open(&store, "shop").unwrap();
        let notes = schema.table::<u32, String>("notes").unwrap();
        schema.index(&notes, "by_text", 1, |_, text: &String| entry(text)).unwrap();
        let put = |id| store.transact(|txn| notes.put(txn, &id, &"a".into())).unwrap();
        [1, 2, 3].into_iter().for_each(put);
        let delete = |id: u32| store.transact(|txn| txn.delete(&notes.space().pack(&id))).unwrap();
        [1, 2].into_iter().for_each(delete);

        let catalog = Catalog::read(&store);
        let index = repairable(&catalog, "notes.by_text").unwrap();
        let snapshot = store.snapshot().unwrap();
        let range = KeyRange::prefix(index.part.space.prefix());
        let page = snapshot.page(range, keyloom::Order::Ascending, 10).unwrap();
        let dangling = page.entries.iter().map(|(key, value)| {
            let record = record_keys(index.part, index.table, (key, value)).swap_remove(0);
            Dangling { key, record }
        });
        let some: Vec<_> = dangling.collect();
        // Meanwhile, another program adds the record.
        put(1);
        let removed = store.transact(|txn| index.remove(txn, &some)).unwrap().unwrap();
        let removed: Vec<_> = removed.iter().map(|entry| &entry.record).collect();
        assert_eq!(removed, [&notes.space().pack(&2)[..]]);
        let left = store.snapshot().unwrap().count(index.part.space.self_and_children());
        assert_eq!(left.unwrap(), 2);
    }
}
