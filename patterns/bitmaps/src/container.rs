//! The stored bytes of a chunk.
//!
//! A container is read in place, without copies or allocations. [`Container::parse`] checks the
//! structure, so that later reads stay within the bytes. [`Container::verify`] checks that the ids
//! are in order and match the stored count; a check of the data and a change of the chunk call it.

use keyloom::{Error, Result};

use super::words::{BLOCKS, WORDS, WORDS_OF_BLOCK, Words, ids_of};

/// The number of ids in a chunk.
///
/// A bitset of this size, with a header of 16 bytes, fills one overflow page of LMDB, with aligned
/// words.
pub const CHUNK_IDS: u64 = 32_512;

/// The high four bits of the first byte: the version of the format.
const FORMAT: u8 = 1;
const ARRAY: u8 = 0x11;
const RUNS: u8 = 0x12;
const BLOCK_LIST: u8 = 0x13;
const BITSET: u8 = 0x14;

/// The maximum size of the other forms. If the smallest of them would be larger, a bitset is
/// stored. With pages of 4 KiB and a key of up to 130 bytes, LMDB would store the larger form in an
/// overflow page in any case. A bitset is the fastest form to read.
const MOST_BYTES: usize = 1_900;

/// The length of a bitset's header. A header of this length keeps the words aligned if the store
/// aligns its values.
const BITSET_HEADER: usize = 16;

/// A block with at least this many ids is a bitmap, of this many bytes.
pub(super) const BITMAP: u8 = 32;

/// The ids of a chunk, in their stored bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Container<'c> {
    form: Form<'c>,
    ids: u32,
}

