//! A chunk as plain words, and set operations on chunks.

use std::fmt;
use std::ops::RangeInclusive;

use smallvec::SmallVec;

use super::container::{BITMAP, Container, Form, bits_of, blocks_of, bounds, encode, from};
use super::counting::shared_bits;

/// The number of words in a chunk.
pub(super) const WORDS: usize = 508;
/// The number of blocks of 256 ids in a chunk.
pub(super) const BLOCKS: usize = 127;
pub(super) const WORDS_OF_BLOCK: usize = WORDS / BLOCKS;

/// AND with an array of up to this many ids collects the kept ids on the stack.
const FEW_IDS: usize = 256;

/// The ids of one chunk, one bit each. 4 KiB, so a value is reused.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Words([u64; WORDS]);

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

    fn bit(&mut self, offset: u16) -> Option<(&mut u64, u64)> {
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

    /// Replaces the ids by those of a container.
    pub(crate) fn set(&mut self, container: Container<'_>) {
        self.clear();
        self.or(container);
    }

    pub(crate) fn or(&mut self, container: Container<'_>) {
        self.combine(container, |word, mask| *word |= mask);
    }

    pub(crate) fn and_not(&mut self, container: Container<'_>) {
        self.combine(container, |word, mask| *word &= !mask);
    }

    pub(crate) fn xor(&mut self, container: Container<'_>) {
        self.combine(container, |word, mask| *word ^= mask);
    }

    pub(crate) fn and(&mut self, container: Container<'_>) {
        match container.form() {
            Form::Bitset(_) => self.combine(container, |word, mask| *word &= mask),
            _ if container.is_full() => {}
            Form::Array(ids) if ids.len() <= FEW_IDS => self.keep_some(ids),
            _ => self.and_words(&container.words()),
        }
    }

    /// Keeps only those of a few ids that are present.
    fn keep_some(&mut self, ids: &[[u8; 2]]) {
        let ids = ids.iter().map(|id| from(*id));
        let kept: SmallVec<[u16; FEW_IDS]> = ids.filter(|id| self.contains(*id)).collect();
        self.clear();
        for id in kept {
            self.insert(id);
        }
    }

    /// Combines words with the ids of a container. Only a bitset visits all words: with other
    /// containers, `op` must leave a word unchanged where the container has no ids.
    fn combine(&mut self, container: Container<'_>, op: impl Fn(&mut u64, u64)) {
        match container.form() {
            Form::Bitset(masks) => {
                let masks = masks.iter().map(|mask| u64::from_le_bytes(*mask));
                self.0.iter_mut().zip(masks).for_each(|(word, mask)| op(word, mask));
            }
            Form::Array(ids) => ids.iter().for_each(|id| {
                if let Some((word, bit)) = self.bit(from(*id)) {
                    op(word, bit);
                }
            }),
            Form::Runs(runs) => runs.iter().for_each(|run| {
                let (first, last) = bounds(*run);
                self.combine_range(first..=last, &op);
            }),
            Form::Blocks(sizes, content) if sizes.contains(&BITMAP) => {
                let (blocks, _) = self.0.as_chunks_mut::<WORDS_OF_BLOCK>();
                for (words, block) in blocks.iter_mut().zip(blocks_of(sizes, content)) {
                    combine_block(words, block, &op);
                }
            }
            Form::Blocks(sizes, content) => {
                for (block, id) in block_of_each(sizes).iter().zip(content) {
                    let (at, bit) = place_in_words(*block, *id);
                    if let Some(word) = self.0.get_mut(at) {
                        op(word, 1 << bit);
                    }
                }
            }
        }
    }

    /// Combines words with all ids of a range.
    fn combine_range(&mut self, range: RangeInclusive<u16>, op: impl Fn(&mut u64, u64)) {
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

    /// The number of common ids.
    pub(crate) fn and_count(&self, other: &Self) -> u32 {
        shared_bits(&self.0, &other.0)
    }

    /// The number of common ids.
    pub(super) fn and_count_of(&self, container: Container<'_>) -> u32 {
        let has = |id: u16| u32::from(self.contains(id));
        match container.form() {
            Form::Bitset(masks) => shared_bits(&self.0, masks),
            Form::Array(ids) => ids.iter().map(|id| has(from(*id))).sum(),
            Form::Runs(_) => self.and_count(&container.words()),
            Form::Blocks(sizes, content) if sizes.contains(&BITMAP) => {
                let blocks = self.blocks().zip(blocks_of(sizes, content));
                blocks.map(|(words, block)| count_in_block(words, block)).sum()
            }
            Form::Blocks(sizes, content) => {
                let has = |(block, id): (&u8, &u8)| {
                    let (at, bit) = place_in_words(*block, *id);
                    self.0.get(at).map_or(0, |word| word >> bit & 1)
                };
                block_of_each(sizes).iter().zip(content).map(|id| has(id) as u32).sum()
            }
        }
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

    /// Appends the smallest form of the ids; nothing if there are none.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode(self, out);
    }
}

/// For content without bitmaps: the block of each byte.
///
/// A loop over the ids of each block would mispredict its end at nearly every block. So each block
/// number is written to as many bytes as a block can have, and the next block overwrites the
/// excess. A single loop then processes all of the content, in half the time.
pub(super) fn block_of_each(sizes: &[u8; BLOCKS]) -> [u8; BLOCKS * BITMAP as usize] {
    let (mut block_of, mut at) = ([0; BLOCKS * BITMAP as usize], 0);
    for (block, size) in (0_u8..).zip(sizes) {
        if let Some(bytes) = block_of.get_mut(at..at + usize::from(BITMAP)) {
            bytes.fill(block);
        }
        at += usize::from(*size);
    }
    block_of
}

/// The word of an id of a block, and the bit in it.
fn place_in_words(block: u8, id: u8) -> (usize, u8) {
    // The block number is always in range; `min` lets the compiler omit a branch.
    ((usize::from(block) * WORDS_OF_BLOCK + usize::from(id / 64)).min(WORDS - 1), id % 64)
}

fn combine_block(words: &mut [u64; WORDS_OF_BLOCK], block: &[u8], op: impl Fn(&mut u64, u64)) {
    if block.len() == usize::from(BITMAP) {
        words.iter_mut().zip(bits_of(block)).for_each(|(word, mask)| op(word, mask));
        return;
    }
    for id in block {
        if let Some(word) = words.get_mut(usize::from(id / 64)) {
            op(word, 1 << (id % 64));
        }
    }
}

fn count_in_block(words: &[u64; WORDS_OF_BLOCK], block: &[u8]) -> u32 {
    if block.len() == usize::from(BITMAP) {
        return words.iter().zip(bits_of(block)).map(|(a, b)| (a & b).count_ones()).sum();
    }
    let has = |id: &u8| words.get(usize::from(id / 64)).map_or(0, |word| word >> (id % 64) & 1);
    block.iter().map(|id| has(id) as u32).sum()
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
