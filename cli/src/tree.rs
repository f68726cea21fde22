//! The tuples of a store as a tree: groups of keys by their leading elements.

use std::cell::RefCell;

use keyloom::key::{Unpacker, elements};
use keyloom::{KeyRange, Reader, Subspace};

use crate::failure::Result;
use crate::measure::{Size, measure_with};
use crate::progress::Progress;
use crate::shown;

/// The options of a listing of groups.
#[derive(Clone, Copy, Debug)]
pub struct Options<'p> {
    /// The number of leading elements that are the same in all keys.
    pub fixed: usize,
    /// The number of levels below the fixed elements.
    pub depth: usize,
    /// The most groups of one level.
    pub most: usize,
    /// The number of entries that are counted before a group is sampled.
    pub exact: u64,
    /// Where the counted entries are shown.
    pub progress: Option<&'p RefCell<Progress>>,
}

impl Options<'_> {
    fn measure(&self, reader: &impl Reader, range: &KeyRange<'_>) -> Result<Size> {
        let counted = |bytes| {
            if let Some(progress) = self.progress {
                progress.borrow_mut().add(1, bytes);
            }
        };
        Ok(measure_with(reader, range, self.exact, counted)?)
    }
}

/// Keys with the same leading elements.
#[derive(Debug)]
pub struct Group {
    /// The leading elements, as shown.
    pub name: String,
    /// The bytes of the leading elements.
    pub prefix: Vec<u8>,
    /// The level, from 0.
    pub level: usize,
    /// The size of all keys of the group.
    pub size: Size,
    /// Whether there are more groups than the limit, and this group holds the rest.
    pub is_rest: bool,
}

/// The groups of `range`, each before the groups within it, without the keys of `left_out`.
pub fn groups(
    reader: &impl Reader,
    range: KeyRange<'static>,
    left_out: &[Subspace],
    options: Options<'_>,
) -> Result<Vec<Group>> {
    let mut all = Vec::new();
    let ranges = without(range, left_out);
    level(reader, &ranges, options, 0, "", &mut all)?;
    Ok(all)
}

