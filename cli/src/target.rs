//! The store that an import writes, and the entries that it may write there.

use keyloom::{AnyStore, KeyBuf, KeyRange, Reader, Store, Subspace, Writer};

use crate::catalog::Catalog;
use crate::failure::{Failure, Result};
use crate::indexed::Entry;
use crate::output::grouped;
use crate::shown;

/// What an import has done with the entries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Entries whose key was not in the store.
    pub added: u64,
    /// Entries whose key had another value.
    pub replaced: u64,
    /// Entries that were in the store already.
    pub same: u64,
}

/// The store that an import writes.
#[derive(Debug)]
pub struct Target<'s> {
    store: &'s AnyStore,
    replaces: bool,
    schemas: Option<Schemas>,
    /// The number of entries of the schemas that are the same in the export, so far.
    same_in_schemas: u64,
    /// The counts so far.
    pub counts: Counts,
}

/// The schemas of the store at the beginning of the import.
#[derive(Debug)]
struct Schemas {
    catalog: Catalog,
    /// The subspaces of the definitions and of the parts, in order. None contains another.
    spaces: Vec<Subspace>,
    /// The last key in these subspaces.
    last_key: KeyBuf,
    /// The number of entries in these subspaces. Counted before the first key after `last_key`.
    entries: Option<u64>,
}

/// The work of one transaction.
struct Work<'e> {
    puts: Vec<Entry<'e>>,
    counts: Counts,
    same_in_schemas: u64,
}

impl<'s> Target<'s> {
    /// The target of an import, before the first entry.
    pub fn new(store: &'s AnyStore, replaces: bool, bypass_schema: bool) -> Result<Self> {
        let schemas = if bypass_schema { None } else { Schemas::read(store)? };
        let counts = Counts::default();
        Ok(Self { store, replaces, schemas, same_in_schemas: 0, counts })
    }

    /// Writes ascending entries in one transaction.
    pub fn write(&mut self, sorted: &[Entry<'_>]) -> Result {
        if let Some(schemas) = &mut self.schemas {
            schemas.count_before(self.store, sorted)?;
        }
        let work = self.store.try_transact(|txn| {
            let work = self.plan(txn, sorted)?;
            if !work.puts.is_empty() {
                txn.put_sorted(&work.puts)?;
            }
            Ok::<_, Failure>(work)
        })?;
        (self.counts, self.same_in_schemas) = (work.counts, work.same_in_schemas);
        Ok(())
    }

    fn plan<'e>(&self, reader: &impl Reader, sorted: &[Entry<'e>]) -> Result<Work<'e>> {
        let keys: Vec<&[u8]> = sorted.iter().map(|(key, _)| *key).collect();
        let (counts, same_in_schemas) = (self.counts, self.same_in_schemas);
        let mut work = Work { puts: Vec::new(), counts, same_in_schemas };
        for ((key, value), old) in sorted.iter().zip(reader.get_many(&keys)?) {
            match old {
                Some(old) if old[..] == **value => {
                    work.counts.same += 1;
                    let is_in_schemas = self.schemas.as_ref().is_some_and(|all| all.contain(key));
                    work.same_in_schemas += u64::from(is_in_schemas);
                    continue;
                }
                Some(_) if !self.replaces => return Err(conflict(key)),
                Some(_) => work.counts.replaced += 1,
                None => work.counts.added += 1,
            }
            if let Some(schemas) = &self.schemas {
                schemas.check(key, work.same_in_schemas)?;
            }
            work.puts.push((*key, *value));
        }
        Ok(work)
    }
}

fn conflict(key: &[u8]) -> Failure {
    Failure::new(format!(
        "the key {} has another value in the store, and its transaction was not written; compare the values with `keyloom get`, or repeat the import with --replace",
        shown::key(key)
    ))
}

impl Schemas {
    /// The schemas of the store, if it has tables.
    fn read(store: &AnyStore) -> Result<Option<Self>> {
        let catalog = Catalog::complete(store)?;
        if catalog.parts.is_empty() {
            return Ok(None);
        }
        let parts = catalog.parts.iter().map(|part| part.space.clone());
        let mut spaces: Vec<Subspace> = parts.chain([Subspace::new("keyloom")]).collect();
        spaces.sort_by(|a, b| a.prefix().cmp(b.prefix()));
        spaces.dedup_by(|inner, outer| outer.contains(inner.prefix()));
        let (snapshot, mut last_key) = (store.snapshot()?, KeyBuf::default());
        for space in &spaces {
            if let Some((key, _)) = snapshot.last(space.self_and_children())? {
                last_key = KeyBuf::from_slice(&key);
            }
        }
        Ok(Some(Self { catalog, spaces, last_key, entries: None }))
    }

    fn contain(&self, key: &[u8]) -> bool {
        self.spaces.iter().any(|space| space.contains(key))
    }

    /// Counts the entries of the schemas before the import adds the first one.
    fn count_before(&mut self, store: &AnyStore, sorted: &[Entry<'_>]) -> Result {
        let is_added = |key: &[u8]| *key > self.last_key[..] && self.contain(key);
        if self.entries.is_none() && sorted.iter().any(|(key, _)| is_added(key)) {
            let snapshot = store.snapshot()?;
            let counts = self.spaces.iter().map(|space| snapshot.count(space.self_and_children()));
            self.entries = Some(counts.sum::<keyloom::Result<u64>>()?);
        }
        Ok(())
    }

    /// Refuses to write a key of a schema of the store, unless the import continues an earlier one.
    /// In that case the export contains all entries of the store's schemas, and `key` comes after
    /// the last of them.
    fn check(&self, key: &[u8], same: u64) -> Result {
        let Some(name) = self.catalog.within(&KeyRange::single(key)) else { return Ok(()) };
        let entries = self.entries.filter(|_| *key > self.last_key[..]);
        let why = match entries.map(|entries| entries.saturating_sub(same)) {
            Some(0) => return Ok(()),
            Some(missing) => format!(
                "and the store has entries of its schemas that the file lacks ({}), so this does not continue an import of the file; import into an empty store",
                grouped(missing)
            ),
            None => {
                "whose indexes an import does not maintain; import into a store without a schema"
                    .into()
            }
        };
        Err(Failure::new(format!(
            "the key {} belongs to {name}, {why}, or repeat the command with --bypass-schema",
            shown::key(key)
        )))
    }
}
