//! Dense ids for keys of any kind, so that sets of keys can be bitmaps.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, `"id"`, key | the id of the key, as a packed integer |
//! | subspace, `"key"`, id | the key, packed |
//! | subspace, `"next"` | the lowest id that was never assigned, and how many ids below it are free: a packed pair |
//! | subspace, `"free"`, chunk | a [bitmap](super::bitmap) of the free ids |
//!
//! # Invariants
//!
//! * The mapping from keys to ids and the mapping from ids to keys agree.
//! * Each id below the next one either belongs to a key or is free.
//!
//! # Cost
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`of`](DenseIds::of), [`key_of`](DenseIds::key_of), [`of_many`](DenseIds::of_many), [`keys_of`](DenseIds::keys_of) | 1 get per key or id | 1 |
//! | [`assign`](DenseIds::assign) of n keys | n + 1 gets; 2 keys written per new key, and 1 per call | 1 |
//! | the same if there are free ids | also 1 range, and 1 get and 1 key written per chunk of free ids taken | 2 more |
//! | [`release`](DenseIds::release) of n keys | n + 1 gets, and 1 per chunk; 2 keys written per key, 1 per chunk, and 1 per call | 2 |
//!
//! # Reuse of ids
//!
//! The lowest free id is assigned first, so that ids stay dense. An id is free once its
//! [`release`](DenseIds::release) is committed, and the next new key may get it. Within a snapshot
//! an id belongs to one key. If a program keeps an id elsewhere, in a cache or a message, the id
//! may belong to another key later. Keep the key instead.
//!
//! All transactions that assign ids read and write one entry. So on a store with concurrent
//! transactions they are serialized. Assign many ids per transaction.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::{Error, KeyBuf, Reader, Result, Subspace, Writer, pack, unpack};
use keyloom_kit::derived::SortedWrites;
use keyloom_kit::{RecordKey, get_many};

use super::bitmap::{Bitmap, place_of};
use super::{ChunkChanges, InvertedIndexError};

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

/// The state of the assignment of ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The lowest id that was never assigned.
    pub(super) next: u64,
    /// The number of free ids below `next`.
    pub(super) free: u64,
}

impl State {
    /// Decodes the stored bytes.
    pub(super) fn read(stored: Option<&[u8]>) -> Result<Self> {
        let Some(stored) = stored else { return Ok(Self::default()) };
        let (next, free) = unpack(stored)?;
        Ok(Self { next, free })
    }

    /// Marks a free id, or the next one, as assigned.
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

/// The result of assigning or releasing the id of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The key got this id.
    New(u64),
    /// The key still has this id.
    Kept(u64),
    /// The key had this id, which was released.
    Released(u64),
    /// The key had no id, and still has none.
    Never,
}

impl Given {
    /// The current id of the key.
    fn id(self) -> Option<u64> {
        match self {
            Self::New(id) | Self::Kept(id) => Some(id),
            Self::Released(_) | Self::Never => None,
        }
    }
}

impl<K: RecordKey> DenseIds<K> {
    /// Creates a mapping in `space`, which must hold nothing else.
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

    /// Returns the same mapping, restricted to ids below `universe`. Use this if the bitmaps of
    /// these ids have the same limit. [`assign`](DenseIds::assign) refuses a key if no id below
    /// `universe` is left.
    #[must_use]
    pub fn within_universe(self, universe: u64) -> Self {
        Self { universe, ..self }
    }

    /// The subspace of the ids.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Returns the id of `key`, if it has one. Costs one get.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] with the key if the stored bytes are not an id.
    pub fn of(&self, reader: &impl Reader, key: &K) -> Result<Option<u64>> {
        let packed = self.ids.pack(key);
        read_id(&packed, reader.get(&packed)?)
    }

    /// Returns the ids of many keys, in the order of the keys. Costs one round trip.
    ///
    /// # Errors
    /// The errors of [`of`](DenseIds::of).
    pub fn of_many<'k>(
        &self,
        reader: &impl Reader,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<Vec<Option<u64>>> {
        let packed: Vec<KeyBuf> = keys.into_iter().map(|key| self.ids.pack(key)).collect();
        let stored = get_many(reader, &packed)?;
        packed.iter().zip(stored).map(|(key, stored)| read_id(key, stored)).collect()
    }

