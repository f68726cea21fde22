//! Migration: rewrites records of earlier versions as the newest version.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::value::shape::Shape;
use keyloom::{
    DynWriter, EntryPage, Error, KeyBuf, Order, Reader, Result, Store, Subspace, Writer, pack,
    unpack,
};
use keyloom_kit::{Progress, RecordKey, page_behind};

use super::batches::{BATCH, in_batches};
use super::error::SchemaError;
use super::owned::{Declared, Owned, owned_by};
use super::queued::read_queued;
use super::sample::sample;
use super::stored::{Id, StoredTable, space_of};
use crate::table::Table;

/// The stored position of a migration. Each batch reads and moves it.
#[derive(Default)]
struct Position {
    /// The version to which records are rewritten.
    version: u8,
    /// The key of the last visited record.
    last: Option<KeyBuf>,
    /// The number of records that could not be upgraded, and (in `first_left`) the key of the first
    /// one.
    left: u64,
    first_left: Option<KeyBuf>,
}

pub(super) fn position_key(id: Id) -> KeyBuf {
    pack(&("keyloom", "migration", id))
}

impl Position {
    /// The position of a migration to `version`. If the stored position is of another version, the
    /// migration begins at the first record.
    fn read(reader: &impl Reader, id: Id, version: u8) -> Result<Self> {
        type Stored = (u8, Option<Vec<u8>>, u64, Option<Vec<u8>>);
        let key = position_key(id);
        let Some(bytes) = reader.get(&key)? else { return Ok(Self { version, ..Self::default() }) };
        let stored = unpack::<Stored>(&bytes).map_err(|error| Error::from(error).at(&key))?;
        let (of, last, left, first_left) = stored;
        if of != version {
            return Ok(Self { version, ..Self::default() });
        }
        let [last, first_left] = [last, first_left].map(|key| key.map(KeyBuf::from_vec));
        Ok(Self { version, last, left, first_left })
    }

    fn write(&self, txn: &mut impl Writer, id: Id) -> Result<()> {
        let keys = (self.last.as_deref(), self.first_left.as_deref());
        txn.put(&position_key(id), &pack(&(self.version, keys.0, self.left, keys.1)))
    }
}

