//! Checks that the records of a file system are consistent with each other.

use std::collections::HashMap;

use keyloom::value::Postcard;
use keyloom::{KeyBuf, Order, Reader, Result, Writer};
use keyloom_kit::derived::unless_undecodable;
use keyloom_kit::{Inconsistency, Rule, within};
use keyloom_tables::table::record;

use super::contents::Piece;
use super::entry::{FileEntry, Kind};
use super::{Files, ROOT, TRASH};

/// The part of an entry that the check keeps in memory.
#[derive(Clone, Copy)]
enum Known {
    Directory {
        above: u32,
    },
    File {
        above: u32,
        bytes: u64,
        pieces: u32,
    },
    /// The record does not decode; the check of the indexes reports it.
    Unknown,
}

impl Known {
    fn of(entry: &FileEntry) -> Self {
        match entry.kind {
            Kind::Directory => Self::Directory { above: entry.directory },
            Kind::File { bytes, pieces } => Self::File { above: entry.directory, bytes, pieces },
        }
    }

    fn above(self) -> Option<u32> {
        match self {
            Self::Directory { above } | Self::File { above, .. } => Some(above),
            Self::Unknown => None,
        }
    }
}

/// The pieces of a file that are stored.
#[derive(Clone, Copy, Default)]
struct Stored {
    /// One more than the number of the last piece.
    pieces: u32,
    bytes: u64,
    /// Whether the length cannot be compared: a piece is missing or does not decode.
    is_unknown: bool,
}

/// The entries by id.
type All = HashMap<u32, Known>;

impl Files {
    /// The faults of the records: entries without a directory, cycles of directories, missing and
    /// surplus pieces, pieces of another length than the file, and a stored last id that is smaller
    /// than an id of an entry or of a shard.
    pub(super) fn check_records(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let all = self.all_entries(reader)?;
        let mut found = self.check_directories(&all);
        found.extend(self.check_pieces(reader, &all)?);
        let last = self.last.get(reader, &0)?.unwrap_or(ROOT);
        if last < all.keys().copied().fold(self.last_of_shards(reader)?, u32::max) {
            found.push(Inconsistency::new(self.last.space().pack(&0_u8), Rule::Wrong));
        }
        Ok(found)
    }

    /// The greatest id that a shard has assigned; its entry may have been removed.
    fn last_of_shards(&self, reader: &impl Reader) -> Result<u32> {
        let lasts = self.last.range(reader, within(1..))?;
        lasts.map(|last| Ok(last?.1)).try_fold(ROOT, |most, last: Result<u32>| Ok(most.max(last?)))
    }

    /// Raises the stored last id to the greatest id of an entry or a shard, if it is smaller.
    /// Otherwise ids that are in use, or blocks of a shard, would be assigned again.
    pub(super) fn repair_last(&self, txn: &mut impl Writer) -> Result<()> {
        let space = self.entries.space();
        let last = txn.range(space.range(), Order::Descending)?.next().transpose()?;
        let id = last.map(|(key, _)| space.unpack::<u32>(&key)).transpose()?.unwrap_or(ROOT);
        let id = id.max(self.last_of_shards(txn)?);
        match self.last.get(txn, &0)?.unwrap_or(ROOT) < id {
            true => self.last.put(txn, &0, &id),
            false => Ok(()),
        }
    }

    fn all_entries(&self, reader: &impl Reader) -> Result<All> {
        let (space, mut all) = (self.entries.space(), All::new());
        for entry in reader.range(space.range(), Order::Ascending)? {
            let entry = entry?;
            // A damaged key is reported by the check of the indexes.
            let Ok(id) = space.unpack::<u32>(&entry.0) else { continue };
            let found = unless_undecodable(record::<_, u32, FileEntry, Postcard>(space, entry))?;
            all.insert(id, found.map_or(Known::Unknown, |(_, entry)| Known::of(&entry)));
        }
        Ok(all)
    }

