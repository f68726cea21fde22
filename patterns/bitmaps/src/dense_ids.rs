//! Dense ids for keys of any kind, so that sets of keys can be bitmaps.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, `"id"`, key | the id of the key, as a packed integer |
//! | subspace, `"key"`, id | the key, packed |
//! | subspace, `"next"` | the id that was never given out and comes next, and how many before it are free: a packed pair |
//! | subspace, `"free"`, chunk | a [bitmap](super::bitmap) of the ids that were given back |
//!
//! # Invariants
//!
//! * The two directions say the same.
//! * Each id below the next one belongs to a key or is free, and none to both.
//!
//! # Cost
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`of`](DenseIds::of), [`key_of`](DenseIds::key_of), [`of_many`](DenseIds::of_many), [`keys_of`](DenseIds::keys_of) | 1 get per key or id | 1 |
//! | [`assign`](DenseIds::assign) of n keys | n + 1 gets; per new key 2 keys written, and 1 for all of them | 1 |
//! | the same where ids are free | 1 range and 1 get per chunk of free ids that are taken, 1 key written for each | 2 more |
//! | [`release`](DenseIds::release) of n keys | n + 1 gets, 1 per chunk; per key 2 keys written, 1 per chunk, and 1 | 2 |
//!
//! # When an id is given out again
//!
//! The lowest free id is given out first, so that ids stay dense. An id is free once
//! [`release`](DenseIds::release) is committed, and the next key may get it. Within a snapshot an
//! id means one key. An id that a program has kept outside of it, in a cache or a message, may mean
//! another key by now: keep the key instead.
//!
//! All who take new ids read and write one entry. So on a store whose transactions run side by side
//! they come one after the other; take many at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::{Error, KeyBuf, Order, Reader, Result, Subspace, Writer, pack, unpack};

use super::bitmap::{Bitmap, place_of};
use super::{ChunkChanges, InvertedIndexError};
use keyloom_tables::derived::SortedWrites;
use keyloom_tables::table::{RecordKey, get_many};

/// Dense ids for keys of type `K`; see the [module](self).
///
/// Cheap to clone.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_bitmaps::DenseIds;
/// let users = DenseIds::<String>::new(&Subspace::new("users"));
/// let store = Memory::new();
/// let (ada, bob) = ("ada@example.org".to_owned(), "bob@example.org".to_owned());
/// let ids = store.transact(|txn| users.assign(txn, [&ada, &bob]))?;
/// assert_eq!(ids, [0, 1]);
/// store.transact(|txn| users.release(txn, [&ada]))?;
/// let snapshot = store.snapshot()?;
/// assert_eq!(users.of(&snapshot, &ada)?, None);
/// assert_eq!(users.key_of(&snapshot, 1)?, Some(bob));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct DenseIds<K> {
    space: Subspace,
    pub(super) ids: Subspace,
    pub(super) keys: Subspace,
    pub(super) free: Bitmap,
    universe: u64,
    key: PhantomData<fn() -> K>,
}

impl<K> Clone for DenseIds<K> {
    fn clone(&self) -> Self {
        Self {
            space: self.space.clone(),
            ids: self.ids.clone(),
            keys: self.keys.clone(),
            free: self.free.clone(),
            universe: self.universe,
            key: PhantomData,
        }
    }
}

impl<K> fmt::Debug for DenseIds<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenseIds")
            .field("space", &self.space)
            .field("universe", &self.universe)
            .finish_non_exhaustive()
    }
}

/// How far ids were given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The first id that was never given out.
    pub(super) next: u64,
    /// How many before it are free.
    pub(super) free: u64,
}

impl State {
    /// Of the bytes that are stored.
    pub(super) fn read(stored: Option<&[u8]>) -> Result<Self> {
        let Some(stored) = stored else { return Ok(Self::default()) };
        let (next, free) = unpack(stored)?;
        Ok(Self { next, free })
    }

    /// Gives out an id that is free or comes next.
    pub(super) fn take(&mut self, id: u64) {
        match id < self.next {
            true => self.free = self.free.saturating_sub(1),
            false => self.next = id + 1,
        }
    }

    pub(super) fn to_bytes(self) -> KeyBuf {
        pack(&(self.next, self.free))
    }
}

/// What became of the id of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The key has it now and had none before.
    New(u64),
    /// The key has it as before.
    Kept(u64),
    /// The key had it and has none now.
    Released(u64),
    /// The key has none, as before.
    Never,
}

impl Given {
    /// The id of a key that has one now.
    fn id(self) -> Option<u64> {
        match self {
            Self::New(id) | Self::Kept(id) => Some(id),
            Self::Released(_) | Self::Never => None,
        }
    }
}

impl<K: RecordKey> DenseIds<K> {
    /// Ids in `space`, where nothing else may be.
    pub fn new(space: &Subspace) -> Self {
        Self {
            space: space.clone(),
            ids: space.child("id"),
            keys: space.child("key"),
            free: Bitmap::new(&space.child("free")),
            universe: u64::MAX,
            key: PhantomData,
        }
    }

