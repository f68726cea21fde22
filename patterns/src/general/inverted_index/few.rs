//! A few ids of a chunk, looked up in the containers of many bitmaps.

use super::Container;
use super::container::{BITMAP, Form, bounds, from};
use super::words::{BLOCKS, Words};

/// How many ids are few: lanes of a byte count them without overflow, and up to about here it is quicker to look
/// each of them up than to go through a container.
pub(crate) const MOST: usize = u8::MAX as usize;

/// The bytes of a block that are its ids, for each number of them.
const LANES: [[u8; BITMAP as usize]; BITMAP as usize] = lanes();

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it, and would say so")]
const fn lanes() -> [[u8; BITMAP as usize]; BITMAP as usize] {
    let mut lanes = [[0; BITMAP as usize]; BITMAP as usize];
    let mut size = 0;
    while size < lanes.len() {
        let mut lane = 0;
        while lane < size {
            lanes[size][lane] = 1;
            lane += 1;
        }
        size += 1;
    }
    lanes
}

/// At most [`MOST`] ids of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Few(Box<[u16]>);

impl Few {
    /// The ids of a chunk, if they are few.
    pub(crate) fn of(words: &Words) -> Option<Self> {
        (words.count() as usize <= MOST).then(|| Self(words.iter().collect()))
    }

    /// The ids, in order.
    pub(crate) fn ids(&self) -> &[u16] {
        &self.0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().copied()
    }

    /// How many of them a container has.
    pub(crate) fn and_count(&self, container: Container<'_>) -> u32 {
        match container.form() {
            Form::Bitset(words) => self.count(|id| {
                let word = words.get(usize::from(id / 64)).copied().unwrap_or_default();
                u64::from_le_bytes(word) >> (id % 64) & 1 == 1
            }),
            Form::Array(ids) => self.count_in_array(ids),
            Form::Runs(runs) => {
                let mut runs = runs.iter().map(|run| bounds(*run)).peekable();
                self.count(|id| {
                    while runs.next_if(|run| run.1 < id).is_some() {}
                    runs.peek().is_some_and(|run| run.0 <= id)
                })
            }
            Form::Blocks(sizes, content) => self.count_in_blocks(sizes, content),
        }
    }

    fn count(&self, mut has: impl FnMut(u16) -> bool) -> u32 {
        self.0.iter().map(|id| u32::from(has(*id))).sum()
    }

    /// Both are in order: one walk through the two.
    fn count_in_array(&self, ids: &[[u8; 2]]) -> u32 {
        let mut ids = ids.iter().map(|id| from(*id)).peekable();
        self.count(|id| {
            while ids.next_if(|other| *other < id).is_some() {}
            ids.peek() == Some(&id)
        })
    }

    /// Compares an id with all bytes that its block may have, at once: what else lies there is masked. A loop to
    /// the end of the block, or a binary search, is mistaken about its next step nearly every time.
    fn count_in_blocks(&self, sizes: &[u8; BLOCKS], content: &[u8]) -> u32 {
        let (starts, mut found) = (starts_of(sizes), [0_u8; BITMAP as usize]);
        let mut others = 0;
        for id in &self.0 {
            let (block, low) = (usize::from(id / 256).min(BLOCKS - 1), *id as u8);
            let start = starts.get(block).copied().map_or(0, usize::from);
            let size = sizes.get(block).copied().map_or(0, usize::from);
            let rest = content.get(start..).unwrap_or_default();
            match (rest.first_chunk::<{ BITMAP as usize }>(), LANES.get(size)) {
                (Some(bytes), Some(lanes)) => {
                    for ((found, byte), lane) in found.iter_mut().zip(bytes).zip(lanes) {
                        *found += u8::from(*byte == low) & lane;
                    }
                }
                (Some(bitmap), None) => {
                    let byte = bitmap.get(usize::from(low / 8)).copied().unwrap_or_default();
                    others += u32::from(byte >> (low % 8) & 1);
                }
                // Too near to the end to compare that many.
                (None, _) => {
                    let block = rest.get(..size).unwrap_or_default();
                    others += u32::from(block.contains(&low));
                }
            }
        }
        others + found.iter().map(|found| u32::from(*found)).sum::<u32>()
    }
}

/// Where each block begins in the content.
fn starts_of(sizes: &[u8; BLOCKS]) -> [u16; BLOCKS] {
    let (mut starts, mut at) = ([0; BLOCKS], 0);
    for (start, size) in starts.iter_mut().zip(sizes) {
        *start = at;
        at += u16::from(*size);
    }
    starts
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::general::inverted_index::CHUNK_IDS;

    fn words(ids: impl IntoIterator<Item = u16>) -> Words {
        let mut words = Words::new();
        ids.into_iter().for_each(|id| _ = words.insert(id));
        words
    }

    /// Ids in every form: spread thinly and densely, crowded into blocks, at the end, and in runs.
    fn ids() -> impl Strategy<Value = Vec<u16>> {
        let any = 0..CHUNK_IDS as u16;
        let crowd = (0..127_u16, btree_set(0..256_u16, 1..200)).prop_map(|(block, ids)| {
            ids.into_iter().map(|id| block * 256 + id).collect::<Vec<_>>()
        });
        prop_oneof![
            vec(any.clone(), 1..60),
            vec(any.clone(), 200..900),
            vec(any.clone(), 3_000..6_000),
            vec(crowd, 1..20).prop_map(|crowds| crowds.concat()),
            (any, 1..3_000_u16).prop_map(|(from, length)| {
                (from..from.saturating_add(length).min(CHUNK_IDS as u16)).collect()
            }),
        ]
    }

    proptest! {
        #[test]
        fn few_ids_are_found_in_a_container_as_all_of_them_are(a in ids(), b in ids()) {
            let (a, b) = (words(a), words(b));
            let few = words(a.iter().step_by(a.count() as usize / 200 + 1).take(MOST));
            let mut bytes = Vec::new();
            b.encode(&mut bytes);
            let found = Few::of(&few).unwrap().and_count(Container::parse(&bytes).unwrap());
            prop_assert_eq!(found, few.and_count(&b));
        }
    }

    #[test]
    fn more_than_few_are_not_taken() {
        assert!(Few::of(&words(0..MOST as u16)).is_some());
        assert!(Few::of(&words(0..=MOST as u16)).is_none());
    }
}
