//! Paths: the packed segments from a root to a node, as contained in its key.

use keyloom::{KeyBuf, pack};
use smallvec::SmallVec;

use super::super::NodeId;

/// The type codes of the tuple layer in a path. The codes are parsed here and not by an
/// [`Unpacker`](keyloom::key::Unpacker), because every step of a walk counts the segments of a key.
const BYTES: u8 = 0x01;
const STRING: u8 = 0x02;
const ZERO: u8 = 0x14;
/// This byte after a NUL means that the NUL is part of the text and does not end it.
pub(super) const ESCAPE: u8 = 0xFF;

/// A path without the key prefix; empty for the parent of the roots.
pub(super) type Path = KeyBuf;

/// Paths or keys, each a prefix of the next.
pub(super) type Ancestors<'p> = SmallVec<[&'p [u8]; 8]>;

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segments {
    /// A rank among the siblings, and an id.
    Ids,
    /// A name.
    Names,
}

/// The shape of a path: its depth and its last segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Measured {
    /// The number of segments.
    pub(super) depth: u32,
    /// The offset of the last segment.
    pub(super) last_at: usize,
    /// The offset of the id in the last segment; meaningless for names.
    id_at: usize,
}

impl Segments {
    /// Counts the segments of a path and finds the last; `None` if the bytes are not a path. The
    /// empty path has depth 0.
    #[inline(always)]
    pub(super) fn measure(self, path: &[u8]) -> Option<Measured> {
        self.measure_from(path, 0)
    }

    /// Like [`measure`](Segments::measure), for the path that starts at `at` in a key.
    #[inline(always)]
    pub(super) fn measure_from(self, key: &[u8], at: usize) -> Option<Measured> {
        self.measure_behind(key, Measured { depth: 0, last_at: at, id_at: at })
    }

    /// Measures a key from the start of the last segment of another key; the two keys are equal up
    /// to that offset.
    #[inline(always)]
    pub(super) fn measure_last(self, key: &[u8], last: Measured) -> Option<Measured> {
        self.measure_behind(key, Measured { depth: last.depth.saturating_sub(1), ..last })
    }

    /// Continues at the start of a segment.
    #[inline(always)]
    fn measure_behind(self, key: &[u8], mut measured: Measured) -> Option<Measured> {
        let mut at = measured.last_at;
        // Match once here, not per segment.
        match self {
            Self::Ids => {
                while at < key.len() {
                    let (id_at, end) = Self::Ids.segment(key, at)?;
                    measured = Measured { depth: measured.depth + 1, last_at: at, id_at };
                    at = end;
                }
            }
            Self::Names => {
                while at < key.len() {
                    (measured.depth, measured.last_at) = (measured.depth + 1, at);
                    (_, at) = Self::Names.segment(key, at)?;
                }
            }
        }
        Some(measured)
    }

    /// The offset of the id of the segment at `at`, and the end of the segment.
    #[inline(always)]
    fn segment(self, path: &[u8], at: usize) -> Option<(usize, usize)> {
        match (self, *path.get(at)?) {
            (Self::Ids, BYTES) => {
                let id_at = behind_text(path, at + 1)?;
                let bytes = usize::from(path.get(id_at)?.checked_sub(ZERO).filter(|n| *n <= 8)?);
                let end = id_at + 1 + bytes;
                (end <= path.len()).then_some((id_at, end))
            }
            (Self::Names, STRING) => Some((at, behind_text(path, at + 1)?)),
            _ => None,
        }
    }

    /// The first `segments` segments of a path, or the whole path if it has no more.
    pub(super) fn cut(self, path: &[u8], segments: u32) -> Option<&[u8]> {
        let mut at = 0;
        for _ in 0..segments {
            if at < path.len() {
                (_, at) = self.segment(path, at)?;
            }
        }
        path.get(..at)
    }

    /// The paths of all ancestors, from the root down.
    pub(super) fn ancestors(self, path: &[u8]) -> Ancestors<'_> {
        self.ancestors_from(path, 0)
    }

    /// The keys of all ancestors of a key whose path starts at `at`.
    pub(super) fn ancestors_from(self, key: &[u8], mut at: usize) -> Ancestors<'_> {
        let mut ancestors = SmallVec::new();
        while let Some((_, end)) = self.segment(key, at) {
            at = end;
            ancestors.extend(key.get(..at).filter(|found| found.len() < key.len()));
        }
        ancestors
    }

    /// The path of the parent, empty for a root.
    pub(super) fn parent(self, path: &[u8]) -> &[u8] {
        self.ancestors(path).pop().unwrap_or_default()
    }

    /// The rank in the last segment of a path of ids.
    pub(super) fn rank(self, path: &[u8]) -> Option<Vec<u8>> {
        let last = path.get(self.parent(path).len()..)?;
        let (rank, _) = keyloom::unpack::<(Vec<u8>, NodeId)>(last).ok()?;
        Some(rank)
    }

    /// The name in the last segment of a path of names.
    pub(super) fn name(self, path: &[u8]) -> Option<String> {
        let last = path.get(self.parent(path).len()..)?;
        keyloom::unpack::<(String,)>(last).ok().map(|(name,)| name)
    }
}

