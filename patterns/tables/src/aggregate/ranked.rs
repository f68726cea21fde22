//! Ranked index (order statistics): an index that counts the entries before any given entry.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Bound, ControlFlow};

use keyloom::value::Codec;
use keyloom::{
    DynWriter, KeyBuf, Order, Reader, Result, Store, Subspace, Writer, check_key, successor,
};
use keyloom_kit::derived::{
    Derived, DerivedEntry, LostRecords, RecordChange, SortedWrites, entries_if, entries_made_by,
};
use keyloom_kit::parts::{KeyShape, PrefixOf};
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions, Select};

use super::ranked_counts::{Counted, Counts};
use super::ranked_repair;
use crate::derived::Maintained;
use crate::index::{Found, Index, IndexEntries};
use crate::table::Table;

/// An [`Index`] with several levels of counts above it. It finds ranks, counts of any range and the
/// n-th entry without reading the entries before them; see the [module](crate::aggregate).
///
/// Adding or removing an entry takes at least 4 consecutive ranges to find its counts, even if many
/// records change at once. On a remote store, each range is a round trip. To load many records,
/// load them before the index is declared, and [build](crate::Attached::build) the index
/// afterwards, because a build reads and counts in batches.
///
/// ```
/// use keyloom::{Desc, Memory, Store, Subspace};
/// use keyloom_tables::{Table, entry};
/// use keyloom_tables::aggregate::RankedIndex;
/// let by_score = RankedIndex::new(&Subspace::new("by_score"), |_name: &String, score: &u32| entry(Desc(*score)));
/// let scores = Table::<String, u32>::new(&Subspace::new("scores")).with(&by_score);
/// let store = Memory::new();
/// let all = [("ada", 90), ("bob", 70), ("cyd", 80), ("dan", 80)];
/// store.transact(|txn| scores.put_many(txn, all.map(|(name, score)| (name.to_owned(), score))))?;
/// let snapshot = store.snapshot()?;
/// assert_eq!(by_score.rank(&snapshot, (), Desc(80_u32))?, 1); // one is better
/// assert_eq!(by_score.rank(&snapshot, (), Desc(70_u32))?, 3);
/// let third = by_score.nth(&snapshot, (), 2)?.expect("there are four");
/// assert_eq!(third.record_key()?, "dan");
/// assert_eq!(by_score.count(&snapshot, ..)?, 4);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct RankedIndex<K, V, P> {
    index: Index<K, V, P>,
    counts: Counts,
}

impl<K, V, P> Clone for RankedIndex<K, V, P> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), counts: self.counts.clone() }
    }
}

impl<K, V, P> fmt::Debug for RankedIndex<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankedIndex").field("index", &self.index).finish_non_exhaustive()
    }
}

