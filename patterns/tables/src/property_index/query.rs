//! Queries, which read one bucket after another and check which entries are still current.

use std::collections::HashSet;
use std::ops::{Bound, Deref, RangeBounds};

use keyloom::{Entry, Error, KeyBuf, Order, Reader, Result, Subspace, pack, unpack};
use keyloom_kit::{RecordKey, within};

use super::list::Place;
use super::stamps::Stamp;
use super::{LAST_LEVEL, PropertyIndex, key_of};

impl<C: RecordKey, I: RecordKey, V: RecordKey> PropertyIndex<C, I, V> {
    /// The value of an item, or `None` if it has no value.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] for an update that does not decode;
    /// [`Error::NewerFormat`] for an update of a newer program; [`Error::Key`] for a value that is
    /// not a `V`.
    pub fn value(&self, reader: &impl Reader, container: &C, item: &I) -> Result<Option<V>> {
        self.value_at(reader, &Self::place(container, item))
    }

    fn value_at(&self, reader: &impl Reader, place: &Place) -> Result<Option<V>> {
        let value = self.current(reader, place)?.and_then(|update| update.value);
        Ok(value.map(|value| unpack::<(V,)>(&value)).transpose()?.map(|(value,)| value))
    }

    /// The items of a container with their values, in item order.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::property_index::{PropertyIndex, Stamps};
    /// let sizes = PropertyIndex::<u8, u32, u64>::new(&Subspace::new("sizes"));
    /// let (store, mut stamps) = (Memory::new(), Stamps::new(1));
    /// sizes.set(&store, &mut stamps, &1, &10, &500)?;
    /// sizes.set(&store, &mut stamps, &1, &11, &700)?;
    /// sizes.remove(&store, &mut stamps, &1, &10)?;
    /// assert_eq!(sizes.items(&store.snapshot()?, &1)?.collect::<Result<Vec<_>>>()?, [(11, 700)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`value`](PropertyIndex::value), also from the iterator.
    pub fn items<'r, R: Reader>(
        &self,
        reader: &'r R,
        container: &C,
    ) -> Result<impl Iterator<Item = Result<(I, V)>> + use<'r, R, C, I, V>> {
        let space = self.updates.child(&(container,));
        let entries = reader.range(space.range(), Order::Ascending)?;
        let container = pack(&(container,));
        Ok(Items { index: self.clone(), reader, container, entries, last: None })
    }

    /// The items of a container with this value.
    ///
    /// # Errors
    /// The errors of [`items_within`](PropertyIndex::items_within).
    pub fn items_with<'r, R: Reader>(
        &self,
        reader: &'r R,
        container: &C,
        value: V,
    ) -> Result<impl Iterator<Item = Result<(V, I)>> + use<'r, R, C, I, V>>
    where
        V: Clone,
    {
        self.items_within(reader, container, value.clone()..=value)
    }

    /// The items of a container with values in a range, together with the values. The items of each
    /// bucket are in value order, and one bucket follows another. For a total order, collect and
    /// sort the items.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::property_index::{PropertyIndex, Stamps};
    /// let sizes = PropertyIndex::<u8, u32, u64>::new(&Subspace::new("sizes"));
    /// let (store, mut stamps) = (Memory::new(), Stamps::new(1));
    /// for (item, size) in [(10, 500), (11, 700), (12, 900)] {
    ///     sizes.set(&store, &mut stamps, &1, &item, &size)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let found = sizes.items_within(&snapshot, &1, 600..)?.collect::<Result<Vec<_>>>()?;
    /// assert_eq!(found, [(700, 11), (900, 12)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store, also from the iterator. The iterator also returns [`Error::At`] for
    /// an entry or an update that does not decode, and [`Error::NewerFormat`] for an update of a
    /// newer program.
    pub fn items_within<'r, R: Reader, B: RangeBounds<V>>(
        &self,
        reader: &'r R,
        container: &C,
        values: B,
    ) -> Result<impl Iterator<Item = Result<(V, I)>> + use<'r, R, B, C, I, V>>
    where
        V: Clone,
    {
        let container = pack(&(container,));
        let newest_level = self.newest_level(reader, &container)?;
        let one = |bound: Bound<&V>| bound.map(|value| (value.clone(),));
        Ok(Matches {
            index: self.clone(),
            reader,
            values: (one(values.start_bound()), one(values.end_bound())),
            container,
            newest_level,
            next: Some((0, 0)),
            bucket: None,
            last: None,
            early: HashSet::new(),
        })
    }

    /// The newest open level of a container, by its packed key. Level 0 is always open.
    pub(super) fn newest_level(&self, reader: &impl Reader, container: &[u8]) -> Result<u8> {
        let levels = Subspace::from_bytes(&key_of(&self.levels, &[container]));
        let Some((key, _)) = reader.last(levels.range())? else { return Ok(0) };
        let level = levels.unpack::<u8>(&key).map_err(|error| Error::from(error).at(&key))?;
        Ok(level.min(LAST_LEVEL))
    }

    pub(super) fn level_key(&self, container: &[u8], level: u8) -> KeyBuf {
        key_of(&self.levels, &[container, &pack(&level)])
    }
}

/// A decoded entry of the index.
struct EntryOf<V> {
    value: V,
    item: KeyBuf,
    stamp: Stamp,
}

