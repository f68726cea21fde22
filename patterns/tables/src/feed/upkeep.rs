//! Sweep, check and repair of a feed.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result, Store, Writer};
use keyloom_kit::{
    Inconsistency, Progress, RecordKey, RepairOptions, Rule, in_batches, page_behind,
    refuse_foreign,
};

use super::Feed;
use super::change::Stored;
use crate::derived::Maintained;
use crate::table::Table;

/// A fault in an entry of a feed.
enum Fault {
    Foreign(Error),
    /// The changes from `from` up to the change before this entry are missing.
    Gap {
        from: u64,
    },
    Undecodable,
    /// A position that is not a number, or larger than the number of the newest change.
    Position,
}

impl<K: RecordKey, V, C: Codec<V>> Feed<K, V, C> {
    /// Removes the changes that all consumers have acknowledged. With
    /// [`keep_at_most`](Feed::keep_at_most), a sweep may remove more. The newest change stays.
    /// Without a consumer and without `keep_at_most`, nothing is removed.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Feed, Table};
    /// let feed = Feed::new(&Subspace::new("feed"));
    /// let table = Table::<u32, u32>::new(&Subspace::new("table")).with(&feed);
    /// let consumer = feed.consumer("all");
    /// let store = Memory::new();
    /// store.transact(|txn| consumer.start(txn, 0))?;
    /// store.transact(|txn| table.put_many(txn, (0..100).map(|n| (n, n))))?;
    /// store.transact(|txn| consumer.acknowledge(txn, 60))?;
    /// assert_eq!(feed.sweep(&store)?.removed, 60);
    /// assert_eq!(consumer.poll(&store.snapshot()?, 100)?.changes.len(), 40);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sweep<S: Store>(&self, store: &S) -> Result<Progress> {
        self.sweep_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// Like [`sweep`](Feed::sweep), with options: a transaction removes at most `batch` changes.
    /// Calls `progress` after each transaction and stops if `progress` breaks.
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] for a position of other data.
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        // Read both numbers once, in a snapshot: in the transactions, these reads would conflict
        // with each append and each acknowledgement. The numbers only grow, unless a consumer seeks
        // back. Such a consumer then receives `FeedError::Removed`.
        let (first, bound) = self.sweepable(&store.snapshot()?)?;
        in_batches(store, options, progress, |txn, batch, done| {
            refuse_foreign(&self.changes, done.position.last.as_deref())?;
            let from = match &done.position.last {
                Some(last) => first.max(self.number(last)? + 1),
                None => first,
            };
            let to = from.saturating_add(batch as u64).min(bound + 1);
            if from < to {
                txn.delete_range(KeyRange::half_open(&self.key(from), &self.key(to)))?;
                done.removed += to - from;
                done.position.last = Some(self.key(to - 1));
            }
            done.finished = to > bound;
            Ok(())
        })
    }

    /// The number of the first change, and of the last change that may be removed.
    fn sweepable(&self, reader: &impl Reader) -> Result<(u64, u64)> {
        let last = self.last(reader)?;
        let positions = self.positions(reader)?;
        let acknowledged = positions.iter().map(|position| position.acknowledged).min();
        let unkept = self.keep.map_or(0, |keep| last.saturating_sub(keep));
        let bound = acknowledged.unwrap_or(0).max(unkept).min(last.saturating_sub(1));
        let first = reader.first(self.changes.range())?;
        let first = first.map_or(Ok(1), |(key, _)| self.number(&key))?;
        Ok((first, bound))
    }

    /// The faults of an entry: a change that does not decode may also follow a gap. `before` is
    /// the number of the previous change, and is updated.
    fn faults(
        &self,
        key: &[u8],
        value: &[u8],
        before: &mut Option<u64>,
        last: u64,
    ) -> Result<impl Iterator<Item = Fault>> {
        let faults = if self.positions.contains(key) {
            let fault = match (self.position_key(key), value.try_into().map(u64::from_be_bytes)) {
                (Err(error), _) => Some(Fault::Foreign(error)),
                (Ok(_), Ok(number)) if number <= last => None,
                (Ok(_), _) => Some(Fault::Position),
            };
            [fault, None]
        } else {
            match self.number(key) {
                Err(error) => [Some(Fault::Foreign(error)), None],
                Ok(number) => {
                    let expected = before.replace(number).map(|before| before + 1);
                    let gap = expected.filter(|expected| *expected != number);
                    let undecodable = match Stored::decode::<K, V, C>(value) {
                        Ok(_) => None,
                        // A change of a newer program is not damaged.
                        Err(error @ Error::NewerFormat { .. }) => return Err(error.at(key)),
                        Err(_) => Some(Fault::Undecodable),
                    };
                    [gap.map(|from| Fault::Gap { from }), undecodable]
                }
            }
        };
        Ok(faults.into_iter().flatten())
    }

    /// The newest number, even if there are foreign keys after it.
    fn last_of_all(&self, reader: &impl Reader) -> Result<u64> {
        for entry in reader.range(self.changes.range(), Order::Descending)? {
            if let Ok(number) = self.number(&entry?.0) {
                return Ok(number);
            }
        }
        Ok(0)
    }
}

