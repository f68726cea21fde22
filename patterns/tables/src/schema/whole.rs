//! Support for readers of records that are partly stored in another table.

use keyloom::{KeyBuf, Result};
use keyloom_kit::RecordKey;

use crate::table::Table;

impl<K: RecordKey, V, C> Table<K, V, C> {
    /// The key of the table's entry in the schema, for a reader that calls
    /// [`expect_declared`](Self::expect_declared). `None` for a table outside of a schema.
    ///
    /// A read of a record reads only the key of the record. If part of the record is stored in
    /// another table that only newer programs declare, such as the elements of documents, the
    /// result is incomplete. A reader of such records reads this key in the same round trip.
    pub fn entry_key(&self) -> Option<&KeyBuf> {
        self.owner().map(|owned| owned.entry())
    }

    /// Refuses a table for which another program has declared derived data of this kind that this
    /// program does not declare. `entry` is the value stored at [`entry_key`](Self::entry_key).
    ///
    /// If `entry` is `None`, the table was dropped or renamed, and the function returns `Ok`.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store};
    /// use keyloom_tables::Schema;
    /// use keyloom_tables::derived::Elsewhere;
    /// let store = Memory::new();
    /// let declared = || Schema::open(&store, "blog")?.table::<u32, String>("posts");
    /// let before = declared()?;
    /// let schema = Schema::open(&store, "blog")?;
    /// let posts = schema.table::<u32, String>("posts")?;
    /// schema.derive(&posts, "comments", 1, |space| Ok(Elsewhere::new(space, "path", "")))?;
    ///
    /// let snapshot = store.snapshot()?;
    /// let entry = before.entry_key().map(|key| snapshot.get(key)).transpose()?.flatten();
    /// assert!(before.expect_declared(entry.as_deref(), "path").is_err());
    /// assert!(before.expect_declared(entry.as_deref(), "index").is_ok());
    /// assert!(posts.expect_declared(entry.as_deref(), "path").is_ok());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Undeclared`](super::SchemaError::Undeclared);
    /// [`Error::At`](keyloom::Error::At) if the entry does not decode.
    pub fn expect_declared(&self, entry: Option<&[u8]>, kind: &str) -> Result<()> {
        match (self.owner(), entry) {
            (Some(owned), Some(entry)) => owned.refuse_undeclared_kind(entry, kind),
            _ => Ok(()),
        }
    }
}
