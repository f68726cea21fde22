//! Flaws of writes and commits.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use keyloom::key::Versionstamp;
use keyloom::memory::MemoryTransaction;
use keyloom::{
    AtomicOp, EntryPage, Error, KeyRange, Limits, Order, Reader, Result, Store, Transaction,
    TransactionState, VersionstampedKey, Writer, check_key, check_value,
};

use super::flaw::STOPS_AT;
use super::reading::{entries, first_page, part, value};
use super::{Flaw, Map, MutantEntries, MutantStore};

/// A deferred write.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(KeyRange<'static>),
}

impl Write {
    pub(super) fn apply(&self, txn: &mut impl Writer) -> Result<()> {
        match self {
            Self::Put(key, value) => txn.put(key, value),
            Self::Delete(key) => txn.delete(key),
            Self::DeleteRange(range) => txn.delete_range(range.clone()),
        }
    }

    pub(super) fn apply_to_map(&self, map: &mut Map) {
        match self {
            Self::Put(key, value) => drop(map.insert(key.clone(), value.clone())),
            Self::Delete(key) => drop(map.remove(key)),
            Self::DeleteRange(range) => map.retain(|key, _| !range.contains(key)),
        }
    }

    pub(super) fn touches(&self, key: &[u8]) -> bool {
        match self {
            Self::Put(written, _) | Self::Delete(written) => written == key,
            Self::DeleteRange(range) => range.contains(key),
        }
    }

    /// The key or range of the write.
    pub(super) fn range(&self) -> KeyRange<'static> {
        match self {
            Self::Put(key, _) | Self::Delete(key) => KeyRange::single(key).into_owned(),
            Self::DeleteRange(range) => range.clone(),
        }
    }
}

/// A transaction of a [`MutantStore`].
#[derive(Debug)]
pub struct MutantTransaction<'s> {
    mutant: &'s MutantStore,
    /// The correct transaction; `None` once the outcome is decided.
    inner: Option<MemoryTransaction<'s>>,
    /// The committed entries at the start, if the flaw needs them.
    base: Map,
    writes: Vec<Write>,
    prefetched: RefCell<BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
    state: TransactionState,
    is_checked: Cell<bool>,
}

impl<'s> MutantTransaction<'s> {
    pub(super) fn begin(mutant: &'s MutantStore) -> Result<Self> {
        let inner = mutant.memory.begin()?;
        let base = match mutant.flaw {
            Flaw::BlindRanges
            | Flaw::BlindRangeBatch
            | Flaw::UntrackedRangeBatch
            | Flaw::Phantom
            | Flaw::LongPhantom
            | Flaw::ManyWritesUnseen
            | Flaw::OwnDeletesUnseen
            | Flaw::SnapshotReadBlind
            | Flaw::WriteSkew => mutant.map()?,
            _ => Map::new(),
        };
        let (writes, state) = (Vec::new(), TransactionState::default());
        let prefetched = RefCell::default();
        let is_checked = Cell::new(true);
        Ok(Self { mutant, inner: Some(inner), base, writes, prefetched, state, is_checked })
    }

    fn inner(&self) -> Result<&MemoryTransaction<'s>> {
        self.inner.as_ref().ok_or(Error::ReadOnly)
    }

    /// The entries of the correct transaction, from a copy, so that this read is not tracked.
    fn untracked(&self) -> Map {
        self.untracked_after(self.writes.len())
    }

    /// The same after the first `writes` writes of the transaction.
    fn untracked_after(&self, writes: usize) -> Map {
        let mut map = self.base.clone();
        self.writes.iter().take(writes).for_each(|write| write.apply_to_map(&mut map));
        map
    }

    fn write(&mut self, write: Write) -> Result<()> {
        write.apply(self.inner.as_mut().ok_or(Error::ReadOnly)?)?;
        self.mutant.uncommitted().push(write.clone());
        self.writes.push(write);
        Ok(())
    }

    fn count_unsigned(&mut self, key: &[u8], bound: u64, of: fn(u64, u64) -> u64) -> Result<()> {
        self.count(key, |old| of(old.map_or(bound, i64::cast_unsigned), bound).cast_signed())
    }

    fn append(&mut self, key: &[u8], tail: &[u8]) -> Result<()> {
        check_key(key)?;
        let most = self.mutant.limits().max_value_bytes;
        check_value(key, tail, most)?;
        let old = self.get(key)?.unwrap_or_default();
        match self.mutant.flaw {
            Flaw::AppendReplaces => self.put(key, tail),
            Flaw::AppendCut if old.len() + tail.len() > most => {
                let room = tail.get(..most - old.len()).unwrap_or_default();
                self.put(key, &[&old, room].concat())
            }
            _ if old.len() + tail.len() > most => Ok(()),
            _ => self.put(key, &[&old, tail].concat()),
        }
    }

    fn count(&mut self, key: &[u8], change: impl Fn(Option<i64>) -> i64) -> Result<()> {
        let old = self.mutant.optional_counter(key, self.get(key)?)?;
        let count = change(old);
        self.put(
            key,
            &match self.mutant.flaw {
                Flaw::BigEndianCounter => count.to_be_bytes(),
                _ => count.to_le_bytes(),
            },
        )
    }
}

