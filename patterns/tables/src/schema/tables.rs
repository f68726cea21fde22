//! Lists and drops the tables of a schema.

use std::ops::ControlFlow;

use keyloom::{Error, KeyBuf, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{BatchSize, Progress};

use super::Schema;
use super::batches::{BATCH, delete_some, in_batches};
use super::build::{drop_some, forget_repairs};
use super::error::SchemaError;
use super::former::forget_former;
use super::migrate::position_key;
use super::owned::refuse_owner;
use super::state::State;
use super::stored::{
    Definition, Id, StoredDerived, StoredTable, TableDefinition, space_of, write_entry,
};

/// A table of a schema, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The name.
    pub name: String,
    /// The definition.
    pub definition: TableDefinition,
    /// The subspace of the records.
    pub space: Subspace,
    /// The imported subspace, if the table was [imported](Schema::import_table).
    pub imported: Option<Subspace>,
    /// The derived data, by name.
    pub derived: Vec<DerivedInfo>,
}

/// Derived data of a table, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DerivedInfo {
    /// The name.
    pub name: String,
    /// The subspace of the data.
    pub space: Subspace,
    /// The subspace of the queue; `None` if the data is not deferred.
    pub queue: Option<Subspace>,
    /// The definition.
    pub definition: Definition,
    /// The state.
    pub state: State,
}

impl TableInfo {
    fn of(name: String, stored: StoredTable) -> Self {
        let derived = |one: StoredDerived| DerivedInfo {
            space: space_of(one.id),
            queue: one.queue.map(space_of),
            name: one.name,
            definition: one.definition,
            state: one.state,
        };
        Self {
            name,
            space: stored.space(),
            definition: stored.definition,
            imported: stored.imported,
            derived: stored.derived.into_iter().map(derived).collect(),
        }
    }
}

