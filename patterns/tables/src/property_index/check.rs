//! Checks the entries of the index against the updates, and repairs the entries.

use std::ops::{ControlFlow, Deref};

use keyloom::{Entry, EntryPage, Error, KeyBuf, Reader, Result, Snapshots, Store};
use keyloom_kit::{
    Inconsistency, Progress, RecordKey, RepairOptions, RepairPosition, Rule, page_behind,
};

use super::list::Place;
use super::stamps::Stamps;
use super::update::{delete, put};
use super::{FORMAT, PropertyIndex};

/// The number of keys that [`PropertyIndex::check`] reads at a time.
// Fewer keys add round trips; more need more memory.
const CHUNK: usize = 1_000;

impl<C: RecordKey, I: RecordKey, V: RecordKey> PropertyIndex<C, I, V> {
    /// Reports faults that races and crashes never cause: values without their entry
    /// ([`Rule::Missing`]), entries with a malformed value ([`Rule::Wrong`]), entries whose update
    /// is on no list, so that no update removes them ([`Rule::Dangling`]), and keys that are not
    /// entries ([`Rule::Foreign`]). Run the check while there are no updates.
    ///
    /// Stale entries whose update is on a list are not faults; [`sweep`](PropertyIndex::sweep)
    /// removes them.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] for an update that does not decode;
    /// [`Error::NewerFormat`] for an update of a newer program. An update that does not decode
    /// cannot be repaired, because its value is stored nowhere else.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        let (mut last, mut checked) = (None, None);
        loop {
            let page = page_behind(last.as_deref(), reader, &self.updates, CHUNK)?;
            for place in self.places(&page.entries)? {
                // The updates of one item can be in two pages.
                if checked.as_ref() != Some(&place) {
                    found.extend(self.fault_of_value(reader, &place)?);
                }
                checked = Some(place);
            }
            let Some(key) = page.last else { break };
            last = Some(key);
        }
        last = None;
        loop {
            let page = page_behind(last.as_deref(), reader, &self.entries, CHUNK)?;
            for entry in &page.entries {
                found.extend(self.fault_of(reader, entry)?);
            }
            let Some(key) = page.last else { return Ok(found) };
            last = Some(key);
        }
    }

    /// Removes stale entries and fixes the faults that [`check`](PropertyIndex::check) reports,
    /// concurrently with readers and writers. First removes the stale updates of all items, and
    /// then the entries whose update is on no list.
    ///
    /// In the progress, `records` counts the updates visited, `entries` counts the entries visited,
    /// and `removed` counts the removed updates and entries.
    ///
    /// # Errors
    /// The errors of [`check`](PropertyIndex::check).
    pub fn repair(&self, store: &impl Store, stamps: &Stamps) -> Result<Progress> {
        self.repair_with(store, stamps, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](PropertyIndex::repair) with options, resumed at [`RepairOptions::resume`]. Calls
    /// `progress` after each batch of keys and stops if `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`check`](PropertyIndex::check).
    pub fn repair_with(
        &self,
        store: &impl Store,
        stamps: &Stamps,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut done = Progress::beginning(options);
        while !done.finished {
            match done.position.entries {
                false => self.tidy_batch(store, stamps.now_us(), options.batch, &mut done)?,
                true => self.remove_unlisted(store, options.batch, &mut done)?,
            }
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    fn tidy_batch(
        &self,
        store: &impl Store,
        now_us: u64,
        batch: usize,
        done: &mut Progress,
    ) -> Result<()> {
        let snapshot = Snapshots::lasting(store);
        let EntryPage { entries, last } =
            page_behind(done.position.last.as_deref(), &snapshot, &self.updates, batch)?;
        let places = self.places(&entries)?;
        done.records += entries.len() as u64;
        drop(entries);
        drop(snapshot);
        for place in places {
            done.removed += self.tidy_place(store, now_us, &place)?;
            done.written += u64::from(self.restore_entry(store, &place)?);
        }
        done.position =
            RepairPosition { entries: last.is_none(), last, ..RepairPosition::default() };
        Ok(())
    }

    fn remove_unlisted(&self, store: &impl Store, batch: usize, done: &mut Progress) -> Result<()> {
        let snapshot = Snapshots::lasting(store);
        let EntryPage { entries, last } =
            page_behind(done.position.last.as_deref(), &snapshot, &self.entries, batch)?;
        let mut faults = Vec::new();
        for entry in &entries {
            faults.extend(self.fault_of(&snapshot, entry)?);
        }
        done.entries += entries.len() as u64;
        drop(entries);
        drop(snapshot);
        for fault in faults {
            // An update is listed before its entry is put, and leaves the list after its entry is
            // deleted. So no writer puts the entry of an unlisted update again.
            delete(store, &fault.key)?;
            done.removed += 1;
        }
        done.finished = last.is_none();
        done.position.last = last.or_else(|| done.position.last.take());
        Ok(())
    }

    /// The items that `updates` belong to, without duplicates.
    fn places<B: Deref<Target = [u8]>>(&self, updates: &[Entry<B>]) -> Result<Vec<Place>> {
        let mut places: Vec<Place> = Vec::new();
        for (key, _) in updates {
            let unpacked = self.updates.unpack::<(C, I, u64, u64)>(key);
            let (container, item, _, _) = unpacked.map_err(|error| Error::from(error).at(key))?;
            let place = Self::place(&container, &item);
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
        Ok(places)
    }

    /// Checks the entry that the current value of an item should have.
    fn fault_of_value(&self, reader: &impl Reader, place: &Place) -> Result<Option<Inconsistency>> {
        let current = self.current(reader, place)?;
        let Some(entry) = current.and_then(|update| self.entry_key(place, &update)) else {
            return Ok(None);
        };
        let is_entry = reader.get(&entry)?.map(|value| *value == [FORMAT]);
        Ok(match is_entry {
            None => Some(Inconsistency::new(entry, Rule::Missing)),
            Some(false) => Some(Inconsistency::new(entry, Rule::Wrong)),
            Some(true) => None,
        })
    }

    /// Puts the entry that the current value of an item should have. Deletes the entry again if the
    /// value has changed meanwhile.
    fn restore_entry(&self, store: &impl Store, place: &Place) -> Result<bool> {
        let Some(fault) = self.fault_of_value(&store.snapshot()?, place)? else { return Ok(false) };
        let entry = fault.key.clone();
        put(store, &entry, &[FORMAT])?;
        let current = self.current(&store.snapshot()?, place)?;
        let still =
            current.and_then(|update| self.entry_key(place, &update)) == Some(entry.clone());
        if !still {
            delete(store, &entry)?;
        }
        Ok(still)
    }

    /// Checks whether an entry decodes and its update is listed. The check of the item covers the
    /// value.
    fn fault_of<B: Deref<Target = [u8]>>(
        &self,
        reader: &impl Reader,
        (key, _): &Entry<B>,
    ) -> Result<Option<Inconsistency>> {
        let foreign = || Inconsistency::new(KeyBuf::from_slice(key), Rule::Foreign);
        let Some(update) = self.update_of(key) else { return Ok(Some(foreign())) };
        Ok(match reader.get(&update)? {
            Some(_) => None,
            None => Some(Inconsistency::new(KeyBuf::from_slice(key), Rule::Dangling)),
        })
    }

    /// The key of the update that wrote an entry.
    fn update_of(&self, entry: &[u8]) -> Option<KeyBuf> {
        type Parts<C, V, I> = (C, u8, u64, V, I, u64, u64);
        let (container, _, _, _, item, time_us, writer) =
            self.entries.unpack::<Parts<C, V, I>>(entry).ok()?;
        Some(self.updates.pack(&(container, item, time_us, writer)))
    }
}