    fn check_directories(&self, all: &All) -> Vec<Inconsistency> {
        let is_directory = |id: u32| match all.get(&id) {
            Some(Known::File { .. }) => false,
            Some(_) => true,
            None => id == ROOT || id == TRASH,
        };
        let mut found: Vec<(u32, Rule)> = Vec::new();
        for (id, entry) in all {
            if entry.above().is_some_and(|above| !is_directory(above)) {
                found.push((*id, Rule::NoParent));
            }
        }
        found.extend(circles(all).into_iter().map(|id| (id, Rule::Cycle)));
        found.sort_unstable_by_key(|(id, _)| *id);
        let key = |id: &u32| self.entries.space().pack(id);
        found.iter().map(|(id, rule)| Inconsistency::new(key(id), *rule)).collect()
    }

    fn check_pieces(&self, reader: &impl Reader, all: &All) -> Result<Vec<Inconsistency>> {
        let space = self.pieces.space();
        let fault =
            |id: u32, number: u32, rule| Inconsistency::new(space.pack(&(id, number)), rule);
        // Counts the pieces and the bytes of each file, and finds gaps in the numbers.
        let (mut found, mut there) = (Vec::new(), HashMap::<u32, Stored>::new());
        for entry in reader.range(space.range(), Order::Ascending)? {
            let entry = entry?;
            let Ok((id, number)) = space.unpack::<(u32, u32)>(&entry.0) else { continue };
            let pieces = match all.get(&id) {
                Some(Known::File { pieces, .. }) => *pieces,
                Some(Known::Unknown) => continue,
                Some(Known::Directory { .. }) | None => 0,
            };
            if number >= pieces {
                found.push(Inconsistency::new(KeyBuf::from_slice(&entry.0), Rule::Dangling));
                continue;
            }
            let piece = unless_undecodable(record::<_, (u32, u32), Piece, Postcard>(space, entry))?;
            let there = there.entry(id).or_default();
            found.extend((there.pieces..number).map(|number| fault(id, number, Rule::Missing)));
            // The check of the text index reports a piece that does not decode.
            there.is_unknown |= piece.is_none() || there.pieces < number;
            there.pieces = number.saturating_add(1);
            there.bytes += piece.map_or(0, |(_, piece)| piece.bytes().len() as u64);
        }
        let entries = self.entries.space();
        for (id, entry) in all {
            if let Known::File { pieces, bytes, .. } = entry {
                let there = there.get(id).copied().unwrap_or_default();
                let missing = there.pieces..*pieces;
                if there.bytes != *bytes && !there.is_unknown && missing.is_empty() {
                    let text = format!("has {bytes} bytes, but its pieces have {}", there.bytes);
                    found.push(Inconsistency::new(entries.pack(id), Rule::Wrong).with_text(text));
                }
                found.extend(missing.map(|number| fault(*id, number, Rule::Missing)));
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }
}

/// The entries that are ancestors of themselves.
fn circles(all: &All) -> Vec<u32> {
    // The number of the walk that visited each entry.
    let (mut visited, mut found) = (HashMap::<u32, u32>::new(), Vec::new());
    for (walk, start) in (0..).zip(all.keys()) {
        let mut at = *start;
        while let Some(above) = all.get(&at).and_then(|entry| entry.above()) {
            match visited.insert(at, walk) {
                None => at = above,
                Some(other) if other == walk => {
                    found.extend(circle_from(all, at));
                    break;
                }
                Some(other) => {
                    visited.insert(at, other);
                    break;
                }
            }
        }
    }
    found
}

/// The entries of the cycle of directories that contains `first`.
fn circle_from(all: &All, first: u32) -> Vec<u32> {
    let mut circle = vec![first];
    let above = |id: &u32| all.get(id).and_then(|entry| entry.above());
    while let Some(next) = circle.last().and_then(above).filter(|next| *next != first) {
        circle.push(next);
    }
    circle
}