impl Measured {
    /// Whether the last segments of two keys have the same shape; `self` is the measure of `other`.
    /// This check does not search for the end of the rank.
    #[inline(always)]
    pub(super) fn has_shape_of(&self, one: &[u8], other: &[u8]) -> bool {
        let Some(rank) = one.get(self.last_at + 1..self.id_at.wrapping_sub(1)) else {
            return false;
        };
        let word =
            one.get(..self.id_at - 1).and_then(<[u8]>::last_chunk).filter(|_| rank.len() <= 8);
        let Some(word) = word.copied().map(u64::from_le_bytes) else { return false };
        // The rank is at the end of the word. Set the bytes before the rank, so that they are not
        // zero.
        let before = u64::MAX.checked_shr(8 * rank.len() as u32).unwrap_or(0);
        one.len() == other.len()
            && one.get(self.last_at) == Some(&BYTES)
            && zeros(word | before) == 0
            && one.get(self.id_at - 1) == Some(&0)
            && one.get(self.id_at) == other.get(self.id_at)
    }

    /// The id in the last segment of a path of ids, at the end of the path or key.
    #[inline(always)]
    pub(super) fn id(self, path: &[u8]) -> Option<NodeId> {
        let bytes = path.len().checked_sub(self.id_at + 1)?;
        match path.last_chunk() {
            // Mask the last eight bytes to the bytes of the id.
            Some(last) if bytes <= 8 => {
                let mask = NodeId::MAX.checked_shr(64 - 8 * bytes as u32).unwrap_or(0);
                Some(NodeId::from_be_bytes(*last) & mask)
            }
            _ => id_of_short(path, self.id_at),
        }
    }
}

#[cold]
fn id_of_short(path: &[u8], id_at: usize) -> Option<NodeId> {
    let bytes = path.get(id_at + 1..).filter(|bytes| bytes.len() <= 8)?;
    Some(bytes.iter().fold(0, |id, byte| id << 8 | NodeId::from(*byte)))
}

/// The offset after a text whose content starts at `at`.
///
/// Reads eight bytes at a time. Ranks and names are short and vary in length, so a loop over bytes
/// would cause branch mispredictions.
#[inline(always)]
fn behind_text(path: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let Some(word) = word(path, at) else { return behind_short(path, at) };
        let zeros = zeros(word);
        if zeros == 0 {
            at += size_of::<u64>();
            continue;
        }
        at += zeros.trailing_zeros() as usize / 8;
        if path.get(at + 1) != Some(&ESCAPE) {
            // Bytes past the end of the path read as zeros too.
            return (at < path.len()).then_some(at + 1);
        }
        at += 2;
    }
}

/// Returns a mask whose lowest set bit marks the lowest zero byte of the word; 0 if no byte is
/// zero.
#[inline(always)]
fn zeros(word: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    word.wrapping_sub(LOW) & !word & HIGH
}

/// The eight bytes at a position, little-endian, zero-filled past the end. `None` if no byte is
/// left, or the path is shorter than eight bytes.
#[inline(always)]
fn word(path: &[u8], at: usize) -> Option<u64> {
    if let Some(bytes) = path.get(at..).and_then(<[u8]>::first_chunk) {
        return Some(u64::from_le_bytes(*bytes));
    }
    let missing = (at + size_of::<u64>()).checked_sub(path.len())?;
    let last = u64::from_le_bytes(*path.last_chunk()?);
    last.checked_shr(8 * missing as u32)
}

/// Like [`behind_text`], for short paths; reads byte by byte.
#[cold]
fn behind_short(path: &[u8], mut at: usize) -> Option<usize> {
    loop {
        if *path.get(at)? == 0 {
            if path.get(at + 1) != Some(&ESCAPE) {
                return Some(at + 1);
            }
            at += 1;
        }
        at += 1;
    }
}

/// Whether `path` is `root` or below it.
pub(super) fn is_within(path: &[u8], root: &[u8]) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.first() != Some(&ESCAPE))
}

/// Whether `path` is below `root`.
pub(super) fn is_below(path: &[u8], root: &[u8]) -> bool {
    path.len() > root.len() && is_within(path, root)
}

/// Replaces the prefix `from` of a path with `to`.
pub(super) fn replanted(path: &[u8], from: &[u8], to: &[u8]) -> Path {
    joined(to, path.get(from.len()..).unwrap_or_default())
}

/// The path of a child with the segment `rank`, `id`.
pub(super) fn by_rank(parent: &[u8], rank: &[u8], id: NodeId) -> Path {
    joined(parent, &pack(&(rank, id)))
}

/// The path of a child with the segment `name`.
pub(super) fn by_name(parent: &[u8], name: &str) -> Path {
    joined(parent, &pack(&(name,)))
}

