//! Checks and repairs the assignment of ids.

use std::collections::HashSet;

use keyloom::{KeyBuf, Order, Reader, Result, pack, unpack};
use keyloom_kit::derived::SortedWrites;
use keyloom_kit::{RecordKey, get_many};

use super::InvertedIndex;
use super::ids::Ids;
use super::span::sound;
use crate::bitmap::{id_at, place_of};
use crate::dense_ids::{State, read_id};
use crate::{ChunkChanges, DenseIds};

/// The missing or wrong entry of the id of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// The record has no valid id. `true` if an id is stored that does not decode, is not below the
    /// next id, or belongs to another record.
    Id(bool),
    /// The record has this id, but no key is stored for the id.
    Key(u64),
}

impl<K: RecordKey> DenseIds<K> {
    /// The stored state of the assignment, if it is readable.
    pub(super) fn stored_state(&self, reader: &impl Reader) -> Result<Option<State>> {
        let stored = reader.get(&self.state_key())?;
        Ok(stored.and_then(|stored| State::read(Some(&stored)).ok()))
    }

    /// The state of the assignment, derived from the entries if the stored state cannot be right.
    pub(super) fn true_state(&self, reader: &impl Reader) -> Result<State> {
        let (stored, used) = (self.stored_state(reader)?, self.used(reader)?);
        if let Some(state) = stored {
            let is_free = |last| self.is_free(reader, last);
            let free_before = state.next.checked_sub(1).map_or(Ok(false), is_free);
            if state.next == used || state.next > used && free_before? {
                return Ok(state);
            }
        }
        let next = used.max(self.free_until(reader)?);
        Ok(State { next, free: stored.map_or(0, |state| state.free) })
    }

    fn is_free(&self, reader: &impl Reader, id: u64) -> Result<bool> {
        let (chunk, offset) = place_of(id);
        let stored = reader.get(&self.free.key(chunk))?;
        let container = stored.as_deref().and_then(sound);
        Ok(container.is_some_and(|container| container.contains(offset)))
    }

    /// The end of the free ids: one after the last.
    fn free_until(&self, reader: &impl Reader) -> Result<u64> {
        for entry in reader.range(self.free.space().range(), Order::Descending)? {
            let (key, value) = entry?;
            let chunk = self.free.space().unpack::<u64>(&key).ok();
            let last = sound(&value).and_then(|container| container.words().iter().next_back());
            if let Some(id) = chunk.zip(last).and_then(|(chunk, last)| id_at(chunk, last)) {
                return Ok(id.saturating_add(1));
            }
        }
        Ok(0)
    }

    /// The end of the used ids: one after the last id whose key maps back to it.
    fn used(&self, reader: &impl Reader) -> Result<u64> {
        for entry in reader.range(self.keys.range(), Order::Descending)? {
            let (entry, key) = entry?;
            if let (Ok(id), Ok(key)) = (self.keys.unpack::<u64>(&entry), unpack::<K>(&key)) {
                let given = self.ids.pack(&key);
                if read_id(&given, reader.get(&given)?).ok().flatten() == Some(id) {
                    return Ok(id.saturating_add(1));
                }
            }
        }
        Ok(0)
    }

