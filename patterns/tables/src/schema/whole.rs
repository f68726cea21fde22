//! Records of which a part is stored elsewhere, for their readers.

use keyloom::{KeyBuf, Result};
use keyloom_kit::RecordKey;

use crate::table::Table;

impl<K: RecordKey, V, C> Table<K, V, C> {
    /// The key of the table's entry in the schema, for a reader that
    /// [expects](Self::expect_declared) something of it. `None` without a schema.
    ///
    /// A read of a record costs no other key than the record. So it returns a record incompletely
    /// if a part of it is stored in another table that only newer programs declare, as the elements
    /// of documents are. A reader of such records reads this key in the same round trip.
    pub fn entry_key(&self) -> Option<&KeyBuf> {
        self.owner().map(|owned| owned.entry())
    }

    /// Refuses a table for which another program has declared derived data of this kind that this
    /// program does not declare. `entry` is what is stored at [`entry_key`](Self::entry_key).
    ///
    /// If nothing is stored there, the table was dropped or renamed, and nothing is refused.
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
    /// [`SchemaError::Undeclared`](super::SchemaError::Undeclared); an error with the key if the
    /// entry does not decode.
    pub fn expect_declared(&self, entry: Option<&[u8]>, kind: &str) -> Result<()> {
        match (self.owner(), entry) {
            (Some(owned), Some(entry)) => owned.refuse_undeclared_kind(entry, kind),
            _ => Ok(()),
        }
    }
}
