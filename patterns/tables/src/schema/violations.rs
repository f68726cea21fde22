//! Records that violate the uniqueness of an index.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Reader, Result};
use keyloom_kit::parts::KeyShape;
use keyloom_kit::{RecordKey, pack_one};

use super::attached::Attached;
use crate::index::{Index, NotUnique};

/// The number of records that are read together.
// Smaller chunks add round trips; larger chunks need more memory.
const CHUNK: usize = 1_000;

impl<K: RecordKey, V: 'static, P: KeyShape + 'static, C: Codec<V>> Attached<Index<K, V, P>, C> {
    /// Returns at most `limit` records whose parts are already taken by an earlier record, with the
    /// key of the earlier record. While such records exist, a unique index cannot be built. Works
    /// in each state of the index, even before the build, and for an index that is not unique.
    ///
    /// Reads all records, and holds the parts of all their entries in memory.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "app")?;
    /// let users = schema.table::<u32, String>("users")?;
    /// store.transact(|txn| users.put_many(txn, [(1, "ada".to_owned()), (2, "ada".to_owned())]))?;
    ///
    /// let by_email = schema.unique_index(&users, "by_email", 1, |_, email| entry(email))?;
    /// assert!(by_email.build(&store).is_err());
    /// let found = by_email.violations(&store.snapshot()?, 10)?;
    /// assert_eq!((found[0].record::<u32>()?, found[0].holder::<u32>()?), (2, 1));
    ///
    /// store.transact(|txn| users.put(txn, &2, &"bob".into()))?;
    /// assert!(by_email.build(&store)?.finished);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::At`](keyloom::Error::At) for a record that does not decode; any error of the store.
    pub fn violations(&self, reader: &impl Reader, limit: usize) -> Result<Vec<NotUnique>> {
        let index = self.derived.untyped();
        let (mut found, mut after) = (Vec::new(), None);
        let mut holders: HashMap<KeyBuf, KeyBuf> = HashMap::new();
        while found.len() < limit {
            let page = self.table.page(reader, .., CHUNK, after.as_ref())?;
            for (key, value) in &page.items {
                let record = pack_one(key);
                for parts in index.parts(key, value) {
                    match holders.entry(parts) {
                        Entry::Vacant(vacant) => drop(vacant.insert(record.clone())),
                        Entry::Occupied(holder) => {
                            found.push(index.not_unique(holder.key(), &record, holder.get()));
                        }
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}