impl Reader for MutantTransaction<'_> {
    type Bytes<'r>
        = Vec<u8>
    where
        Self: 'r;
    type Entries<'r>
        = MutantEntries
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.prefetched.borrow().get(key) {
            return Ok(value.clone());
        }
        self.mutant.get(key, |key| match self.mutant.flaw {
            Flaw::OwnDeletesUnseen => {
                Ok(value(self.inner()?, key)?.or(self.base.get(key).cloned()))
            }
            Flaw::SnapshotReadBlind if !self.is_checked.get() => Ok(self.base.get(key).cloned()),
            _ => value(self.inner()?, key),
        })
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<MutantEntries> {
        self.mutant.range(range, order, |range| match self.mutant.flaw {
            Flaw::BlindRanges => Ok(part(&self.base, range)),
            Flaw::Phantom => Ok(part(&self.untracked(), range)),
            Flaw::ManyWritesUnseen => Ok(part(&self.untracked_after(STOPS_AT), range)),
            Flaw::LongPhantom => match part(&self.untracked(), range) {
                many if many.len() > STOPS_AT => Ok(many),
                _ => entries(self.inner()?, range),
            },
            Flaw::OwnRangeWithoutEnd => match range.normalized() {
                Some((start, _)) => entries(self.inner()?, &KeyRange::new(start, Unbounded)),
                None => Ok(Vec::new()),
            },
            _ => entries(self.inner()?, range),
        })
    }

    fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<EntryPage<Vec<u8>>> {
        self.mutant.page(self.range(range, order)?, limit)
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.mutant.get_many(keys, |key| self.get(key))
    }

    fn range_many(&self, ranges: &[KeyRange<'_>], limit: usize) -> Result<Vec<EntryPage<Vec<u8>>>> {
        self.mutant.range_many(ranges, |range| match self.mutant.flaw {
            Flaw::BlindRangeBatch => Ok(first_page(part(&self.base, range), limit)),
            Flaw::UntrackedRangeBatch => Ok(first_page(part(&self.untracked(), range), limit)),
            _ => self.page(range.clone(), Order::Ascending, limit),
        })
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
        if let Flaw::PrefetchHidesWrites = self.mutant.flaw {
            for key in keys {
                let value = self.get(key)?;
                self.prefetched.borrow_mut().insert(key.to_vec(), value);
            }
        }
        Ok(())
    }

    fn counter(&self, key: &[u8]) -> Result<i64> {
        self.mutant.counter(key, self.get(key)?)
    }
}

