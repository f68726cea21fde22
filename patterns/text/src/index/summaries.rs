//! Computes the new summaries of a posting list from the stored summaries and the changed blocks.

use std::collections::BTreeMap;

use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result};
use keyloom_kit::derived::SortedWrites;

use super::keys::{ListKeys, MAX_LAYERS, after_id, with_id};
use crate::postings::{
    Block, Bounds, IdRange, SUMMARY_UNITS, Unit, decode_summary, divide_units, encode_summary,
    merged_bounds,
};

/// The new bounds of changed units by last id; `None` for a removed unit.
pub(super) type UnitChanges = BTreeMap<u32, Option<Bounds>>;

/// Collects the writes of all layers.
///
/// `grows` indicates whether there are more units than before.
pub(super) fn update(
    reader: &impl Reader,
    keys: &ListKeys,
    changes: UnitChanges,
    grows: bool,
    writes: &mut SortedWrites,
) -> Result<()> {
    let (mut changes, mut grows) = (changes, grows);
    for layer in 1..=MAX_LAYERS {
        if changes.is_empty() {
            break;
        }
        let mut edit = LayerEdit::new(reader, keys, layer);
        edit.change(&changes, grows)?;
        edit.join()?;
        (changes, grows) = edit.write(writes)?;
    }
    Ok(())
}

/// The summaries of all layers, given all blocks.
pub(super) fn all(keys: &ListKeys, blocks: Vec<Unit>) -> Vec<(KeyBuf, Vec<u8>)> {
    let (mut units, mut found) = (blocks, Vec::new());
    for layer in 1..=MAX_LAYERS {
        let (prefix, mut above) = (keys.layer(layer), Vec::new());
        divide_units(IdRange::ALL, &units, &mut |range, units| {
            found.push((with_id(&prefix, range.last()), encode_summary(range, units)));
            above.push(Unit { last: range.last(), bounds: merged_bounds(units) });
        });
        units = above;
    }
    found.sort_unstable();
    found
}

/// The summaries of one layer that change.
struct LayerEdit<'e, R> {
    reader: &'e R,
    keys: &'e ListKeys,
    layer: u8,
    prefix: KeyBuf,
    /// The new summaries, by last id. Before the division, a summary may be empty or too large.
    new: BTreeMap<u32, Summary>,
    /// The stored summaries that are replaced.
    replaced: BTreeMap<u32, Vec<u8>>,
}

struct Summary {
    range: IdRange,
    units: BTreeMap<u32, Bounds>,
    is_smaller: bool,
}

impl<'e, R: Reader> LayerEdit<'e, R> {
    fn new(reader: &'e R, keys: &'e ListKeys, layer: u8) -> Self {
        let (new, replaced) = (BTreeMap::new(), BTreeMap::new());
        Self { reader, keys, layer, prefix: keys.layer(layer), new, replaced }
    }

    fn change(&mut self, changes: &UnitChanges, grows: bool) -> Result<()> {
        let Some(first) = changes.keys().next() else { return Ok(()) };
        if !self.load(*first)? && self.is_empty()? {
            // The list has no summaries. It needs some only if it grows.
            return if grows { self.begin(changes) } else { Ok(()) };
        }
        for (last, bounds) in changes {
            if !self.load(*last)? {
                if bounds.is_none() {
                    continue;
                }
                let range = self.free_range(*last)?;
                let units = BTreeMap::new();
                self.new.insert(range.last(), Summary { range, units, is_smaller: false });
            }
            let Some(summary) = self.containing(*last) else { continue };
            match bounds {
                Some(bounds) => {
                    summary.units.insert(*last, bounds.clone());
                }
                None => summary.is_smaller |= summary.units.remove(last).is_some(),
            }
        }
        Ok(())
    }

    /// The summary in memory whose range contains an id.
    fn containing(&mut self, id: u32) -> Option<&mut Summary> {
        let (_, summary) = self.new.range_mut(id..).next()?;
        summary.range.contains(id).then_some(summary)
    }

    /// Reads the summary whose range contains an id. Returns whether there is one.
    fn load(&mut self, id: u32) -> Result<bool> {
        if self.containing(id).is_some() {
            return Ok(true);
        }
        let Some((key, value)) = self.reader.first(self.from(id))? else { return Ok(false) };
        let (range, units) = self.parse(&key, &value)?;
        if !range.contains(id) {
            return Ok(false);
        }
        self.insert(range, units, &value);
        Ok(true)
    }

    fn insert(&mut self, range: IdRange, units: Vec<Unit>, stored: &[u8]) {
        let units = units.into_iter().map(|unit| (unit.last, unit.bounds)).collect();
        self.new.insert(range.last(), Summary { range, units, is_smaller: false });
        self.replaced.insert(range.last(), stored.to_vec());
    }

    fn parse(&self, key: &[u8], value: &[u8]) -> Result<(IdRange, Vec<Unit>)> {
        let (_, last) = self.keys.summary_of(key)?;
        decode_summary(value, last).map_err(|why| Error::from(why).at(key))
    }

