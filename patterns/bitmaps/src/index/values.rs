//! The values of a field, and the union of their containers.

use std::collections::BTreeMap;
use std::ops::Deref;

use keyloom::{Entry, Error, KeyBuf, Result, Subspace, Unpack};

use crate::{BitmapExpr, ChunkIds, Chunks, Container, Words};
use keyloom_tables::kit::until_error;

/// The distinct values in `entries` of a field, each with its number of records.
pub(super) fn value_counts<B: Deref<Target = [u8]>, P: for<'k> Unpack<'k>>(
    entries: impl Iterator<Item = Result<Entry<B>>>,
    space: Subspace,
) -> impl Iterator<Item = Result<(P, u64)>> {
    let mut entries = entries.peekable();
    until_error(move || {
        let Some(entry) = entries.next().transpose()? else { return Ok(None) };
        let group = KeyBuf::from_slice(leading(&space, &entry.0)?);
        let mut count = u64::from(container(&entry)?.len());
        // An error is left to the next call.
        while let Some(Ok(next)) = entries.peek() {
            if leading(&space, &next.0)? != &group[..] {
                break;
            }
            count += u64::from(container(next)?.len());
            entries.next();
        }
        let value = space.unpack::<(P,)>(&group);
        let (value,) = value.map_err(|error| Error::from(error).at(&group))?;
        Ok(Some((value, count)))
    })
}

/// The field and the value in the key of a container.
fn leading<'k>(space: &Subspace, key: &'k [u8]) -> Result<&'k [u8]> {
    space.leading(key, 1).map_err(|error| Error::from(error).at(key))
}

fn container<B: Deref<Target = [u8]>>((key, value): &Entry<B>) -> Result<Container<'_>> {
    Container::parse(value).map_err(|error| error.at(key))
}

/// The chunk in the key of a container; `space` is that of a field.
fn chunk(space: &Subspace, key: &[u8]) -> Result<u64> {
    let read = || {
        let value = space.leading(key, 1)?.len();
        let rest = key.get(value..).unwrap_or_default();
        keyloom::unpack::<u64>(rest)
    };
    read().map_err(|error| Error::from(error).at(key))
}

/// The union of the containers of any number of values.
pub(super) fn unite<B: Deref<Target = [u8]>>(
    entries: impl Iterator<Item = Result<Entry<B>>>,
    space: &Subspace,
) -> Result<BitmapExpr> {
    let mut chunks = BTreeMap::<u64, ChunkIds>::new();
    for entry in entries {
        let entry = entry?;
        chunks.entry(chunk(space, &entry.0)?).or_default().or(container(&entry)?);
    }
    BitmapExpr::held(&mut UnitedChunks(chunks.into_iter()))
}

/// Chunks in memory, in sequence.
struct UnitedChunks(std::collections::btree_map::IntoIter<u64, ChunkIds>);

impl Chunks for UnitedChunks {
    fn next_chunk(&mut self, words: &mut Words) -> Result<Option<u64>> {
        let next = self.0.next();
        Ok(next.map(|(chunk, united)| {
            united.write_to(words);
            chunk
        }))
    }
}
