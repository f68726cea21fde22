//! Index without transactions: how are items found by a property in a store that is atomic only per
//! key?
//!
//! If a transaction cannot change an item and its index entry together, readers see an intermediate
//! state, and a crash makes it permanent. Removing "the entry of the previous value" does not work
//! if two updates race. If both read the same old value, the entry of the losing update is never
//! removed. Or an update removes an entry that has become valid again.
//!
//! The solution: an index entry contains not only the value and the item, but also the *update*
//! that wrote it. Each item has a list of the updates that may have entries. An update removes only
//! the entries of the updates that it read from the list. So it never removes the entry of a
//! concurrent update, and no entry is left behind. Readers check whether an entry is still current.
//!
//! ```
//! use keyloom::{Memory, Result, Store, Subspace};
//! use keyloom_tables::property_index::{PropertyIndex, Stamps};
//! // The users of an organization, by their town.
//! let towns = PropertyIndex::<String, u32, String>::new(&Subspace::new("towns"));
//! let store = Memory::new();
//! let mut stamps = Stamps::new(1);
//! let acme = "Acme".to_owned();
//! towns.set(&store, &mut stamps, &acme, &7, &"Paris".into())?;
//! towns.set(&store, &mut stamps, &acme, &8, &"Paris".into())?;
//! towns.set(&store, &mut stamps, &acme, &7, &"Lyon".into())?;
//! let snapshot = store.snapshot()?;
//! let found = towns.items_with(&snapshot, &acme, "Paris".into())?.collect::<Result<Vec<_>>>()?;
//! assert_eq!(found, [("Paris".into(), 8)]);
//! assert_eq!(towns.value(&snapshot, &acme, &7)?.as_deref(), Some("Lyon"));
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, 0, container, item, time, writer | an *update* of the item: 1 byte with the format (1) in the upper 4 bits, and 0 for *intended* or 1 for *written* in the lower 4 bits; 1 byte with the level of its entry; the packed value, or nothing if the update removes the value |
//! | subspace, 1, container, level, bucket, value, item, time, writer | an *entry* of the index: the format (1), one byte |
//! | subspace, 2, container, level | this level is open: the format (1), one byte |
//!
//! The value of an item is the value of its newest *written* update. There is no separate record of
//! the item, which an older update could overwrite. Time and writer form a [stamp](Stamps). A stamp
//! is unique, and newer than all stamps that its update has read.
//!
//! **Buckets** limit the size of rows (the data that such a store keeps on one machine). Level n
//! has 2ⁿ buckets, and the hash of an item selects the bucket. If a bucket of the newest level
//! exceeds the [bound](PropertyIndex::bucket_width), the next level is opened, and new entries go
//! there. Readers read the buckets of all levels.
//!
//! # Invariants
//!
//! An update runs in steps, and each step changes one key atomically. The update reads the list,
//! and then:
//!
//! 1. the update adds itself to the list as *intended*;
//! 2. it writes its index entry;
//! 3. it changes its state in the list to *written*; from now on, its value is that of the item;
//! 4. for each older update that it read in the list, it deletes the entry of that update, and then
//!    removes the update from the list if its state is *written*. An intended update may still be
//!    in progress, so it stays on the list for now.
//!
//! So after each step and each crash:
//!
//! * the update of every entry is listed, so stale entries can be found and removed;
//! * the value of an item has its entry, because step 2 comes before step 3, and an entry is
//!   deleted only after a newer update is written;
//! * if an entry is replaced by an entry with the same value, readers visit the level of the old
//!   entry before, or together with, the level of the new entry.
//!
//! A query that runs concurrently with updates finds each item that has the queried value during
//! the whole query. An item that is updated meanwhile may be returned twice.
//!
//! An update whose process died stays on the list, as intended, until it is older than the [grace
//! period](PropertyIndex::grace_us). No update may take longer than the grace period, including
//! clock differences. An update fails if it detects that it has taken more than half of the grace
//! period.
//!
//! # Cost
//!
//! p is the number of updates on the list, usually one; l is the newest level.
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`set`](PropertyIndex::set) | 2 ranges of p and 1 keys; 3 + 2 p keys written, each in a separate commit; occasionally the count of a bucket, 8 keys on average | 5 + 2 p |
//! | [`set`](PropertyIndex::set) to the current value | 1 range | 1 |
//! | [`remove`](PropertyIndex::remove) | the same as `set`, with one key less | 4 + 2 p |
//! | [`value`](PropertyIndex::value) | 1 range, usually of 1 key; 3 ranges while an update is in progress or after an update died | 1 to 3 |
//! | [`items_with`](PropertyIndex::items_with), [`items_within`](PropertyIndex::items_within) | 2 ranges for the level, 1 for each of 2ˡ⁺¹ − 1 buckets, and a [`value`](PropertyIndex::value) for each entry | as many |
//! | [`items`](PropertyIndex::items) | 1 range of all updates, and a `value` for each item | 1 + items |
//! | [`sweep`](PropertyIndex::sweep) | 1 range, 2 keys written for each stale update | 1 + 2 per stale update |
//! | [`check`](PropertyIndex::check) | all updates and entries, and one get or more for each | as many |
//! | [`repair`](PropertyIndex::repair) | the reads of `check`, and a commit for each repaired key | as many |
//!
//! # When not to use it
//!
//! Do not use it where transactions are available: an [`Index`](crate::Index) needs one commit
//! instead of five, and no garbage collection. Every store of keyloom has transactions. This
//! pattern is for data outside of these stores, such as a change log, a cache, or another kind of
//! store behind [`Store`](keyloom::Store). It is also for many machines that must not wait for each
//! other. All its transactions have a single write.
//!
//! # Source
//!
//! E. Anuff, *Secondary indexes in Cassandra* (2010) and *Indexing in Cassandra* (Cassandra SF
//! 2011): the items of a container, the index of a property with composite columns, the list of
//! previous entries. Cassandra resolves concurrent writes of a cell by their timestamps. Here each
//! update has its own key, so the store need not resolve conflicts.

