//! A chunk as plain words.

use std::fmt;
use std::ops::RangeInclusive;

use super::counting::shared_bits;

/// The number of words in a chunk.
pub(super) const WORDS: usize = 508;
/// The number of blocks of 256 ids in a chunk.
pub(super) const BLOCKS: usize = 127;
pub(super) const WORDS_OF_BLOCK: usize = WORDS / BLOCKS;

/// The ids of one chunk, one bit each. A `Words` takes 4 KiB, so it is reused where possible.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Words(pub(super) [u64; WORDS]);

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Words {
    /// No ids.
    pub(crate) fn new() -> Self {
        Self([0; WORDS])
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(super) fn bit(&mut self, offset: u16) -> Option<(&mut u64, u64)> {
        Some((self.0.get_mut(usize::from(offset / 64))?, 1 << (offset % 64)))
    }

    /// Adds an id, and returns whether it is new.
    pub(crate) fn insert(&mut self, offset: u16) -> bool {
        let Some((word, bit)) = self.bit(offset) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Removes an id, and returns whether it was present.
    pub(crate) fn remove(&mut self, offset: u16) -> bool {
        let Some((word, bit)) = self.bit(offset) else { return false };
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }

    pub(crate) fn contains(&self, offset: u16) -> bool {
        self.0.get(usize::from(offset / 64)).is_some_and(|word| word >> (offset % 64) & 1 == 1)
    }

    /// Adds all ids of a range.
    pub(crate) fn insert_range(&mut self, range: RangeInclusive<u16>) {
        self.combine_range(range, |word, mask| *word |= mask);
    }

    /// Removes all ids outside a range.
    pub(crate) fn keep(&mut self, range: RangeInclusive<u16>) {
        let mut kept = Self::new();
        kept.insert_range(range);
        self.and_words(&kept);
    }

    /// Combines words with all ids of a range.
    pub(super) fn combine_range(&mut self, range: RangeInclusive<u16>, op: impl Fn(&mut u64, u64)) {
        let (first, last) = (*range.start(), *range.end());
        for n in first / 64..=last / 64 {
            let mut mask = u64::MAX;
            if n == first / 64 {
                mask &= u64::MAX << (first % 64);
            }
            if n == last / 64 {
                mask &= u64::MAX >> (63 - last % 64);
            }
            if let Some(word) = self.0.get_mut(usize::from(n)) {
                op(word, mask);
            }
        }
    }

    pub(crate) fn or_words(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn and_words(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }

    pub(crate) fn and_not_words(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= !other);
    }

    pub(crate) fn xor_words(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word ^= other);
    }

    /// The number of ids.
    pub(crate) fn count(&self) -> u32 {
        shared_bits(&self.0, &self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The number of ids that are in both chunks.
    pub(crate) fn and_count(&self, other: &Self) -> u32 {
        shared_bits(&self.0, &other.0)
    }

    /// The number of ids below an offset.
    pub(crate) fn rank(&self, offset: u16) -> u32 {
        let (before, from) = self.0.split_at(usize::from(offset / 64).min(WORDS));
        let in_word = from.first().map_or(0, |word| word & !(u64::MAX << (offset % 64)));
        before.iter().map(|word| word.count_ones()).sum::<u32>() + in_word.count_ones()
    }

    /// The `n`-th id, counted from 0.
    pub(crate) fn select(&self, n: u32) -> Option<u16> {
        let mut left = n;
        for (at, word) in (0_u16..).zip(&self.0) {
            match left.checked_sub(word.count_ones()) {
                Some(less) => left = less,
                None => return Bits(*word).nth(left as usize).map(|bit| at * 64 + bit),
            }
        }
        None
    }

    /// The first id at or after an offset.
    pub(crate) fn first_from(&self, offset: u16) -> Option<u16> {
        let at = offset / 64;
        let mut words = (at..).zip(self.0.get(usize::from(at)..)?);
        let (at, word) = words.next()?;
        match word & u64::MAX << (offset % 64) {
            0 => words.find(|(_, word)| **word != 0).map(|(at, word)| at * 64 + lowest(*word)),
            word => Some(at * 64 + lowest(word)),
        }
    }

    /// The last id at or before an offset.
    pub(crate) fn last_to(&self, offset: u16) -> Option<u16> {
        let end = usize::from(offset / 64).min(WORDS - 1);
        let (last, before) = self.0.get(..=end)?.split_last()?;
        let kept = match usize::from(offset / 64) > end {
            true => *last,
            false => *last & u64::MAX >> (63 - offset % 64),
        };
        let before = (0_u16..end as u16).zip(before).rev();
        let found = [(end as u16, kept)].into_iter().chain(before.map(|(at, word)| (at, *word)));
        found.filter(|(_, word)| *word != 0).map(|(at, word)| at * 64 + highest(word)).next()
    }

    /// The ids in ascending order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = u16> + '_ {
        (0..WORDS as u16)
            .zip(&self.0)
            .flat_map(|(at, word)| Bits(*word).map(move |bit| at * 64 + bit))
    }

    /// The words of each block.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &[u64; WORDS_OF_BLOCK]> {
        self.0.as_chunks::<WORDS_OF_BLOCK>().0.iter()
    }

    /// The number of runs.
    pub(super) fn count_runs(&self) -> u32 {
        let mut before = 0;
        let starts = self.0.iter().map(|word| {
            let starts = word & !(word << 1 | before);
            before = word >> 63;
            starts.count_ones()
        });
        starts.sum()
    }

    /// The first and the last id of each run.
    pub(super) fn for_each_run(&self, mut run: impl FnMut(u16, u16)) {
        let mut from = self.first_from(0);
        while let Some(first) = from {
            let last = self.end_of_run(first);
            run(first, last);
            from = self.first_from(last + 1);
        }
    }

    /// The last id of the run that contains `offset`.
    fn end_of_run(&self, offset: u16) -> u16 {
        let mut at = offset;
        loop {
            let word = self.0.get(usize::from(at / 64)).copied().unwrap_or_default();
            let ones = (word >> (at % 64)).trailing_ones() as u16;
            if ones < 64 - at % 64 {
                return at + ones - 1;
            }
            at += ones;
        }
    }

    /// The 64 ids from `at * 64` on, lowest bit first.
    pub(super) fn word(&self, at: u16) -> u64 {
        self.0.get(usize::from(at)).copied().unwrap_or_default()
    }

    /// Appends all words, little-endian.
    pub(super) fn append_bytes(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.resize(from + 8 * WORDS, 0);
        let (bytes, _) = out.get_mut(from..).unwrap_or_default().as_chunks_mut::<8>();
        bytes.iter_mut().zip(&self.0).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    }
}

/// The ids of a block, as offsets from its start.
pub(super) fn ids_of(block: &[u64; WORDS_OF_BLOCK]) -> impl Iterator<Item = u16> + '_ {
    (0_u16..).zip(block).flat_map(|(at, word)| Bits(*word).map(move |bit| at * 64 + bit))
}

fn lowest(word: u64) -> u16 {
    word.trailing_zeros() as u16
}

fn highest(word: u64) -> u16 {
    63 - word.leading_zeros() as u16
}

/// The set bits of a word.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        let bit = (self.0 != 0).then(|| lowest(self.0))?;
        self.0 &= self.0 - 1;
        Some(bit)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.0.count_ones() as usize;
        (left, Some(left))
    }
}

impl DoubleEndedIterator for Bits {
    fn next_back(&mut self) -> Option<u16> {
        let bit = (self.0 != 0).then(|| highest(self.0))?;
        self.0 ^= 1 << bit;
        Some(bit)
    }
}
