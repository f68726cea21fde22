//! The values of a field, and their containers all together.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Peekable;
use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::{Entry, Error, KeyBuf, Reader, Result, Subspace, Unpack};

use crate::explain::Explain;
use crate::general::aggregation;
use crate::general::inverted_index::{BitmapExpr, ChunkIds, Chunks, Container, Words};

/// The distinct values of a field: what [`values`](super::InvertedIndex::values) returns.
pub struct Values<'r, R: Reader, P>(pub(super) aggregation::Values<'r, R, (P,)>);

impl<R: Reader, P> Values<'_, R, P> {
    /// What the scan has read so far.
    pub fn explain(&self) -> Explain {
        self.0.explain()
    }
}

impl<R: Reader, P: for<'k> Unpack<'k>> Iterator for Values<'_, R, P> {
    type Item = Result<P>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|value| value.map(|(value,)| value))
    }
}

impl<R: Reader, P> fmt::Debug for Values<'_, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The distinct values of a field, and of how many records each is: what
/// [`value_counts`](super::InvertedIndex::value_counts) returns.
pub struct ValueCounts<I: Iterator, P> {
    entries: Peekable<I>,
    space: Subspace,
    value: PhantomData<fn() -> P>,
}

impl<I: Iterator, P> ValueCounts<I, P> {
    pub(super) fn new(entries: I, space: &Subspace) -> Self {
        Self { entries: entries.peekable(), space: space.clone(), value: PhantomData }
    }
}

impl<I: Iterator, P> fmt::Debug for ValueCounts<I, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueCounts").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<I, B, P> ValueCounts<I, P>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
    P: for<'k> Unpack<'k>,
{
    fn one(&mut self) -> Result<Option<(P, u64)>> {
        let Some(entry) = self.entries.next().transpose()? else { return Ok(None) };
        let group = KeyBuf::from_slice(leading(&self.space, &entry.0)?);
        let mut count = u64::from(container(&entry)?.len());
        // A failure is left to the next call.
        while let Some(Ok(next)) = self.entries.peek() {
            if leading(&self.space, &next.0)? != &group[..] {
                break;
            }
            count += u64::from(container(next)?.len());
            self.entries.next();
        }
        let value = self.space.unpack::<(P,)>(&group);
        let (value,) = value.map_err(|error| Error::from(error).at(&group))?;
        Ok(Some((value, count)))
    }
}

impl<I, B, P> Iterator for ValueCounts<I, P>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
    P: for<'k> Unpack<'k>,
{
    type Item = Result<(P, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.one().transpose()
    }
}

/// The field and the value of the key of a container.
fn leading<'k>(space: &Subspace, key: &'k [u8]) -> Result<&'k [u8]> {
    space.leading(key, 1).map_err(|error| Error::from(error).at(key))
}

fn container<B: Deref<Target = [u8]>>((key, value): &Entry<B>) -> Result<Container<'_>> {
    Container::parse(value).map_err(|error| error.at(key))
}

/// The chunk of the key of a container in `space`, which is that of a field.
fn chunk(space: &Subspace, key: &[u8]) -> Result<u64> {
    let read = || {
        let value = space.leading(key, 1)?.len();
        let rest = key.get(value..).unwrap_or_default();
        keyloom::unpack::<u64>(rest)
    };
    read().map_err(|error| Error::from(error).at(key))
}

/// The ids of the containers of any number of values.
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

/// Chunks in memory, one after the other.
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
