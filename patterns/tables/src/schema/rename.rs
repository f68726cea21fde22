//! Other names for tables and derived data.

use keyloom::{Reader, Result, Store, Writer};

use super::error::SchemaError;
use super::owned::refuse_owner;
use super::stored::{StoredTable, write_entry};
use super::{Schema, entries_of};

impl<S: Store> Schema<'_, S> {
    /// Gives a table another name, and returns whether it had the old one. Moves no record: costs
    /// two gets and two keys written.
    ///
    /// Call it before the declaration of the table, in each program that uses the new name: if
    /// another program was first, it returns `false`. A program that runs under the old name can no
    /// longer write ([`SchemaError::Gone`]). Its reads return the records as before.
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
    /// [`SchemaError::Taken`] if both names exist; [`SchemaError::Gone`] if neither does; any error
    /// of the store.
    pub fn rename_table(&self, old: &str, new: &str) -> Result<bool> {
        let renamed = self.enter(|txn| {
            let [from, to] = [old, new].map(|name| entries_of(&self.name).pack(name));
            let target = txn.get(&to)?.is_some();
            let Some(entry) = txn.get(&from)?.map(|entry| entry.to_vec()) else {
                return if target { Ok(None) } else { Err(gone(old)) };
            };
            if old == new {
                return Ok(None);
            }
            if target {
                return Err(self.taken(old, new));
            }
            let stored = StoredTable::decode(&entry).map_err(|error| error.at(&from))?;
            txn.state().forget(&from);
            txn.delete(&from)?;
            write_entry(txn, &to, &stored)?;
            Ok(Some(stored))
        })?;
        let mut known = self.known();
        known.stored.remove(old);
        known.stored.remove(new);
        Ok(renamed.is_some())
    }

    /// Gives data derived from `table` another name, and returns whether it had the old one. It
    /// stays as it is, readable or being built.
    ///
    /// Call it before the declaration of the data, as [`rename_table`](Schema::rename_table). A
    /// program that declares the old name can no longer write to the table
    /// ([`SchemaError::Undeclared`]), nor query the data.
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
    /// [`SchemaError::Taken`] if both names exist; [`SchemaError::Gone`] if neither does;
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for the tree of a table of
    /// nodes; any error of the store.
    pub fn rename_derived(&self, table: &str, old: &str, new: &str) -> Result<bool> {
        let is_renamed = self.enter(|txn| {
            let (entry, mut stored) = self.read_table(txn, table)?;
            refuse_owner(&stored, table, old)?;
            let target = stored.get(new).is_some();
            let Some(place) = stored.derived.iter().position(|one| one.name == old) else {
                let name = || format!("{table}.{old}");
                return if target { Ok(false) } else { Err(gone(&name())) };
            };
            if old == new {
                return Ok(false);
            }
            if target {
                return Err(self.taken(&format!("{table}.{old}"), &format!("{table}.{new}")));
            }
            let mut one = stored.derived.remove(place);
            one.name = new.into();
            stored.insert(one);
            write_entry(txn, &entry, &stored)?;
            Ok(true)
        })?;
        self.known().stored.remove(table);
        Ok(is_renamed)
    }

    fn taken(&self, old: &str, new: &str) -> keyloom::Error {
        let (schema, old, new) = (self.name.to_string(), old.into(), new.into());
        SchemaError::Taken { schema, old, new }.into()
    }
}

pub(super) fn gone(name: &str) -> keyloom::Error {
    SchemaError::Gone { name: name.into() }.into()
}