/// The parts of a range outside of some subspaces, in order.
pub fn without(range: KeyRange<'static>, left_out: &[Subspace]) -> Vec<KeyRange<'static>> {
    let mut spaces: Vec<_> = left_out.iter().map(Subspace::prefix).collect();
    spaces.sort_unstable();
    let (mut parts, mut rest) = (Vec::new(), range);
    for space in spaces {
        parts.push(rest.clone().intersect(KeyRange::half_open(&[], space)).into_owned());
        rest = rest.intersect(KeyRange::behind(space)).into_owned();
    }
    parts.push(rest);
    parts.retain(|part| part.normalized().is_some());
    parts
}

/// Adds the groups of some ranges, which ascend, within the group with the name `parent`.
fn level(
    reader: &impl Reader,
    ranges: &[KeyRange<'static>],
    options: Options<'_>,
    at: usize,
    parent: &str,
    all: &mut Vec<Group>,
) -> Result {
    let mut found = 0;
    for (place, range) in ranges.iter().enumerate() {
        let mut rest = range.clone();
        while let Some((key, _)) = reader.first(rest.clone())? {
            if found == options.most {
                let mut size = options.measure(reader, &rest)?;
                for later in ranges.iter().skip(place + 1) {
                    size = size.plus(options.measure(reader, later)?);
                }
                let of = if parent.is_empty() { String::new() } else { format!(" of {parent}") };
                let name = format!("(all further{of})");
                all.push(Group { name, prefix: Vec::new(), level: at, size, is_rest: true });
                return Ok(());
            }
            found += 1;
            let (name, prefix, group) = group_of(&key, options.fixed + at + 1);
            let group = group.intersect(rest.clone()).into_owned();
            let size = options.measure(reader, &group)?;
            let is_single = size.entries <= 1 && key[..] == prefix[..];
            let one = Group { name: name.clone(), prefix, level: at, size, is_rest: false };
            all.push(one);
            // A row for the only key of a group would repeat it.
            if at + 1 < options.depth && !is_single {
                level(reader, std::slice::from_ref(&group), options, at + 1, &name, all)?;
            }
            let Some((last, _)) = reader.last(group)? else { break };
            rest = rest.after(&last).into_owned();
        }
    }
    Ok(())
}

/// The group of a key with its name and its bytes: the first `depth` elements of the key, or all of
/// them if the key has fewer.
pub fn group_of(key: &[u8], depth: usize) -> (String, Vec<u8>, KeyRange<'static>) {
    let mut input = Unpacker::new(key);
    let mut end = 0;
    for _ in 0..depth {
        if input.is_at_end() || input.skip().is_err() {
            break;
        }
        end = input.offset();
    }
    // The byte 0xFF cannot begin an element, so a key with this byte after `prefix` is outside of
    // the children of `prefix`.
    let contains = |prefix: &&[u8]| KeyRange::self_and_children(prefix).contains(key);
    let is_tuple = |prefix: &&[u8]| !prefix.is_empty() && elements(prefix).is_ok();
    match key.get(..end).filter(is_tuple).filter(contains) {
        Some(prefix) => {
            let range = KeyRange::self_and_children(prefix).into_owned();
            (shown::key(prefix), prefix.to_vec(), range)
        }
        // Keys that are not tuples are grouped by their first byte.
        None => {
            let first = key.get(..1).unwrap_or_default().to_vec();
            let range = KeyRange::prefix(&first).into_owned();
            (format!("0x{}…", shown::hex(&first)), first, range)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use keyloom::{Memory, Store, Writer};

    use super::*;

    /// Keys that begin like tuples and continue with bytes that no tuple has.
    #[test]
    fn groups_of_any_bytes_add_up_to_all_keys() {
        let store = Memory::new();
        let keys: [&[u8]; 8] = [
            b"\x00\xFF\x01",
            b"\x14",
            b"\x14\x14",
            b"\x14\xFF",
            b"\x14\xFF\x02",
            b"\x26\xFF",
            b"@",
            b"\xFF",
        ];
        store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, b""))).unwrap();
        let snapshot = store.snapshot().unwrap();
        for depth in 1..3 {
            let options = Options { fixed: 0, depth, most: 100, exact: u64::MAX, progress: None };
            let found = groups(&snapshot, KeyRange::all(), &[], options).unwrap();
            let top = found.iter().filter(|group| group.level == 0);
            assert_eq!(top.map(|group| group.size.entries).sum::<u64>(), 8, "{found:?}");
        }
    }

    /// The keys of listed tables are in no group, and not in the rest either.
    #[test]
    fn the_rest_has_no_key_that_was_left_out() {
        let store = Memory::new();
        let keys = (0..5_u8).flat_map(|a| (0..4_u8).map(move |b| keyloom::pack(&(a, b)).to_vec()));
        let keys: Vec<Vec<u8>> = keys.collect();
        store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, b""))).unwrap();
        let snapshot = store.snapshot().unwrap();
        let left_out = [3_u8, 1].map(|table| Subspace::new(&table));
        let is_left_out = |group: &Group| {
            !group.is_rest && left_out.iter().any(|space| space.contains(&group.prefix))
        };
        for (most, depth) in [(100, 1), (100, 2), (1, 1), (2, 2), (0, 1), (1, 2)] {
            let options = Options { fixed: 0, depth, most, exact: u64::MAX, progress: None };
            let found = groups(&snapshot, KeyRange::all(), &left_out, options).unwrap();
            let top = found.iter().filter(|group| group.level == 0);
            assert_eq!(top.map(|group| group.size.entries).sum::<u64>(), 12, "{found:?}");
            assert!(!found.iter().any(is_left_out));
            let rest_of_0 = found.iter().find(|group| group.level == 1 && group.is_rest);
            let name = rest_of_0.map(|group| &*group.name);
            assert_eq!(name, (depth == 2 && most < 4).then_some("(all further of (0,))"));
        }
    }
}
