//! Checks whether a declaration of a table fits the records in the store.

use std::any::type_name;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::value::shape::{Difference, Reads, Shape};
use keyloom::{Error, KeyBuf, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::parts::join_shapes;
use keyloom_kit::{Progress, RecordKey, page_behind};

use super::batches::BATCH;
use super::error::SchemaError;
use super::former::{former_table, gone, refuse_former};
use super::overlap::refuse_overlap;
use super::queued::read_queued;
use super::sample::sample;
use super::stored::{PLAIN, StoredTable, TableDefinition, space_of, write_entry};
use super::{Schema, new_id};
use crate::table::Table;

/// The name of the codec [`Upgrading`](keyloom::value::Upgrading).
const UPGRADING: &str = "Upgrading";

/// The definition of a table in this program.
pub(super) fn define_table<K: RecordKey, V, C: Codec<V>>(
    name: &str,
    version: u32,
) -> Result<TableDefinition> {
    TableDefinition::of::<K, V, C>(version)
        .map_err(|source| SchemaError::UnknownShape { table: name.into(), source }.into())
}

/// The declaration of a table by a program.
pub(super) struct Declaration<'a> {
    pub(super) schema: &'a str,
    pub(super) name: &'a str,
    pub(super) definition: &'a TableDefinition,
}