    /// The same with ids below `universe` only, for bitmaps elsewhere that take no others. A key
    /// that would need a larger one is refused.
    #[must_use]
    pub fn within_universe(self, universe: u64) -> Self {
        Self { universe, ..self }
    }

    /// Where the ids are.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The id of `key`, if it has one. Costs one get.
    ///
    /// # Errors
    /// What the store says, and when what is stored is no id, naming the key.
    pub fn of(&self, reader: &impl Reader, key: &K) -> Result<Option<u64>> {
        let packed = self.ids.pack(key);
        read_id(&packed, reader.get(&packed)?)
    }

    /// The ids of many keys, in their order. Costs one round trip.
    ///
    /// # Errors
    /// As [`of`](DenseIds::of).
    pub fn of_many<'k>(
        &self,
        reader: &impl Reader,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<Vec<Option<u64>>> {
        let packed: Vec<KeyBuf> = keys.into_iter().map(|key| self.ids.pack(key)).collect();
        let stored = get_many(reader, &packed)?;
        packed.iter().zip(stored).map(|(key, stored)| read_id(key, stored)).collect()
    }

    /// The key that `id` belongs to, if it belongs to one. Costs one get.
    ///
    /// # Errors
    /// What the store says, and when what is stored is not a key of this kind, naming where.
    pub fn key_of(&self, reader: &impl Reader, id: u64) -> Result<Option<K>> {
        let packed = self.keys.pack(&id);
        read_key(&packed, reader.get(&packed)?)
    }

    /// The keys that many ids belong to, in their order. Costs one round trip.
    ///
    /// # Errors
    /// As [`key_of`](DenseIds::key_of).
    pub fn keys_of(
        &self,
        reader: &impl Reader,
        ids: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Option<K>>> {
        let packed: Vec<KeyBuf> = ids.into_iter().map(|id| self.keys.pack(&id)).collect();
        let stored = get_many(reader, &packed)?;
        packed.iter().zip(stored).map(|(key, stored)| read_key(key, stored)).collect()
    }

    /// How many keys have ids. Costs one get.
    ///
    /// # Errors
    /// What the store says, and when what is stored is no count.
    pub fn len(&self, reader: &impl Reader) -> Result<u64> {
        let state = self.state(reader)?;
        Ok(state.next.saturating_sub(state.free))
    }

    /// Whether no key has an id. Costs one get.
    ///
    /// # Errors
    /// As [`len`](DenseIds::len).
    pub fn is_empty(&self, reader: &impl Reader) -> Result<bool> {
        Ok(self.len(reader)? == 0)
    }

    /// The ids of keys, in their order; new ones for keys that have none: the lowest that are free.
    /// A key that comes twice gets one id.
    ///
    /// # Errors
    /// [`InvertedIndexError::NoIdLeft`] when the universe is used up; a key that is too long; what
    /// the store says. Nothing is written then.
    pub fn assign<'k>(
        &self,
        txn: &mut impl Writer,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<Vec<u64>> {
        txn.guarded(|txn| {
            let given = self.change(txn, keys, true)?;
            Ok(given.into_iter().filter_map(Given::id).collect())
        })
    }

    /// Takes the ids of keys back, and tells what they were, in their order. Let it be done only in
    /// the transaction in which all goes that names these ids.
    ///
    /// # Errors
    /// What the store says. Nothing is written then.
    pub fn release<'k>(
        &self,
        txn: &mut impl Writer,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<Vec<Option<u64>>> {
        txn.guarded(|txn| {
            let given = self.change(txn, keys, false)?;
            let id = |given| match given {
                Given::Released(id) => Some(id),
                _ => None,
            };
            Ok(given.into_iter().map(id).collect())
        })
    }

    /// Changes that each key may come more than once in.
    fn change<'k>(
        &self,
        txn: &mut impl Writer,
        keys: impl IntoIterator<Item = &'k K>,
        stays: bool,
    ) -> Result<Vec<Given>> {
        let mut places = BTreeMap::new();
        let (mut unique, mut place_of_each) = (Vec::new(), Vec::new());
        for key in keys {
            let place = *places.entry(pack(key)).or_insert_with(|| {
                unique.push((key, stays));
                unique.len() - 1
            });
            place_of_each.push(place);
        }
        let (mut bits, mut writes) = (ChunkChanges::new(), SortedWrites::default());
        let given = self.follow(txn, &unique, &mut bits, &mut writes)?;
        bits.apply(txn, &mut writes)?;
        writes.apply(txn)?;
        Ok(place_of_each.into_iter().filter_map(|place| given.get(place).copied()).collect())
    }