struct Matches<'r, R: Reader, C, I, V> {
    index: PropertyIndex<C, I, V>,
    reader: &'r R,
    values: (Bound<(V,)>, Bound<(V,)>),
    container: KeyBuf,
    newest_level: u8,
    /// The next bucket: level and number. `None` after an error.
    next: Option<(u8, u64)>,
    bucket: Option<(Subspace, R::Entries<'r>)>,
    /// The value and the item that were returned last.
    last: Option<(KeyBuf, KeyBuf)>,
    /// Items that were returned for an older entry than the entry of their newest update. These
    /// items may occur again.
    early: HashSet<KeyBuf>,
}

impl<R: Reader, C: RecordKey, I: RecordKey, V: RecordKey + Clone> Matches<'_, R, C, I, V> {
    fn open_next(&mut self) -> Result<bool> {
        let Some((level, bucket)) = self.next else { return Ok(false) };
        if level > self.newest_level {
            // A level that was opened meanwhile may hold new entries of items whose old entries
            // were in buckets already read.
            self.newest_level = self.index.newest_level(self.reader, &self.container)?;
        }
        if level > self.newest_level {
            return Ok(false);
        }
        let row = pack(&(level, bucket));
        let space = key_of(&self.index.entries, &[&self.container, &row]);
        let space = Subspace::from_bytes(&space);
        let range = within(self.values.clone()).key_range(&space);
        let entries = self.reader.range(range, Order::Ascending)?;
        self.bucket = Some((space, entries));
        self.last = None;
        let is_last = bucket + 1 == 1 << level;
        self.next = Some(if is_last { (level + 1, 0) } else { (level, bucket + 1) });
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<(V, I)>> {
        loop {
            let Some((space, entries)) = &mut self.bucket else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            let Some(entry) = entries.next().transpose()? else {
                self.bucket = None;
                continue;
            };
            let found = entry_of::<_, I, V>(space, entry)?;
            if let Some(found) = self.holding(found)? {
                return Ok(Some(found));
            }
        }
    }

    /// The value and the item of an entry. `None` if the item has another value now, or was
    /// returned already.
    fn holding(&mut self, found: EntryOf<V>) -> Result<Option<(V, I)>> {
        let EntryOf { value, item, stamp } = found;
        let packed = pack(&(&value,));
        let said = (packed, item);
        if self.last.as_ref() == Some(&said) || self.early.contains(&said.1) {
            return Ok(None);
        }
        let (item,) = unpack::<(I,)>(&said.1)?;
        let place = Place::of_packed(self.container.clone(), said.1.clone());
        let current = self.index.current(self.reader, &place)?;
        let Some(current) = current.filter(|update| update.value.as_ref() == Some(&said.0)) else {
            return Ok(None);
        };
        if current.stamp != stamp {
            self.early.insert(said.1.clone());
        }
        self.last = Some(said);
        Ok(Some((value, item)))
    }
}

fn entry_of<B: Deref<Target = [u8]>, I: RecordKey, V: RecordKey>(
    space: &Subspace,
    (key, _): Entry<B>,
) -> Result<EntryOf<V>> {
    let unpacked = space.unpack::<(V, I, u64, u64)>(&key);
    let (value, item, time_us, writer) = unpacked.map_err(|error| Error::from(error).at(&key))?;
    Ok(EntryOf { value, item: pack(&(item,)), stamp: Stamp { time_us, writer } })
}

impl<R: Reader, C: RecordKey, I: RecordKey, V: RecordKey + Clone> Iterator
    for Matches<'_, R, C, I, V>
{
    type Item = Result<(V, I)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            (self.bucket, self.next) = (None, None);
        }
        next.transpose()
    }
}

struct Items<'r, R: Reader, C, I, V> {
    index: PropertyIndex<C, I, V>,
    reader: &'r R,
    container: KeyBuf,
    entries: R::Entries<'r>,
    /// The item whose updates the scan is passing.
    last: Option<KeyBuf>,
}

impl<R: Reader, C: RecordKey, I: RecordKey, V: RecordKey> Items<'_, R, C, I, V> {
    /// The item of an update's key, with its value. `None` if the item has no value, or was
    /// returned already.
    fn item(&mut self, key: &[u8]) -> Result<Option<(I, V)>> {
        let space = Subspace::from_bytes(&key_of(&self.index.updates, &[&self.container]));
        let unpacked = space.unpack::<(I, u64, u64)>(key);
        let (item, _, _) = unpacked.map_err(|error| Error::from(error).at(key))?;
        let packed = pack(&(&item,));
        if self.last.as_ref() == Some(&packed) {
            return Ok(None);
        }
        let place = Place::of_packed(self.container.clone(), packed.clone());
        self.last = Some(packed);
        Ok(self.index.value_at(self.reader, &place)?.map(|value| (item, value)))
    }
}

impl<R: Reader, C: RecordKey, I: RecordKey, V: RecordKey> Iterator for Items<'_, R, C, I, V> {
    type Item = Result<(I, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let item = match self.entries.next()? {
                Ok((key, _)) => self.item(&key),
                Err(error) => Err(error),
            };
            if let Some(item) = item.transpose() {
                return Some(item);
            }
        }
    }
}