impl<K: RecordKey, V: 'static, C: Codec<V>> Maintained for Feed<K, V, C> {
    crate::described!(|_| "feed", options | feed | format!("{:?} values", feed.values), deferred if |_| false);

    /// Returns `false`: a feed begins with the first change after its declaration, so there is
    /// nothing to build from the records.
    fn has_data(&self) -> bool {
        false
    }

    /// Reports changes that do not decode, gaps between the numbers, foreign keys, and positions
    /// that are not numbers or larger than the newest number. Reads the whole feed, but no records,
    /// since records do not show what has changed.
    ///
    /// # Errors
    /// Any error of the store.
    fn check<D: Codec<V>>(
        &self,
        reader: &impl Reader,
        _: &Table<K, V, D>,
    ) -> Result<Vec<Inconsistency>> {
        let (mut found, mut before, last) = (Vec::new(), None, self.last_of_all(reader)?);
        for entry in reader.range(self.space.self_and_children(), Order::Ascending)? {
            let (key, value) = entry?;
            let faults = self.faults(&key, &value, &mut before, last)?;
            let key = KeyBuf::from_slice(&key);
            found.extend(faults.map(|fault| {
                match fault {
                    Fault::Foreign(error) => Inconsistency::foreign(key.clone(), error),
                    Fault::Gap { from } => Inconsistency::new(self.key(from), Rule::Missing)
                        .with_text("is missing: its consumers must copy the table again"),
                    Fault::Undecodable => Inconsistency::new(key.clone(), Rule::Undecodable)
                        .with_text("does not decode; acknowledge its number to skip it"),
                    Fault::Position => Inconsistency::new(key.clone(), Rule::Wrong),
                }
            }));
        }
        Ok(found)
    }

    /// Removes foreign keys, and moves wrong positions to the beginning of the feed, so that no
    /// consumer skips a change. Missing and damaged changes cannot be restored: the check still
    /// reports them.
    ///
    /// # Errors
    /// Any error of the store.
    fn repair_with<S: Store, D: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, D>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(store, options, progress, |txn, batch, done| {
            table.check_repair(txn)?;
            let last = self.last_of_all(txn)?;
            let (wrong, next) = {
                let page = page_behind(done.position.last.as_deref(), txn, &self.space, batch)?;
                done.entries += page.entries.len() as u64;
                let (mut wrong, mut before) = (Vec::new(), None);
                for (key, value) in &page.entries {
                    let faults = self.faults(key, value, &mut before, last)?;
                    wrong.extend(faults.map(|fault| (KeyBuf::from_slice(key), fault)));
                }
                (wrong, page.last)
            };
            done.position.last = next;
            done.finished = done.position.last.is_none();
            let start = self.before_first(txn)?;
            for (key, fault) in wrong {
                match fault {
                    Fault::Foreign(_) => {
                        txn.delete(&key)?;
                        done.removed += 1;
                    }
                    Fault::Position => {
                        txn.put(&key, &start.to_be_bytes())?;
                        done.written += 1;
                    }
                    Fault::Undecodable => done.undecodable += 1,
                    Fault::Gap { .. } => {}
                }
            }
            Ok(())
        })
    }
}

impl<K: RecordKey, V, C: Codec<V>> Feed<K, V, C> {
    /// The position before the first change.
    fn before_first(&self, reader: &impl Reader) -> Result<u64> {
        let first = reader.first(self.changes.range())?;
        Ok(first.and_then(|(key, _)| self.number(&key).ok()).map_or(0, |first| first - 1))
    }
}
