//! A consumer of a feed: its position, and the changes after this position.

use std::fmt;
use std::time::Duration;

use keyloom::value::Codec;
use keyloom::{DynWriter, Error, KeyBuf, Order, Reader, Result, Store, Writer};
use keyloom_kit::{Fnv, RecordKey};

use super::error::shown;
use super::{Change, Feed, FeedError};

/// Changes that a consumer has polled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Batch<K, V> {
    /// The changes, the oldest first. A [share](Consumer::share) receives only the changes of its
    /// keys.
    pub changes: Vec<Change<K, V>>,
    /// The number to [acknowledge](Consumer::acknowledge) when the changes are processed: the
    /// number of the last change that was read, even if that change belongs to another share.
    pub last: u64,
}

/// The position of a consumer, or of one share of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// The name of the consumer.
    pub consumer: String,
    /// The share, from 0, and the number of shares: `(0, 1)` for a consumer that is not divided.
    pub share: (u32, u32),
    /// The number of the last acknowledged change.
    pub acknowledged: u64,
}

/// A named consumer of a [`Feed`], with a position in the store.
///
/// Several handles and processes may use one name. They then do the same work twice, since each
/// polls from the same position. To divide the work, use [shares](Consumer::share). Let one process
/// at a time work on a share, for example the owner of a lock.
pub struct Consumer<K, V, C> {
    feed: Feed<K, V, C>,
    name: String,
    share: u32,
    shares: u32,
}

impl<K, V, C> Clone for Consumer<K, V, C> {
    fn clone(&self) -> Self {
        let Self { feed, name, share, shares } = self;
        Self { feed: feed.clone(), name: name.clone(), share: *share, shares: *shares }
    }
}

impl<K, V, C> fmt::Debug for Consumer<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { feed, name, share, shares } = self;
        f.debug_struct("Consumer")
            .field("feed", feed)
            .field("name", name)
            .field("share", &(share, shares))
            .finish()
    }
}

impl<K: RecordKey, V, C: Codec<V>> Consumer<K, V, C> {
    pub(super) fn new(feed: Feed<K, V, C>, name: &str) -> Self {
        Self { feed, name: name.to_owned(), share: 0, shares: 1 }
    }

    /// Share number `share`, from 0, of `shares`: the changes of a part of the keys. All changes of
    /// one record are in one share, in order. Each share has its own position, and must be started
    /// separately.
    ///
    /// `share` is taken modulo `shares`, which is at least 1.
    #[must_use]
    pub fn share(&self, share: u32, shares: u32) -> Self {
        let shares = shares.max(1);
        Self { share: share % shares, shares, ..self.clone() }
    }

    /// Gives the consumer a position: its first change is the change after number `after`. Pass 0
    /// to begin at the beginning of the feed, or [`Feed::last`] to begin at its end.
    ///
    /// Start a consumer before its feed is swept: a sweep keeps the changes that a started consumer
    /// has not acknowledged.
    ///
    /// # Errors
    /// [`FeedError::AlreadyStarted`], [`FeedError::OtherShares`], [`FeedError::NoSuchChange`] if
    /// `after` is larger than the newest number; any error of the store.
    pub fn start(&self, txn: &mut impl Writer, after: u64) -> Result<()> {
        txn.guarded(|txn| match self.position(txn)? {
            Some(position) => Err(Error::other(FeedError::AlreadyStarted {
                feed: shown(self.feed.space()),
                consumer: self.name.clone(),
                position,
            })),
            None => self.set(txn, after),
        })
    }

    /// Moves the position to `after`, forward or back, for example for a replay. Also works if the
    /// consumer was not started. Changes that have been swept are not restored.
    ///
    /// # Errors
    /// The errors of [`start`](Consumer::start), except `AlreadyStarted`.
    pub fn seek(&self, txn: &mut impl Writer, after: u64) -> Result<()> {
        txn.guarded(|txn| {
            self.position(txn)?;
            self.set(txn, after)
        })
    }

