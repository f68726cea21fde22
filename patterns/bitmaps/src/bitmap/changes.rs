//! Changes of single ids in the chunks of any number of bitmaps.

use std::collections::BTreeMap;
use std::ops::Deref;

use keyloom::{KeyBuf, Reader, Result};
use keyloom_kit::derived::SortedWrites;
use keyloom_kit::get_many;

use crate::{Container, Words};

/// Ids to be set or cleared in chunks of any bitmaps. If an id of a chunk is changed more than
/// once, the last change applies.
///
/// All chunks are read in one round trip, each chunk once. Each changed chunk is written once.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkChanges(BTreeMap<KeyBuf, Vec<Change>>);

/// An id, as its offset in the chunk, and whether it is set or cleared.
pub(crate) type Change = (u16, bool);

/// The result of the changes of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangedChunk<'k> {
    /// The key of the chunk.
    pub(crate) key: &'k [u8],
    /// The number of ids before the changes; 0 if the chunk did not exist.
    pub(crate) before: u32,
    /// The number of ids after the changes; 0 if the chunk is deleted.
    pub(crate) after: u32,
    /// The number of ids that the changes added or removed.
    pub(crate) changed: u32,
}

impl ChunkChanges {
    /// No changes.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Sets an id in the chunk at `key`.
    pub(crate) fn set(&mut self, key: KeyBuf, offset: u16) {
        self.change(key, offset, true);
    }

    /// Clears an id in the chunk at `key`.
    pub(crate) fn clear(&mut self, key: KeyBuf, offset: u16) {
        self.change(key, offset, false);
    }

    /// Sets or clears an id in the chunk at `key`.
    pub(crate) fn change(&mut self, key: KeyBuf, offset: u16, is_set: bool) {
        self.of_chunk(key).push((offset, is_set));
    }

    /// The changes of the chunk at `key`, to which the caller can append.
    pub(crate) fn of_chunk(&mut self, key: KeyBuf) -> &mut Vec<Change> {
        self.0.entry(key).or_default()
    }

    /// The keys of the chunks, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &KeyBuf> {
        self.0.keys()
    }

    /// Reads the chunks and collects the writes.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) with the key if stored bytes are
    /// not a chunk.
    pub(crate) fn apply(&self, txn: &impl Reader, writes: &mut SortedWrites) -> Result<()> {
        self.apply_reporting(txn, writes, |_| ())
    }

    /// Like [`apply`](ChunkChanges::apply), and also reports the result of each chunk in key order.
    pub(crate) fn apply_reporting(
        &self,
        txn: &impl Reader,
        writes: &mut SortedWrites,
        report: impl FnMut(ChangedChunk<'_>),
    ) -> Result<()> {
        let keys: Vec<&KeyBuf> = self.keys().collect();
        self.apply_to(get_many(txn, &keys)?, writes, report)
    }

    /// Like [`apply_reporting`](ChunkChanges::apply_reporting), for values that the caller has
    /// already read from the [keys](ChunkChanges::keys), for example together with other keys.
    pub(crate) fn apply_to<B: Deref<Target = [u8]>>(
        &self,
        stored: impl IntoIterator<Item = Option<B>>,
        writes: &mut SortedWrites,
        mut report: impl FnMut(ChangedChunk<'_>),
    ) -> Result<()> {
        let (mut old, mut new) = (Words::new(), Words::new());
        for ((key, changes), stored) in self.0.iter().zip(stored) {
            let before = load(&mut old, stored.as_deref()).map_err(|error| error.at(key))?;
            new.clone_from(&old);
            make(&mut new, changes);
            old.xor_words(&new);
            let (after, changed) = (new.count(), old.count());
            report(ChangedChunk { key, before, after, changed });
            match (changed, after) {
                (0, _) => (),
                (_, 0) => writes.delete(key)?,
                _ => put(writes, key, &new)?,
            }
        }
        Ok(())
    }
}

/// Adds the write of a chunk to `writes`.
pub(super) fn put(writes: &mut SortedWrites, key: &[u8], words: &Words) -> Result<()> {
    writes.put_with(key, |bytes| {
        words.encode(bytes);
        Ok(())
    })
}

fn make(words: &mut Words, changes: &[Change]) {
    for (offset, is_set) in changes {
        match is_set {
            true => words.insert(*offset),
            false => words.remove(*offset),
        };
    }
}

/// Loads the current ids of a chunk, and returns their number. Verifies the stored bytes first:
/// rewriting them would hide damage.
fn load(words: &mut Words, stored: Option<&[u8]>) -> Result<u32> {
    words.clear();
    let Some(stored) = stored else { return Ok(0) };
    let container = Container::parse(stored)?;
    words.or(container);
    container.verify_as(words)?;
    Ok(container.len())
}