    fn from(&self, id: u32) -> KeyRange<'static> {
        after_id(&self.prefix, id)
    }

    fn before(&self, id: u32) -> KeyRange<'static> {
        KeyRange::half_open(&self.prefix, &with_id(&self.prefix, id)).into_owned()
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.reader.first(KeyRange::children(&self.prefix))?.is_none())
    }

    /// Adds the first summaries of a list, if the list has become long enough.
    fn begin(&mut self, changes: &UnitChanges) -> Result<()> {
        let mut units = self.stored_units()?;
        for (last, bounds) in changes {
            match bounds {
                Some(bounds) => units.insert(*last, bounds.clone()),
                None => units.remove(last),
            };
        }
        let range = IdRange::ALL;
        self.new.insert(range.last(), Summary { range, units, is_smaller: false });
        Ok(())
    }

    /// All stored units of this layer: blocks, or summaries of the layer below. There are at most
    /// 16, unless summaries are missing.
    fn stored_units(&self) -> Result<BTreeMap<u32, Bounds>> {
        let below = self.layer.checked_sub(1).filter(|below| *below > 0);
        let prefix = below.map_or_else(|| self.keys.blocks.clone(), |below| self.keys.layer(below));
        let mut units = BTreeMap::new();
        for entry in self.reader.range(KeyRange::children(&prefix), Order::Ascending)? {
            let (key, value) = entry?;
            let (last, bounds) = match below {
                None => {
                    let last = self.keys.last_id(&key)?;
                    let block = Block::parse(&value, last);
                    let block = block.map_err(|why| Error::from(why).at(&key))?;
                    (last, block.bounds().collect())
                }
                Some(_) => {
                    let (range, units) = self.parse(&key, &value)?;
                    (range.last(), merged_bounds(&units))
                }
            };
            units.insert(last, bounds);
        }
        Ok(units)
    }

    /// The largest range that contains an id but no units.
    fn free_range(&self, id: u32) -> Result<IdRange> {
        let stored_before = match self.reader.last(self.before(id))? {
            Some((key, _)) => Some(self.keys.summary_of(&key)?.1),
            None => None,
        };
        let stored_after = match self.reader.first(self.from(id))? {
            Some((key, value)) => Some(self.parse(&key, &value)?.0.first()),
            None => None,
        };
        let before = self.new.range(..id).next_back().map(|(last, _)| *last);
        let after = self.new.range(id..).next().map(|(_, summary)| summary.range.first());
        let nearest = |a: Option<u32>, b: Option<u32>| a.into_iter().chain(b);
        let before = nearest(before, stored_before).max();
        Ok(IdRange::between(before, id, nearest(after, stored_after).min()))
    }

    /// Joins summaries that have lost units with their siblings.
    fn join(&mut self) -> Result<()> {
        let smaller = self.new.values().filter(|summary| summary.is_smaller);
        let smaller: Vec<IdRange> = smaller.map(|summary| summary.range).collect();
        for range in smaller {
            let mut range = range;
            while let Some(parent) = self.join_with_sibling(range)? {
                range = parent;
            }
        }
        Ok(())
    }

    fn join_with_sibling(&mut self, range: IdRange) -> Result<Option<IdRange>> {
        let (Some(parent), Some(sibling)) = (range.parent(), range.sibling()) else {
            return Ok(None);
        };
        // An earlier step may have joined the summary already.
        if !self.new.get(&range.last()).is_some_and(|summary| summary.range == range) {
            return Ok(None);
        }
        let within = |new: &BTreeMap<u32, Summary>| {
            let some = new.range(parent.first()..=parent.last());
            some.map(|(_, summary)| summary.units.len()).sum::<usize>()
        };
        if within(&self.new) > SUMMARY_UNITS {
            return Ok(None);
        }
        let range = self.from(sibling.first());
        let mut stored = Vec::new();
        for entry in self.reader.range(range, Order::Ascending)? {
            let (key, value) = entry?;
            let (range, units) = self.parse(&key, &value)?;
            if range.last() > sibling.last() || stored.len() > SUMMARY_UNITS {
                break;
            }
            if !self.replaced.contains_key(&range.last()) {
                stored.push((range, units, value.to_vec()));
            }
        }
        let others: usize = stored.iter().map(|(_, units, _)| units.len()).sum();
        if within(&self.new) + others > SUMMARY_UNITS {
            return Ok(None);
        }
        for (range, units, value) in stored {
            self.insert(range, units, &value);
        }
        let parts: Vec<u32> =
            self.new.range(parent.first()..=parent.last()).map(|(last, _)| *last).collect();
        let mut units = BTreeMap::new();
        for part in parts {
            units.extend(self.new.remove(&part).into_iter().flat_map(|part| part.units));
        }
        self.new.insert(parent.last(), Summary { range: parent, units, is_smaller: true });
        Ok(Some(parent))
    }

    /// Collects the writes. Returns the changes of the layer above, and whether this layer has more
    /// summaries than before.
    fn write(self, writes: &mut SortedWrites) -> Result<(UnitChanges, bool)> {
        let (mut above, mut kept) = (UnitChanges::new(), Vec::new());
        for summary in self.new.into_values() {
            let units = summary.units.into_iter().map(|(last, bounds)| Unit { last, bounds });
            let units: Vec<Unit> = units.collect();
            divide_units(summary.range, &units, &mut |range, units| {
                kept.push((range.last(), encode_summary(range, units), merged_bounds(units)));
            });
        }
        let grows = kept.len() > self.replaced.len();
        for (last, value, bounds) in &kept {
            let stored = self.replaced.get(last);
            if stored == Some(value) {
                continue;
            }
            writes.put(&with_id(&self.prefix, *last), value)?;
            let before = stored.and_then(|stored| decode_summary(stored, *last).ok());
            if before.is_none_or(|(_, units)| merged_bounds(&units) != *bounds) {
                above.insert(*last, Some(bounds.clone()));
            }
        }
        for last in self.replaced.keys() {
            if !kept.iter().any(|(kept, ..)| kept == last) {
                writes.delete(&with_id(&self.prefix, *last))?;
                above.insert(*last, None);
            }
        }
        Ok((above, grows))
    }
}
