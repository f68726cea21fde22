//! Reads of the blocks that changes need.

use keyloom::{Error, KeyBuf, Order, Reader, Result};
use keyloom_kit::get_many;

use super::keys::ListKeys;
use super::lists::ListChanges;
use crate::postings::{Block, Bounds, Detail, IdRange, Postings};

/// The maximum number of blocks that one range read of a round returns.
// The limit of a range read begins at 1 block, and is multiplied by four in each round up to this
// maximum. A smaller maximum adds round trips for long lists of changes; a larger one reads more
// blocks that do not change.
const MOST_BLOCKS: usize = 256;

/// A stored block, and its occurrences if they are stored in a separate key.
pub(super) struct StoredBlock<B> {
    pub(super) range: IdRange,
    bytes: B,
    occurrences: Option<B>,
}

impl<B: std::ops::Deref<Target = [u8]>> StoredBlock<B> {
    pub(super) fn new(keys: &ListKeys, (key, bytes): (B, B)) -> Result<Self> {
        let last = keys.last_id(&key)?;
        let block = Block::parse(&bytes, last).map_err(|error| Error::from(error).at(&key))?;
        let range = block.layout.range;
        Ok(Self { range, bytes, occurrences: None })
    }

    fn parse(&self, keys: &ListKeys) -> Result<Block<'_>> {
        let last = self.range.last();
        Block::parse(&self.bytes, last).map_err(|error| Error::from(error).at(&keys.block(last)))
    }

    /// The number of postings.
    pub(super) fn count(&self, keys: &ListKeys) -> Result<usize> {
        Ok(self.parse(keys)?.count())
    }

    pub(super) fn bounds(&self, keys: &ListKeys) -> Result<Bounds> {
        Ok(self.parse(keys)?.bounds().collect())
    }

    /// The key of the occurrences, if they are stored in a separate key.
    fn separate(&self, keys: &ListKeys, detail: Detail) -> Result<Option<KeyBuf>> {
        let is_separate = detail != Detail::Frequencies && self.parse(keys)?.inline().is_none();
        Ok(is_separate.then(|| keys.of_occurrences(self.range.last())))
    }

    pub(super) fn bytes(&self) -> (&[u8], Option<&[u8]>) {
        (&self.bytes, self.occurrences.as_deref())
    }

    pub(super) fn decode(&self, keys: &ListKeys, detail: Detail) -> Result<Postings> {
        let decoded = self.parse(keys)?.decode(self.occurrences.as_deref(), detail);
        decoded.map_err(|error| Error::from(error).at(&keys.block(self.range.last())))
    }
}

/// The blocks of each list that contain changed documents or follow them. Costs one round trip for
/// all lists, further round trips for lists with many changed blocks, and one round trip for the
/// occurrences.
pub(super) fn blocks<'r, R: Reader>(
    reader: &'r R,
    lists: &[ListChanges<'_, '_>],
) -> Result<Vec<Vec<StoredBlock<R::Bytes<'r>>>>> {
    let mut found: Vec<Vec<StoredBlock<_>>> = lists.iter().map(|_| Vec::new()).collect();
    let mut pending: Vec<(usize, usize)> = (0..lists.len()).map(|list| (list, 0)).collect();
    let mut limit = 1;
    while !pending.is_empty() {
        let ranges: Vec<_> = pending
            .iter()
            .filter_map(|(list, next)| {
                let list = lists.get(*list)?;
                Some(list.keys.from(list.changes.get(*next)?.doc))
            })
            .collect();
        let pages = reader.range_many(&ranges, limit)?;
        let mut again = Vec::new();
        for ((at, next), page) in pending.into_iter().zip(pages) {
            let (Some(list), Some(into)) = (lists.get(at), found.get_mut(at)) else { continue };
            let has_more = page.last.is_some();
            for entry in page.entries {
                into.push(StoredBlock::new(&list.keys, entry)?);
            }
            let covered = into.last().map(|block| block.range.last());
            let rest = list.changes.get(next..).unwrap_or_default();
            let next = next + rest.partition_point(|change| Some(change.doc) <= covered);
            if has_more && next < list.changes.len() {
                again.push((at, next));
            }
        }
        (pending, limit) = (again, (limit * 4).min(MOST_BLOCKS));
    }
    with_occurrences(reader, lists, &mut found)?;
    Ok(found)
}

/// Reads the occurrences that are stored in separate keys. Costs one round trip.
fn with_occurrences<'r, R: Reader>(
    reader: &'r R,
    lists: &[ListChanges<'_, '_>],
    found: &mut [Vec<StoredBlock<R::Bytes<'r>>>],
) -> Result<()> {
    let mut keys = Vec::new();
    for (list, blocks) in lists.iter().zip(found.iter()) {
        for block in blocks {
            let key = block.separate(&list.keys, list.detail)?;
            keys.push(key.filter(|_| list.changes_in(block.range)));
        }
    }
    let wanted: Vec<&KeyBuf> = keys.iter().flatten().collect();
    let mut stored = get_many(reader, &wanted)?.into_iter();
    for (block, key) in found.iter_mut().flatten().zip(&keys) {
        if key.is_some() {
            block.occurrences = stored.next().flatten();
        }
    }
    Ok(())
}

/// The last id of the block before an id.
pub(super) fn end_before(reader: &impl Reader, keys: &ListKeys, id: u32) -> Result<Option<u32>> {
    let before = reader.last(keys.before(id))?;
    before.map(|(key, _)| keys.last_id(&key)).transpose()
}

/// The blocks of a range of ids, with their occurrences; `None` if they have more than `most`
/// postings, not counting the blocks that `skip` selects.
pub(super) fn few_in<'r, R: Reader>(
    reader: &'r R,
    list: &ListChanges<'_, '_>,
    range: IdRange,
    most: usize,
    skip: impl Fn(u32) -> bool,
) -> Result<Option<Vec<StoredBlock<R::Bytes<'r>>>>> {
    let (mut blocks, mut total) = (Vec::new(), 0);
    for entry in reader.range(list.keys.from(range.first()), Order::Ascending)? {
        let block = StoredBlock::new(&list.keys, entry?)?;
        if block.range.last() > range.last() {
            break;
        }
        if skip(block.range.last()) {
            continue;
        }
        total += block.count(&list.keys)?;
        if total > most {
            return Ok(None);
        }
        blocks.push(block);
    }
    for block in &mut blocks {
        if let Some(key) = block.separate(&list.keys, list.detail)? {
            block.occurrences = reader.get(&key)?;
        }
    }
    Ok(Some(blocks))
}