    /// At most `wanted` free ids before `end`, lowest first, without ids that are in use or
    /// claimed. The stored free ids may be damaged, so each one is checked.
    fn truly_free(
        &self,
        reader: &impl Reader,
        end: u64,
        claimed: &HashSet<u64>,
        wanted: usize,
    ) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        if wanted == 0 {
            return Ok(found);
        }
        for entry in reader.range(self.free.space().range(), Order::Ascending)? {
            let (key, value) = entry?;
            let container = sound(&value);
            let chunk = self.free.space().unpack::<u64>(&key).ok();
            let Some((chunk, container)) = chunk.zip(container) else { continue };
            let words = container.words();
            let ids = words.iter().filter_map(|offset| id_at(chunk, offset));
            let ids = ids.take_while(|id| *id < end).filter(|id| !claimed.contains(id));
            for some in ids.collect::<Vec<u64>>().chunks(wanted) {
                let at: Vec<KeyBuf> = some.iter().map(|id| self.keys.pack(id)).collect();
                let free = some.iter().zip(get_many(reader, &at)?);
                found.extend(free.filter(|(_, holder)| holder.is_none()).map(|(id, _)| *id));
                if found.len() >= wanted {
                    found.truncate(wanted);
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Completes the ids of records. Records without an id get the lowest free ids first, then new
    /// ids. Costs one range, one get per examined free id, and one get per chunk from which free
    /// ids are taken.
    pub(super) fn give_lacking(
        &self,
        txn: &impl Reader,
        lacking: &[(&K, Lack)],
        mut state: State,
        writes: &mut SortedWrites,
    ) -> Result<State> {
        let claims = |(_, lack): &(&K, Lack)| match lack {
            Lack::Key(id) => Some(*id),
            Lack::Id(_) => None,
        };
        let claimed: HashSet<u64> = lacking.iter().filter_map(claims).collect();
        let (wanted, end) = (lacking.len() - claimed.len(), state.next.min(self.universe()));
        let ids = self.truly_free(txn, end, &claimed, wanted)?;
        let mut ids = self.and_new(ids, state, wanted as u64)?.into_iter();
        let mut bits = ChunkChanges::new();
        for (key, lack) in lacking {
            let id = match lack {
                Lack::Key(id) => *id,
                Lack::Id(_) => {
                    let id = ids.next().ok_or_else(|| self.no_id_left())?;
                    writes.put(&self.ids.pack(*key), &pack(&id))?;
                    if id < state.next {
                        let (chunk, offset) = place_of(id);
                        bits.clear(self.free.key(chunk), offset);
                    }
                    state.take(id);
                    id
                }
            };
            writes.put(&self.keys.pack(&id), &pack(*key))?;
        }
        bits.apply(txn, writes)?;
        Ok(state)
    }

    /// How many ids are free.
    pub(super) fn count_free(&self, reader: &impl Reader) -> Result<u64> {
        let mut free = 0;
        for entry in reader.range(self.free.space().range(), Order::Ascending)? {
            let (_, value) = entry?;
            free += sound(&value).map_or(0, |container| u64::from(container.len()));
        }
        Ok(free)
    }

    /// The keys of records that have no valid id of their own below `next`, or whose ids have no
    /// key. Costs two round trips.
    pub(super) fn lacking<'k>(
        &self,
        reader: &impl Reader,
        keys: &'k [K],
        next: u64,
    ) -> Result<Vec<(&'k K, Lack)>> {
        let given: Vec<KeyBuf> = keys.iter().map(|key| self.ids.pack(key)).collect();
        let mut ids = Vec::with_capacity(keys.len());
        for (at, stored) in given.iter().zip(get_many(reader, &given)?) {
            let is_there = stored.is_some();
            let id = read_id(at, stored).ok().flatten().filter(|id| *id < next);
            ids.push((id, is_there));
        }
        let back: Vec<KeyBuf> =
            ids.iter().filter_map(|(id, _)| Some(self.keys.pack(&(*id)?))).collect();
        let mut holders = get_many(reader, &back)?.into_iter();
        let (mut lacking, mut claimed) = (Vec::new(), HashSet::new());
        for (key, (id, is_there)) in keys.iter().zip(ids) {
            let Some(id) = id else {
                lacking.push((key, Lack::Id(is_there)));
                continue;
            };
            match holders.next().flatten() {
                Some(holder) if *holder == *pack(key) => {}
                None if claimed.insert(id) => lacking.push((key, Lack::Key(id))),
                _ => lacking.push((key, Lack::Id(true))),
            }
        }
        Ok(lacking)
    }
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// The id after the last assigned id; [`u64::MAX`] if keys are ids, since any id is possible.
    pub(super) fn end(&self, reader: &impl Reader) -> Result<u64> {
        match &self.ids {
            Ids::Dense(ids) => Ok(ids.true_state(reader)?.next),
            Ids::Same(_) => Ok(u64::MAX),
        }
    }

    /// Whether an entry is a chunk of free ids.
    pub(super) fn is_of_free_ids(&self, entry: &[u8]) -> bool {
        matches!(&self.ids, Ids::Dense(ids) if ids.free.space().contains(entry))
    }

    /// Whether an id of the chunk of `id` is free and not below `end`.
    pub(super) fn has_free_from(&self, reader: &impl Reader, id: u64, end: u64) -> Result<bool> {
        let Ids::Dense(ids) = &self.ids else { return Ok(false) };
        let (chunk, _) = place_of(id);
        let stored = reader.get(&ids.free.key(chunk))?;
        let last = stored.as_deref().and_then(sound);
        let last = last.and_then(|container| container.words().iter().next_back());
        let last = last.and_then(|offset| id_at(chunk, offset));
        Ok(last.is_some_and(|last| last >= end))
    }
}
