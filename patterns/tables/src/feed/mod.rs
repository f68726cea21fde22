//! Change feed: how do other programs learn of each change of a table, once and in order?
//!
//! Suppose that a service sends a mail for each order, keeps a search engine up to date, or
//! invalidates caches. If the service does this after its commit, a crash in between loses the
//! change. If the service does this before its commit, a rollback leaves a mail about a change that
//! was never made. A [`Feed`] is attached to a table like an index. Each change of a record is
//! appended to a log *in the transaction of the change*, and consumers read the log.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::{Feed, Table};
//! let feed = Feed::new(&Subspace::new("orders_feed"));
//! let orders = Table::<u32, String>::new(&Subspace::new("orders")).with(&feed);
//! let mailer = feed.consumer("mailer");
//! let store = Memory::new();
//! store.transact(|txn| mailer.start(txn, 0))?;
//! store.transact(|txn| orders.put(txn, &7, &"two chairs".into()))?;
//!
//! let batch = mailer.poll(&store.snapshot()?, 100)?;
//! for change in &batch.changes {
//!     println!("mail: order {} is now {:?}", change.key, change.new);
//! }
//! store.transact(|txn| mailer.acknowledge(txn, batch.last))?;
//! assert!(mailer.poll(&store.snapshot()?, 100)?.changes.is_empty());
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Keys
//!
//! | key | value |
//! |---|---|
//! | `(0, number)` | one change: format, kind, packed key of the record, new value, old value |
//! | `(1, consumer, shares, share)` | the number up to which the consumer has acknowledged, 8 bytes big-endian |
//!
//! # Invariants
//!
//! * The numbers ascend by 1 in the order of the commits; the numbers of one transaction are in the
//!   order of its changes. So a consumer that has seen a number has seen all smaller numbers, or
//!   has received an error that names the removed ones.
//! * The newest change is never removed, since the next number is computed from its number.
//! * No consumer has acknowledged a number larger than the newest one.
//!
//! # Delivery
//!
//! | | how | after a crash of the consumer |
//! |---|---|---|
//! | at least once | [`poll`](Consumer::poll), work, [`acknowledge`](Consumer::acknowledge) | the changes since the last acknowledgement are delivered again |
//! | exactly once | [`process`](Consumer::process): the work is done in the transaction that moves the position | work in the same store is neither lost nor repeated |
//!
//! # Cost
//!
//! | operation | reads | writes |
//! |---|---|---|
//! | a change | 1 range, of one entry | 1 key |
//! | [`poll`](Consumer::poll) of n changes | 1 get and 1 range of n entries | |
//! | [`process`](Consumer::process) of n changes | the same | 1 key |
//! | [`wait`](Consumer::wait) | 1 get and 1 range; then [depends on the store](keyloom::Store::wait_for_change) | |
//! | [`sweep`](Feed::sweep) | 1 range of the positions; 2 ranges of one entry | 1 per batch |
//!
//! # When not to use it
//!
//! * Many writers change the table concurrently, on a store with conflicts (PostgreSQL, etcd,
//!   fjall, FoundationDB). All changes of a table take their numbers from one sequence, so any two
//!   writers of the table conflict. Group the writes ([`Batched`](keyloom::Batched)), or append to
//!   a [`Sharded`](crate::sequence::Sharded) log if the order within a shard is enough.
//! * The program only needs the records that have changed since yesterday: use an index on the time
//!   of the change, which needs no consumer.
//!
//! # Source
//!
//! The outbox pattern; Debezium; DynamoDB Streams, whose stream view types correspond to
//! [`Feed::with_old_values`] and [`Feed::keys_only`].

mod change;
mod consumer;
mod error;
mod upkeep;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use keyloom::value::{Codec, Postcard};
use keyloom::{DynWriter, KeyBuf, KeyRange, Order, Reader, Result, Store, Subspace, Writer as _};
use keyloom_kit::RecordKey;
use keyloom_kit::derived::{Derived, LostRecords, RecordChange, SortedWrites};

use change::Stored;
pub use change::{Change, ChangeKind};
pub use consumer::{Batch, Consumer, Position};
pub use error::FeedError;

