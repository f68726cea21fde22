//! Several sequences per container, so that its writers do not conflict.

use std::fmt;
use std::num::NonZeroU32;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Reader, Result, Subspace, Writer};
use keyloom_kit::RecordKey;
use serde::{Deserialize, Serialize};

use super::Sequence;
use super::walk::ids;
use crate::table::Table;

/// A log per container, divided into shards with separate sequences of numbers; see the
/// [module](super).
///
/// Writers to different shards write no common key, so they do not conflict on a store with
/// optimistic concurrency control. On a store with one writer at a time, such as memory or LMDB,
/// shards have no advantage, so use [`AppendLog`](super::AppendLog).
///
/// # Order
///
/// Guaranteed: an id is unique. Within a shard, numbers are in commit order, without gaps except
/// for deletions. After a reader has seen number n of a shard, no record below n is added to that
/// shard.
///
/// **Not** guaranteed: any order between shards. Record (0, 1) may be committed long after record
/// (1, 9). So a reader that stores only *one* last id misses records.
/// [`read_new`](Sharded::read_new) stores one number per shard and misses no record.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::sequence::Sharded;
/// use std::num::NonZeroU32;
/// let shards = NonZeroU32::new(4).expect("not 0");
/// let clicks = Sharded::<String, String>::new(&Subspace::new("clicks"), shards);
/// let (store, site) = (Memory::new(), "keyloom".to_owned());
/// for user in 0..10 {
///     store.transact(|txn| clicks.append(txn, &site, user, &format!("user {user}")))?;
/// }
/// let mut seen = Vec::new();
/// let (some, rest) = (
///     clicks.read_new(&store.snapshot()?, &site, &mut seen, 1)?,
///     clicks.read_new(&store.snapshot()?, &site, &mut seen, 10)?,
/// );
/// assert_eq!((some.len(), rest.len()), (4, 6)); // one of each shard, and what was left
/// assert!(clicks.read_new(&store.snapshot()?, &site, &mut seen, 10)?.is_empty());
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Sharded<C, V, K = Postcard> {
    numbers: Sequence<(C, u32)>,
    records: Table<(C, u32, u64), V, K>,
    shards: NonZeroU32,
}

impl<C, V, K> Clone for Sharded<C, V, K> {
    fn clone(&self) -> Self {
        let (numbers, records) = (self.numbers.clone(), self.records.clone());
        Self { numbers, records, shards: self.shards }
    }
}

impl<C, V, K> fmt::Debug for Sharded<C, V, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded")
            .field("records", &self.records)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

/// The id of a record of [`Sharded`]. The ids of one shard are in commit order; ids of different
/// shards have no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardedId {
    /// The shard.
    pub shard: u32,
    /// The number within the shard, from 1.
    pub number: u64,
}

impl<C: RecordKey + Clone, V> Sharded<C, V> {
    /// Containers in `space` with this number of shards. The records are encoded with [`Postcard`].
    pub fn new(space: &Subspace, shards: NonZeroU32) -> Self {
        Self::with_codec(space, shards)
    }
}

impl<C: RecordKey + Clone, V, K> Sharded<C, V, K> {
    /// Containers in `space` with this number of shards. The records are encoded with the codec
    /// `K`.
    ///
    /// The number of shards can be raised later but not lowered: the records of removed shards
    /// would not be read.
    pub fn with_codec(space: &Subspace, shards: NonZeroU32) -> Self {
        let records = Table::with_codec(&space.child("record"));
        Self { numbers: Sequence::new(&space.child("last")), records, shards }
    }

    /// The records as a table, with keys `(container, shard, number)`.
    pub fn records(&self) -> &Table<(C, u32, u64), V, K> {
        &self.records
    }
}

impl<C: RecordKey + Clone, V, K: Codec<V>> Sharded<C, V, K> {
    /// Adds a record to the shard of `writer` and returns its id. `writer` is any number that
    /// distinguishes writers, such as a thread number or the hash of a user. The records of one
    /// writer stay in order.
    ///
    /// # Errors
    /// The errors of [`Sequence::next`] and [`Table::put`].
    pub fn append(
        &self,
        txn: &mut impl Writer,
        container: &C,
        writer: u64,
        value: &V,
    ) -> Result<ShardedId> {
        txn.guarded(|txn| {
            let shards = u64::from(self.shards.get());
            let shard = u32::try_from(writer % shards).unwrap_or_default();
            let of = (container.clone(), shard);
            let number = self.numbers.peek(txn, &of)?;
            self.records.put(txn, &(container.clone(), shard, number), value)?;
            self.numbers.advance_to(txn, &of, number)?;
            Ok(ShardedId { shard, number })
        })
    }

    /// A record by its id. Costs one get.
    ///
    /// # Errors
    /// The errors of [`Table::get`].
    pub fn get(&self, reader: &impl Reader, container: &C, id: ShardedId) -> Result<Option<V>> {
        self.records.get(reader, &(container.clone(), id.shard, id.number))
    }

    /// Removes a record and returns whether it existed.
    ///
    /// # Errors
    /// The errors of [`Table::delete`].
    pub fn delete(&self, txn: &mut impl Writer, container: &C, id: ShardedId) -> Result<bool> {
        txn.guarded(|txn| self.records.delete(txn, &(container.clone(), id.shard, id.number)))
    }

    /// The records appended to a container since `seen`, shard by shard: at most `limit` records of
    /// each shard. A `limit` of 0 counts as 1. Advances `seen`, so that the next call returns only
    /// newer records.
    ///
    /// `seen` holds the number of the last record read from each shard, and is empty at first.
    /// Store `seen` in the same transaction as the results of processing the records.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `seen` has more shards than the container; the errors of
    /// [`Table::page`]. After an error, `seen` is unchanged.
    pub fn read_new(
        &self,
        reader: &impl Reader,
        container: &C,
        seen: &mut Vec<u64>,
        limit: usize,
    ) -> Result<Vec<(ShardedId, V)>> {
        let shards = self.shards.get();
        let mut next = seen.clone();
        if next.len() > shards as usize {
            return Err(Error::InvalidArgument {
                what: "the positions",
                value: format!("of {} shards", next.len()),
                why: "there are fewer shards here; give as many as the container was written with",
            });
        }
        next.resize(shards as usize, 0);
        let mut new = Vec::new();
        for (shard, position) in (0..shards).zip(&mut next) {
            let of = (container.clone(), shard);
            let Some(behind) = position.checked_add(1) else { continue };
            // The key is (container, shard, number); the range fixes the container and the shard.
            let behind = ids(&of.0, (shard, behind)..=(shard, u64::MAX));
            let page = self.records.page(reader, behind, limit, None)?;
            for ((_, shard, number), value) in page.items {
                *position = number;
                new.push((ShardedId { shard, number }, value));
            }
        }
        *seen = next;
        Ok(new)
    }
}
