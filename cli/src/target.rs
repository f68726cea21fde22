//! The store that an import writes, and the entries that it may write there.

use keyloom::{AnyStore, KeyBuf, KeyRange, Reader, Store, Subspace, Writer};

use crate::catalog::Catalog;
use crate::failure::{Failure, Result};
use crate::indexed::Entry;
use crate::shown;

/// What an import has done with the entries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// The key was not there.
    pub added: u64,
    /// The key had another value.
    pub replaced: u64,
    /// The entry was there.
    pub same: u64,
}

/// The store that an import writes.
#[derive(Debug)]
pub struct Target<'s> {
    store: &'s AnyStore,
    replaces: bool,
    schemas: Option<Schemas>,
    /// The number of definitions of schemas that are the same in the export, so far.
    same_definitions: u64,
    /// The counts so far.
    pub counts: Counts,
}

/// The schemas of the store at the beginning of the import.
#[derive(Debug)]
struct Schemas {
    catalog: Catalog,
    space: Subspace,
    /// The number of definitions.
    definitions: u64,
    last_key: KeyBuf,
}

/// The work of one transaction.
struct Work<'e> {
    puts: Vec<Entry<'e>>,
    counts: Counts,
    same_definitions: u64,
}

impl<'s> Target<'s> {
    /// The target of an import, before the first entry.
    pub fn new(store: &'s AnyStore, replaces: bool, bypass_schema: bool) -> Result<Self> {
        let schemas = if bypass_schema { None } else { Schemas::read(store)? };
        let counts = Counts::default();
        Ok(Self { store, replaces, schemas, same_definitions: 0, counts })
    }

    /// Writes ascending entries in one transaction.
    pub fn write(&mut self, sorted: &[Entry<'_>]) -> Result {
        let work = self.store.try_transact(|txn| {
            let work = self.plan(txn, sorted)?;
            if !work.puts.is_empty() {
                txn.put_sorted(&work.puts)?;
            }
            Ok::<_, Failure>(work)
        })?;
        (self.counts, self.same_definitions) = (work.counts, work.same_definitions);
        Ok(())
    }

    fn plan<'e>(&self, reader: &impl Reader, sorted: &[Entry<'e>]) -> Result<Work<'e>> {
        let keys: Vec<&[u8]> = sorted.iter().map(|(key, _)| *key).collect();
        let (counts, same_definitions) = (self.counts, self.same_definitions);
        let mut work = Work { puts: Vec::new(), counts, same_definitions };
        for ((key, value), old) in sorted.iter().zip(reader.get_many(&keys)?) {
            match old {
                Some(old) if old[..] == **value => {
                    work.counts.same += 1;
                    let schemas = self.schemas.as_ref();
                    let is_definition = schemas.is_some_and(|all| all.space.contains(key));
                    work.same_definitions += u64::from(is_definition);
                    continue;
                }
                Some(_) if !self.replaces => return Err(conflict(key)),
                Some(_) => work.counts.replaced += 1,
                None => work.counts.added += 1,
            }
            if let Some(schemas) = &self.schemas {
                schemas.check(key, work.same_definitions)?;
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
        let (catalog, space) = (Catalog::read(store), Subspace::new("keyloom"));
        let snapshot = store.snapshot()?;
        let last = snapshot.last(KeyRange::all())?.filter(|_| !catalog.parts.is_empty());
        let Some((key, _)) = last else { return Ok(None) };
        let last_key = KeyBuf::from_slice(&key);
        let definitions = snapshot.count(space.self_and_children())?;
        Ok(Some(Self { catalog, space, definitions, last_key }))
    }

    /// Refuses to write a key of a schema that the store had before. The key may be written if the
    /// import continues an earlier one: then the export contains all definitions of the store,
    /// and the store lacks only keys after its last key.
    fn check(&self, key: &[u8], same_definitions: u64) -> Result {
        let continues = *key > self.last_key[..] && same_definitions == self.definitions;
        match self.catalog.within(&KeyRange::single(key)).filter(|_| !continues) {
            None => Ok(()),
            Some(name) => Err(Failure::new(format!(
                "the key {} belongs to {name}, whose indexes an import does not maintain; import into a store without a schema, or repeat the command with --bypass-schema",
                shown::key(key)
            ))),
        }
    }
}
