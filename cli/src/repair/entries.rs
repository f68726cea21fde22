//! Removes entries that lead to no record.

use keyloom::{KeyRange, Result as StoreResult, Store, Subspace, Writer};

use super::Repairs;
use crate::batches::most_entries;
use crate::catalog::{Catalog, Part};
use crate::failure::Result;
use crate::indexed::{Joined, record_keys};
use crate::work::Work;

/// Derived data with entries, and the table of their records.
#[derive(Clone, Debug)]
struct Entries<'c> {
    catalog: &'c Catalog,
    part: &'c Part,
    space: Subspace,
    table: &'c Part,
}

/// An entry without a record.
struct Dangling<'e> {
    key: &'e [u8],
    /// The key that the record would have.
    record: Vec<u8>,
}

/// Removes the dangling entries of `part`.
pub fn repair(work: &mut Work<'_>, part: &Part, done: &mut Repairs<'_>) -> Result {
    let Some(index) = Entries::of(work.catalog, part) else { return Ok(()) };
    let (store, most) = (work.store, most_entries(&work.store.limits()));
    work.pages(0, &KeyRange::prefix(index.space.prefix()), |snapshot, entries| {
        let mut dangling = Vec::new();
        for joined in Joined::read(snapshot, &index.space, index.table, entries)? {
            match joined {
                Joined::NoEntry { .. } => done.unread += 1,
                Joined::Dangling { key, record } => dangling.push(Dangling { key, record }),
                Joined::Record { .. } => {}
            }
        }
        for some in dangling.chunks(most) {
            let Some(removed) = store.transact(|txn| index.remove(txn, some))? else {
                done.is_behind = true;
                break;
            };
            removed.iter().try_for_each(|entry| done.removed(part, entry.key, &entry.record))?;
            done.out.flush()?;
        }
        Ok(done.changed())
    })
}

impl<'c> Entries<'c> {
    fn of(catalog: &'c Catalog, part: &'c Part) -> Option<Self> {
        Some(Self { catalog, part, space: part.entries()?, table: catalog.table_of(part)? })
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
                Some(value) => record_keys(&self.space, self.table, (entry.key, &**value)),
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
}
#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use keyloom::{AnyStore, Memory, Reader};
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
        let index = Entries::of(&catalog, catalog.named("notes.by_text").unwrap()).unwrap();
        let snapshot = store.snapshot().unwrap();
        let range = KeyRange::prefix(index.part.space.prefix());
        let page = snapshot.page(range, keyloom::Order::Ascending, 10).unwrap();
        let dangling = page.entries.iter().map(|(key, value)| {
            let record = record_keys(&index.space, index.table, (key, value)).swap_remove(0);
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