impl<K: RecordKey, V, P> RankedIndex<K, V, P> {
    /// A ranked index in `space`. `function` returns the entries of a record, as in [`Index::new`].
    /// **Nothing else may be in `space`.**
    pub fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> IndexEntries<P> + Send + Sync + 'static,
    ) -> Self {
        let index = Index::new(&space.child("entries"), function);
        let counts = Counts::new(index.space(), &space.child("counts"));
        Self { index, counts }
    }

    /// The subspace of the entries.
    pub(crate) fn space(&self) -> &Subspace {
        self.index.space()
    }

    /// The index of the entries, for all other queries, such as minimum, maximum, top k and pages.
    pub fn index(&self) -> &Index<K, V, P> {
        &self.index
    }

    /// The number of selected entries.
    ///
    /// Costs 10 ranges in total, and reads some 70 keys for each end of the selection that is
    /// inside the index. Both numbers are almost independent of the number of entries: only the top
    /// level grows, by one key per 65,536 entries.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::NotACounter`](keyloom::Error::NotACounter).
    pub fn count(&self, reader: &impl Reader, select: impl Select<P>) -> Result<u64> {
        let (from, to) = self.ends(select);
        let before = self.counts.before(reader, &from)?;
        Ok(self.counts.before(reader, &to)?.saturating_sub(before))
    }

    /// The rank of `parts`, counted from 0: the number of selected entries before the entries with
    /// `parts`, in the order of the selection. An entry with these parts need not exist.
    ///
    /// Costs the same as [`count`](RankedIndex::count).
    ///
    /// # Errors
    /// The errors of [`count`](RankedIndex::count).
    pub fn rank(
        &self,
        reader: &impl Reader,
        select: impl Select<P>,
        parts: impl PrefixOf<P>,
    ) -> Result<u64> {
        let order = select.order();
        let (from, to) = self.ends(select);
        let to = to.max(from.clone());
        let (first, behind) = self.ends(parts);
        let (from, to) = match order {
            Order::Ascending => (from.clone(), first.clamp(from, to)),
            Order::Descending => (behind.clamp(from, to.clone()), to),
        };
        let before = self.counts.before(reader, &from)?;
        Ok(self.counts.before(reader, &to)?.saturating_sub(before))
    }

    /// The selected entry with the rank `n`, counted from 0 in the order of the selection. `None`
    /// if at most `n` entries are selected.
    ///
    /// Costs 15 ranges, and reads as many keys as [`count`](RankedIndex::count).
    ///
    /// # Errors
    /// The errors of [`count`](RankedIndex::count), and [`Error::At`](keyloom::Error::At) for a
    /// malformed entry.
    pub fn nth<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select<P>,
        n: u64,
    ) -> Result<Option<Found<R::Bytes<'r>, K, P>>> {
        let order = select.order();
        let (from, to) = self.ends(select);
        let before = self.counts.before(reader, &from)?;
        let upto = self.counts.before(reader, &to)?;
        if n >= upto.saturating_sub(before) {
            return Ok(None);
        }
        let place = match order {
            Order::Ascending => before + n,
            Order::Descending => upto - 1 - n,
        };
        let entry = self.counts.nth(reader, place)?;
        entry.map(|entry| self.index.found(entry)).transpose()
    }

    /// The first selected key and the first key after the selected keys, each without the prefix of
    /// the entries' subspace.
    fn ends(&self, select: impl Select<P>) -> (KeyBuf, KeyBuf) {
        let all = self.index.space().self_and_children();
        let range = select.key_range(self.index.space()).intersect(all);
        let Some((start, end)) = range.normalized() else { return Default::default() };
        let from = match start {
            Bound::Included(key) => KeyBuf::from_slice(key),
            Bound::Excluded(key) => successor(key),
            Bound::Unbounded => KeyBuf::new(),
        };
        let to = match end {
            Bound::Included(key) => successor(key),
            Bound::Excluded(key) => KeyBuf::from_slice(key),
            // Unreachable: the range was intersected with the subspace, which has an end.
            Bound::Unbounded => KeyBuf::new(),
        };
        (self.tail(&from), self.tail(&to))
    }

    /// The part of a key after the prefix of the entries' subspace.
    fn tail(&self, key: &[u8]) -> KeyBuf {
        let tail = key.strip_prefix(self.index.space().prefix());
        KeyBuf::from_slice(tail.unwrap_or_default())
    }
}

impl<K: RecordKey, V: 'static, P: KeyShape + 'static> Maintained for RankedIndex<K, V, P> {
    crate::described!(|_| "ranked index", parts | _ | P::key_shape());

    /// Reports the faults of the entries, as the check of an [`Index`] does, and then the faults of
    /// the counts. Compares each level of counts with the level below it, in 2 ranges per level.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::{Maintained, Table, entry};
    /// use keyloom_tables::aggregate::RankedIndex;
    /// let space = Subspace::new("by_size");
    /// let by_size = RankedIndex::new(&space, |_id, size: &u32| entry(size));
    /// let files = Table::<u32, u32>::new(&Subspace::new("files")).with(&by_size);
    /// let store = Memory::new();
    /// store.transact(|txn| files.put_many(txn, (0..100).map(|n| (n, n))))?;
    /// assert_eq!(by_size.check(&store.snapshot()?, &files)?, []);
    /// store.transact(|txn| txn.add(&space.pack(&("counts", 1)), 1))?;
    /// assert!(!by_size.check(&store.snapshot()?, &files)?.is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the
    /// table does not maintain the data.
    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        let mut found = self.index.check(reader, table)?;
        ranked_repair::check(&self.counts, reader, &mut found)?;
        Ok(found)
    }

    /// Repairs or builds the entries, then the counts, in bounded transactions, concurrently with
    /// other writers; see [`derived::repair`](crate::derived::repair()). A transaction for the
    /// counts visits `batch` entries of one level, and then continues up to the next entry that has
    /// a count. It takes 2 ranges and a commit.
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the
    /// table does not maintain the data.
    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let resume = options.resume.clone().filter(|position| {
            position.last.as_ref().is_some_and(|last| self.counts.contains(last))
        });
        let mut done = match &resume {
            Some(position) => Progress::at(position.clone()),
            None => {
                let mut stopped = false;
                let mut done = self.index.repair_with(store, table, options, |done| {
                    // The counts are repaired after the entries.
                    let answer = progress(&Progress { finished: false, ..done.clone() });
                    stopped = answer.is_break();
                    answer
                })?;
                let finished = std::mem::replace(&mut done.finished, false);
                if stopped && !finished {
                    return Ok(done);
                }
                done
            }
        };
        ranked_repair::repair(&self.counts, store, table, options, &mut done, progress)?;
        Ok(done)
    }
}

