//! Short lists of ids of a chunk, looked up in containers.

use std::cell::Cell;

use super::Container;
use super::container::{BITMAP, Form, block_contains, block_of_each, bounds, from};
use super::words::BLOCKS;

/// The maximum length of a list: 2 bytes per id take less space than plain words.
pub(crate) const LISTED: usize = 1_024;

/// The maximum number of ids counted by lookups. Byte-sized lanes count them without overflow, and
/// beyond about this number it is faster to process the whole container.
pub(crate) const LOOKED_UP: usize = u8::MAX as usize;

/// The maximum number of ids looked up in blocks: one lookup takes as long as unpacking several ids
/// to words.
const IN_BLOCKS: usize = 192;

/// A list that is at least this many times longer than the other is searched instead of scanned.
// A search takes about ten steps, since a list has at most 1,024 ids, and a scan takes one step for
// each id. With a lower ratio, the searches take more steps than a scan.
const MANY_TIMES: usize = 16;

/// For each number of ids in a block, a mask of the bytes that belong to the block.
const LANES: [[u8; BITMAP as usize]; BITMAP as usize] = lanes();

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it")]
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

/// Appends the ids of a container if it has at most [`LISTED`] ids and no bitmap; returns whether
/// they were appended.
pub(super) fn list(container: Container<'_>, out: &mut Vec<u16>) -> bool {
    if container.len() as usize > LISTED {
        return false;
    }
    match container.form() {
        Form::Array(ids) => out.extend(ids.iter().map(|id| from(*id))),
        Form::Runs(runs) => {
            for (first, last) in runs.iter().map(|run| bounds(*run)) {
                out.extend(first..=last);
            }
        }
        Form::Blocks(sizes, content) if !sizes.contains(&BITMAP) => {
            let ids = block_of_each(sizes).into_iter().zip(content);
            out.extend(ids.map(|(block, id)| u16::from_be_bytes([block, *id])));
        }
        Form::Blocks(..) | Form::Bitset(_) => return false,
    }
    true
}

/// Keeps the ids of a list that a container has, or, if `has` is false, the ids that it lacks.
pub(super) fn retain(list: &mut Vec<u16>, container: Container<'_>, has: bool) {
    let mut kept = Kept::of(list);
    look_up(kept.ids, container, |id, found| kept.visit(id, found == has));
    let count = kept.count;
    list.truncate(count);
}

/// Keeps the ids of a list for which `keep` returns true.
pub(super) fn retain_if(list: &mut Vec<u16>, keep: impl Fn(u16) -> bool) {
    let mut kept = Kept::of(list);
    kept.ids.iter().for_each(|id| kept.visit(id.get(), keep(id.get())));
    let count = kept.count;
    list.truncate(count);
}

/// A list whose kept ids move to the front. The outcome for each id is unpredictable, so the code
/// avoids a branch on it.
struct Kept<'l> {
    ids: &'l [Cell<u16>],
    count: usize,
}

impl<'l> Kept<'l> {
    fn of(list: &'l mut [u16]) -> Self {
        Self { ids: Cell::from_mut(list).as_slice_of_cells(), count: 0 }
    }

    /// Keeps or drops the next id of the list.
    fn visit(&mut self, id: u16, is_kept: bool) {
        self.ids.get(self.count).into_iter().for_each(|place| place.set(id));
        self.count += usize::from(is_kept);
    }
}

/// Keeps the ids of a list that another list has too.
pub(super) fn retain_shared(list: &mut Vec<u16>, other: &[u16]) {
    if other.len() / MANY_TIMES >= list.len() {
        return retain_if(list, |id| other.binary_search(&id).is_ok());
    }
    let (mut at, mut at_other, mut kept) = (0, 0, 0);
    while let (Some(id), Some(other)) = (list.get(at).copied(), other.get(at_other).copied()) {
        list.get_mut(kept).into_iter().for_each(|place| *place = id);
        kept += usize::from(id == other);
        at += usize::from(id <= other);
        at_other += usize::from(other <= id);
    }
    list.truncate(kept);
}

/// The number of ids of a list, at most [`LOOKED_UP`] long, that a container has.
pub(super) fn and_count(list: &[u16], container: Container<'_>) -> u32 {
    if let Form::Blocks(sizes, content) = container.form() {
        return count_in_blocks(list, sizes, content);
    }
    let mut count = 0;
    look_up(list, container, |_, found| count += u32::from(found));
    count
}

/// An id of a list.
trait Listed {
    fn id(&self) -> u16;
}

impl Listed for u16 {
    fn id(&self) -> u16 {
        *self
    }
}

impl Listed for Cell<u16> {
    fn id(&self) -> u16 {
        self.get()
    }
}