pub(super) fn joined(one: &[u8], other: &[u8]) -> KeyBuf {
    let mut joined = KeyBuf::with_capacity(one.len() + other.len());
    joined.extend_from_slice(one);
    joined.extend_from_slice(other);
    joined
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use keyloom::pack;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::{Measured, Path, Segments, by_name, by_rank, is_within};

    fn of_ids(segments: &[(Vec<u8>, u64)]) -> Path {
        segments.iter().fold(Path::new(), |path, (rank, id)| by_rank(&path, rank, *id))
    }

    fn of_names(names: &[String]) -> Path {
        names.iter().fold(Path::new(), |path, name| by_name(&path, name))
    }

    proptest! {
        #[test]
        fn a_path_of_ids_is_measured_as_it_was_made(
            segments in vec((vec(any::<u8>(), 0..4), any::<u64>()), 0..5)
        ) {
            let path = of_ids(&segments);
            let key = [b"some key", &path[..]].concat();
            let within = Segments::Ids.measure_from(&key, 8).unwrap();
            let measured = Segments::Ids.measure(&path).unwrap();
            prop_assert_eq!(within.depth, measured.depth);
            prop_assert_eq!(measured.depth as usize, segments.len());
            if let Some((rank, id)) = segments.last() {
                prop_assert_eq!(measured.id(&path), Some(*id));
                prop_assert_eq!(within.id(&key), Some(*id));
                prop_assert_eq!(Segments::Ids.rank(&path), Some(rank.clone()));
            }
            let above: Vec<Path> = (1..segments.len()).map(|n| of_ids(&segments[..n])).collect();
            let ancestors = Segments::Ids.ancestors(&path);
            prop_assert_eq!(&ancestors[..], above.iter().map(|path| &path[..]).collect::<Vec<_>>());
            for n in 0..=segments.len() {
                let cut = Segments::Ids.cut(&path, n as u32).unwrap();
                prop_assert_eq!(cut, &of_ids(&segments[..n])[..]);
            }
        }

        #[test]
        fn paths_of_names_lie_within_each_other_as_their_lists_do(
            one in vec("[a\0.-]{0,3}", 0..4), other in vec("[a\0.-]{0,3}", 0..4)
        ) {
            let (path, root) = (of_names(&one), of_names(&other));
            prop_assert_eq!(is_within(&path, &root), one.starts_with(&other));
            prop_assert_eq!(path.cmp(&root), one.cmp(&other), "and stand in their order");
            prop_assert_eq!(Segments::Names.measure(&path).unwrap().depth as usize, one.len());
            prop_assert_eq!(Segments::Names.name(&path), one.last().cloned());
        }

        #[test]
        fn what_is_measured_like_another_is_measured_as_by_itself(
            above in vec((vec(any::<u8>(), 0..3), any::<u64>()), 0..3),
            last in (vec(0..3_u8, 0..10), 0..70_000_u64),
            others in vec((vec(0..3_u8, 0..10), 0..70_000_u64), 1..3),
            (at, byte) in (any::<Index>(), prop_oneof![Just(0), Just(1), Just(0xFF), any::<u8>()])
        ) {
            let parent = of_ids(&above);
            let path = by_rank(&parent, &last.0, last.1);
            let measured = Segments::Ids.measure(&path).unwrap();
            let mut changed = path.to_vec();
            changed[parent.len()..][at.index(path.len() - parent.len())] = byte;
            let sibling = [above, others].concat();
            for other in [&of_ids(&sibling)[..], &changed] {
                let like = match measured.has_shape_of(other, &path) {
                    true => Some(measured),
                    false => Segments::Ids.measure_last(other, measured),
                };
                prop_assert_eq!(like, Segments::Ids.measure(other));
            }
        }

        #[test]
        fn what_is_no_path_is_refused_or_measured_but_never_a_panic(bytes in vec(any::<u8>(), 0..24)) {
            for segments in [Segments::Ids, Segments::Names] {
                if let Some(measured) = segments.measure(&bytes) {
                    measured.id(&bytes);
                }
                let key = [b"some key", &bytes[..]].concat();
                let depth = |measured: Option<Measured>| measured.map(|measured| measured.depth);
                prop_assert_eq!(depth(segments.measure_from(&key, 8)), depth(segments.measure(&bytes)));
                segments.cut(&bytes, 2);
                segments.ancestors(&bytes);
            }
        }
    }

    #[test]
    fn a_dot_never_sorts_against_a_dash() {
        // As one string, "a.b" would sort after "a-b", so "a-b" would be between "a" and its
        // descendants.
        let [a, below, dash] = [&["a"][..], &["a", "b"], &["a-b"]]
            .map(|names| names.iter().fold(Path::new(), |path, name| by_name(&path, name)));
        assert!(a < below && below < dash);
        assert_eq!(a, pack(&("a",)));
    }
}