impl Writer for MutantTransaction<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        const CUT_AT: usize = 64 << 10;
        let key = self.mutant.key(key);
        let value = match self.mutant.flaw {
            Flaw::CutValue => value.get(..CUT_AT).unwrap_or(value),
            Flaw::TakesAnyValue => value.get(..self.limits().max_value_bytes).unwrap_or(value),
            _ => value,
        };
        let mut value = value.to_vec();
        if self.mutant.flaw == Flaw::KeepsTheEnd && check_key(key).is_ok() {
            let old = self.get(key)?.unwrap_or_default();
            value.extend(old.get(value.len()..).unwrap_or_default());
        }
        if self.mutant.flaw == Flaw::RefusedKeyRollsBack && check_key(key).is_err() {
            self.inner = Some(self.mutant.memory.begin()?);
            self.writes.clear();
        }
        self.write(Write::Put(key.to_vec(), value))
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }

    fn limits(&self) -> Limits {
        self.mutant.limits()
    }

    fn check_reads(&self, is_checked: bool) -> bool {
        if let Some(inner) = &self.inner {
            inner.check_reads(is_checked && self.mutant.flaw != Flaw::SnapshotReadStays);
        }
        self.is_checked.replace(is_checked)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let key = self.mutant.key(key);
        check_key(key)?;
        if self.mutant.flaw == Flaw::AbsentDeleteFails && self.get(key)?.is_none() {
            return Err(Error::ReadOnly);
        }
        self.write(Write::Delete(key.to_vec()))
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        let range = match (self.mutant.flaw, range.normalized()) {
            (Flaw::DeleteRangeTakesEnd, Some((start, Excluded(end)))) => {
                KeyRange::new(start, Included(end)).into_owned()
            }
            _ => range,
        };
        if self.mutant.flaw == Flaw::DeleteRangeStops {
            let all = entries(self.inner()?, &range)?;
            let some = all.into_iter().take(1_000);
            return some.map(|(key, _)| Write::Delete(key)).try_for_each(|one| self.write(one));
        }
        let kept = match self.mutant.flaw {
            Flaw::DeleteRangeKeepsFirst => self.inner()?.first(range.clone())?,
            _ => None,
        };
        let kept = kept.map(|(key, value)| Write::Put(key.to_vec(), value.to_vec()));
        self.write(Write::DeleteRange(range.into_owned()))?;
        kept.map_or(Ok(()), |kept| self.write(kept))
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        let signed = self.mutant.flaw == Flaw::SignedMinMax;
        match operation {
            AtomicOp::Add(delta) if self.mutant.flaw == Flaw::SaturatingAdd => {
                self.count(key, |old| old.unwrap_or(0).saturating_add(delta))
            }
            AtomicOp::Min(bound) if self.mutant.flaw == Flaw::MinOfAbsent => {
                self.count(key, |old| old.map_or(0, i64::cast_unsigned).min(bound).cast_signed())
            }
            AtomicOp::Add(delta) => self.count(key, |old| old.unwrap_or(0).wrapping_add(delta)),
            AtomicOp::Min(bound) if signed => {
                self.count(key, |old| old.unwrap_or(i64::MAX).min(bound.cast_signed()))
            }
            AtomicOp::Max(bound) if signed => {
                self.count(key, |old| old.unwrap_or(i64::MIN).max(bound.cast_signed()))
            }
            AtomicOp::Min(bound) => self.count_unsigned(key, bound, u64::min),
            AtomicOp::Max(bound) => self.count_unsigned(key, bound, u64::max),
            AtomicOp::AppendIfFits(tail) => self.append(key, &tail),
            AtomicOp::CompareAndClear(expected) => {
                let is_it = self.get(key)?.as_deref() == Some(&expected[..]);
                match is_it || self.mutant.flaw == Flaw::ClearsAnything {
                    true => self.delete(key),
                    false => Ok(()),
                }
            }
            other => Err(Error::other(format!("{other:?} is not known here"))),
        }
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        let now = match self.mutant.flaw {
            // Like a stopped clock.
            Flaw::StampsRepeat => 1,
            Flaw::StampsDescend => i64::MAX - self.counter(key.clock)? - 1,
            Flaw::StampsBeginAnew => self.mutant.stamp.fetch_add(1, Relaxed).cast_signed(),
            _ => self.counter(key.clock)? + 1,
        };
        let [a, b, c, d, e, f, g, h] = now.to_be_bytes();
        let stamp = Versionstamp::new([a, b, c, d, e, f, g, h, 0, 0], 0);
        self.put(&key.with(stamp), value)?;
        self.add(key.clock, 1)
    }
}