/// Calls `report` for each id of a list, with whether the container has this id.
fn look_up(list: &[impl Listed], container: Container<'_>, mut report: impl FnMut(u16, bool)) {
    let mut each = |has: &mut dyn FnMut(u16) -> bool| {
        list.iter().for_each(|id| report(id.id(), has(id.id())));
    };
    match container.form() {
        Form::Array(ids) if ids.len() / MANY_TIMES >= list.len() => {
            each(&mut |id| ids.binary_search_by_key(&id, |id| from(*id)).is_ok());
        }
        Form::Array(ids) => look_up_in_array(list, ids, report),
        Form::Runs(runs) => {
            let mut runs = runs.iter().map(|run| bounds(*run)).peekable();
            each(&mut |id| {
                while runs.next_if(|run| run.1 < id).is_some() {}
                runs.peek().is_some_and(|run| run.0 <= id)
            });
        }
        Form::Bitset(words) => list.iter().for_each(|id| {
            let word = words.get(usize::from(id.id() / 64)).copied().unwrap_or_default();
            report(id.id(), u64::from_le_bytes(word) >> (id.id() % 64) & 1 == 1);
        }),
        Form::Blocks(sizes, content) if list.len() <= IN_BLOCKS => {
            let starts = starts_of(sizes);
            list.iter()
                .for_each(|id| report(id.id(), is_in_block(sizes, &starts, content, id.id())));
        }
        Form::Blocks(..) => {
            let words = container.words();
            list.iter().for_each(|id| report(id.id(), words.contains(id.id())));
        }
    }
}

/// [`look_up`] in an array. Both lists are sorted, so one merge pass is enough.
fn look_up_in_array(list: &[impl Listed], ids: &[[u8; 2]], mut report: impl FnMut(u16, bool)) {
    let mut at = 0;
    for id in list.iter().map(Listed::id) {
        while ids.get(at).is_some_and(|other| from(*other) < id) {
            at += 1;
        }
        report(id, ids.get(at).is_some_and(|other| from(*other) == id));
    }
}

/// Compares an id with all bytes that its block may have, in one step, and masks the bytes of other
/// blocks. A loop over the block, or a binary search, would mispredict a branch nearly every time.
fn is_in_block(sizes: &[u8; BLOCKS], starts: &[u16; BLOCKS], content: &[u8], id: u16) -> bool {
    let (block, low) = (usize::from(id / 256).min(BLOCKS - 1), id as u8);
    let start = starts.get(block).copied().map_or(0, usize::from);
    let size = sizes.get(block).copied().map_or(0, usize::from);
    let rest = content.get(start..).unwrap_or_default();
    match (rest.first_chunk::<{ BITMAP as usize }>(), LANES.get(size)) {
        (Some(bytes), Some(lanes)) => {
            let found = bytes.iter().zip(lanes).map(|(byte, lane)| u8::from(*byte == low) & lane);
            found.fold(0, |any, one| any | one) != 0
        }
        // The block is a bitmap, or it is too close to the end for a full comparison.
        _ => block_contains(sizes, content, id),
    }
}

/// The number of ids of a list that are in their blocks. Compares like [`is_in_block`], and sums
/// the matches once, at the end.
fn count_in_blocks(list: &[u16], sizes: &[u8; BLOCKS], content: &[u8]) -> u32 {
    let (starts, mut found) = (starts_of(sizes), [0_u8; BITMAP as usize]);
    let mut others = 0;
    for id in list {
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
            _ => others += u32::from(block_contains(sizes, content, *id)),
        }
    }
    others + found.iter().map(|found| u32::from(*found)).sum::<u32>()
}

/// The start of each block in the content.
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
    use crate::{CHUNK_IDS, Words};

    fn words(ids: impl IntoIterator<Item = u16>) -> Words {
        let mut words = Words::new();
        ids.into_iter().for_each(|id| _ = words.insert(id));
        words
    }

    fn listed(words: &Words) -> Vec<u16> {
        words.iter().collect()
    }

    /// Ids for every form of a container: sparse and dense, clustered in blocks, at the end, and in
    /// runs.
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
            let few = words(a.iter().step_by(a.count() as usize / 200 + 1).take(LOOKED_UP));
            let mut bytes = Vec::new();
            b.encode(&mut bytes);
            let found = and_count(&listed(&few), Container::parse(&bytes).unwrap());
            prop_assert_eq!(found, few.and_count(&b));
        }

        #[test]
        fn ids_that_a_container_has_or_lacks_stay_in_a_list(a in ids(), b in ids(), most in 1..2_000_u32) {
            let (a, b) = (words(a), words(b));
            let of = words(a.iter().step_by((a.count() / most + 1) as usize));
            let mut bytes = Vec::new();
            b.encode(&mut bytes);
            let container = Container::parse(&bytes).unwrap();
            for has in [true, false] {
                let mut kept = listed(&of);
                retain(&mut kept, container, has);
                let expected = of.iter().filter(|id| b.contains(*id) == has).collect::<Vec<_>>();
                prop_assert_eq!(kept, expected);
            }
        }

        #[test]
        fn a_container_of_few_ids_is_listed(ids in ids()) {
            let (words, mut bytes, mut found) = (words(ids), Vec::new(), vec![]);
            words.encode(&mut bytes);
            match list(Container::parse(&bytes).unwrap(), &mut found) {
                true => prop_assert_eq!(found, listed(&words)),
                false => prop_assert!(found.is_empty()),
            }
        }
    }
}
