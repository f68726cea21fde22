//! Several sequences for one container, so that its writers do not meet.

use std::fmt;
use std::num::NonZeroU32;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Order, Reader, Result, Subspace, Writer};
use serde::{Deserialize, Serialize};

use super::Sequence;
use super::walk::ids;
use crate::table::{RecordKey, Table};

/// Records of a container under numbers of several sequences; see the [module](super).
///
/// Writers to different shards touch no common key, so on a store that finds conflicts at commit
/// they do not conflict. On a store with one writer at a time, memory or LMDB, there is nothing to
/// gain: take [`AppendLog`](super::AppendLog).
///
/// # Order
///
/// Promised: an id is unique. In a shard the numbers are those of the commits, without gaps but for
/// deletions: who has seen number n of a shard never meets a new one below n there.
///
/// **Not** promised: anything between shards. Record (0, 1) may have been committed long after (1,
/// 9). A reader that keeps *one* last id therefore loses records; [`read_new`](Sharded::read_new)
/// keeps one number per shard, and loses none.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::sequence::{Positions, Sharded};
/// use std::num::NonZeroU32;
/// let shards = NonZeroU32::new(4).expect("not 0");
/// let clicks = Sharded::<String, String>::new(&Subspace::new("clicks"), shards);
/// let (store, site) = (Memory::new(), "keyloom".to_owned());
/// for user in 0..10 {
///     store.transact(|txn| clicks.append(txn, &site, user, &format!("user {user}")))?;
/// }
/// let mut seen = Positions::default();
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

/// The id of a record of [`Sharded`]. Ids of one shard are in the order of their commits; those of
/// different shards are in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardedId {
    /// The shard.
    pub shard: u32,
    /// The number in it, from 1.
    pub number: u64,
}

/// How far a reader has come in each shard. Keep it where the work is done that was read for, and
/// in the same transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions(Vec<u64>);

impl<C: RecordKey + Clone, V> Sharded<C, V> {
    /// Containers in `space` with so many shards, whose records are written with [`Postcard`].
    pub fn new(space: &Subspace, shards: NonZeroU32) -> Self {
        Self::with_codec(space, shards)
    }
}

impl<C: RecordKey + Clone, V, K> Sharded<C, V, K> {
    /// Containers in `space` with so many shards, whose records are written with the codec `K`.
    ///
    /// There may be more shards later, but not fewer: what is in those that are gone would not be
    /// read.
    pub fn with_codec(space: &Subspace, shards: NonZeroU32) -> Self {
        let records = Table::with_codec(&space.child("record"));
        Self { numbers: Sequence::new(&space.child("last")), records, shards }
    }

    /// The records as a table, with keys of container, shard and number.
    pub fn records(&self) -> &Table<(C, u32, u64), V, K> {
        &self.records
    }
}

impl<C: RecordKey + Clone, V, K: Codec<V>> Sharded<C, V, K> {
    /// Adds a record to the shard of `writer` and tells its id. Whatever tells writers apart will
    /// do: the number of a thread, the hash of a user. What one writer appends is in its order.
    ///
    /// # Errors
    /// As [`Sequence::next`] and [`Table::put`].
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
    /// As [`Table::get`].
    pub fn get(&self, reader: &impl Reader, container: &C, id: ShardedId) -> Result<Option<V>> {
        self.records.get(reader, &(container.clone(), id.shard, id.number))
    }

    /// Removes a record, and tells whether it was there.
    ///
    /// # Errors
    /// As [`Table::delete`].
    pub fn delete(&self, txn: &mut impl Writer, container: &C, id: ShardedId) -> Result<bool> {
        txn.guarded(|txn| self.records.delete(txn, &(container.clone(), id.shard, id.number)))
    }

    /// What was appended to a container since `seen`, at most `limit` records of each shard and at
    /// least one, shard by shard; and moves `seen` behind it. Each record comes once.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for positions of a container with more shards; as
    /// [`Table::page`]. Then `seen` is as it was.
    pub fn read_new(
        &self,
        reader: &impl Reader,
        container: &C,
        seen: &mut Positions,
        limit: usize,
    ) -> Result<Vec<(ShardedId, V)>> {
        let shards = self.shards.get();
        let mut next = seen.0.clone();
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
            // The key is (container, shard, number), of which the first two are given.
            let behind = ids(&of.0, (shard, *position + 1)..=(shard, u64::MAX));
            let page = self.records.page(reader, behind, Order::Ascending, limit, None)?;
            for ((_, shard, number), value) in page.items {
                *position = number;
                new.push((ShardedId { shard, number }, value));
            }
        }
        seen.0 = next;
        Ok(new)
    }
}
