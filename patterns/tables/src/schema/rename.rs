//! Renames tables and derived data.

use keyloom::{KeyBuf, Reader, Result, Store, Writer};

use super::error::SchemaError;
use super::former::{former_derived, former_table, leave_name, take_name};
use super::owned::refuse_owner;
use super::stored::{StoredTable, write_entry};
use super::{Schema, entries_of};

impl<S: Store> Schema<'_, S> {
    /// Renames a table, and returns whether it had the old name. Moves no record. A rename costs
    /// three gets and three keys written. If there is nothing to rename, the call costs two or
    /// three gets, and at most one key written.
    ///
    /// Call this function before the declaration of the table, in each program that uses the new
    /// name. If there is no table with the old name, no table changes, and the result is `false`:
    /// another program has already renamed the table, or the store has never had it. A misspelled
    /// old name has the same result. If neither name exists, the store notes that the old name was
    /// given away, and a later declaration of the old name fails as below. The
    /// [plan](Schema::dry_run) then adds a table with the new name, and lists the old table as
    /// undeclared. A running program that uses the old name can no longer write
    /// ([`SchemaError::Gone`]). Its reads return the records as before. When it starts again, its
    /// declaration fails ([`SchemaError::Renamed`]), until the name is
    /// [freed](Schema::free_table_name).
    ///
    /// Keep the rename in the program as long as stores with the old name may exist. Remove it
    /// before another table gets the old name: at its next start, the program would rename that
    /// table.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let old = Schema::open(&store, "shop")?.table::<u32, u32>("prices")?;
    /// store.transact(|txn| old.put(txn, &1, &250))?;
    ///
    /// let schema = Schema::open(&store, "shop")?;
    /// assert!(schema.rename_table("prices", "cents")?);
    /// let cents = schema.table::<u32, u32>("cents")?;
    /// assert_eq!(cents.get(&store.snapshot()?, &1)?, Some(250));
    /// assert!(store.transact(|txn| old.put(txn, &2, &120)).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Taken`] if both names exist; any error of the store.
    pub fn rename_table(&self, old: &str, new: &str) -> Result<bool> {
        let renamed = self.enter(|txn| {
            let [from, to] = [old, new].map(|name| entries_of(&self.name).pack(name));
            // If neither name exists, an error would be wrong: a program runs all its renames at
            // each start, even on a new store, and after later renames.
            let Some(entry) = txn.get(&from)?.map(|entry| entry.to_vec()) else {
                if txn.get(&to)?.is_none() {
                    note_absent(txn, &self.former(old), old, new)?;
                }
                return Ok(None);
            };
            if old == new {
                return Ok(None);
            }
            if txn.get(&to)?.is_some() {
                return Err(self.taken(old, new));
            }
            let stored = StoredTable::decode(&entry).map_err(|error| error.at(&from))?;
            txn.state().forget(&from);
            txn.delete(&from)?;
            write_entry(txn, &to, &stored)?;
            leave_name(txn, &self.former(old), new)?;
            take_name(txn, &self.former(new))?;
            Ok(Some(stored))
        })?;
        let mut known = self.known();
        known.stored.remove(old);
        known.stored.remove(new);
        Ok(renamed.is_some())
    }

    /// Renames data derived from `table`, and returns whether it had the old name. The data and its
    /// state stay as they are.
    ///
    /// Call this function before the declaration of the data, like
    /// [`rename_table`](Schema::rename_table). If there is no such table, or no data with the old
    /// name, no data changes, and the result is `false`. If neither name exists, the old name is
    /// noted as for a table. A program that declares the old name can no longer write to the table
    /// ([`SchemaError::Undeclared`]) or query the data. When it starts again, its declaration
    /// fails.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let old = Schema::open(&store, "shop")?;
    /// let prices = old.table::<u32, u32>("prices")?;
    /// old.index(&prices, "by_price", 1, |_, cents| entry(cents))?;
    /// store.transact(|txn| prices.put(txn, &1, &250))?;
    ///
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table::<u32, u32>("prices")?;
    /// assert!(schema.rename_derived("prices", "by_price", "by_cents")?);
    /// let by_cents = schema.index(&prices, "by_cents", 1, |_, cents| entry(cents))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(by_cents.at(&snapshot)?.count(&snapshot, 250)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Taken`] if both names exist;
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for data of the kind
    /// [`OWNER`](super::OWNER); any error of the store.
    pub fn rename_derived(&self, table: &str, old: &str, new: &str) -> Result<bool> {
        let is_renamed = self.enter(|txn| {
            let entry = entries_of(&self.name).pack(table);
            let Some(bytes) = txn.get(&entry)?.map(|bytes| bytes.to_vec()) else {
                return Ok(false);
            };
            let mut stored = StoredTable::decode(&bytes).map_err(|error| error.at(&entry))?;
            refuse_owner(&stored, table, old)?;
            let former = |name| former_derived(stored.id, name);
            let [from, to] = [former(old), former(new)];
            let Some(place) = stored.derived.iter().position(|one| one.name == old) else {
                if stored.get(new).is_none() {
                    note_absent(txn, &from, old, new)?;
                }
                return Ok(false);
            };
            if old == new {
                return Ok(false);
            }
            if stored.get(new).is_some() {
                return Err(self.taken(&format!("{table}.{old}"), &format!("{table}.{new}")));
            }
            let mut one = stored.derived.remove(place);
            one.name = new.into();
            stored.insert(one);
            leave_name(txn, &from, new)?;
            take_name(txn, &to)?;
            write_entry(txn, &entry, &stored)?;
            Ok(true)
        })?;
        self.known().stored.remove(table);
        Ok(is_renamed)
    }

    /// Frees a former name of a table for another table, and returns whether it was a former name.
    ///
    /// A declaration with a former name of a [renamed](Schema::rename_table) table is refused
    /// ([`SchemaError::Renamed`]). Otherwise an older program that starts again would create an
    /// empty table, and newer programs would not see its writes. Call this function before the
    /// declaration, once no program uses the former name. Costs one get and one key written.
    ///
    /// ```
    /// use keyloom::Memory;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// schema.table::<u32, u32>("prices")?;
    /// schema.rename_table("prices", "cents")?;
    ///
    /// let schema = Schema::open(&store, "shop")?;
    /// assert!(schema.table::<u32, u32>("prices").is_err());
    /// assert!(schema.free_table_name("prices")?);
    /// schema.table::<u32, f64>("prices")?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store.
    pub fn free_table_name(&self, name: &str) -> Result<bool> {
        self.enter(|txn| take_name(txn, &self.former(name)))
    }

    /// Frees a former name of data derived from `table` for other data; see
    /// [`free_table_name`](Schema::free_table_name).
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if there is no such table; any error of the store.
    pub fn free_derived_name(&self, table: &str, name: &str) -> Result<bool> {
        self.enter(|txn| {
            let (_, stored) = self.read_table(txn, table)?;
            take_name(txn, &former_derived(stored.id, name))
        })
    }

    fn former(&self, name: &str) -> KeyBuf {
        former_table(&self.name, name)
    }

    fn taken(&self, old: &str, new: &str) -> keyloom::Error {
        let (schema, old, new) = (self.name.to_string(), old.into(), new.into());
        SchemaError::Taken { schema, old, new }.into()
    }
}

/// Stores the former name, unless it is stored already, although nothing with this name has existed
/// in the store. Otherwise an older program that starts on this store would create the table or
/// data, and newer programs would not see its writes.
fn note_absent(txn: &mut impl Writer, former: &[u8], old: &str, new: &str) -> Result<()> {
    if old == new || txn.get(former)?.is_some() {
        return Ok(());
    }
    leave_name(txn, former, new)
}