impl<S: Store> Schema<'_, S> {
    /// Lists the tables in the store and their derived data, by name, including those that this
    /// program does not declare. Costs one range.
    ///
    /// ```
    /// use keyloom::Memory;
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table::<u32, u32>("prices")?;
    /// schema.index(&prices, "by_price", 1, |_, cents| entry(cents))?;
    /// let tables = schema.tables()?;
    /// assert_eq!(
    ///     tables[0].definition.to_string(),
    ///     "a table of version 1 from integer to u32, written with Postcard"
    /// );
    /// assert_eq!(tables[0].derived[0].name, "by_price");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NewerFormat`]; [`SchemaError::Damaged`]; any error of
    /// the store.
    pub fn tables(&self) -> Result<Vec<TableInfo>> {
        let tables = self.stored()?.into_iter();
        Ok(tables.map(|(name, stored)| TableInfo::of(name, stored)).collect())
    }

    /// Disables data derived from `table`. This program need not declare the data. See
    /// [`Attached::disable`](super::Attached::disable).
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let newer = Schema::open(&store, "shop")?;
    /// newer.index(&newer.table::<u32, u32>("prices")?, "by_price", 1, |_, cents| entry(cents))?;
    ///
    /// // A program that was written before the index existed.
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table::<u32, u32>("prices")?;
    /// assert!(store.transact(|txn| prices.put(txn, &1, &250)).is_err());
    /// schema.disable("prices", "by_price")?;
    /// store.transact(|txn| prices.put(txn, &1, &250))?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if there is no such table or no such derived data;
    /// [`Error::InvalidArgument`] for data of the kind
    /// [`OWNER`](super::OWNER); any error of the store.
    pub fn disable(&self, table: &str, name: &str) -> Result<()> {
        self.enter(|txn| {
            let (entry, mut stored) = self.read_table(txn, table)?;
            refuse_owner(&stored, table, name)?;
            let gone = || SchemaError::Gone { name: format!("{table}.{name}") };
            stored.get_mut(name).ok_or_else(gone)?.disable();
            write_entry(txn, &entry, &stored)
        })
    }

    /// Drops data derived from `table`. This program need not declare the data. See
    /// [`Attached::drop_data`](super::Attached::drop_data).
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if there is no such table;
    /// [`Error::InvalidArgument`] for data of the kind
    /// [`OWNER`](super::OWNER); any error of the store.
    pub fn drop_derived(&self, table: &str, name: &str) -> Result<Progress> {
        self.drop_derived_with(table, name, BATCH, |_| ControlFlow::Continue(()))
    }

    /// Like [`drop_derived`](Schema::drop_derived), with at most `batch` keys in a transaction.
    /// Calls `progress` after each transaction and stops if `progress` breaks; the next call
    /// resumes.
    ///
    /// # Errors
    /// The errors of [`drop_derived`](Schema::drop_derived).
    pub fn drop_derived_with(
        &self,
        table: &str,
        name: &str,
        batch: usize,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let store = self.not_dry()?;
        if let Some(known) = self.known().stored.get_mut(table) {
            known.derived.retain(|one| one.name != name);
        }
        in_batches(store, batch, progress, |txn, batch| {
            txn.guarded(|txn| {
                let (entry, stored) = self.read_table(txn, table)?;
                refuse_owner(&stored, table, name)?;
                drop_some(txn, &entry, stored, name, batch)
            })
        })
    }

    /// Reads the entry of a table. Returns the key and the decoded value of the entry.
    pub(super) fn read_table(
        &self,
        reader: &impl Reader,
        name: &str,
    ) -> Result<(KeyBuf, StoredTable)> {
        let entry = super::entries_of(&self.name).pack(name);
        let stored = reader.get(&entry)?.map(|bytes| StoredTable::decode(&bytes)).transpose();
        let gone = || SchemaError::Gone { name: name.into() };
        let stored = stored.map_err(|error| error.at(&entry))?.ok_or_else(gone)?;
        Ok((entry, stored))
    }

    /// Drops a table, its records and its derived data, in bounded transactions.
    ///
    /// Also completes an earlier drop of a table with this name. After the first transaction,
    /// writes through handles of the table fail with [`SchemaError::Gone`], and the name can be
    /// used again. Reads through such handles return the records that have not been removed yet.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table::<u32, u32>("prices")?;
    /// store.transact(|txn| prices.put_many(txn, (0..2_500).map(|n| (n, n))))?;
    /// assert_eq!(schema.drop_table("prices")?.removed, 2_500);
    /// assert!(store.transact(|txn| prices.put(txn, &1, &1)).is_err());
    /// assert!(schema.tables()?.is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if there is no such table; any error of the store.
    pub fn drop_table(&self, name: &str) -> Result<Progress> {
        self.drop_table_with(name, BATCH, |_| ControlFlow::Continue(()))
    }

    /// Like [`drop_table`](Schema::drop_table), with at most `batch` keys in a transaction. Calls
    /// `progress` after each transaction and stops if `progress` breaks. The next call, in any
    /// program, resumes, even after a crash.
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if there is no such table; any error of the store.
    pub fn drop_table_with(
        &self,
        name: &str,
        batch: usize,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let store = self.not_dry()?;
        let mut known = self.known();
        known.stored.remove(name);
        known.declared.remove(name);
        drop(known);
        self.works.forget(name);
        let (mut size, mut done) = (BatchSize::new(batch), Progress::default());
        let (mut is_found, mut is_marked) = (false, false);
        loop {
            // Another program may declare a table with this name as soon as this one is marked. So
            // a call marks one table at most.
            let may_mark = !is_marked;
            let step = size.transact(store, |txn, batch| {
                txn.guarded(|txn| self.drop_batch(txn, name, batch, may_mark))
            })?;
            match step {
                DropStep::Removed(removed) => done.removed += removed,
                DropStep::Marked => is_marked = true,
                DropStep::Nothing => break,
            }
            is_found = true;
            if progress(&done).is_break() {
                return Ok(done);
            }
        }
        match is_found {
            true => Ok(Progress { finished: true, ..done }),
            false => Err(SchemaError::Gone { name: name.into() }.into()),
        }
    }

    /// Completes the drops of tables of this schema that were stopped or killed; see
    /// [`dropped_tables`]. A table with the same name that was declared since then stays.
    ///
    /// ```
    /// use std::ops::ControlFlow::Break;
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, schema::dropped_tables};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table::<u32, u32>("prices")?;
    /// store.transact(|txn| prices.put_many(txn, (0..2_500).map(|n| (n, n))))?;
    /// assert!(!schema.drop_table_with("prices", 1_000, |_| Break(()))?.finished);
    ///
    /// let dropped = dropped_tables(&store.snapshot()?)?;
    /// assert_eq!((&*dropped[0].0, &*dropped[0].1.name), ("shop", "prices"));
    /// assert_eq!(schema.finish_drops()?.removed, 2_500);
    /// assert!(dropped_tables(&store.snapshot()?)?.is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`dropped_tables`].
    pub fn finish_drops(&self) -> Result<Progress> {
        self.finish_drops_with(BATCH, |_| ControlFlow::Continue(()))
    }

    /// Like [`finish_drops`](Schema::finish_drops), with at most `batch` keys in a transaction.
    /// Calls `progress` after each transaction and stops if `progress` breaks; the next call
    /// resumes.
    ///
    /// # Errors
    /// The errors of [`dropped_tables`].
    pub fn finish_drops_with(
        &self,
        batch: usize,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(self.not_dry()?, batch, progress, |txn, batch| {
            txn.guarded(|txn| {
                let of_schema = dropped().child(&*self.name);
                let removed = drop_some_dropped(txn, &of_schema, batch)?;
                let finished = removed.is_none();
                Ok(Progress { removed: removed.unwrap_or(0), finished, ..Progress::default() })
            })
        })
    }

    /// Removes some keys of a dropped table with this name. If there is no dropped table, marks the
    /// existing table as dropped, if `may_mark` allows this.
    fn drop_batch(
        &self,
        txn: &mut impl Writer,
        name: &str,
        batch: usize,
        may_mark: bool,
    ) -> Result<DropStep> {
        let dropped = dropped().child(&*self.name).child(name);
        if let Some(removed) = drop_some_dropped(txn, &dropped, batch)? {
            return Ok(DropStep::Removed(removed));
        }
        let entry = super::entries_of(&self.name).pack(name);
        let existing = if may_mark { txn.get(&entry)?.map(|bytes| bytes.to_vec()) } else { None };
        let Some(bytes) = existing else { return Ok(DropStep::Nothing) };
        let table = StoredTable::decode(&bytes).map_err(|error| error.at(&entry))?;
        txn.state().forget(&entry);
        txn.delete(&entry)?;
        txn.put(&dropped.pack(&table.id), &bytes)?;
        Ok(DropStep::Marked)
    }
}