    /// Removes the positions of all shares. The consumer no longer keeps changes from being swept.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn remove(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| txn.delete_range(self.feed.positions.range_of(&self.name)))
    }

    /// The number of the last change that was acknowledged; `None` if the consumer was not started.
    ///
    /// # Errors
    /// [`FeedError::OtherShares`]; any error of the store.
    pub fn position(&self, reader: &impl Reader) -> Result<Option<u64>> {
        if let Some(position) = reader.get(&self.key())? {
            return position_of(&self.key(), &position).map(Some);
        }
        match reader.first(self.feed.positions.range_of(&self.name))? {
            Some((key, _)) => match self.feed.position_key(&key)? {
                (_, stored, _) if stored != self.shares => {
                    Err(Error::other(FeedError::OtherShares {
                        feed: shown(self.feed.space()),
                        consumer: self.name.clone(),
                        stored,
                        shares: self.shares,
                    }))
                }
                _ => Ok(None),
            },
            None => Ok(None),
        }
    }

    /// The changes after the position, at most `limit` (0 counts as 1), for work outside of the
    /// store. [Acknowledge](Consumer::acknowledge) them when the work is done.
    ///
    /// # Errors
    /// [`FeedError::NotStarted`], [`FeedError::OtherShares`] and the errors of [`Feed::read`].
    pub fn poll(&self, reader: &impl Reader, limit: usize) -> Result<Batch<K, V>> {
        let position = self.started(reader)?;
        self.batch_after(reader, position, limit)
    }

    fn batch_after(
        &self,
        reader: &impl Reader,
        position: u64,
        limit: usize,
    ) -> Result<Batch<K, V>> {
        let mut changes = self.feed.read(reader, position, limit)?;
        let last = changes.last().map_or(position, |change| change.number);
        changes.retain(|change| self.has(&change.key));
        Ok(Batch { changes, last })
    }

    /// Moves the position forward to `number`. Does nothing if the position is already at `number`
    /// or later, for example after a second delivery.
    ///
    /// # Errors
    /// [`FeedError::NotStarted`], [`FeedError::OtherShares`], [`FeedError::NoSuchChange`]; any
    /// error of the store.
    pub fn acknowledge(&self, txn: &mut impl Writer, number: u64) -> Result<()> {
        txn.guarded(|txn| match self.started(txn)? {
            position if position >= number => Ok(()),
            _ => self.set(txn, number),
        })
    }

    /// Calls `work` for at most `limit` changes after the position, and moves the position, in this
    /// transaction. So each change is processed exactly once, if the work is in the same store.
    /// Returns how many changes the position passed, including changes of other shares; 0 at the
    /// end of the feed.
    ///
    /// Reads the changes with [snapshot reads](keyloom::Writer::snapshot_read), since changes are
    /// only ever added. So `process` does not conflict with concurrent appends, on stores with such
    /// reads. A transaction must not conclude from the returned number that the feed has ended,
    /// since an append may commit before it: read [`Feed::last`] for that.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Subspace, Writer};
    /// use keyloom_tables::{Feed, Table};
    /// let feed = Feed::new(&Subspace::new("orders_feed"));
    /// let orders = Table::<u32, i64>::new(&Subspace::new("orders")).with(&feed);
    /// let turnover = feed.consumer("turnover");
    /// let store = Memory::new();
    /// store.transact(|txn| turnover.start(txn, 0))?;
    /// store.transact(|txn| orders.put_many(txn, [(1, 20), (2, 30)]))?;
    /// store.transact(|txn| {
    ///     turnover.process(txn, 100, |txn, order| txn.add(b"turnover", order.new.unwrap_or(0)))
    /// })?;
    /// assert_eq!(store.snapshot()?.counter(b"turnover")?, 50);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`poll`](Consumer::poll) and of `work`.
    pub fn process<W: Writer>(
        &self,
        txn: &mut W,
        limit: usize,
        mut work: impl FnMut(&mut DynWriter<'_>, &Change<K, V>) -> Result<()>,
    ) -> Result<u64> {
        txn.guarded(|txn| {
            let position = self.started(txn)?;
            // The checked read above excludes a concurrent run of this consumer, and stored changes
            // stay as they are. If this read were checked, a consumer at the end of the feed would
            // conflict with each append: the range that is read would contain the key of the next
            // change.
            let batch = txn.snapshot_read(|txn| self.batch_after(txn, position, limit))?;
            let mut writer = DynWriter::new(txn);
            batch.changes.iter().try_for_each(|change| work(&mut writer, change))?;
            if batch.last > position {
                txn.put(&self.key(), &batch.last.to_be_bytes())?;
            }
            Ok(batch.last - position)
        })
    }

    /// Waits until there is a change after the position, for at most `timeout`, and returns whether
    /// there is one. The change may belong to another share.
    ///
    /// # Errors
    /// [`FeedError::NotStarted`], [`FeedError::OtherShares`]; any error of the store.
    pub fn wait(&self, store: &impl Store, timeout: Duration) -> Result<bool> {
        let position = self.started(&store.snapshot()?)?;
        self.feed.wait(store, position, timeout)
    }

    fn key(&self) -> KeyBuf {
        self.feed.positions.pack(&(&*self.name, self.shares, self.share))
    }

    fn set(&self, txn: &mut impl Writer, number: u64) -> Result<()> {
        let last = txn.snapshot_read(|txn| self.feed.last(txn))?;
        if number > last {
            let feed = shown(self.feed.space());
            return Err(Error::other(FeedError::NoSuchChange { feed, number, last }));
        }
        txn.put(&self.key(), &number.to_be_bytes())
    }

    fn started(&self, reader: &impl Reader) -> Result<u64> {
        self.position(reader)?.ok_or_else(|| {
            let (feed, consumer) = (shown(self.feed.space()), self.name.clone());
            Error::other(FeedError::NotStarted { feed, consumer })
        })
    }

    /// Whether changes of this record are in the share.
    fn has(&self, key: &K) -> bool {
        // The hash is computed from the packed key, so that all programs agree.
        let mut hash = Fnv::new();
        hash.add(&keyloom::pack(key));
        hash.finish() % u64::from(self.shares) == u64::from(self.share)
    }
}

/// Decodes the number of a stored position.
fn position_of(key: &[u8], value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| {
        Error::other("the position of a consumer does not have 8 bytes; `seek` sets it").at(key)
    })?;
    Ok(u64::from_be_bytes(bytes))
}

impl<K: RecordKey, V, C: Codec<V>> Feed<K, V, C> {
    /// The positions of all consumers and their shares, by name.
    ///
    /// # Errors
    /// Any error of the store; [`Error::Key`] for a foreign key.
    pub fn positions(&self, reader: &impl Reader) -> Result<Vec<Position>> {
        let mut positions = Vec::new();
        for entry in reader.range(self.positions.range(), Order::Ascending)? {
            let (key, value) = entry?;
            let (consumer, shares, share) = self.position_key(&key)?;
            let acknowledged = position_of(&key, &value)?;
            positions.push(Position { consumer, share: (share, shares), acknowledged });
        }
        Ok(positions)
    }

    /// Decodes the key of a position: the name of the consumer, the number of its shares, and the
    /// share.
    pub(super) fn position_key(&self, key: &[u8]) -> Result<(String, u32, u32)> {
        Ok(self.positions.unpack(key)?)
    }
}
