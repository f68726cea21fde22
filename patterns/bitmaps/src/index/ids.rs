//! The ids of records: assigned to their keys, or the keys themselves.

use std::fmt;

use keyloom::key::display;
use keyloom::{Reader, Result, Subspace, pack};
use keyloom_kit::RecordKey;
use keyloom_kit::derived::SortedWrites;

use super::InvertedIndexError;
use crate::bitmap::beyond_universe;
use crate::dense_ids::Given;
use crate::{ChunkChanges, DenseIds};

/// How keys map to ids.
pub(super) enum Ids<K> {
    /// Each key is assigned an id.
    Dense(Box<DenseIds<K>>),
    /// The keys are ids.
    Same(SameIds<K>),
}

/// Keys that are ids.
pub(super) struct SameIds<K> {
    pub(super) id: fn(&K) -> u64,
    pub(super) key: fn(u64) -> Option<K>,
    pub(super) space: Subspace,
    pub(super) universe: Option<u64>,
}

impl<K> Clone for SameIds<K> {
    fn clone(&self) -> Self {
        Self { id: self.id, key: self.key, space: self.space.clone(), universe: self.universe }
    }
}

impl<K> Clone for Ids<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Dense(ids) => Self::Dense(ids.clone()),
            Self::Same(ids) => Self::Same(ids.clone()),
        }
    }
}

impl<K> fmt::Debug for Ids<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dense(ids) => ids.fmt(f),
            Self::Same(ids) => f.debug_struct("SameIds").field("universe", &ids.universe).finish(),
        }
    }
}

impl<K: RecordKey> Ids<K> {
    pub(super) fn within_universe(self, universe: u64) -> Self {
        match self {
            Self::Dense(ids) => Self::Dense(Box::new(ids.within_universe(universe))),
            Self::Same(ids) => Self::Same(SameIds { universe: Some(universe), ..ids }),
        }
    }

    pub(super) fn universe(&self) -> Option<u64> {
        match self {
            Self::Dense(ids) => Some(ids.universe()),
            Self::Same(ids) => ids.universe,
        }
    }

    pub(super) fn of(&self, reader: &impl Reader, key: &K) -> Result<Option<u64>> {
        match self {
            Self::Dense(ids) => ids.of(reader, key),
            Self::Same(ids) => Ok(Some((ids.id)(key))),
        }
    }

    pub(super) fn keys_of(
        &self,
        reader: &impl Reader,
        wanted: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Option<K>>> {
        match self {
            Self::Dense(ids) => ids.keys_of(reader, wanted),
            Self::Same(ids) => Ok(wanted.into_iter().map(ids.key).collect()),
        }
    }

    /// Updates the ids of changed keys. The two flags of a key are whether it had a record before,
    /// and whether it has a record now.
    pub(super) fn follow(
        &self,
        txn: &impl Reader,
        keys: &[(&K, [bool; 2])],
        bits: &mut ChunkChanges,
        writes: &mut SortedWrites,
    ) -> Result<Vec<Given>> {
        match self {
            Self::Dense(ids) => {
                let keys: Vec<(&K, bool)> = keys.iter().map(|(key, [_, is])| (*key, *is)).collect();
                ids.follow(txn, &keys, bits, writes)
            }
            Self::Same(ids) => keys.iter().map(|(key, was_is)| ids.given(key, *was_is)).collect(),
        }
    }
}

impl<K: RecordKey> SameIds<K> {
    fn given(&self, key: &K, [was, is]: [bool; 2]) -> Result<Given> {
        let id = (self.id)(key);
        if is {
            self.id_of(key)?;
        }
        if let Some(universe) = self.universe.filter(|universe| is && id >= *universe) {
            return Err(beyond_universe(&self.space, id, universe));
        }
        Ok(match (was, is) {
            (false, true) => Given::New(id),
            (true, true) => Given::Kept(id),
            (true, false) => Given::Released(id),
            (false, false) => Given::Never,
        })
    }

    /// The id of a key. Refuses a key that is not packed as the number of its id, because the
    /// record could not be found by its id.
    pub(super) fn id_of(&self, key: &K) -> Result<u64> {
        let (id, packed) = ((self.id)(key), pack(key));
        if packed != pack(&id) {
            let (index, key) = (self.space.named(), display(&packed).to_string());
            return Err(InvertedIndexError::OtherPacking { index, key, id }.into());
        }
        Ok(id)
    }

    /// Whether an id is in the universe.
    pub(super) fn has(&self, id: u64) -> bool {
        self.universe.is_none_or(|universe| id < universe)
    }
}