    /// Gives ids to keys that are to have one and takes those of the others, and collects what is
    /// to be written. The keys differ. Costs one round trip, and one more where ids are free and
    /// some are wanted.
    pub(super) fn follow(
        &self,
        txn: &impl Reader,
        keys: &[(&K, bool)],
        bits: &mut ChunkChanges,
        writes: &mut SortedWrites,
    ) -> Result<Vec<Given>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut packed: Vec<KeyBuf> = keys.iter().map(|(key, _)| self.ids.pack(*key)).collect();
        packed.push(self.state_key());
        let stored = get_many(txn, &packed)?;
        let mut has = Vec::with_capacity(keys.len());
        for ((_, key), stored) in keys.iter().zip(&packed).zip(&stored) {
            has.push(read_id(key, stored.as_deref())?);
        }
        let state = State::read(stored.last().and_then(Option::as_deref));
        let state = state.map_err(|error| error.at(&self.state_key()))?;
        let wanted = keys.iter().zip(&has).filter(|((_, stays), has)| *stays && has.is_none());
        let ids = self.unused(txn, state, wanted.count() as u64)?;
        let mut change = Change { dense: self, state, ids: ids.into_iter(), bits, writes };
        let given = keys.iter().zip(&packed).zip(has).map(|(((key, stays), packed), has)| {
            match (has, *stays) {
                (Some(id), true) => Ok(Given::Kept(id)),
                (Some(id), false) => change.release(packed, id),
                (None, true) => change.give(packed, *key),
                (None, false) => Ok(Given::Never),
            }
        });
        let given = given.collect::<Result<Vec<_>>>()?;
        if change.state != state {
            let now = change.state.to_bytes();
            writes.put(&self.state_key(), &now)?;
        }
        Ok(given)
    }

    /// The ids that come next: the lowest free ones, and then those that were never given out.
    fn unused(&self, txn: &impl Reader, state: State, wanted: u64) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        if wanted > 0 && state.free > 0 {
            // A universe that was made smaller leaves ids behind its end.
            let end = state.next.min(self.universe);
            let free = self.free.ids(txn, ..end, Order::Ascending)?;
            let most = usize::try_from(wanted.min(state.free)).unwrap_or(usize::MAX);
            for id in free.take(most) {
                ids.push(id?);
            }
        }
        self.and_new(ids, state, wanted)
    }

    /// Ids that are free, and behind them as many that were never given out as are wanted yet.
    pub(super) fn and_new(&self, mut ids: Vec<u64>, state: State, wanted: u64) -> Result<Vec<u64>> {
        let rest = wanted.saturating_sub(ids.len() as u64);
        if rest > 0 {
            let end = state.next.checked_add(rest).filter(|end| *end <= self.universe);
            ids.extend(state.next..end.ok_or_else(|| self.no_id_left())?);
        }
        Ok(ids)
    }

    #[cold]
    pub(super) fn no_id_left(&self) -> Error {
        let ids = self.space.to_string();
        InvertedIndexError::NoIdLeft { ids, universe: self.universe }.into()
    }

    pub(super) fn state_key(&self) -> KeyBuf {
        self.space.pack("next")
    }

    pub(super) fn state(&self, reader: &impl Reader) -> Result<State> {
        let key = self.state_key();
        State::read(reader.get(&key)?.as_deref()).map_err(|error| error.at(&key))
    }

    pub(super) fn universe(&self) -> u64 {
        self.universe
    }
}

/// Changes that are being collected.
struct Change<'c, K> {
    dense: &'c DenseIds<K>,
    state: State,
    ids: std::vec::IntoIter<u64>,
    bits: &'c mut ChunkChanges,
    writes: &'c mut SortedWrites,
}

impl<K: RecordKey> Change<'_, K> {
    fn release(&mut self, packed: &[u8], id: u64) -> Result<Given> {
        self.writes.delete(packed)?;
        self.writes.delete(&self.dense.keys.pack(&id))?;
        let (chunk, offset) = place_of(id);
        self.bits.set(self.dense.free.key(chunk), offset);
        self.state.free += 1;
        Ok(Given::Released(id))
    }

    fn give(&mut self, packed: &[u8], key: &K) -> Result<Given> {
        let id = self.ids.next().ok_or_else(|| self.dense.no_id_left())?;
        self.writes.put(packed, &pack(&id))?;
        self.writes.put(&self.dense.keys.pack(&id), &pack(key))?;
        if id < self.state.next {
            let (chunk, offset) = place_of(id);
            self.bits.clear(self.dense.free.key(chunk), offset);
        }
        self.state.take(id);
        Ok(Given::New(id))
    }
}

/// The id that is stored for the key of an entry.
pub(super) fn read_id<B: Deref<Target = [u8]>>(
    key: &[u8],
    stored: Option<B>,
) -> Result<Option<u64>> {
    let id = stored.map(|stored| unpack(&stored)).transpose();
    id.map_err(|error| Error::from(error).at(key))
}

/// The key that is stored for the id of an entry.
fn read_key<K: RecordKey, B: Deref<Target = [u8]>>(
    at: &[u8],
    stored: Option<B>,
) -> Result<Option<K>> {
    let key = stored.map(|stored| unpack::<K>(&stored)).transpose();
    key.map_err(|error| Error::from(error).at(at))
}