impl Transaction for MutantTransaction<'_> {
    fn commit(mut self) -> Result<()> {
        if self.mutant.flaw != Flaw::ForgottenRefusal {
            self.state.check()?;
        }
        if self.mutant.flaw == Flaw::WakeWrites {
            let woken: Vec<_> = self.state.woken().map(<[u8]>::to_vec).collect();
            woken.into_iter().try_for_each(|key| self.write(Write::Put(key, Vec::new())))?;
        }
        let inner = self.inner.take().ok_or(Error::ReadOnly)?;
        let writes = std::mem::take(&mut self.writes);
        let half = writes.len().div_ceil(2);
        let (first, second) = writes.split_at(half);
        let mutant = self.mutant;
        mutant.commits.fetch_add(1, Relaxed);
        let keeps_before = [Flaw::StaleSnapshot, Flaw::LosesTheLastCommit, Flaw::OtherThreadsLate];
        if keeps_before.contains(&mutant.flaw) {
            *mutant.before() = mutant.map()?;
        }
        *mutant.committer() = Some(thread::current().id());
        let is_delete = |write: &Write| !matches!(write, Write::Put(..));
        match mutant.flaw {
            Flaw::EmptyCommitFails if writes.is_empty() => Err(Error::ReadOnly),
            Flaw::ManyWritesLost if writes.len() > STOPS_AT => {
                mutant.apply(writes.get(..STOPS_AT).unwrap_or_default())
            }
            Flaw::ManyDeletesLost => {
                let mut deletes = 0;
                let is_kept = |write: &&Write| {
                    deletes += usize::from(is_delete(write));
                    !is_delete(write) || deletes <= 1_000
                };
                mutant.apply(&writes.iter().filter(is_kept).cloned().collect::<Vec<_>>())
            }
            Flaw::DeletesFirst => {
                let (deletes, puts): (Vec<_>, Vec<_>) = writes.iter().cloned().partition(is_delete);
                mutant.apply(&[deletes, puts].concat())
            }
            Flaw::LostWrite if writes.len() >= 3 => {
                mutant.apply(writes.split_last().map_or(&[], |(_, others)| others))
            }
            Flaw::ForgottenDelete => {
                let is_kept = |write: &&Write| !matches!(write, Write::Delete(_));
                mutant.apply(&writes.iter().filter(is_kept).cloned().collect::<Vec<_>>())
            }
            Flaw::CommitHalfDone => mutant.apply(first),
            Flaw::CommitInTwoSteps => {
                mutant.apply(first)?;
                thread::sleep(Duration::from_micros(200));
                mutant.apply(second)
            }
            Flaw::ForgottenCommit if mutant.is_seventh_commit() => Ok(()),
            Flaw::DeniedCommit if mutant.is_seventh_commit() => {
                inner.commit()?;
                Err(Error::Conflict { what: "nothing, in truth".into() })
            }
            Flaw::LostUpdate => mutant.apply(&writes),
            Flaw::WriteSkew => mutant.commit_if_unwritten(&self.base, &writes),
            Flaw::ConflictKeeps => inner.commit().inspect_err(|_| {
                let _ = mutant.apply(writes.get(..1).unwrap_or_default());
            }),
            _ => inner.commit(),
        }
    }
}

impl Drop for MutantTransaction<'_> {
    fn drop(&mut self) {
        self.mutant.uncommitted().clear();
        if self.mutant.flaw == Flaw::RollbackKeeps && self.inner.take().is_some() {
            let _ = self.mutant.apply(&self.writes);
        }
    }
}

impl MutantStore {
    /// Applies `writes` without validation.
    fn apply(&self, writes: &[Write]) -> Result<()> {
        self.memory.transact(|txn| writes.iter().try_for_each(|write| write.apply(txn)))
    }

    fn is_seventh_commit(&self) -> bool {
        self.commits.load(Relaxed).is_multiple_of(7)
    }

    /// First committer wins: applies `writes` unless one of their keys has changed since `base`.
    fn commit_if_unwritten(&self, base: &Map, writes: &[Write]) -> Result<()> {
        let _turn = self.committing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.map()?;
        for key in base.keys().chain(now.keys()) {
            if base.get(key) != now.get(key) && writes.iter().any(|write| write.touches(key)) {
                return Err(Error::Conflict { what: "a key written meanwhile".into() });
            }
        }
        self.apply(writes)
    }
}
