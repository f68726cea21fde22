//! The tuples of a store as a tree: groups of keys by their leading elements.

use keyloom::key::{Unpacker, elements};
use keyloom::{KeyRange, Reader, Subspace};

use crate::failure::Result;
use crate::measure::{Size, measure};
use crate::shown;

/// The options of a listing of groups.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The leading elements that are the same in all keys.
    pub fixed: usize,
    /// The number of levels below the fixed elements.
    pub depth: usize,
    /// The most groups of one level.
    pub most: usize,
    /// The number of entries that are counted before a group is sampled.
    pub exact: u64,
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

/// The groups of `range`, each before the groups within it.
pub fn groups(
    reader: &impl Reader,
    range: KeyRange<'static>,
    options: Options,
) -> Result<Vec<Group>> {
    let mut all = Vec::new();
    level(reader, range, options, 0, &mut all)?;
    Ok(all)
}

fn level(
    reader: &impl Reader,
    range: KeyRange<'static>,
    options: Options,
    at: usize,
    all: &mut Vec<Group>,
) -> Result {
    let mut rest = range;
    let mut found = 0;
    while let Some((key, _)) = reader.first(rest.clone())? {
        if found == options.most {
            let size = measure(reader, &rest, options.exact)?;
            let name = "(all further)".to_owned();
            all.push(Group { name, prefix: Vec::new(), level: at, size, is_rest: true });
            break;
        }
        found += 1;
        let (name, prefix, group) = group_of(&key, options.fixed + at + 1);
        let group = group.intersect(rest.clone());
        let size = measure(reader, &group, options.exact)?;
        all.push(Group { name, prefix: prefix.clone(), level: at, size, is_rest: false });
        // A row for the only key of a group would repeat it.
        if at + 1 < options.depth && (size.entries > 1 || key[..] != prefix[..]) {
            level(reader, group.clone().into_owned(), options, at + 1, all)?;
        }
        let Some((last, _)) = reader.last(group)? else { break };
        rest = rest.after(&last).into_owned();
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
    // The bytes 0xFF cannot follow an element, so a key with them is outside of its children.
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

/// Whether the space holds the whole group.
pub fn covers(space: &Subspace, group: &Group) -> bool {
    !group.is_rest && space.contains(&group.prefix)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use keyloom::{Memory, Store, Writer};

    use super::*;

    /// Keys that begin as tuples and go on with bytes that no tuple has.
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
            let options = Options { fixed: 0, depth, most: 100, exact: u64::MAX };
            let found = groups(&snapshot, KeyRange::all(), options).unwrap();
            let top = found.iter().filter(|group| group.level == 0);
            assert_eq!(top.map(|group| group.size.entries).sum::<u64>(), 8, "{found:?}");
        }
    }
}
