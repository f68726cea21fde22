//! The counts above the entries of a ranked index: a skip list whose node heights come from a hash.

use keyloom::{DynWriter, Entry, KeyBuf, KeyRange, Order, Reader, Result, Subspace, Writer};
use keyloom_kit::Fnv;

use super::totals::read;

/// The number of levels of counts above the entries. Part of the layout.
// A rank query may read all nodes of the top level, one per 65,536 entries: 153 for ten million
// entries. Another level would save some of these reads, but add one write to each change.
pub(super) const LEVELS: u8 = 4;

/// On average, a node covers 2^`FAN_OUT_BITS` nodes of the level below. Part of the layout.
// With a larger value, queries read more counts on each level. With a smaller value, more levels
// are needed, and each level adds one write to each change.
const FAN_OUT_BITS: u32 = 4;

/// The entries, as level 0, and the counts above them.
///
/// A node of level n is an entry whose hash ends in 4 n zero bits. It counts the entries from
/// itself up to, but not including, the next node of its level. The head of a level has an empty
/// tail and counts the entries before the first node. The head exists only while there are such
/// entries. So the levels depend only on the current entries, not on the order of inserts and
/// deletes.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// Indexed by level; level 0 is the level of the entries.
    levels: [Level; LEVELS as usize + 1],
}

/// The keys of one level: a prefix followed by the tail of an entry.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) number: u8,
    space: Subspace,
}

impl Level {
    pub(super) fn key(&self, tail: &[u8]) -> KeyBuf {
        self.space.prefix().iter().chain(tail).copied().collect()
    }

    pub(super) fn tail<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.strip_prefix(self.space.prefix()).unwrap_or_default()
    }

    /// The head and the nodes of the level.
    pub(super) fn all(&self) -> KeyRange<'static> {
        self.space.self_and_children()
    }

    /// The number of entries that a key of this level covers.
    pub(super) fn count(&self, entry: &Entry<impl std::ops::Deref<Target = [u8]>>) -> Result<i64> {
        if self.number == 0 { Ok(1) } else { read(entry) }
    }

    /// The last node before `key`, or the head, with its count.
    fn node_before(&self, reader: &impl Reader, key: &[u8]) -> Result<(KeyBuf, i64)> {
        match reader.last(self.all().before(key))? {
            Some(entry) => Ok((KeyBuf::from_slice(&entry.0), self.count(&entry)?)),
            None => Ok((self.key(&[]), 0)),
        }
    }

    /// The first node at or after `key`.
    pub(super) fn node_from(&self, reader: &impl Reader, key: &[u8]) -> Result<Option<KeyBuf>> {
        let first = reader.first(self.all().intersect(KeyRange::starting_at(key)))?;
        Ok(first.map(|(key, _)| KeyBuf::from_slice(&key)))
    }

    /// The number of entries from the node `from` up to the node `to`, or up to the end of the
    /// level if `to` is `None`. Reads the keys of this level.
    fn between(&self, reader: &impl Reader, from: &[u8], to: Option<&[u8]>) -> Result<i64> {
        let from = self.key(from);
        let to = to.map(|tail| self.key(tail));
        let range = self.all().intersect(match &to {
            Some(to) => KeyRange::half_open(&from, to),
            None => KeyRange::starting_at(&from),
        });
        if self.number == 0 {
            return Ok(reader.count(range)?.cast_signed());
        }
        reader.range(range, Order::Ascending)?.map(|entry| self.count(&entry?)).sum()
    }

    /// Changes the count of a node from `old` to `new`. A node whose count is 0 is deleted.
    fn set(&self, txn: &mut DynWriter<'_>, key: &[u8], old: i64, new: i64) -> Result<()> {
        match new {
            _ if old == new => Ok(()),
            0 => txn.delete(key),
            _ => txn.put(key, &new.to_le_bytes()),
        }
    }
}

/// The counts that exist: all, or those that a build has written so far. A build writes the levels
/// from the lowest to the highest, and each level from its end to its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counted<'k> {
    All,
    /// The counts at and after this key on its level, and all counts of the lower levels.
    From(&'k [u8]),
}

impl Counted<'_> {
    fn includes(self, level: &Level, key: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::From(reached) if level.all().contains(reached) => key >= reached,
            // All keys of a level sort before the keys of the next level.
            Self::From(reached) => key < reached,
        }
    }
}

impl Counts {
    pub(super) fn new(entries: &Subspace, counts: &Subspace) -> Self {
        let level = |number: usize| {
            let number = number as u8;
            let space = if number == 0 { entries.clone() } else { counts.child(&number) };
            Level { number, space }
        };
        Self { levels: std::array::from_fn(level) }
    }

    /// All levels, from the entries upward.
    pub(super) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Each level of counts, paired with the level below it, from the lowest to the highest.
    pub(super) fn pairs(&self) -> impl DoubleEndedIterator<Item = (&Level, &Level)> {
        self.levels.iter().zip(self.levels.iter().skip(1))
    }