/// The forms of a container. Numbers are little-endian, lowest bit first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'c> {
    /// Ids in ascending order.
    Array(&'c [[u8; 2]]),
    /// The first and the last id of each run, in ascending order.
    Runs(&'c [[u8; 4]]),
    /// The length of each block of 256 ids, then the content of all blocks. A length below
    /// [`BITMAP`] means one byte per id; the length [`BITMAP`] means a bitmap.
    Blocks(&'c [u8; BLOCKS], &'c [u8]),
    /// A bit for each id.
    Bitset(&'c [[u8; 8]]),
}

impl<'c> Container<'c> {
    /// Parses a container.
    ///
    /// # Errors
    /// [`Error::Value`] if the bytes are not a container, [`Error::NewerFormat`] for a newer
    /// format. The caller adds the key.
    pub(crate) fn parse(bytes: &'c [u8]) -> Result<Self> {
        let parsed = match bytes {
            [ARRAY, rest @ ..] => array(rest),
            [RUNS, rest @ ..] => runs(rest),
            [BLOCK_LIST, rest @ ..] => blocks(rest),
            [BITSET, rest @ ..] => bitset(rest),
            [first, ..] if first >> 4 > FORMAT => {
                return Err(Error::NewerFormat {
                    what: "the chunk of a bitmap".into(),
                    found: (first >> 4).into(),
                    supported: FORMAT.into(),
                });
            }
            _ => None,
        };
        parsed.ok_or_else(|| damaged("they are not a chunk of a bitmap"))
    }

    /// Checks that the ids are in order and match the stored count. All other methods rely on both.
    /// `words` must be the words of this container.
    ///
    /// # Errors
    /// [`Error::Value`] if the ids are out of order or do not match the count.
    pub(crate) fn verify_as(self, words: &Words) -> Result<()> {
        let is_sound = match self.form {
            Form::Array(ids) => ids.is_sorted_by(|a, b| from(*a) < from(*b)),
            Form::Runs(_) => true,
            Form::Blocks(sizes, content) => {
                blocks_of(sizes, content).all(|block| match block.len() == usize::from(BITMAP) {
                    true => bits_of(block).iter().map(|w| w.count_ones()).sum::<u32>() >= 32,
                    false => block.is_sorted_by(|a, b| a < b),
                })
            }
            Form::Bitset(_) => true,
        };
        match is_sound && words.count() == self.ids {
            true => Ok(()),
            false => Err(damaged("the ids of this chunk of a bitmap are not in order")),
        }
    }

    pub(super) fn form(self) -> Form<'c> {
        self.form
    }

    /// The number of ids, at least one.
    pub(crate) fn len(self) -> u32 {
        self.ids
    }

    pub(crate) fn contains(self, offset: u16) -> bool {
        match self.form {
            Form::Array(ids) => ids.binary_search_by_key(&offset, |id| from(*id)).is_ok(),
            Form::Runs(runs) => {
                let run = runs.partition_point(|run| bounds(*run).1 < offset);
                runs.get(run).is_some_and(|run| bounds(*run).0 <= offset)
            }
            Form::Blocks(sizes, content) => block_contains(sizes, content, offset),
            Form::Bitset(words) => {
                let word = words.get(usize::from(offset / 64)).copied().unwrap_or_default();
                u64::from_le_bytes(word) >> (offset % 64) & 1 == 1
            }
        }
    }

    /// Whether decoding the container into words takes less time than this many calls of
    /// [`contains`](Self::contains).
    // Measured: the same time for 32 searches in 160 ids, for 130 in 1,600, and for 1,000 in a
    // bitset.
    pub(crate) fn is_decoded_for(self, searches: usize) -> bool {
        searches >= (self.ids as usize + 512) / 16
    }

    /// Whether the container has all ids of the chunk, in one run.
    pub(super) fn is_full(self) -> bool {
        matches!(self.form, Form::Runs(_)) && u64::from(self.ids) == CHUNK_IDS
    }
}

/// An upper bound of the number of ids, from the first bytes and the length of a container; used to
/// order containers before parsing them.
pub(super) fn most_ids(bytes: &[u8]) -> usize {
    let most = CHUNK_IDS as usize;
    match bytes {
        [ARRAY, ids @ ..] => ids.len() / 2,
        [RUNS, a, b, c, d] => usize::from(from([*c, *d]).saturating_sub(from([*a, *b]))) + 1,
        [BLOCK_LIST, low, high, ..] | [BITSET, _, low, high, ..] => from([*low, *high]).into(),
        _ => most,
    }
}

/// Reads a little-endian number.
pub(super) fn from(bytes: [u8; 2]) -> u16 {
    u16::from_le_bytes(bytes)
}

/// The first and the last id of a run.
pub(super) fn bounds([a, b, c, d]: [u8; 4]) -> (u16, u16) {
    (from([a, b]), from([c, d]))
}

/// The words of a block's bitmap.
pub(super) fn bits_of(bitmap: &[u8]) -> [u64; WORDS_OF_BLOCK] {
    let mut words = [0; WORDS_OF_BLOCK];
    let (bytes, _) = bitmap.as_chunks::<8>();
    words.iter_mut().zip(bytes).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
    words
}

/// The content of each block.
pub(super) fn blocks_of<'c>(
    sizes: &'c [u8; BLOCKS],
    content: &'c [u8],
) -> impl Iterator<Item = &'c [u8]> {
    sizes.iter().scan(content, |rest, size| {
        let (block, behind) = rest.split_at_checked(usize::from(*size))?;
        *rest = behind;
        Some(block)
    })
}

/// The block of each byte of the content, which must not contain bitmaps.
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

pub(super) fn block_contains(sizes: &[u8; BLOCKS], content: &[u8], offset: u16) -> bool {
    let (before, at) = sizes.split_at(usize::from(offset / 256).min(BLOCKS));
    let start = before.iter().map(|size| usize::from(*size)).sum();
    let size = at.first().copied().unwrap_or_default();
    let block = content.get(start..).and_then(|rest| rest.get(..usize::from(size)));
    let block = block.unwrap_or_default();
    match (size == BITMAP, (offset % 256) as u8) {
        (true, id) => {
            bits_of(block).get(usize::from(id / 64)).is_some_and(|w| w >> (id % 64) & 1 == 1)
        }
        (false, id) => block.binary_search(&id).is_ok(),
    }
}

fn array(rest: &[u8]) -> Option<Container<'_>> {
    let (ids, []) = rest.as_chunks::<2>() else { return None };
    // Checking all ids without branches lets the compiler vectorize the loop.
    let largest = ids.iter().fold(0, |largest, id| from(*id).max(largest));
    (u64::from(largest) < CHUNK_IDS && !ids.is_empty() && ids.len() <= CHUNK_IDS as usize)
        .then_some(Container { form: Form::Array(ids), ids: ids.len() as u32 })
}

