//! Updates. Each is a sequence of steps that may be interrupted, or interleaved with other updates,
//! at any point.

use keyloom::{Error, KeyBuf, Order, Reader, Result, Store, Writer, check_key, pack};
use keyloom_kit::{Fnv, Progress, RecordKey};

use super::list::{Place, State, Update};
use super::stamps::{Stamp, Stamps};
use super::{FORMAT, LAST_LEVEL, PropertyIndex, bucket, key_of};

impl<C: RecordKey, I: RecordKey, V: RecordKey> PropertyIndex<C, I, V> {
    /// Sets the value of an item of a container.
    ///
    /// Takes no lock and does not wait. The concurrent update with the newest stamp wins. After an
    /// error or a crash, the item has either the old or the new value, and queries find the item in
    /// both cases. Set the value again.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], before anything is written, if container, value and item are too long
    /// together; any error of the store; [`Error::At`] with an [`Error::Other`] for an earlier
    /// update that does not decode, and if this update has already taken more than half of the
    /// [grace period](PropertyIndex::grace_us); [`Error::NewerFormat`] for an update of a newer
    /// program.
    pub fn set(
        &self,
        store: &impl Store,
        stamps: &mut Stamps,
        container: &C,
        item: &I,
        value: &V,
    ) -> Result<()> {
        self.update(store, stamps, &Self::place(container, item), Some(pack(&(value,))))
    }

    /// Removes the value of an item. The item then no longer belongs to the container. The first
    /// [`sweep`](PropertyIndex::sweep) after the grace period removes the last update of the item.
    ///
    /// # Errors
    /// The errors of [`set`](PropertyIndex::set).
    pub fn remove(
        &self,
        store: &impl Store,
        stamps: &mut Stamps,
        container: &C,
        item: &I,
    ) -> Result<()> {
        self.update(store, stamps, &Self::place(container, item), None)
    }

    fn update(
        &self,
        store: &impl Store,
        stamps: &mut Stamps,
        place: &Place,
        value: Option<KeyBuf>,
    ) -> Result<()> {
        let list = self.list(&store.snapshot()?, place)?;
        let now_us = stamps.now_us();
        let is_there = match list.first() {
            Some(newest) => newest.state == State::Written && newest.value == value,
            None => value.is_none(),
        };
        if is_there {
            return self.remove_stale(store, place, list.get(1..).unwrap_or_default(), now_us);
        }
        let stamp = stamps.next_after(list.first().map(|newest| newest.stamp));
        // The level is read after the list, so it is at least the level of every replaced entry.
        // Readers visit the levels in ascending order.
        let level = self.newest_level(&store.snapshot()?, place.container())?;
        let update = Update { stamp, state: State::Intended, level, value };
        self.write(store, stamps, place, &update)?;
        self.remove_stale(store, place, &list, now_us)?;
        self.widen(store, place, &update)
    }

    /// Runs steps 1 to 3: lists the update, puts its entry, and marks the update as written.
    fn write(
        &self,
        store: &impl Store,
        stamps: &Stamps,
        place: &Place,
        update: &Update,
    ) -> Result<()> {
        let key = self.update_key(place, update.stamp);
        let entry = self.entry_key(place, update);
        [Some(&key), entry.as_ref()].into_iter().flatten().try_for_each(|key| check_key(key))?;
        put(store, &key, &update.bytes(State::Intended))?;
        if let Some(entry) = &entry {
            put(store, entry, &[FORMAT])?;
        }
        let took_us = stamps.now_us().saturating_sub(update.stamp.time_us);
        if took_us > self.grace_us / 2 {
            // Another writer may consider this update dead before it is written.
            return Err(Error::other(TookTooLong(took_us)).at(&key));
        }
        put(store, &key, &update.bytes(State::Written))
    }

    /// Runs step 4 for stale updates: deletes the entry of each update, and then removes the update
    /// from the list if the update is written or dead.
    fn remove_stale(
        &self,
        store: &impl Store,
        place: &Place,
        stale: &[Update],
        now_us: u64,
    ) -> Result<()> {
        for update in stale {
            if let Some(entry) = self.entry_key(place, update) {
                delete(store, &entry)?;
            }
            if update.state == State::Written || self.is_dead(update.stamp, now_us) {
                delete(store, &self.update_key(place, update.stamp))?;
            }
        }
        Ok(())
    }