    /// Whether `key` is a key of a count.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.levels.iter().skip(1).any(|level| level.all().contains(key))
    }

    /// The longest key that an entry with this tail may need: the key of its count on the top
    /// level.
    pub(super) fn longest(&self, tail: &[u8]) -> KeyBuf {
        self.levels.last().map(|level| level.key(tail)).unwrap_or_default()
    }

    /// Updates the counts for an entry that was added. `counted` says which counts a build has
    /// written.
    pub(super) fn insert(
        &self,
        txn: &mut DynWriter<'_>,
        tail: &[u8],
        counted: Counted<'_>,
    ) -> Result<()> {
        let height = height(tail);
        for (below, level) in self.pairs() {
            let key = level.key(tail);
            if !counted.includes(level, &key) {
                return Ok(());
            }
            let (before, count) = level.node_before(txn, &key)?;
            if level.number > height {
                level.set(txn, &before, count, count.wrapping_add(1))?;
                continue;
            }
            // A new node splits the node before it and takes over the later entries. Both counts
            // are computed from the level below, so that a wrong count does not spread. A repair
            // relies on this, since it runs from the end to the beginning.
            let next = level.node_from(txn, &key)?;
            let next = next.as_deref().map(|next| level.tail(next));
            let kept = below.between(txn, level.tail(&before), Some(tail))?;
            level.set(txn, &before, count, kept)?;
            level.set(txn, &key, 0, below.between(txn, tail, next)?)?;
        }
        Ok(())
    }

    /// Updates the counts for an entry that was removed. `counted` says which counts a build has
    /// written.
    pub(super) fn remove(
        &self,
        txn: &mut DynWriter<'_>,
        tail: &[u8],
        counted: Counted<'_>,
    ) -> Result<()> {
        let height = height(tail);
        for (_, level) in self.pairs() {
            let key = level.key(tail);
            if !counted.includes(level, &key) {
                return Ok(());
            }
            let (before, count) = level.node_before(txn, &key)?;
            let mut rest = count.wrapping_sub(1);
            if level.number <= height {
                // The node before the removed node takes over its count.
                rest = rest.wrapping_add(txn.counter(&key)?);
                txn.delete(&key)?;
            }
            level.set(txn, &before, count, rest)?;
        }
        Ok(())
    }

    /// The number of entries before `tail`. An entry with this tail need not exist.
    pub(super) fn before(&self, reader: &impl Reader, tail: &[u8]) -> Result<u64> {
        let (mut total, mut from) = (0_i64, KeyBuf::new());
        for (_, level) in self.pairs().rev() {
            let (begin, end) = (level.key(&from), level.key(tail));
            let range = level.all().intersect(KeyRange::half_open(&begin, &end));
            let mut last = 0;
            for entry in reader.range(range, Order::Ascending)? {
                let entry = entry?;
                // The last node may also count entries at or after `tail`. So its count is not
                // added here; the entries before `tail` are counted on the level below.
                total = total.wrapping_add(std::mem::replace(&mut last, level.count(&entry)?));
                from = KeyBuf::from_slice(level.tail(&entry.0));
            }
        }
        let [entries, ..] = &self.levels;
        total = total.wrapping_add(entries.between(reader, &from, Some(tail))?);
        Ok(total.max(0).cast_unsigned())
    }

    /// The entry with the rank `n`, counted from 0.
    pub(super) fn nth<'r, R: Reader>(
        &self,
        reader: &'r R,
        n: u64,
    ) -> Result<Option<Entry<R::Bytes<'r>>>> {
        let (mut before, mut from) = (0_i64, KeyBuf::new());
        let n = n.cast_signed();
        for (_, level) in self.pairs().rev() {
            let begin = level.key(&from);
            let mut walk = reader
                .range(level.all().intersect(KeyRange::starting_at(&begin)), Order::Ascending)?;
            for entry in walk.by_ref() {
                let entry = entry?;
                let count = level.count(&entry)?;
                from = KeyBuf::from_slice(level.tail(&entry.0));
                if before.wrapping_add(count) > n {
                    break;
                }
                before = before.wrapping_add(count);
            }
        }
        let [entries, ..] = &self.levels;
        let begin = entries.key(&from);
        let range = entries.all().intersect(KeyRange::starting_at(&begin));
        let skipped = usize::try_from(n.wrapping_sub(before)).unwrap_or(usize::MAX);
        reader.range(range, Order::Ascending)?.nth(skipped).transpose()
    }
}

/// The highest level on which an entry is a node: the number of trailing zero bits of a hash of its
/// tail, divided by 4. The hash is FNV-1a with the finalizer of MurmurHash3. Part of the layout.
pub(super) fn height(tail: &[u8]) -> u8 {
    let mut fnv = Fnv::new();
    fnv.add(tail);
    let fnv = fnv.finish();
    let mixed = (fnv ^ fnv >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    let fours = (mixed ^ mixed >> 33).trailing_zeros() / FAN_OUT_BITS;
    u8::try_from(fours).unwrap_or(LEVELS).min(LEVELS)
}
