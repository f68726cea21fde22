//! A bitmap in chunks of any size, with or without blocks: alternatives to the layout of
//! `inverted_index`. Random ids have no runs, so runs are left out.

/// The layout of ids in chunks.
#[derive(Clone, Copy)]
pub struct Layout {
    pub name: &'static str,
    /// Number of ids of a chunk, a multiple of 256.
    pub ids: u64,
    pub has_blocks: bool,
}

pub const CANDIDATES: [Layout; 6] = [
    Layout { name: "32,512 ids, blocks", ids: 32_512, has_blocks: true },
    Layout { name: "32,512 ids", ids: 32_512, has_blocks: false },
    Layout { name: "2^16 ids, blocks", ids: 1 << 16, has_blocks: true },
    Layout { name: "2^16 ids", ids: 1 << 16, has_blocks: false },
    Layout { name: "2^13 ids, blocks", ids: 1 << 13, has_blocks: true },
    Layout { name: "2^13 ids", ids: 1 << 13, has_blocks: false },
];

const ARRAY: u8 = 1;
const BLOCKS: u8 = 2;
const BITSET: u8 = 3;
const BITSET_HEADER: usize = 16;
/// A larger value would have an overflow page in any case.
const MOST_BYTES: usize = 1_900;
const BITMAP: usize = 32;

impl Layout {
    pub fn words(self) -> Vec<u64> {
        vec![0; self.ids as usize / 64]
    }

    /// Calls `each` with the number and the words of each chunk.
    pub fn for_each_chunk(self, ids: impl Iterator<Item = u64>, mut each: impl FnMut(u64, &[u64])) {
        let (mut words, mut at) = (self.words(), 0);
        for id in ids {
            if id / self.ids != at {
                each(at, &words);
                words.fill(0);
                at = id / self.ids;
            }
            let offset = id % self.ids;
            words[offset as usize / 64] |= 1 << (offset % 64);
        }
        each(at, &words);
    }

    /// Appends the smallest encoding.
    pub fn encode(self, words: &[u64], out: &mut Vec<u8>) {
        let ids: u32 = words.iter().map(|word| word.count_ones()).sum();
        let array = 1 + 2 * ids as usize;
        let sizes = words.chunks(4).map(block_size);
        let blocks = match self.has_blocks {
            true => 3 + sizes.clone().map(|size| 1 + usize::from(size)).sum::<usize>(),
            false => usize::MAX,
        };
        let bitset = BITSET_HEADER + 8 * words.len();
        if array.min(blocks) > MOST_BYTES.min(bitset) {
            out.push(BITSET);
            out.extend([0; BITSET_HEADER - 1]);
            words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        } else if array <= blocks {
            out.push(ARRAY);
            ids_of(words).for_each(|id| out.extend((id as u16).to_le_bytes()));
        } else {
            out.extend([BLOCKS, 0, 0]);
            out.extend(sizes);
            for block in words.chunks(4) {
                match usize::from(block_size(block)) {
                    BITMAP => block.iter().for_each(|word| out.extend(word.to_le_bytes())),
                    _ => out.extend(ids_of(block).map(|id| id as u8)),
                }
            }
        }
    }

    /// Decodes the ids of a container into `words`, which must be empty.
    pub fn load(self, bytes: &[u8], words: &mut [u64]) {
        match bytes[0] {
            ARRAY => array(bytes).for_each(|id| words[id / 64] |= 1 << (id % 64)),
            BLOCKS => self.for_each_block(bytes, |at, block| match block.len() == BITMAP {
                true => words[at * 4..at * 4 + 4]
                    .iter_mut()
                    .zip(stored_words(block))
                    .for_each(|(word, stored)| *word = stored),
                false => block.iter().for_each(|id| {
                    words[at * 4 + usize::from(id / 64)] |= 1 << (id % 64);
                }),
            }),
            _ => words
                .iter_mut()
                .zip(stored_words(&bytes[BITSET_HEADER..]))
                .for_each(|(word, stored)| *word = stored),
        }
    }

    /// The number of ids that two containers share. `scratch` must be empty, and is empty again on
    /// return.
    pub fn and_count(self, a: &[u8], b: &[u8], scratch: &mut [u64]) -> u32 {
        match (a[0], b[0]) {
            (BITSET, BITSET) => {
                let words =
                    stored_words(&a[BITSET_HEADER..]).zip(stored_words(&b[BITSET_HEADER..]));
                words.map(|(a, b)| (a & b).count_ones()).sum()
            }
            (ARRAY, BITSET) => count_in_bitset(a, b),
            (BITSET, ARRAY) => count_in_bitset(b, a),
            _ => {
                self.load(a, scratch);
                let count = self.count_in(b, scratch);
                scratch.fill(0);
                count
            }
        }
    }

    fn count_in(self, bytes: &[u8], words: &[u64]) -> u32 {
        let has = |id: usize| (words[id / 64] >> (id % 64) & 1) as u32;
        match bytes[0] {
            ARRAY => array(bytes).map(has).sum(),
            BLOCKS => {
                let mut count = 0;
                self.for_each_block(bytes, |at, block| {
                    count += match block.len() == BITMAP {
                        true => {
                            let both = words[at * 4..at * 4 + 4].iter().zip(stored_words(block));
                            both.map(|(a, b)| (a & b).count_ones()).sum::<u32>()
                        }
                        false => block.iter().map(|id| has(at * 256 + usize::from(*id))).sum(),
                    };
                });
                count
            }
            _ => {
                let both = words.iter().zip(stored_words(&bytes[BITSET_HEADER..]));
                both.map(|(a, b)| (a & b).count_ones()).sum()
            }
        }
    }

    pub fn contains(self, bytes: &[u8], offset: u64) -> bool {
        let offset = offset as usize;
        match bytes[0] {
            ARRAY => {
                let (ids, _) = bytes[1..].as_chunks::<2>();
                ids.binary_search_by_key(&(offset as u16), |id| u16::from_le_bytes(*id)).is_ok()
            }
            BLOCKS => {
                let sizes = &bytes[3..3 + self.ids as usize / 256];
                let (before, at) = sizes.split_at(offset / 256);
                let start: usize = before.iter().map(|size| usize::from(*size)).sum();
                let content = &bytes[3 + sizes.len() + start..][..at[0].into()];
                match content.len() == BITMAP {
                    true => content[offset % 256 / 8] >> (offset % 8) & 1 == 1,
                    false => content.binary_search(&(offset as u8)).is_ok(),
                }
            }
            _ => bytes[BITSET_HEADER + offset / 8] >> (offset % 8) & 1 == 1,
        }
    }

    fn for_each_block(self, bytes: &[u8], mut each: impl FnMut(usize, &[u8])) {
        let (sizes, mut rest) = bytes[3..].split_at(self.ids as usize / 256);
        for (at, size) in sizes.iter().enumerate() {
            let (block, behind) = rest.split_at((*size).into());
            rest = behind;
            if !block.is_empty() {
                each(at, block);
            }
        }
    }
}

fn count_in_bitset(ids: &[u8], bitset: &[u8]) -> u32 {
    let bits = &bitset[BITSET_HEADER..];
    array(ids).map(|id| u32::from(bits[id / 8] >> (id % 8) & 1)).sum()
}

fn array(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes[1..].as_chunks::<2>().0.iter().map(|id| u16::from_le_bytes(*id).into())
}

fn stored_words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

fn block_size(block: &[u64]) -> u8 {
    block.iter().map(|word| word.count_ones()).sum::<u32>().min(BITMAP as u32) as u8
}

fn ids_of(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(at, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(at * 64 + bit)
        })
    })
}
