//! Updates: in steps that may be interrupted, and may meet those of others, at any point.

use keyloom::{Error, KeyBuf, Order, Reader, Result, Store, Writer, check_key, pack};

use super::list::{Place, State, Update};
use super::stamps::{Stamp, Stamps};
use super::{FORMAT, LAST_LEVEL, PropertyIndex, bucket, key_of};
use crate::fnv::Fnv;
use crate::table::RecordKey;

impl<C: RecordKey, I: RecordKey, V: RecordKey> PropertyIndex<C, I, V> {
    /// Gives an item of a container a value.
    ///
    /// Nothing is locked and nothing waits. Of updates at the same time the one with the newest
    /// stamp stays. After an error, or a crash, the value may be the old or the new one, and is
    /// found in either case; set it again.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`] before anything is written, when container, value and item are too
    /// long together; what the store says; an error when the update has taken half of the
    /// [grace](PropertyIndex::grace_us) already.
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

    /// Takes the value of an item away; the item is then none of the container's any more. What is
    /// left of it goes with the next [`tidy`](PropertyIndex::collect_garbage) behind the grace.
    ///
    /// # Errors
    /// As [`set`](PropertyIndex::set).
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
        // Read behind the list, so it is no lower than that of what is replaced: readers go up the
        // levels.
        let level = self.newest_level(&store.snapshot()?, place.container())?;
        let update = Update { stamp, state: State::Intended, level, value };
        self.write(store, stamps, place, &update)?;
        self.remove_stale(store, place, &list, now_us)?;
        self.widen(store, place, &update)
    }

    /// Steps 1 to 3: the update on the list, its entry, the update as written.
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
            // Somebody may take this update for dead by the time it is written.
            return Err(Error::other(TookTooLong(took_us)).at(&key));
        }
        put(store, &key, &update.bytes(State::Written))
    }

    /// Step 4, for updates that are older than one that is written. Entries go before the list
    /// forgets them.
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

    /// Whether an update that is only intended cannot be on its way any more.
    fn is_dead(&self, stamp: Stamp, now_us: u64) -> bool {
        now_us.saturating_sub(stamp.time_us) > self.grace_us
    }

    /// Removes what updates of an item have left behind: those that raced, and, when they are older
    /// than the grace, those that died. Every [`set`](PropertyIndex::set) does the same, so this is
    /// for items that are not updated any more. `stamps` tells the time.
    ///
    /// # Errors
    /// What the store says.
    pub fn collect_garbage(
        &self,
        store: &impl Store,
        stamps: &Stamps,
        container: &C,
        item: &I,
    ) -> Result<()> {
        self.tidy_place(store, stamps.now_us(), &Self::place(container, item)).map(drop)
    }

    /// Tells how many updates were taken off the list.
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
            // That there is no value is remembered as long as an older update may be on its way.
            let is_over =
                current.value.is_none() && kept == 0 && self.is_dead(current.stamp, now_us);
            match is_over {
                true => delete(store, &self.update_key(place, current.stamp))?,
                false => kept += 1,
            }
        }
        Ok(before - kept)
    }

    /// Opens the next level when the bucket of this update, on the newest one, is wider than the
    /// bound. Counting is for few updates, by their stamps.
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

/// One write, by itself.
pub(super) fn put(store: &impl Store, key: &[u8], value: &[u8]) -> Result<()> {
    store.transact(|txn| txn.put(key, value))
}

/// One write, by itself.
pub(super) fn delete(store: &impl Store, key: &[u8]) -> Result<()> {
    store.transact(|txn| txn.delete(key))
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the update has taken {0} microseconds, more than half of the grace, and gave up; set the value again, or allow a longer grace"
)]
struct TookTooLong(u64);
