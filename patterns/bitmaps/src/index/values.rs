//! The values of a field, and the union of their containers.

use std::collections::BTreeMap;
use std::ops::Deref;

use keyloom::{Entry, Error, KeyBuf, KeyRange, Reader, Result, Subspace, Unpack};
use keyloom_kit::until_error;

use crate::{BitmapExpr, ChunkIds, Chunks, Container, Words};

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
        // An error stays in `entries`, so that the next call returns it.
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

/// The chunk in the key of a container; `space` is the subspace of the containers of a field.
fn chunk(space: &Subspace, key: &[u8]) -> Result<u64> {
    let read = || {
        let value = space.leading(key, 1)?.len();
        let rest = key.get(value..).unwrap_or_default();
        keyloom::unpack::<u64>(rest)
    };
    read().map_err(|error| Error::from(error).at(key))
}

/// The number of containers that are read together: at most 64 MiB, and far less unless records
/// have many values.
const TOGETHER: usize = 1 << 14;
/// The maximum number of ranges that are read together. A remote store reads this many in one round
/// trip.
// The backends for PostgreSQL and FoundationDB take 1,024 ranges in one request.
const RANGES: usize = 1_000;

/// The union of the containers of any number of values.
#[derive(Debug, Default)]
pub(super) struct Union(BTreeMap<u64, ChunkIds>);

impl Union {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds containers of the field in `space`.
    pub(super) fn add<B: Deref<Target = [u8]>>(
        &mut self,
        entries: impl Iterator<Item = Result<Entry<B>>>,
        space: &Subspace,
    ) -> Result<()> {
        for entry in entries {
            let entry = entry?;
            self.0.entry(chunk(space, &entry.0)?).or_default().or(container(&entry)?);
        }
        Ok(())
    }

    /// Adds the containers in `ranges` of the field in `space`. Reads the first page of all ranges
    /// together, then the next page of all unfinished ranges together, and so on.
    pub(super) fn add_ranges(
        &mut self,
        reader: &impl Reader,
        mut ranges: Vec<KeyRange<'static>>,
        space: &Subspace,
    ) -> Result<()> {
        while !ranges.is_empty() {
            let mut rest = Vec::new();
            for some in ranges.chunks(RANGES) {
                // As an OR of terms, a list of 300 values would cost 300 round trips on a remote
                // store: each term would be a separate range.
                let pages = reader.range_many(some, TOGETHER / some.len())?;
                for (range, page) in some.iter().zip(pages) {
                    self.add(page.entries.into_iter().map(Ok), space)?;
                    rest.extend(page.last.map(|last| range.clone().after(&last).into_owned()));
                }
            }
            ranges = rest;
        }
        Ok(())
    }

    /// The ids in memory, in the stored form.
    pub(super) fn held(self) -> Result<BitmapExpr> {
        BitmapExpr::held(&mut UnitedChunks(self.0.into_iter()))
    }
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
