//! Reports from the forward index: the values of each id of an audience.

use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result, Subspace};
use keyloom_kit::{Explain, get_many, within};

use super::window::Window;
use crate::column::{blocks_of, place_in_block};
use crate::index::block_at;

/// The number of blocks that are read together.
// The columns of 1,024 blocks take some tens of megabytes with ten values per id. Fewer blocks add
// round trips.
const TOGETHER: usize = 1_024;

/// A get of a block takes as long as this many steps of a range. If at least two blocks are needed,
/// and more than one in this many blocks, one range reads the blocks. Otherwise, each block is read
/// by a get.
const STEPS_PER_GET: u64 = 4;

/// Reads the columns of some fields for the ids of an audience.
pub(super) struct Columns<'c, R: Reader> {
    pub(super) reader: &'c R,
    /// The subspaces of the columns of each field.
    pub(super) fields: &'c [&'c Subspace],
    pub(super) explain: Explain,
}

/// The columns of one block, one per field, and the places of the ids of the audience in it.
pub(super) struct Block<'b, B> {
    pub(super) number: u64,
    pub(super) places: &'b [u16],
    fields: &'b [&'b Subspace],
    /// For each field, the columns of all blocks in sequence.
    columns: &'b [Vec<Option<B>>],
    at: usize,
}

/// Blocks that are read together.
#[derive(Default)]
struct Wanted {
    blocks: Vec<u64>,
    /// The places in all blocks. `ends` has the end of the places of each block.
    places: Vec<u16>,
    ends: Vec<usize>,
}

impl Wanted {
    fn add(&mut self, block: u64, places: impl Iterator<Item = u16>) {
        self.blocks.push(block);
        self.places.extend(places);
        self.ends.push(self.places.len());
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.places.clear();
        self.ends.clear();
    }

    /// The range to read, if that is faster than single gets.
    fn range(&self) -> Option<std::ops::RangeInclusive<u64>> {
        let (first, last) = (self.blocks.first()?, self.blocks.last()?);
        let wanted = (self.blocks.len() as u64).saturating_mul(STEPS_PER_GET);
        (wanted > 1 + last - first && self.blocks.len() > 1).then_some(*first..=*last)
    }
}

impl<B: std::ops::Deref<Target = [u8]>> Block<'_, B> {
    /// The column of the `n`-th field, decoded by `parse`.
    pub(super) fn column<'s, C>(
        &'s self,
        n: usize,
        parse: impl FnOnce(&'s [u8]) -> Result<C>,
    ) -> Result<Option<C>> {
        let column = self.columns.get(n).and_then(|columns| columns.get(self.at));
        let Some(Some(bytes)) = column else { return Ok(None) };
        parse(bytes).map(Some).map_err(|error| self.at(n, error))
    }

    /// Adds the key of the `n`-th field's column to an error.
    #[cold]
    pub(super) fn at(&self, n: usize, error: Error) -> Error {
        match self.fields.get(n) {
            Some(field) => error.at(&field.pack(&self.number)),
            None => error,
        }
    }
}

impl<R: Reader> Columns<'_, R> {
    /// Visits each block with ids of the window.
    pub(super) fn visit(
        &mut self,
        window: &Window,
        mut visit: impl FnMut(&Block<'_, R::Bytes<'_>>) -> Result<()>,
    ) -> Result<()> {
        let mut wanted = Wanted::default();
        window.visit(|chunk, offsets| {
            for (block, same) in blocks_of(chunk, offsets) {
                wanted.add(block, same.iter().map(|offset| place_in_block(*offset)));
                if wanted.blocks.len() == TOGETHER {
                    self.read(&wanted, &mut visit)?;
                    wanted.clear();
                }
            }
            Ok(())
        })?;
        self.read(&wanted, &mut visit)
    }

    fn read(
        &mut self,
        wanted: &Wanted,
        visit: &mut impl FnMut(&Block<'_, R::Bytes<'_>>) -> Result<()>,
    ) -> Result<()> {
        let columns = self.fields.iter().map(|field| match wanted.range() {
            Some(blocks) => {
                let range = within(blocks).key_range(field);
                scan(self.reader, field, range, &wanted.blocks, &mut self.explain)
            }
            None => {
                let keys = wanted.blocks.iter().map(|block| field.pack(block));
                let found = get_many(self.reader, &keys.collect::<Vec<KeyBuf>>())?;
                self.explain.keys_scanned += found.iter().flatten().count() as u64;
                Ok(found)
            }
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut from = 0;
        for (at, (number, end)) in wanted.blocks.iter().zip(&wanted.ends).enumerate() {
            let places = wanted.places.get(from..*end).unwrap_or_default();
            from = *end;
            let block =
                Block { number: *number, places, fields: self.fields, columns: &columns, at };
            visit(&block)?;
        }
        Ok(())
    }
}

/// The columns of some blocks, read by one range from the first to the last.
fn scan<'r, R: Reader>(
    reader: &'r R,
    space: &Subspace,
    range: KeyRange<'_>,
    blocks: &[u64],
    explain: &mut Explain,
) -> Result<Vec<Option<R::Bytes<'r>>>> {
    explain.ranges += 1;
    let mut found = Vec::with_capacity(blocks.len());
    for entry in reader.range(range, Order::Ascending)? {
        let (key, bytes) = entry?;
        explain.keys_scanned += 1;
        let block = block_at(space, &key)?;
        while blocks.get(found.len()).is_some_and(|wanted| *wanted < block) {
            found.push(None);
        }
        if blocks.get(found.len()) == Some(&block) {
            found.push(Some(bytes));
        }
    }
    found.resize_with(blocks.len(), || None);
    Ok(found)
}