impl<K: RecordKey, V: 'static, C: Codec<V>> Table<K, V, C> {
    /// Rewrites all records of earlier [versions](keyloom::value::upgrade) as the newest version,
    /// concurrently with readers and writers. Afterwards the schema lists only the newest version
    /// ([`TableInfo`](super::TableInfo) has its
    /// [shape](keyloom::value::shape::Shape::version_numbers)), and the earlier types can be
    /// removed from the program. A table whose codec has no versions has nothing to rewrite.
    ///
    /// Derived data is not written. If an upgrade changes the fields that derived data is computed
    /// from, raise the version of the derived data, and build it first. Data that consists of plain
    /// entries, such as an index, is compared with each upgraded record: one get per entry. This
    /// comparison finds neither an entry that the upgrade should remove, nor a change in other
    /// kinds, such as totals. [`check`](super::Attached::check) finds both.
    ///
    /// ```
    /// use keyloom::value::{Plain, Upgrade};
    /// use keyloom::{BoxedError, Memory, Store};
    /// use keyloom_tables::Schema;
    /// use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct PriceV1(u32);
    /// #[derive(Debug, PartialEq, Serialize, Deserialize)]
    /// struct Price { cents: u64 }
    /// impl Upgrade for Price {
    ///     const VERSION: u8 = 2;
    ///     type From = Plain<PriceV1>;
    ///     fn upgrade(old: PriceV1) -> Result<Self, BoxedError> {
    ///         Ok(Self { cents: old.0.into() })
    ///     }
    /// }
    /// # let store = Memory::new();
    /// # let old = Schema::open(&store, "shop")?.table::<u32, PriceV1>("prices")?;
    /// # store.transact(|txn| old.put_many(txn, (0..2_500).map(|n| (n, PriceV1(n)))))?;
    /// let prices = Schema::open(&store, "shop")?.upgraded_table::<u32, Price>("prices")?;
    /// assert_eq!(prices.migrate(&store)?.written, 2_500);
    ///
    /// // The next program no longer knows `PriceV1`.
    /// mod next {
    /// #   use keyloom::{BoxedError, value::{Nothing, Upgrade}};
    /// #   use serde::{Deserialize, Serialize};
    ///     #[derive(Debug, PartialEq, Serialize, Deserialize)]
    ///     pub struct Price { pub cents: u64 }
    ///     impl Upgrade for Price {
    ///         const VERSION: u8 = 2;
    ///         type From = Nothing;
    ///         fn upgrade(old: Nothing) -> Result<Self, BoxedError> { match old {} }
    ///     }
    /// }
    /// let prices = Schema::open(&store, "shop")?.upgraded_table::<u32, next::Price>("prices")?;
    /// assert_eq!(prices.get(&store.snapshot()?, &7)?, Some(next::Price { cents: 7 }));
    /// # Ok::<(), BoxedError>(())
    /// ```
    ///
    /// # Errors
    /// See [`migrate_with`](Table::migrate_with).
    pub fn migrate(&self, store: &impl Store) -> Result<Progress> {
        self.migrate_with(store, BATCH, |_| ControlFlow::Continue(()))
    }

    /// Like [`migrate`](Table::migrate), with at most `batch` records in a transaction. Calls
    /// `progress` after each transaction and stops if `progress` breaks. The position is stored:
    /// the next call, in any program, resumes there, even after a crash. Concurrent calls take
    /// turns.
    ///
    /// # Errors
    /// [`SchemaError::NotUpgraded`] after all other records were rewritten;
    /// [`SchemaError::UpgradeChanges`], after which the records from this batch on are not
    /// rewritten; [`SchemaError::Undeclared`] for derived data that could not be compared;
    /// [`SchemaError::Queued`]; [`SchemaError::Gone`]; [`Error::InvalidArgument`] for a table
    /// outside of a schema; any error of the store.
    pub fn migrate_with<S: Store>(
        &self,
        store: &S,
        batch: usize,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let owned = owned_by(self).ok_or_else(|| Error::InvalidArgument {
            what: "the table",
            value: self.space().named(),
            why: "it belongs to no schema, which knows the versions of its records",
        })?;
        let Some(version) = C::version() else { return Ok(Progress::complete()) };
        let mut failed = None;
        let done = in_batches(store, batch, progress, |txn, batch| {
            txn.guarded(|txn| {
                let (done, left) = self.migrate_batch(txn, owned, version, batch)?;
                failed = left;
                Ok(done)
            })
        })?;
        failed.map_or(Ok(done), Err)
    }

    /// Migrates the next records. After the last record, also returns the error for the records
    /// that could not be upgraded.
    fn migrate_batch(
        &self,
        txn: &mut impl Writer,
        owned: &Owned<K, V>,
        version: u8,
        batch: usize,
    ) -> Result<(Progress, Option<Error>)> {
        let stored = owned.read(txn)?;
        let shape = stored.definition.shape.as_ref();
        if shape.and_then(Shape::version_numbers).is_some_and(|all| all == [version]) {
            return Ok((Progress::complete(), None));
        }
        owned.refuse_undeclared(&stored)?;
        let mut position = Position::read(txn, stored.id, version)?;
        let EntryPage { entries, last } =
            page_behind(position.last.as_deref(), txn, self.space(), batch.max(1))?;
        let mut progress = Progress { records: entries.len() as u64, ..Progress::default() };
        let mut rewritten = Vec::new();
        let mut upgraded = Vec::new();
        for (key, old) in entries.iter().filter(|(_, old)| !C::is_current(old)) {
            match upgrade(self, key, old) {
                Ok((new, record)) => {
                    rewritten.push((KeyBuf::from_slice(key), new));
                    upgraded.push(record);
                }
                Err(_) => {
                    position.left += 1;
                    position.first_left.get_or_insert_with(|| KeyBuf::from_slice(key));
                }
            }
        }
        drop(entries);
        for (declared, up_to) in owned.maintained(&stored) {
            let is_visited = |(key, _): &(KeyBuf, _)| up_to.as_ref().is_none_or(|last| key <= last);
            let visited = rewritten.partition_point(is_visited);
            let visited = upgraded.get(..visited).unwrap_or_default();
            refuse_missing(txn, owned, &declared, self.space(), visited)?;
        }
        rewritten.iter().try_for_each(|(key, new)| txn.put(key, new))?;
        progress.written = rewritten.len() as u64;
        progress.finished = last.is_none();
        if last.is_some() {
            position.last = last;
            position.write(txn, stored.id)?;
            return Ok((progress, None));
        }
        refuse_queued::<V, C>(txn, &owned.name, &stored)?;
        if txn.get(&position_key(stored.id))?.is_some() {
            txn.delete(&position_key(stored.id))?;
        }
        let Some(key) = &position.first_left else {
            finish(txn, owned, stored, version)?;
            return Ok((progress, None));
        };
        let upgraded = |old: &[u8]| upgrade(self, key, old).map(drop);
        let first = txn.get(key)?.map(|old| upgraded(&old)).transpose();
        let left = first.err().map(|source| {
            let (table, source) = (owned.name.to_string(), source.at(key));
            SchemaError::NotUpgraded { table, left: position.left, source }.into()
        });
        // If the first record that could not be upgraded was replaced meanwhile, the next pass
        // finds the remaining ones.
        progress.finished = left.is_some();
        Ok((progress, left))
    }
}

