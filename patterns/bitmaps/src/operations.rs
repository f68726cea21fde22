//! Set operations of plain words with containers, and the number of ids that two containers share.

use keyloom::Result;
use smallvec::SmallVec;

use super::container::{BITMAP, Container, Form, bits_of, block_of_each, blocks_of, bounds, from};
use super::counting::shared_bits;
use super::words::{WORDS, WORDS_OF_BLOCK, Words};

/// AND with an array of up to this many ids collects the kept ids on the stack.
// 256 ids take 512 bytes of the stack. A longer array is converted to words, and all 508 words are
// combined instead of testing one id after the other.
const FEW_IDS: usize = 256;

impl Words {
    /// Replaces the ids with the ids of a container.
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

    /// Keeps only the ids that are also in `ids`, a short array.
    fn keep_some(&mut self, ids: &[[u8; 2]]) {
        let ids = ids.iter().map(|id| from(*id));
        let kept: SmallVec<[u16; FEW_IDS]> = ids.filter(|id| self.contains(*id)).collect();
        self.clear();
        for id in kept {
            self.insert(id);
        }
    }

    /// Combines words with the ids of a container. For a bitset, `op` is called for each word. For
    /// the other forms it is called only for words in which the container has ids, so it must leave
    /// a word unchanged if there are none.
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

    /// The number of ids of these words that a container has.
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
}

impl Container<'_> {
    /// The ids as plain words.
    pub(crate) fn words(self) -> Words {
        let mut words = Words::new();
        words.or(self);
        words
    }

    /// Like [`verify_as`](Container::verify_as), but decodes the words first.
    ///
    /// # Errors
    /// [`Error::Value`](keyloom::Error::Value) if the ids are not in order, or do not match the
    /// stored count.
    pub(crate) fn verify(self) -> Result<()> {
        self.verify_as(&self.words())
    }

    /// The number of ids that the two containers share.
    pub(crate) fn and_count(self, other: Container<'_>) -> u32 {
        match (self.form(), other.form()) {
            _ if self.is_full() => other.len(),
            _ if other.is_full() => self.len(),
            (Form::Bitset(a), Form::Bitset(b)) => shared_bits(a, b),
            (Form::Array(a), Form::Array(b)) => {
                shared_ids(a, b).unwrap_or_else(|| other.and_count_words(&self.words()))
            }
            (Form::Runs(a), Form::Runs(b)) => shared_of_runs(a, b),
            (Form::Array(ids), Form::Runs(_) | Form::Bitset(_)) => other.how_many_of(ids),
            (Form::Runs(_) | Form::Bitset(_), Form::Array(ids)) => self.how_many_of(ids),
            (Form::Bitset(_), _) => self.and_count_words(&other.words()),
            _ => other.and_count_words(&self.words()),
        }
    }

    fn how_many_of(self, ids: &[[u8; 2]]) -> u32 {
        ids.iter().map(|id| u32::from(self.contains(from(*id)))).sum()
    }

    /// The number of ids of this container that are in `words`.
    pub(crate) fn and_count_words(self, words: &Words) -> u32 {
        words.and_count_of(self)
    }
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

/// If one list is at least this many times longer than the other, the longer list is searched for
/// each id of the shorter one.
// A search takes about ten steps, since an array has at most 950 ids. With a lower ratio, the
// searches take more steps than testing each id of one list in the words of the other.
const MANY_TIMES: usize = 32;

/// How many ids two ascending lists share; `None` if neither list is so much longer that searching
/// it is faster.
fn shared_ids(a: &[[u8; 2]], b: &[[u8; 2]]) -> Option<u32> {
    let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let has = |id: &[u8; 2]| many.binary_search_by_key(&from(*id), |id| from(*id)).is_ok();
    (few.len() * MANY_TIMES < many.len()).then(|| few.iter().map(|id| u32::from(has(id))).sum())
}

/// How many ids two ascending lists of runs share.
fn shared_of_runs(a: &[[u8; 4]], b: &[[u8; 4]]) -> u32 {
    let (mut shared, mut at, mut at_other) = (0, 0, 0);
    while let (Some(run), Some(other)) = (a.get(at), b.get(at_other)) {
        let ((first, last), (other_first, other_last)) = (bounds(*run), bounds(*other));
        let (from, to) = (first.max(other_first), last.min(other_last));
        shared += (u32::from(to) + 1).saturating_sub(from.into());
        at += usize::from(last <= other_last);
        at_other += usize::from(other_last <= last);
    }
    shared
}