/// What one transaction of a drop has done.
enum DropStep {
    /// Removed keys of a dropped table.
    Removed(u64),
    /// Marked the table as dropped.
    Marked,
    Nothing,
}

/// The subspace of the entries of dropped tables: schema, name, id.
fn dropped() -> Subspace {
    Subspace::new(&("keyloom", "dropped"))
}

/// Lists the tables of all schemas that were dropped, but whose keys have not all been removed,
/// since the drop was stopped or killed. Returns each table with the name of its schema. Costs one
/// range.
///
/// [`finish_drops`](Schema::finish_drops) removes the keys that are left.
///
/// # Errors
/// [`Error::Key`] in an [`Error::At`] for a key that is not the key of a table;
/// [`Error::NewerFormat`]; [`SchemaError::Damaged`]; any error of the store.
pub fn dropped_tables(reader: &impl Reader) -> Result<Vec<(String, TableInfo)>> {
    let all = dropped();
    let mut tables = Vec::new();
    for entry in reader.range(all.self_and_children(), Order::Ascending)? {
        let (key, table) = entry?;
        let (schema, name, _) = all
            .unpack::<(String, String, Id)>(&key)
            .map_err(|error| Error::from(error).at(&key))?;
        let stored = StoredTable::decode(&table).map_err(|error| error.at(&key))?;
        tables.push((schema, TableInfo::of(name, stored)));
    }
    Ok(tables)
}

/// Removes some keys of the first dropped table in a subspace of entries. Returns the number of
/// removed keys, or `None` if there is no dropped table.
fn drop_some_dropped(
    txn: &mut impl Writer,
    entries: &Subspace,
    batch: usize,
) -> Result<Option<u64>> {
    let found = txn.first(entries.self_and_children())?;
    let found = found.map(|(key, table)| (KeyBuf::from_slice(&key), StoredTable::decode(&table)));
    let Some((key, table)) = found else { return Ok(None) };
    clear_dropped(txn, &key, &table.map_err(|error| error.at(&key))?, batch).map(Some)
}

/// Removes some keys of a dropped table, or its entry if no keys are left.
fn clear_dropped(
    txn: &mut impl Writer,
    key: &[u8],
    table: &StoredTable,
    batch: usize,
) -> Result<u64> {
    let derived = table.derived.iter().flat_map(StoredDerived::ids).map(space_of);
    for space in derived.chain([table.space()]) {
        if txn.first(space.self_and_children())?.is_some() {
            return delete_some(txn, &space, batch).map(|(removed, _)| removed);
        }
    }
    table.derived.iter().try_for_each(|one| forget_repairs(txn, one.id))?;
    forget_former(txn, table.id)?;
    let position = position_key(table.id);
    if txn.get(&position)?.is_some() {
        txn.delete(&position)?;
    }
    txn.delete(key)?;
    Ok(0)
}