mod check;
mod list;
mod query;
mod stamps;
mod update;

use std::fmt;
use std::marker::PhantomData;

use keyloom::{KeyBuf, Subspace};
use keyloom_kit::Fnv;

pub use stamps::Stamps;

/// The format version of entries, levels and updates that this code writes.
const FORMAT: u8 = 1;

/// The last level, with 2^20 buckets.
// A query at this level reads 2^21 buckets. Further items only make the buckets larger.
const LAST_LEVEL: u8 = 20;

/// A marker for the type parameters. It is `Send` and `Sync` for all types, because no values of
/// these types are stored.
type Types<C, I, V> = PhantomData<fn() -> (C, I, V)>;

/// A property of the items in any number of containers, with its index; see the [module](self).
///
/// `C` is the key of a container, `I` the key of an item in the container, and `V` the value. Each
/// is one element of a key.
pub struct PropertyIndex<C, I, V> {
    updates: Subspace,
    entries: Subspace,
    levels: Subspace,
    bucket_width: usize,
    grace_us: u64,
    types: Types<C, I, V>,
}

impl<C, I, V> Clone for PropertyIndex<C, I, V> {
    fn clone(&self) -> Self {
        Self {
            updates: self.updates.clone(),
            entries: self.entries.clone(),
            levels: self.levels.clone(),
            types: PhantomData,
            ..*self
        }
    }
}

impl<C, I, V> fmt::Debug for PropertyIndex<C, I, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PropertyIndex")
            .field("updates", &self.updates)
            .field("bucket_width", &self.bucket_width)
            .field("grace_us", &self.grace_us)
            .finish_non_exhaustive()
    }
}

impl<C, I, V> PropertyIndex<C, I, V> {
    /// A property in `space`. Nothing else may be in `space`.
    ///
    /// The defaults are buckets of 10,000 entries and a grace period of one hour.
    pub fn new(space: &Subspace) -> Self {
        Self {
            updates: space.child(&0),
            entries: space.child(&1),
            levels: space.child(&2),
            bucket_width: 10_000,
            grace_us: 3_600_000_000,
            types: PhantomData,
        }
    }

    /// Sets the maximum number of entries that a bucket should hold. One in `entries / 8` updates
    /// checks the bucket, so a bucket may exceed the maximum by some eighths before the next level
    /// is opened.
    #[must_use]
    pub fn bucket_width(self, entries: usize) -> Self {
        Self { bucket_width: entries.max(1), ..self }
    }

    /// Sets the grace period: the maximum duration of an update in microseconds, including the
    /// difference between the writers' clocks. An intended update that is older is considered dead
    /// and is removed.
    #[must_use]
    pub fn grace_us(self, grace_us: u64) -> Self {
        Self { grace_us, ..self }
    }
}

/// The bucket of an item on a level. Part of the stored format.
fn bucket(packed_item: &[u8], level: u8) -> u64 {
    let mut hash = Fnv::new();
    hash.add(packed_item);
    // The lowest bits of this hash depend only on the lowest bits of the bytes, so mix in higher
    // bits.
    let hash = hash.finish();
    (hash ^ (hash >> 32)) & ((1 << level.min(LAST_LEVEL)) - 1)
}

/// The key with these packed elements in a subspace.
fn key_of(space: &Subspace, elements: &[&[u8]]) -> KeyBuf {
    let mut key = KeyBuf::from_slice(space.prefix());
    elements.iter().for_each(|element| key.extend_from_slice(element));
    key
}
