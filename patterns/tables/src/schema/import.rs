//! Imports tables with an explicit subspace.

use std::ops::ControlFlow;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, KeyBuf, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{Progress, RecordKey, page_behind};

use super::accept::define_table;
use super::batches::{BATCH, delete_some, in_batches};
use super::error::SchemaError;
use super::overlap::refuse_overlap;
use super::stored::TableDefinition;
use super::{Schema, entries_of};
use crate::table::{Table, record};

impl<S: Store> Schema<'_, S> {
    /// Adds a [`Table`] with an explicit subspace to the schema. The records stay in place. From
    /// then on, [`table`](Schema::table) also opens this table, and a second import of the same
    /// table reads nothing.
    ///
    /// Before the import, stop all programs that use the explicit subspace. A [`Table`] with an
    /// explicit subspace does not read the schema, so its writes would succeed without maintaining
    /// the derived data. [`check`](super::Attached::check) reports the resulting inconsistencies,
    /// and [`repair`](super::Attached::repair) fixes them.
    ///
    /// After the import, declare the derived data and [build](super::Attached::build) it. Then
    /// [clear](Schema::clear_explicit) the explicit subspaces of the old derived data. Each step
    /// may be repeated, even after a crash.
    ///
    /// The store does not hold the types of records in an explicit subspace. All entries must
    /// decode as `K` and `V`, but the same bytes may be valid values of several types: use the
    /// types with which they were written.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Schema, Table, entry};
    /// let store = Memory::new();
    /// // A program without a schema.
    /// let by_town = Index::new(&Subspace::new("by_town"), |_: &u32, town: &String| entry(town));
    /// let people = Table::<u32, String>::new(&Subspace::new("people")).with(&by_town);
    /// store.transact(|txn| people.put(txn, &7, &"Bern".into()))?;
    ///
    /// let schema = Schema::open(&store, "town hall")?;
    /// let people = schema.import_table::<u32, String>("people", &Subspace::new("people"))?;
    /// let by_town = schema.index(&people, "by_town", 1, |_, town| entry(town))?;
    /// by_town.build(&store)?;
    /// assert_eq!(schema.clear_explicit(&Subspace::new("by_town"))?.removed, 1);
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(by_town.query().prefix("Bern").records(&snapshot)?.items, [(7, "Bern".into())]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// Costs one range per 1,000 records, and the cost of a new [`table`](Schema::table) with 2
    /// more ranges, which read the entries of all schemas of the store.
    ///
    /// # Errors
    /// [`SchemaError::NotARecord`] for an entry that does not decode; [`SchemaError::Overlap`] if
    /// the subspace overlaps with another imported table or with data of a schema;
    /// [`Error::InvalidArgument`] for a subspace without records; [`SchemaError::Contradiction`] if
    /// the name belongs to another table; [`SchemaError::DeclaredTwice`]; any error of the store.
    pub fn import_table<K: RecordKey, V: 'static>(
        &self,
        name: &str,
        space: &Subspace,
    ) -> Result<Table<K, V>>
    where
        Postcard: Codec<V>,
    {
        self.import_table_with::<K, V, Postcard>(name, 1, space)
    }

    /// Like [`import_table`](Schema::import_table), for records that are encoded with the codec
    /// `C`. The table gets the version `version`.
    ///
    /// # Errors
    /// See [`import_table`](Schema::import_table).
    pub fn import_table_with<K: RecordKey, V: 'static, C: Codec<V>>(
        &self,
        name: &str,
        version: u32,
        space: &Subspace,
    ) -> Result<Table<K, V, C>> {
        let definition = define_table::<K, V, C>(name, version)?;
        if !self.is_entered(name)? {
            self.refuse_other_entries::<K, V, C>(name, &definition, space)?;
        }
        self.declare_table(name, definition, Some(space))
    }

    /// Removes all keys of an explicit subspace in bounded transactions. Use it for the old derived
    /// data of an [imported](Schema::import_table) table.
    ///
    /// # Errors
    /// [`SchemaError::Overlap`] for a subspace that overlaps with data of a schema; any error of
    /// the store.
    pub fn clear_explicit(&self, space: &Subspace) -> Result<Progress> {
        self.clear_explicit_with(space, BATCH, |_| ControlFlow::Continue(()))
    }

    /// Like [`clear_explicit`](Schema::clear_explicit), with at most `batch` keys in a transaction.
    /// Calls `progress` after each transaction and stops if `progress` breaks; the next call
    /// resumes.
    ///
    /// # Errors
    /// See [`clear_explicit`](Schema::clear_explicit).
    pub fn clear_explicit_with(
        &self,
        space: &Subspace,
        batch: usize,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(self.not_dry()?, batch, progress, |txn, batch| {
            txn.guarded(|txn| {
                refuse_overlap(txn, space, "cleared")?;
                let (removed, finished) = delete_some(txn, space, batch.max(1))?;
                Ok(Progress { removed, finished, ..Progress::default() })
            })
        })
    }

    fn is_entered(&self, name: &str) -> Result<bool> {
        if self.known().stored.contains_key(name) {
            return Ok(true);
        }
        if self.dry_run.is_some() {
            return Ok(self.stored()?.contains_key(name));
        }
        Ok(self.store.snapshot()?.get(&entries_of(&self.name).pack(name))?.is_some())
    }

    /// Refuses a subspace without entries, and a subspace with an entry that is not a record.
    fn refuse_other_entries<K: RecordKey, V, C: Codec<V>>(
        &self,
        name: &str,
        definition: &TableDefinition,
        space: &Subspace,
    ) -> Result<()> {
        refuse_overlap(&self.store.snapshot()?, space, "imported")?;
        let mut is_empty = true;
        let mut after: Option<KeyBuf> = None;
        loop {
            // Take a new snapshot per page: the check may take longer than some stores keep a
            // snapshot.
            let snapshot = self.store.snapshot()?;
            let page = page_behind(after.as_deref(), &snapshot, space, BATCH)?;
            is_empty &= page.entries.is_empty();
            for entry in page.entries {
                record::<_, K, V, C>(space, entry).map_err(|source| {
                    let (name, declared) = (name.into(), definition.to_string());
                    Error::from(SchemaError::NotARecord { name, declared, source })
                })?;
            }
            after = page.last;
            if after.is_none() {
                break;
            }
        }
        if is_empty {
            return Err(Error::InvalidArgument {
                what: "the subspace to import",
                value: space.named(),
                why: "it holds no record; compare it with the one that was written, or declare an empty table with `Schema::table`",
            });
        }
        Ok(())
    }
}
