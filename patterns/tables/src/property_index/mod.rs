//! Index without transactions: how are items found by a property, in a store that is atomic for one
//! key at a time?
//!
//! Where a transaction cannot change an item and its index entry together, somebody sees the moment
//! in between, and a crash makes that moment last. And an update that removes "the entry of the
//! value that was there before" is wrong as soon as two of them race: both read the same old value,
//! and the entry of the one that loses is removed by nobody; or the entry that an update removes
//! has become right again.
//!
//! The way out: an entry of the index names not only the value and the item, but the *update* that
//! wrote it, and each item has a list of the updates that may have entries. An update removes what
//! it finds in the list and nothing else, so no entry is removed twice for two reasons, and none is
//! forgotten. Readers look whether what they found still holds.
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
//! | subspace, 0, container, item, time, writer | an *update* of the item: 1 byte, the format (1) in the upper 4 bits and in the lower 0 for *intended* or 1 for *written*; 1 byte, the level of its entry; the packed value, nothing for a value that was removed |
//! | subspace, 1, container, level, bucket, value, item, time, writer | an *entry* of the index: the format (1), one byte |
//! | subspace, 2, container, level | this level is open: the format (1), one byte |
//!
//! The value of an item is that of its newest *written* update: there is no record of the item
//! beside it that could be overwritten by an older one. Time and writer are a [stamp](Stamps) that
//! no two updates share, and that is newer than all that its update has seen.
//!
//! A **bucket** keeps rows (what such a store keeps on one machine) from growing without bound.
//! Level n has 2ⁿ buckets; the hash of an item picks one. When a bucket of the newest level is
//! found to be wider than the [bound](PropertyIndex::bucket_width), the next level is opened, and
//! new entries go there. Readers look into the buckets of all levels.
//!
//! # Invariants
//!
//! An update goes in steps, each atomic for one key. It reads the list, then:
//!
//! 1. puts itself into the list, *intended*;
//! 2. puts its entry;
//! 3. puts itself into the list once more, *written*: from now on its value is that of the item;
//! 4. for each update that it read in the list, all of which are older: deletes the entry, and then
//!    takes it off the list, unless it was only intended. Such a one may be on its way still, so it
//!    stays for later.
//!
//! So, after each step and each crash:
//!
//! * every entry is listed: what is stale can be found and removed;
//! * the value of an item has its entry: 2 comes before 3, and an entry is deleted only when a
//!   newer update is written, which never ceases to be newer;
//! * an entry that is replaced by one of the same value is on a level that readers visit no later.
//!
//! A query that runs while others write finds each item whose value was the one asked for
//! all the time. An item that is updated meanwhile may come twice.
//!
//! The stamp of an update that died stays on the list, intended, until it is older than the
//! [grace](PropertyIndex::grace_us): no update may take longer than that, the difference of the
//! clocks included. One that finds itself to be slow gives up.
//!
//! # Cost
//!
//! p is how many updates are on the list, one as a rule; l is the newest level.
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`set`](PropertyIndex::set) | 2 ranges of p and 1 keys, 3 keys written and 2 p, each in a commit of its own; now and then the count of a bucket, 8 keys on the average | 5 + 2 p |
//! | [`set`](PropertyIndex::set) to the value that is there | 1 range | 1 |
//! | [`remove`](PropertyIndex::remove) | as `set`, one key less | 4 + 2 p |
//! | [`value`](PropertyIndex::value) | 1 range, of 1 key as a rule; 3 while an update is under way or died | 1 to 3 |
//! | [`items_with`](PropertyIndex::items_with), [`items_within`](PropertyIndex::items_within) | 2 ranges for the level, 1 for each of 2ˡ⁺¹ − 1 buckets, and a [`value`](PropertyIndex::value) for each entry | as many |
//! | [`items`](PropertyIndex::items) | 1 range of all updates, and a `value` for each item | 1 + items |
//! | [`tidy`](PropertyIndex::collect_garbage) | 1 range, 2 keys written for each update that is stale | 1 + 2 for each |
//! | [`check`](PropertyIndex::check) | all updates and entries, and one get or more for each | as many |
//! | [`repair`](PropertyIndex::repair) | the same, and a commit for each key to be repaired | as many |
//!
//! # When not to use it
//!
//! With transactions: an [`Index`](crate::Index) needs one commit instead of five, and no cleaning.
//! Every store of keyloom has them; this pattern is for what stands between, such as a log of
//! changes, a cache, a store of another kind behind [`Store`](keyloom::Store), or many machines
//! that may not wait for each other. It uses transactions of one write.
//!
//! # Source
//!
//! E. Anuff, *Secondary indexes in Cassandra* (2010) and *Indexing in Cassandra* (Cassandra SF
//! 2011): the items of a container, the index of a property with composite columns, the list of
//! previous entries. There the store resolves writes of one cell by their time; here each update is
//! a key of its own, which needs no such store.

mod check;
mod list;
mod query;
mod stamps;
mod update;

use std::fmt;
use std::marker::PhantomData;

use keyloom::{KeyBuf, Subspace};

pub use stamps::Stamps;

use crate::fnv::Fnv;

/// The format that this code writes, of entries, levels and updates.
const FORMAT: u8 = 1;

/// The last level: a million buckets.
const LAST_LEVEL: u8 = 20;

/// Shared between threads whatever the types are: none of them is held.
type Types<C, I, V> = PhantomData<fn() -> (C, I, V)>;

/// One property of the items of any number of containers, and its index; see the [module](self).
///
/// `C` is the key of a container, `I` that of an item in it, `V` the value: each is one element of
/// a key.
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
    /// A property in `space`. Nothing else may be there.
    ///
    /// Buckets of 10,000 entries; a grace of one hour.
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

    /// How many entries a bucket should hold at most. It is looked at by one update in
    /// `entries / 8`, so a bucket may become some eighths wider before that is noticed.
    #[must_use]
    pub fn bucket_width(self, entries: usize) -> Self {
        Self { bucket_width: entries.max(1), ..self }
    }

    /// How long an update may take, in microseconds, the difference between the clocks of writers
    /// included. What is older and not written died, and is forgotten.
    #[must_use]
    pub fn grace_us(self, grace_us: u64) -> Self {
        Self { grace_us, ..self }
    }
}

/// The bucket of an item on a level. A stored format.
fn bucket(packed_item: &[u8], level: u8) -> u64 {
    let mut hash = Fnv::new();
    hash.add(packed_item);
    // The lowest bits of this hash depend on the lowest bits of the bytes alone.
    let hash = hash.finish();
    (hash ^ (hash >> 32)) & ((1 << level.min(LAST_LEVEL)) - 1)
}

/// The key that some packed elements make in a subspace.
fn key_of(space: &Subspace, elements: &[&[u8]]) -> KeyBuf {
    let mut key = KeyBuf::from_slice(space.prefix());
    elements.iter().for_each(|element| key.extend_from_slice(element));
    key
}