    /// Returns the key of `id`, if it has one. Costs one get.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] with the key if the stored bytes are not a key of this
    /// type.
    pub fn key_of(&self, reader: &impl Reader, id: u64) -> Result<Option<K>> {
        let packed = self.keys.pack(&id);
        read_key(&packed, reader.get(&packed)?)
    }

    /// Returns the keys of many ids, in the order of the ids. Costs one round trip.
    ///
    /// # Errors
    /// The errors of [`key_of`](DenseIds::key_of).
    pub fn keys_of(
        &self,
        reader: &impl Reader,
        ids: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Option<K>>> {
        let packed: Vec<KeyBuf> = ids.into_iter().map(|id| self.keys.pack(&id)).collect();
        let stored = get_many(reader, &packed)?;
        packed.iter().zip(stored).map(|(key, stored)| read_key(key, stored)).collect()
    }

    /// Returns how many keys have ids. Costs one get.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] with the key if the stored bytes are not a count.
    pub fn len(&self, reader: &impl Reader) -> Result<u64> {
        let state = self.state(reader)?;
        Ok(state.next.saturating_sub(state.free))
    }

    /// Returns whether no key has an id. Costs one get.
    ///
    /// # Errors
    /// The errors of [`len`](DenseIds::len).
    pub fn is_empty(&self, reader: &impl Reader) -> Result<bool> {
        Ok(self.len(reader)? == 0)
    }

    /// Returns the ids of keys, in the order of the keys. Keys without an id get new ids, the
    /// lowest free ids first. A key that occurs twice gets one id.
    ///
    /// # Errors
    /// [`InvertedIndexError::NoIdLeft`] if the universe is used up; [`Error::KeyTooLong`];
    /// [`Error::At`] with the key if stored bytes do not decode; any error of the store. On an
    /// error, nothing is written.
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

    /// Releases the ids of keys, and returns these ids, in the order of the keys; `None` for a key
    /// without an id. Call it only in the transaction that also removes all uses of these ids.
    ///
    /// # Errors
    /// [`Error::At`] with the key if stored bytes do not decode; any error of the store. On an
    /// error, nothing is written.
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

    /// Assigns or releases the ids of keys. A key may occur more than once.
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

    /// Assigns an id to each key that has `true` and lacks one, releases the ids of the keys that
    /// have `false`, and collects the writes. The keys must be distinct. Costs one round trip, and
    /// one more if ids are needed and there are free ids.
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

    /// The next ids to assign: the lowest free ids, then ids that were never assigned.
    fn unused(&self, txn: &impl Reader, state: State, wanted: u64) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        if wanted > 0 && state.free > 0 {
            // After the universe was made smaller, free ids may be beyond its end.
            let end = state.next.min(self.universe);
            let free = self.free.ids(txn, ..end)?;
            let most = usize::try_from(wanted.min(state.free)).unwrap_or(usize::MAX);
            for id in free.take(most) {
                ids.push(id?);
            }
        }
        self.and_new(ids, state, wanted)
    }

    /// Free ids, followed by as many new ids as are still needed.
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
        let ids = self.space.named();
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

/// The collected changes.
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

/// Decodes the id stored for a key.
pub(super) fn read_id<B: Deref<Target = [u8]>>(
    key: &[u8],
    stored: Option<B>,
) -> Result<Option<u64>> {
    let id = stored.map(|stored| unpack(&stored)).transpose();
    id.map_err(|error| Error::from(error).at(key))
}

/// Decodes the key stored for an id.
fn read_key<K: RecordKey, B: Deref<Target = [u8]>>(
    at: &[u8],
    stored: Option<B>,
) -> Result<Option<K>> {
    let key = stored.map(|stored| unpack::<K>(&stored)).transpose();
    key.map_err(|error| Error::from(error).at(at))
}