/// Removes the earlier versions from the schema.
fn finish<K, V>(
    txn: &mut impl Writer,
    owned: &Owned<K, V>,
    mut stored: StoredTable,
    version: u8,
) -> Result<()> {
    let shape = stored.definition.shape.take();
    let newest = shape.as_ref().map(|shape| shape.with_versions(|one| one == version));
    if newest == shape {
        return Ok(());
    }
    stored.definition.shape = newest;
    owned.write(txn, &stored)
}

/// Upgrades a record. Returns its bytes in the newest version, and its key and value.
fn upgrade<K: RecordKey, V, C: Codec<V>>(
    table: &Table<K, V, C>,
    key: &[u8],
    old: &[u8],
) -> Result<(Vec<u8>, (K, V))> {
    let record = (table.space().unpack(key)?, C::decode(old)?);
    table.refuse_other_key(key, &record.1)?;
    let mut new = Vec::new();
    C::encode(&record.1, &mut new)?;
    Ok((new, record))
}

/// Refuses derived data that does not match the upgraded records. Checks a sample of the records of
/// earlier versions. Costs at most 202 ranges of one key, and one round trip for the data.
///
/// Without this check, writes would not find the entries that were derived from the earlier
/// versions, and these entries would stay forever.
pub(super) fn refuse_changed_sample<K: RecordKey, V, C: Codec<V>>(
    txn: &mut impl Writer,
    owned: &Owned<K, V>,
    declared: &Declared<K, V>,
    table: &Table<K, V, C>,
) -> Result<()> {
    let mut sampled = Vec::new();
    sample(txn, table.space(), &mut |key, bytes| {
        if !C::is_current(bytes) {
            // A migration reports records that cannot be upgraded.
            sampled.extend(upgrade(table, key, bytes).map(|(_, record)| record));
        }
        Ok(())
    })?;
    refuse_missing(txn, owned, declared, table.space(), &sampled)
}

/// # Errors
/// [`SchemaError::UpgradeChanges`] if the data of one of the records is not in the store.
fn refuse_missing<K: RecordKey, V>(
    txn: &mut impl Writer,
    owned: &Owned<K, V>,
    declared: &Declared<K, V>,
    space: &Subspace,
    records: &[(K, V)],
) -> Result<()> {
    let missing = declared.derived().missing(&mut DynWriter::new(txn), records)?;
    let Some((key, _)) = missing.first().and_then(|place| records.get(*place)) else {
        return Ok(());
    };
    let (table, name) = (owned.name.to_string(), declared.name.to_string());
    Err(Error::from(SchemaError::UpgradeChanges { table, name }).at(&space.pack(key)))
}

/// Refuses a queue with a record of an earlier version: a program of that version has queued it,
/// and a drain will read it.
fn refuse_queued<V, C: Codec<V>>(
    reader: &impl Reader,
    table: &str,
    stored: &StoredTable,
) -> Result<()> {
    for one in &stored.derived {
        let Some(queue) = one.queue.map(space_of) else { continue };
        for entry in reader.range(queue.self_and_children(), Order::Ascending)? {
            let (key, queued) = entry?;
            let old = read_queued(&queued).map_err(|error| error.at(&key))?;
            if old.is_some_and(|old| !C::is_current(old)) {
                let (table, name) = (table.into(), one.name.clone());
                return Err(SchemaError::Queued { table, name }.into());
            }
        }
    }
    Ok(())
}