    /// Whether an intended update is too old to be still in progress.
    fn is_dead(&self, stamp: Stamp, now_us: u64) -> bool {
        now_us.saturating_sub(stamp.time_us) > self.grace_us
    }

    /// Removes the stale updates of an item with their entries. Updates are stale if a newer update
    /// is written or, after the grace period, if they died. Every [`set`](PropertyIndex::set) also
    /// removes stale updates, so `sweep` is for items that are no longer updated. `stamps` provides
    /// the time. In the progress, `removed` counts the removed updates. The work is bounded by the
    /// updates of one item, so there are no options.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] for an update that does not decode;
    /// [`Error::NewerFormat`] for an update of a newer program.
    pub fn sweep(
        &self,
        store: &impl Store,
        stamps: &Stamps,
        container: &C,
        item: &I,
    ) -> Result<Progress> {
        let removed = self.tidy_place(store, stamps.now_us(), &Self::place(container, item))?;
        Ok(Progress { removed, ..Progress::complete() })
    }

    /// Removes the stale updates of an item, and returns how many were removed from the list.
    pub(super) fn tidy_place(&self, store: &impl Store, now_us: u64, place: &Place) -> Result<u64> {
        let mut list = self.list(&store.snapshot()?, place)?;
        let before = list.len() as u64;
        let written = list.iter().position(|update| update.state == State::Written);
        let newer = list.drain(..written.unwrap_or(list.len())).collect::<Vec<_>>();
        let (dead, alive): (Vec<_>, Vec<_>) =
            newer.into_iter().partition(|update| self.is_dead(update.stamp, now_us));
        self.remove_stale(store, place, &dead, now_us)?;
        let mut kept = alive.len() as u64;
        if let Some((current, stale)) = list.split_first() {
            self.remove_stale(store, place, stale, now_us)?;
            let is_waited_for = |update: &&Update| {
                update.state == State::Intended && !self.is_dead(update.stamp, now_us)
            };
            kept += stale.iter().filter(is_waited_for).count() as u64;
            // A removal stays on the list as long as an older update may be in progress.
            let is_over =
                current.value.is_none() && kept == 0 && self.is_dead(current.stamp, now_us);
            match is_over {
                true => delete(store, &self.update_key(place, current.stamp))?,
                false => kept += 1,
            }
        }
        Ok(before - kept)
    }

    /// Opens the next level if the bucket of this update exceeds the bound. To save reads, only a
    /// sample of the updates, selected by their stamps, counts the entries of the bucket.
    fn widen(&self, store: &impl Store, place: &Place, update: &Update) -> Result<()> {
        let every = (self.bucket_width / 8).max(1) as u64;
        if update.value.is_none()
            || update.level >= LAST_LEVEL
            || !sample(update.stamp).is_multiple_of(every)
        {
            return Ok(());
        }
        let row = pack(&(update.level, bucket(place.item(), update.level)));
        let prefix = key_of(&self.entries, &[place.container(), &row]);
        let snapshot = store.snapshot()?;
        let range = keyloom::KeyRange::children(&prefix);
        let is_wider = snapshot.page(range, Order::Ascending, self.bucket_width)?.last.is_some();
        match is_wider {
            true => put(store, &self.level_key(place.container(), update.level + 1), &[FORMAT]),
            false => Ok(()),
        }
    }
}

fn sample(stamp: Stamp) -> u64 {
    let mut hash = Fnv::new();
    hash.add(&stamp.time_us.to_be_bytes());
    hash.add(&stamp.writer.to_be_bytes());
    hash.finish() >> 32
}

/// Runs a transaction with one put.
pub(super) fn put(store: &impl Store, key: &[u8], value: &[u8]) -> Result<()> {
    store.transact(|txn| txn.put(key, value))
}

/// Runs a transaction with one delete.
pub(super) fn delete(store: &impl Store, key: &[u8]) -> Result<()> {
    store.transact(|txn| txn.delete(key))
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the update has taken {0} microseconds, more than half of the grace period, and was given up; set the value again, or allow a longer grace period"
)]
struct TookTooLong(u64);