/// A log of the changes of a table; see the [module](self).
///
/// The values are encoded with the codec `C`, [`Postcard`] by default.
pub struct Feed<K, V, C = Postcard> {
    space: Subspace,
    changes: Subspace,
    positions: Subspace,
    values: Values,
    keep: Option<u64>,
    of: PhantomData<fn(K, V, C)>,
}

/// The values that a change contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    None,
    New,
    Both,
}

impl<K, V, C> Clone for Feed<K, V, C> {
    fn clone(&self) -> Self {
        let Self { space, changes, positions, values, keep, .. } = self;
        let [space, changes, positions] = [space, changes, positions].map(Subspace::clone);
        Self { space, changes, positions, values: *values, keep: *keep, of: PhantomData }
    }
}

impl<K, V, C> fmt::Debug for Feed<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { space, values, keep, .. } = self;
        f.debug_struct("Feed")
            .field("space", space)
            .field("values", values)
            .field("keep", keep)
            .finish()
    }
}

impl<K: RecordKey, V> Feed<K, V>
where
    Postcard: Codec<V>,
{
    /// A feed in `space`, whose changes contain the new values, encoded with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<K: RecordKey, V, C: Codec<V>> Feed<K, V, C> {
    /// A feed in `space`, whose changes contain the new values, encoded with the codec `C`.
    pub fn with_codec(space: &Subspace) -> Self {
        Self {
            space: space.clone(),
            changes: space.child(&0),
            positions: space.child(&1),
            values: Values::New,
            keep: None,
            of: PhantomData,
        }
    }

    /// The same feed, whose changes also contain the old values. A change is then larger by the
    /// size of the old record.
    #[must_use]
    pub fn with_old_values(self) -> Self {
        Self { values: Values::Both, ..self }
    }

    /// The same feed, whose changes contain only the keys: for consumers that read the current
    /// record when they process the change.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Feed, Table};
    /// let feed = Feed::<u32, String>::new(&Subspace::new("feed")).keys_only();
    /// let orders = Table::new(&Subspace::new("orders")).with(&feed);
    /// let store = Memory::new();
    /// store.transact(|txn| orders.put(txn, &7, &"a large order".into()))?;
    /// let changes = feed.read(&store.snapshot()?, 0, 10)?;
    /// assert_eq!((changes[0].key, &changes[0].new), (7, &None));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn keys_only(self) -> Self {
        Self { values: Values::None, ..self }
    }

    /// The same feed, in which a [sweep](Feed::sweep) keeps at most the last `changes` changes (at
    /// least 1). It removes older changes even if some consumer has not acknowledged them. Without
    /// this limit, a sweep removes only changes that all consumers have acknowledged.
    #[must_use]
    pub fn keep_at_most(self, changes: u64) -> Self {
        Self { keep: Some(changes.max(1)), ..self }
    }

    /// The subspace of the changes and positions.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The consumer with this name, which receives all changes.
    pub fn consumer(&self, name: &str) -> Consumer<K, V, C> {
        Consumer::new(self.clone(), name)
    }

    /// The number of the newest change, 0 if there is none. Costs one range read of one
    /// entry.
    ///
    /// To copy a table and then follow its changes, read this number and the records in *one*
    /// snapshot, and [start](Consumer::start) a consumer at this number.
    ///
    /// # Errors
    /// Any error of the store; [`Error::Key`](keyloom::Error::Key) for a foreign key in the log.
    pub fn last(&self, reader: &impl Reader) -> Result<u64> {
        let newest = reader.last(self.changes.range())?;
        newest.map_or(Ok(0), |(key, _)| self.number(&key))
    }

    /// The changes after number `after`, the oldest first, at most `limit` (0 counts as 1).
    ///
    /// # Errors
    /// [`FeedError::Removed`] if the next change was swept, with the number of the first change
    /// that still exists; [`FeedError::Damaged`] if the first change does not decode; any error of
    /// the store.
    pub fn read(
        &self,
        reader: &impl Reader,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Change<K, V>>> {
        let page = reader.page(self.after(after), Order::Ascending, limit)?;
        let mut changes: Vec<Change<K, V>> = Vec::with_capacity(page.entries.len());
        for (key, value) in &page.entries {
            let number = self.number(key)?;
            let expected = after + 1 + changes.len() as u64;
            if number != expected {
                // As before damage: the next read reports the gap.
                if !changes.is_empty() {
                    break;
                }
                return FeedError::removed(&self.space, expected, number);
            }
            match Stored::decode::<K, V, C>(value) {
                Ok(change) => changes.push(Change { number, ..change }),
                // A consumer first processes the changes before the damage; the next read reports
                // it.
                Err(_) if !changes.is_empty() => break,
                Err(source) => return FeedError::damaged(key, number, source),
            }
        }
        Ok(changes)
    }

    /// Waits until there is a change after number `after`, for at most `timeout`, and returns
    /// whether there is one. The delay depends on the store: see [`Store::wait_for_change`].
    ///
    /// # Errors
    /// Any error of the store.
    pub fn wait(&self, store: &impl Store, after: u64, timeout: Duration) -> Result<bool> {
        // Do not check the next key only: that change may have been swept.
        if self.last(&store.snapshot()?)? > after {
            return Ok(true);
        }
        match after.checked_add(1) {
            Some(next) => store.wait_for_change(&self.key(next), None, timeout),
            // There is no number after the last one.
            None => Ok(false),
        }
    }

    /// The key of a change, which need not exist yet. A task waits for it with
    /// `AsyncStore::wait_until`.
    pub fn key(&self, number: u64) -> KeyBuf {
        self.changes.pack(&(number,))
    }

    fn number(&self, key: &[u8]) -> Result<u64> {
        let (number,): (u64,) = self.changes.unpack(key)?;
        Ok(number)
    }

    /// The changes after a number.
    fn after(&self, number: u64) -> KeyRange<'static> {
        self.changes.range().resume(Order::Ascending, &self.key(number)).into_owned()
    }

    /// Appends changes after the newest one.
    fn append(&self, txn: &mut DynWriter<'_>, changes: &[Stored]) -> Result<()> {
        let last = self.last(txn)?;
        let keys = (last + 1..).map(|number| self.key(number));
        let values = changes.iter().map(Stored::encode).collect::<Result<Vec<_>>>()?;
        let entries: Vec<_> = keys.zip(values).collect();
        for (key, value) in &entries {
            keyloom::check_value(key, value, txn.limits().max_value_bytes)?;
        }
        let entries: Vec<(&[u8], &[u8])> = entries.iter().map(|(k, v)| (&**k, &**v)).collect();
        txn.put_sorted(&entries)
    }

    fn stored(&self, change: &RecordChange<'_, K, V>) -> Result<Stored> {
        let encode = |value: Option<&V>| -> Result<Option<Vec<u8>>> {
            let encoded = value.map(|value| {
                let mut bytes = Vec::new();
                C::encode(value, &mut bytes).map_err(|error| error.at(change.stored_key))?;
                Ok(bytes)
            });
            encoded.transpose()
        };
        let (old, new) = match self.values {
            Values::None => (None, None),
            Values::New => (None, change.new),
            Values::Both => (change.old, change.new),
        };
        let kind = ChangeKind::of(change.old.is_some(), change.new.is_some());
        let key = keyloom::pack(change.key).to_vec();
        Ok(Stored { kind, key, new: encode(new)?, old: encode(old)? })
    }
}

impl<K: RecordKey, V, C: Codec<V>> Derived<K, V> for Feed<K, V, C> {
    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        _: &mut SortedWrites,
    ) -> Result<()> {
        let happened = changes.iter().filter(|change| change.old.is_some() || change.new.is_some());
        let stored = happened.map(|change| self.stored(change)).collect::<Result<Vec<_>>>()?;
        match stored.is_empty() {
            true => Ok(()),
            false => self.append(txn, &stored),
        }
    }

    fn subspace(&self) -> Option<&Subspace> {
        Some(&self.space)
    }

    /// Appends a change for each record that did not decode and is deleted or replaced. Its old
    /// value is not known.
    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, K>) -> Result<bool> {
        let deleted = |key| Stored {
            kind: ChangeKind::Deleted,
            key: keyloom::pack(key).to_vec(),
            new: None,
            old: None,
        };
        let changes: Vec<_> = lost.keys().map(deleted).collect();
        self.append(txn, &changes)?;
        Ok(true)
    }
}
