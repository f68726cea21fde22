//! The summaries of a posting list, read from the highest layer down as far as needed.

use std::ops::Deref;

use keyloom::{Entry, Error, KeyRange, Order, Reader, Result};

use super::bm25::Weight;
use super::window::Window;
use crate::index::ListKeys;
use crate::postings::{SUMMARY_UNITS, each_unit};

/// The bounds of a list, by layers of summaries.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    /// The summaries of the highest layer.
    top: Vec<Loaded>,
    /// The summary that was read last in each lower layer, the lowest layer first.
    below: Vec<Option<Loaded>>,
}

/// A summary.
#[derive(Debug)]
struct Loaded {
    /// The last id of the range of the summary.
    last: u32,
    /// A bound of the scores of all postings of the summary.
    bound: f64,
    /// The last id and the bound of each unit.
    units: Vec<(u32, f64)>,
}

impl Loaded {
    fn parse(keys: &ListKeys, key: &[u8], value: &[u8], weight: &Weight) -> Result<Self> {
        let (_, last) = keys.summary_of(key)?;
        let mut units = Vec::with_capacity(SUMMARY_UNITS);
        let read = each_unit(value, last, |last, bounds| {
            units.push((last, weight.bound(bounds.iter().copied())));
        });
        read.map_err(|why| Error::from(why).at(key))?;
        let bound = units.iter().map(|(_, bound)| *bound).fold(0.0, f64::max);
        Ok(Self { last, bound, units })
    }

    /// The unit that may contain `target`; `None` if all postings of the summary are before
    /// `target`.
    fn unit(&self, target: u32) -> Option<Window> {
        let at = self.units.partition_point(|(last, _)| *last < target);
        self.units.get(at).map(|(last, score)| Window { last: *last, score: *score })
    }

    /// An empty window up to the end of the summary.
    fn rest(&self) -> Window {
        Window { last: self.last, score: 0.0 }
    }
}

impl Skips {
    /// Reads the highest layer, which has at most 16 summaries. A short list has no layers.
    pub(crate) fn read(reader: &impl Reader, keys: &ListKeys, weight: &Weight) -> Result<Self> {
        let entries = reader.range(KeyRange::children(&keys.summaries), Order::Ascending)?;
        Self::of(entries, keys, weight)
    }

    /// Parses the highest layer from the first entries of the summaries.
    pub(crate) fn of<B: Deref<Target = [u8]>>(
        entries: impl Iterator<Item = Result<Entry<B>>>,
        keys: &ListKeys,
        weight: &Weight,
    ) -> Result<Self> {
        let mut skips = Self::default();
        let mut layers = None;
        for entry in entries {
            let (key, value) = entry?;
            let (layer, _) = keys.summary_of(&key)?;
            if layer != *layers.get_or_insert(layer) {
                break;
            }
            skips.top.push(Loaded::parse(keys, &key, &value, weight)?);
        }
        let layers = usize::from(layers.unwrap_or(0));
        skips.below.resize_with(layers.saturating_sub(1), || None);
        Ok(skips)
    }

    /// The number of layers.
    pub(crate) fn layers(&self) -> usize {
        if self.top.is_empty() { 0 } else { self.below.len() + 1 }
    }

    /// The last id of the block after the block that ends at `last`, if the summary is in memory.
    pub(crate) fn after(&self, last: u32) -> Option<u32> {
        let lowest = match self.below.first() {
            Some(lowest) => lowest.as_ref()?,
            None => self.top.get(self.top.partition_point(|summary| summary.last <= last))?,
        };
        let at = lowest.units.partition_point(|(other, _)| *other <= last);
        lowest.units.get(at).map(|(last, _)| *last)
    }

    /// A bound of the scores from `target` to the end of a block (`depth` 0) or of a summary of the
    /// layer `depth`. The list must have a layer of summaries.
    pub(crate) fn window(
        &mut self,
        reader: &impl Reader,
        keys: &ListKeys,
        weight: &Weight,
        target: u32,
        depth: usize,
    ) -> Result<Window> {
        let at = self.top.partition_point(|summary| summary.last < target);
        let Some(top) = self.top.get(at) else { return Ok(Window::NONE) };
        let Some(mut layer) = self.layers().checked_sub(depth + 1) else {
            return Ok(Window { last: top.last, score: top.bound });
        };
        let Some(mut window) = top.unit(target) else { return Ok(top.rest()) };
        // Each step reads the summary of the window in the next lower layer.
        while let Some(below) = layer.checked_sub(1) {
            layer = below;
            let number = depth + layer;
            let Some(slot) = self.below.get_mut(number) else { break };
            if slot.as_ref().is_none_or(|loaded| loaded.last != window.last) {
                let key = crate::index::with_id(&keys.layer(number as u8 + 1), window.last);
                let value = reader.get(&key)?.ok_or_else(|| missing(&key))?;
                *slot = Some(Loaded::parse(keys, &key, &value, weight)?);
            }
            if let Some(loaded) = slot {
                // A bound of 0 does not end the descent: a term with the weight 0 has matches with
                // the score 0.
                let Some(unit) = loaded.unit(target) else { return Ok(loaded.rest()) };
                window = unit;
            }
        }
        Ok(window)
    }
}

#[cold]
fn missing(key: &[u8]) -> Error {
    Error::other("a summary of a posting list is missing; repair the index").at(key)
}