impl Declaration<'_> {
    /// Whether the program may use the table without a change of its entry.
    pub(super) fn fits(&self, stored: &StoredTable) -> bool {
        self.refuse_other(stored).is_ok()
    }

    /// # Errors
    /// The reason why the program cannot use the table without a change of its entry.
    pub(super) fn refuse_other(&self, stored: &StoredTable) -> Result<()> {
        match self.joined(&stored.definition)? {
            None => Ok(()),
            // The entry no longer covers the shape that this program has declared.
            Some(_) => Err(self.contradicts(&stored.definition)),
        }
    }

    /// Compares declarations of the same version. Returns the stored definition joined with this
    /// program's definition, if the joined definition differs from the stored one.
    fn joined(&self, stored: &TableDefinition) -> Result<Option<TableDefinition>> {
        let declared = self.definition;
        self.refuse_forgotten(stored)?;
        let is_same = stored.version == declared.version && stored.codec == declared.codec;
        let key = join_shapes(&stored.key, &declared.key).filter(|_| is_same);
        let key = key.ok_or_else(|| self.contradicts(stored))?;
        let shape = match self.reads(stored)? {
            Reads::Same => stored.shape.clone(),
            Reads::BothWays(joined) => Some(joined),
            Reads::OneWay(_, difference) => {
                let (schema, table) = (self.schema.into(), self.name.into());
                let version = stored.version;
                return Err(SchemaError::OneWay { schema, table, version, difference }.into());
            }
        };
        let forgets_plain = stored.forgets_plain || declared.forgets_plain;
        let joined = TableDefinition { key, shape, forgets_plain, ..stored.clone() };
        Ok((joined != *stored).then_some(joined))
    }

    /// # Errors
    /// [`SchemaError::ForgetsPlain`] if the program could read records of other programs as records
    /// of the plain type.
    fn refuse_forgotten(&self, stored: &TableDefinition) -> Result<()> {
        if !stored.forgets_plain || !self.definition.knows_plain() {
            return Ok(());
        }
        let (schema, table) = (self.schema.into(), self.name.into());
        Err(SchemaError::ForgetsPlain { schema, table }.into())
    }

    /// # Errors
    /// [`SchemaError::ChangedRecord`], [`SchemaError::NoShape`].
    fn reads(&self, stored: &TableDefinition) -> Result<Reads> {
        let (schema, table) = (self.schema.to_owned(), self.name.to_owned());
        let (Some(stored), Some(declared)) = (&stored.shape, &self.definition.shape) else {
            return Err(SchemaError::NoShape { schema, table }.into());
        };
        let changed = |difference: Difference| {
            SchemaError::ChangedRecord { schema, table, difference }.into()
        };
        // The stored type had no versions: its records are plain.
        let plain = match (stored.version_numbers(), declared.version_numbers()) {
            (None, Some(_)) => Some(Shape::versions([(PLAIN, stored.clone())])),
            _ => None,
        };
        declared.reads(plain.as_ref().unwrap_or(stored)).map_err(changed)
    }

    fn contradicts(&self, stored: &TableDefinition) -> Error {
        SchemaError::Contradiction {
            schema: self.schema.into(),
            name: self.name.into(),
            stored: stored.to_string(),
            declared: self.definition.to_string(),
        }
        .into()
    }

    fn undecodable(&self, source: Error) -> Error {
        let (table, declared) = (self.name.into(), self.definition.to_string());
        SchemaError::Undecodable { table, declared, source }.into()
    }

    /// The definition of the table after its version was raised.
    fn raised<V, C: Codec<V>>(
        &self,
        txn: &impl Reader,
        stored: &StoredTable,
        key: String,
        sampled: Option<&StoredTable>,
    ) -> Result<TableDefinition> {
        let (declared, old) = (self.definition, &stored.definition);
        self.refuse_forgotten(old)?;
        // Without a stored shape, a higher version says nothing about the types: `reads` refuses
        // such a table.
        let is_named = old.shape.as_ref().is_some_and(Shape::is_named);
        // The program adds versions to a type that had none.
        let is_upgraded = declared.codec == format!("{UPGRADING}<{}>", old.codec);
        let shape = if (declared.codec == old.codec || is_upgraded) && !is_named {
            match self.reads(old)? {
                Reads::Same => old.shape.clone(),
                Reads::BothWays(joined) | Reads::OneWay(joined, _) => Some(joined),
            }
        } else if declared.codec != old.codec && is_own::<C>() {
            // The bytes of one codec may decode with another codec as a different value.
            return Err(self.contradicts(old));
        } else {
            declared.shape.clone()
        };
        let is_sampled = |sampled: &StoredTable| {
            (sampled.id, &sampled.definition) == (stored.id, &stored.definition)
        };
        if !sampled.is_some_and(is_sampled) {
            self.sample::<V, C>(txn, stored)?;
        }
        Ok(TableDefinition { key, shape, ..declared.clone() })
    }

    /// Whether the version will be raised, and all sampled records decode. Reads a snapshot: a
    /// transaction that reads the sample itself conflicts with each busy writer, so with several
    /// concurrent writers it never committed on PostgreSQL.
    pub(super) fn has_sampled<V, C: Codec<V>>(
        &self,
        store: &impl Store,
        stored: &StoredTable,
    ) -> bool {
        let is_raised = stored.definition.version < self.definition.version;
        let sample = || self.sample::<V, C>(&store.snapshot()?, stored);
        is_raised && sample().is_ok()
    }

    /// Decodes a sample of the records, and the first and last record of each queue.
    fn sample<V, C: Codec<V>>(&self, txn: &impl Reader, stored: &StoredTable) -> Result<()> {
        let decodes = |bytes: &[u8], key: &[u8]| {
            decodes::<V, C>(bytes).map_err(|error| self.undecodable(error.at(key)))
        };
        let space = stored.space();
        sample(txn, &space, &mut |key, record| decodes(record, key))?;
        for queue in stored.derived.iter().filter_map(|one| one.queue).map(space_of) {
            let all = queue.self_and_children();
            for entry in [txn.first(all.clone())?, txn.last(all)?].into_iter().flatten() {
                if let Some(record) = read_queued(&entry.1)? {
                    decodes(record, &entry.0)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a codec is one of keyloom's codecs, or a keyloom wrapper around such a codec.
fn is_own<C>() -> bool {
    let mut words = type_name::<C>().split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    words.all(|word| !word.contains("::") || word.starts_with("keyloom"))
}

/// Decodes a record, and encodes it again.
fn decodes<V, C: Codec<V>>(bytes: &[u8]) -> Result<()> {
    let record = C::decode(bytes)?;
    C::encode(&record, &mut Vec::new())
}

/// Decodes the key of a record, and encodes it again.
fn key_decodes<K: RecordKey>(space: &Subspace, key: &[u8]) -> Result<()> {
    match space.pack(&space.unpack::<K>(key)?)[..] == *key {
        true => Ok(()),
        false => Err(Error::InvalidArgument {
            what: "the key type",
            value: type_name::<K>().into(),
            why: "this key is packed otherwise by it; adopt the table with the key type of the program that wrote it",
        }),
    }
}

/// Whether a table holds no record, and its queues hold no old records.
fn is_empty(txn: &impl Reader, stored: &StoredTable) -> Result<bool> {
    let queues = stored.derived.iter().filter_map(|one| one.queue).map(space_of);
    for space in [stored.space()].into_iter().chain(queues) {
        if txn.first(space.self_and_children())?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn read_two(reader: &impl Reader, keys: [&[u8]; 2]) -> Result<[Option<Vec<u8>>; 2]> {
    let mut values = reader.get_many(&keys)?.into_iter();
    Ok([(); 2].map(|()| values.next().flatten().map(|value| value.to_vec())))
}

/// Adds a table, or the shape and version of this program, to the schema. The caller has decoded
/// sample records of `sampled`. The sample is valid only if `sampled` is still the entry of the
/// table.
pub(super) fn enter_table<V, C: Codec<V>>(
    txn: &mut impl Writer,
    entry: &[u8],
    declaration: &Declaration<'_>,
    imported: Option<&Subspace>,
    sampled: Option<&StoredTable>,
) -> Result<StoredTable> {
    let declared = declaration.definition;
    let former = former_table(declaration.schema, declaration.name);
    let [stored, renamed] = read_two(txn, [entry, &former])?;
    let stored = stored.map(|bytes| StoredTable::decode(&bytes)).transpose();
    let stored = stored.map_err(|error| error.at(entry))?;
    if let (Some(space), Some(stored)) = (imported, &stored) {
        stored.refuse_elsewhere(declaration.schema, declaration.name, space)?;
    }
    let table = match stored {
        None => {
            refuse_former(renamed.as_deref(), declaration.name)?;
            if let Some(space) = imported {
                refuse_overlap(txn, space, "imported")?;
            }
            let (id, definition) = (new_id(txn)?, declared.of_newest());
            StoredTable { id, imported: imported.cloned(), definition, derived: Vec::new() }
        }
        Some(stored) if stored.definition.version < declared.version => {
            // A new version must have the same type of keys.
            let key = join_shapes(&stored.definition.key, &declared.key);
            let key = key.ok_or_else(|| declaration.contradicts(&stored.definition))?;
            match declaration.raised::<V, C>(txn, &stored, key, sampled) {
                Ok(definition) => StoredTable { definition, ..stored },
                // A table without records may get any type. The table moves to another subspace,
                // since a program with the earlier type may still read the old subspace.
                Err(_) if stored.imported.is_none() && is_empty(txn, &stored)? => {
                    let (id, definition) = (new_id(txn)?, declared.of_newest());
                    StoredTable { id, definition, ..stored }
                }
                Err(error) => return Err(error),
            }
        }
        Some(stored) => match declaration.joined(&stored.definition)? {
            None => return Ok(stored),
            Some(definition) => StoredTable { definition, ..stored },
        },
    };
    write_entry(txn, entry, &table)?;
    Ok(table)
}

impl<S: Store> Schema<'_, S> {
    /// Declares a table with the type `V`, whatever type the schema holds. First checks that all
    /// records decode as `V` and encode again. See [`adopt_table_with`](Schema::adopt_table_with).
    ///
    /// # Errors
    /// The errors of [`adopt_table_with`](Schema::adopt_table_with).
    pub fn adopt_table<K: RecordKey, V: 'static>(&self, name: &str) -> Result<Table<K, V>>
    where
        keyloom::value::Postcard: Codec<V>,
    {
        self.adopt_table_with(name, 1, |_| ControlFlow::Continue(()))
    }

    /// Declares a table with keys `K`, records `V`, codec `C` and version `version`, whatever
    /// types, codec and version the schema holds.
    ///
    /// Use it in three cases: a store that was written before shapes were stored, so that only the
    /// program has the types; a key type that was renamed, and packs the same elements; and a
    /// raised version that must be undone. All records, also those in queues of deferred data, must
    /// decode and encode again. Their keys must decode, and encode to the same bytes. The same
    /// bytes may be valid values of several types, so use a type with which they were written. Stop
    /// all other programs first.
    ///
    /// Calls `progress` after each 1,000 records, and writes nothing if `progress` breaks. Costs
    /// one range per 1,000 records, and one key written.
    ///
    /// ```
    /// use std::ops::ControlFlow::Continue;
    /// use keyloom::{Memory, Store, value::Json};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table_with::<u32, u32, Json>("prices", 1)?;
    /// store.transact(|txn| prices.put(txn, &1, &250))?;
    /// // A wider type, as version 2: programs of version 1 are refused from now on.
    /// Schema::open(&store, "shop")?.table_with::<u32, u64, Json>("prices", 2)?;
    /// assert!(Schema::open(&store, "shop")?.table_with::<u32, u32, Json>("prices", 1).is_err());
    /// // The way back, since all records fit.
    /// let prices = Schema::open(&store, "shop")?.adopt_table_with::<u32, u32, Json>("prices", 1, |_| Continue(()))?;
    /// assert_eq!(prices.get(&store.snapshot()?, &1)?, Some(250));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if there is no such table; [`SchemaError::Undecodable`];
    /// [`SchemaError::Contradiction`] if another program has changed the definition meanwhile;
    /// [`Error::InvalidArgument`] if `progress` breaks; [`SchemaError::UnknownShape`];
    /// [`SchemaError::DeclaredTwice`]; any error of the store.
    pub fn adopt_table_with<K: RecordKey, V: 'static, C: Codec<V>>(
        &self,
        name: &str,
        version: u32,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Table<K, V, C>> {
        let definition = define_table::<K, V, C>(name, version)?;
        let declaration = Declaration { schema: &self.name, name, definition: &definition };
        let before = self.stored()?.remove(name).ok_or_else(|| gone(name))?;
        if self.decode_all::<K, V, C>(&declaration, &before, progress)?.is_break() {
            return Err(Error::InvalidArgument {
                what: "the table",
                value: name.into(),
                why: "its adoption was stopped by `progress`; nothing was written",
            });
        }
        self.enter(|txn| {
            let (entry, stored) = self.read_table(txn, name)?;
            if stored.id != before.id || stored.definition != before.definition {
                return Err(declaration.contradicts(&stored.definition));
            }
            let definition = definition.clone();
            write_entry(txn, &entry, &StoredTable { definition, ..stored })
        })?;
        self.known().stored.remove(name);
        self.declare_table(name, definition, None)
    }

    /// Decodes all records and all queued records, with a new snapshot for each page.
    fn decode_all<K: RecordKey, V, C: Codec<V>>(
        &self,
        declaration: &Declaration<'_>,
        stored: &StoredTable,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let queues = stored.derived.iter().filter_map(|one| one.queue).map(space_of);
        let queues: Vec<_> = queues.collect();
        let mut done = Progress::default();
        for space in [stored.space()].iter().chain(&queues) {
            let mut after: Option<KeyBuf> = None;
            loop {
                let snapshot = self.store.snapshot()?;
                let page = page_behind(after.as_deref(), &snapshot, space, BATCH)?;
                for (key, value) in &page.entries {
                    let record = match queues.contains(space) {
                        true => read_queued(value)?,
                        false => Some(&value[..]),
                    };
                    // In a queue, too, the record key follows the prefix.
                    let decoded = key_decodes::<K>(space, key)
                        .and_then(|()| record.map_or(Ok(()), decodes::<V, C>));
                    decoded.map_err(|error| declaration.undecodable(error.at(key)))?;
                }
                done.records += page.entries.len() as u64;
                after = page.last;
                if progress(&done).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