fn runs(rest: &[u8]) -> Option<Container<'_>> {
    let (runs, []) = rest.as_chunks::<4>() else { return None };
    let (mut ids, mut free) = (0, 0);
    for (first, last) in runs.iter().map(|run| bounds(*run)) {
        if u32::from(first) < free || last < first {
            return None;
        }
        ids += u32::from(last - first) + 1;
        // Adjacent runs would be one run.
        free = u32::from(last) + 2;
    }
    (ids > 0 && u64::from(free) <= CHUNK_IDS + 1)
        .then_some(Container { form: Form::Runs(runs), ids })
}

fn blocks(rest: &[u8]) -> Option<Container<'_>> {
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let (sizes, content) = rest.split_first_chunk::<BLOCKS>()?;
    let (largest, whole) = sizes
        .iter()
        .fold((0, 0), |(largest, whole), size| (largest.max(*size), whole + u16::from(*size)));
    let is_whole = largest <= BITMAP && usize::from(whole) == content.len();
    let ids = u32::from(from(*count));
    (is_whole && ids > 0 && u64::from(ids) <= CHUNK_IDS)
        .then_some(Container { form: Form::Blocks(sizes, content), ids })
}

fn bitset(rest: &[u8]) -> Option<Container<'_>> {
    let ([0, low, high, zeros @ ..], words) = rest.split_first_chunk::<{ BITSET_HEADER - 1 }>()?
    else {
        return None;
    };
    let (words, []) = words.as_chunks::<8>() else { return None };
    let ids = u32::from(from([*low, *high]));
    let is_whole = words.len() == WORDS && zeros.iter().all(|zero| *zero == 0);
    (is_whole && ids > 0 && u64::from(ids) <= CHUNK_IDS)
        .then_some(Container { form: Form::Bitset(words), ids })
}

fn damaged(why: &'static str) -> Error {
    Error::Value { codec: "a bitmap", action: "decode", source: why.into() }
}

/// The container of all ids from the first to the last.
pub(super) fn run(first: u16, last: u16) -> [u8; 5] {
    let ([a, b], [c, d]) = (first.to_le_bytes(), last.to_le_bytes());
    [RUNS, a, b, c, d]
}

impl Words {
    /// Appends the smallest form of the ids; nothing if there are none.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (ids, runs) = (self.count() as usize, self.count_runs() as usize);
        let blocks = self.blocks().map(|block| usize::from(block_size(block))).sum::<usize>();
        let [array, runs, blocks] = [1 + 2 * ids, 1 + 4 * runs, 3 + BLOCKS + blocks];
        let smallest = array.min(runs).min(blocks);
        if ids == 0 {
        } else if smallest > MOST_BYTES {
            encode_bitset(self, ids, out);
        } else if smallest == runs {
            out.push(RUNS);
            self.for_each_run(|first, last| {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&last.to_le_bytes());
            });
        } else if smallest == array {
            out.push(ARRAY);
            self.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
        } else {
            encode_blocks(self, ids, out);
        }
    }
}

fn encode_bitset(words: &Words, ids: usize, out: &mut Vec<u8>) {
    let mut header = [0; BITSET_HEADER];
    let [low, high] = (ids as u16).to_le_bytes();
    [header[0], header[2], header[3]] = [BITSET, low, high];
    out.extend_from_slice(&header);
    words.append_bytes(out);
}

fn encode_blocks(words: &Words, ids: usize, out: &mut Vec<u8>) {
    out.push(BLOCK_LIST);
    out.extend_from_slice(&(ids as u16).to_le_bytes());
    out.extend(words.blocks().map(block_size));
    for block in words.blocks() {
        match block_size(block) {
            BITMAP => block.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes())),
            _ => out.extend(ids_of(block).map(|id| id as u8)),
        }
    }
}

/// The length of a block's content in bytes.
fn block_size(block: &[u64; WORDS_OF_BLOCK]) -> u8 {
    let ids: u32 = block.iter().map(|word| word.count_ones()).sum();
    ids.min(BITMAP.into()) as u8
}