impl<K: RecordKey, V, P> Derived<K, V> for RankedIndex<K, V, P> {
    fn subspace(&self) -> Option<&Subspace> {
        Some(self.space())
    }

    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        // An update reads counts that an earlier update wrote, so records are processed one by one.
        writes.apply(txn)?;
        changes.iter().try_for_each(|change| self.follow(txn, change, Counted::All))
    }

    fn update_in_build(
        &self,
        reached: Option<&[u8]>,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let Some(reached) = reached else {
            // Only entries are written here. `finish_build` counts them after the last record.
            return changes.iter().try_for_each(|change| {
                let (gone, new) = self.difference(change)?;
                gone.iter().try_for_each(|entry| writes.delete(entry))?;
                new.iter().try_for_each(|(entry, value)| writes.put(entry, value))
            });
        };
        writes.apply(txn)?;
        changes.iter().try_for_each(|change| self.follow(txn, change, Counted::From(reached)))
    }

    fn finish_build(
        &self,
        txn: &mut DynWriter<'_>,
        reached: Option<&[u8]>,
        batch: usize,
    ) -> Result<Option<KeyBuf>> {
        ranked_repair::count_next(&self.counts, txn, reached, batch)
    }

    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        changes.iter().try_for_each(|change| {
            let entries = entries_if(&self.index.untyped(), change.key, change.new);
            entries.iter().try_for_each(|(entry, _)| self.check_lengths(entry))
        })
    }

    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, K>) -> Result<bool> {
        for entry in entries_made_by(&self.index.untyped(), txn, lost)? {
            txn.delete(&entry)?;
            self.counts.remove(txn, &self.tail(&entry), Counted::All)?;
        }
        Ok(true)
    }
}

impl<K: RecordKey, V, P> RankedIndex<K, V, P> {
    /// Returns an error if the key of the entry or of one of its counts would be too long.
    fn check_lengths(&self, entry: &[u8]) -> Result<()> {
        check_key(entry)?;
        check_key(&self.counts.longest(&self.tail(entry)))
    }

    /// The entries that a change removes, and those that it adds.
    fn difference(
        &self,
        change: &RecordChange<'_, K, V>,
    ) -> Result<(Vec<KeyBuf>, Vec<DerivedEntry>)> {
        let index = self.index.untyped();
        let entries = |value| BTreeSet::from_iter(entries_if(&index, change.key, value));
        let (old, new) = (entries(change.old), entries(change.new));
        // Keys that the store would refuse must be refused before the first write.
        new.iter().try_for_each(|(entry, _)| self.check_lengths(entry))?;
        let gone = old.difference(&new).map(|(entry, _)| entry.clone()).collect();
        Ok((gone, new.difference(&old).cloned().collect()))
    }

    fn follow(
        &self,
        txn: &mut DynWriter<'_>,
        change: &RecordChange<'_, K, V>,
        counted: Counted<'_>,
    ) -> Result<()> {
        let (gone, new) = self.difference(change)?;
        for entry in &gone {
            txn.delete(entry)?;
            self.counts.remove(txn, &self.tail(entry), counted)?;
        }
        for (entry, value) in &new {
            txn.put(entry, value)?;
            self.counts.insert(txn, &self.tail(entry), counted)?;
        }
        Ok(())
    }
}
