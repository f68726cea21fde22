//! The stored chunks of a bitmap.

use std::fmt;

use keyloom::{Error, Reader, Result, Subspace};

use super::ids::{Chunks, id_at};
use crate::{CHUNK_IDS, Container, Words};

/// The chunk of the largest possible id, [`u64::MAX`].
const LAST_CHUNK: u64 = u64::MAX / CHUNK_IDS;

/// The number of the chunk in a key of a bitmap in `space`.
pub(super) fn chunk_of(space: &Subspace, key: &[u8]) -> Result<u64> {
    match space.unpack::<u64>(key) {
        Ok(chunk) if chunk <= LAST_CHUNK => Ok(chunk),
        Ok(_) => Err(Error::other("no id belongs to this chunk of a bitmap").at(key)),
        Err(error) => Err(Error::from(error).at(key)),
    }
}

/// The container at a key of a bitmap.
pub(super) fn container_at<'c>(key: &[u8], bytes: &'c [u8]) -> Result<Container<'c>> {
    Container::parse(bytes).map_err(|error| error.at(key))
}

/// Stored chunks in ascending or descending order.
pub(super) struct StoredChunks<'r, R: Reader + 'r> {
    pub(super) entries: R::Entries<'r>,
    pub(super) space: Subspace,
}

impl<'r, R: Reader> StoredChunks<'r, R> {
    /// Visits the containers in sequence until `visit` returns false.
    pub(super) fn visit(
        self,
        mut visit: impl FnMut(u64, Container<'_>) -> Result<bool>,
    ) -> Result<()> {
        for entry in self.entries {
            let (key, value) = entry?;
            let chunk = chunk_of(&self.space, &key)?;
            if !visit(chunk, container_at(&key, &value)?)? {
                break;
            }
        }
        Ok(())
    }
}

impl<R: Reader> Chunks for StoredChunks<'_, R> {
    fn next_chunk(&mut self, words: &mut Words) -> Result<Option<u64>> {
        let Some((key, value)) = self.entries.next().transpose()? else { return Ok(None) };
        let chunk = chunk_of(&self.space, &key)?;
        words.set(container_at(&key, &value)?);
        Ok(Some(chunk))
    }
}

impl<R: Reader> fmt::Debug for StoredChunks<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredChunks").field("space", &self.space).finish_non_exhaustive()
    }
}

/// Returns an error if an entry of a bitmap is faulty.
pub(super) fn verify(
    space: &Subspace,
    key: &[u8],
    value: &[u8],
    universe: Option<u64>,
) -> Result<()> {
    let chunk = chunk_of(space, key)?;
    let container = container_at(key, value)?;
    container.verify().map_err(|error| error.at(key))?;
    let last = container.words().last_to(u16::MAX).and_then(|last| id_at(chunk, last));
    match last.is_some_and(|last| universe.is_none_or(|universe| last < universe)) {
        true => Ok(()),
        false => Err(Error::other("this chunk of a bitmap has ids beyond the universe").at(key)),
    }
}
