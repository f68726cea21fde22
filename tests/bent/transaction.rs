//! Mistakes of writing and of committing.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use keyloom::key::Versionstamp;
use keyloom::memory::MemoryTransaction;
use keyloom::{
    AtomicOp, Error, KeyRange, Limits, Order, Page, Reader, Result, Store, Transaction,
    TransactionState, VersionstampedKey, Writer, check_key, check_value,
};

use super::reading::{entries, first_page, part, value};
use super::{Bent, BentEntries, Flaw, Map};

/// A write, to be done elsewhere and later.
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

    /// Where it writes.
    pub(super) fn range(&self) -> KeyRange<'static> {
        match self {
            Self::Put(key, _) | Self::Delete(key) => KeyRange::single(key).into_owned(),
            Self::DeleteRange(range) => range.clone(),
        }
    }
}

/// A transaction of a [`Bent`] store.
#[derive(Debug)]
pub struct BentTransaction<'s> {
    bent: &'s Bent,
    /// The honest one. Gone once it is decided what becomes of the writes.
    inner: Option<MemoryTransaction<'s>>,
    /// What was committed when this began, where a flaw needs it.
    base: Map,
    writes: Vec<Write>,
    state: TransactionState,
}

impl<'s> BentTransaction<'s> {
    pub(super) fn begin(bent: &'s Bent) -> Result<Self> {
        let inner = bent.memory.begin()?;
        let base = match bent.flaw {
            Flaw::BlindRanges
            | Flaw::BlindRangeBatch
            | Flaw::UntrackedRangeBatch
            | Flaw::Phantom
            | Flaw::WriteSkew => bent.map()?,
            _ => Map::new(),
        };
        let (writes, state) = (Vec::new(), TransactionState::default());
        Ok(Self { bent, inner: Some(inner), base, writes, state })
    }

    fn inner(&self) -> Result<&MemoryTransaction<'s>> {
        self.inner.as_ref().ok_or(Error::ReadOnly)
    }

    /// What the honest transaction would show, from a copy: it does not notice the read.
    fn untracked(&self) -> Map {
        let mut map = self.base.clone();
        self.writes.iter().for_each(|write| write.apply_to_map(&mut map));
        map
    }

    fn write(&mut self, write: Write) -> Result<()> {
        write.apply(self.inner.as_mut().ok_or(Error::ReadOnly)?)?;
        self.bent.uncommitted().push(write.clone());
        self.writes.push(write);
        Ok(())
    }

    fn count_unsigned(&mut self, key: &[u8], bound: u64, of: fn(u64, u64) -> u64) -> Result<()> {
        self.count(key, |old| of(old.map_or(bound, i64::cast_unsigned), bound).cast_signed())
    }

    fn append(&mut self, key: &[u8], tail: &[u8]) -> Result<()> {
        check_key(key)?;
        let most = self.bent.limits().max_value_bytes;
        check_value(key, tail, most)?;
        let old = self.get(key)?.unwrap_or_default();
        match self.bent.flaw {
            Flaw::AppendReplaces => self.put(key, tail),
            _ if old.len() + tail.len() > most => Ok(()),
            _ => self.put(key, &[&old, tail].concat()),
        }
    }

    fn count(&mut self, key: &[u8], change: impl Fn(Option<i64>) -> i64) -> Result<()> {
        let old = self.bent.optional_counter(key, self.get(key)?)?;
        let count = change(old);
        self.put(
            key,
            &match self.bent.flaw {
                Flaw::BigEndianCounter => count.to_be_bytes(),
                _ => count.to_le_bytes(),
            },
        )
    }
}

impl Reader for BentTransaction<'_> {
    type Bytes<'r>
        = Vec<u8>
    where
        Self: 'r;
    type Entries<'r>
        = BentEntries
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.bent.get(key, |key| value(self.inner()?, key))
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<BentEntries> {
        self.bent.range(range, order, |range| match self.bent.flaw {
            Flaw::BlindRanges => Ok(part(&self.base, range)),
            Flaw::Phantom => Ok(part(&self.untracked(), range)),
            _ => entries(self.inner()?, range),
        })
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.bent.get_many(keys, |key| self.get(key))
    }

    fn range_many(&self, ranges: &[KeyRange<'_>], limit: usize) -> Result<Vec<Page<Vec<u8>>>> {
        self.bent.range_many(ranges, |range| match self.bent.flaw {
            Flaw::BlindRangeBatch => Ok(first_page(part(&self.base, range), limit)),
            Flaw::UntrackedRangeBatch => Ok(first_page(part(&self.untracked(), range), limit)),
            _ => self.page(range.clone(), Order::Ascending, limit),
        })
    }

    fn counter(&self, key: &[u8]) -> Result<i64> {
        self.bent.counter(key, self.get(key)?)
    }
}

impl Writer for BentTransaction<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        const CUT_AT: usize = 64 << 10;
        let key = self.bent.key(key);
        let value = match self.bent.flaw {
            Flaw::CutValue => value.get(..CUT_AT).unwrap_or(value),
            _ => value,
        };
        self.write(Write::Put(key.to_vec(), value.to_vec()))
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }

    fn limits(&self) -> Limits {
        self.bent.limits()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let key = self.bent.key(key);
        check_key(key)?;
        self.write(Write::Delete(key.to_vec()))
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        let kept = match self.bent.flaw {
            Flaw::DeleteRangeKeepsFirst => self.inner()?.first(range.clone())?,
            _ => None,
        };
        let kept = kept.map(|(key, value)| Write::Put(key.to_vec(), value.to_vec()));
        self.write(Write::DeleteRange(range.into_owned()))?;
        kept.map_or(Ok(()), |kept| self.write(kept))
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        let signed = self.bent.flaw == Flaw::SignedMinMax;
        match operation {
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
                match is_it || self.bent.flaw == Flaw::ClearsAnything {
                    true => self.delete(key),
                    false => Ok(()),
                }
            }
            other => Err(Error::other(format!("{other:?} is not known here"))),
        }
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        let now = match self.bent.flaw {
            // As a clock that stands still.
            Flaw::StampsRepeat => 1,
            _ => self.counter(key.clock)? + 1,
        };
        let [a, b, c, d, e, f, g, h] = now.to_be_bytes();
        let stamp = Versionstamp::new([a, b, c, d, e, f, g, h, 0, 0], 0);
        self.put(&key.with(stamp), value)?;
        self.put(key.clock, &now.to_le_bytes())
    }
}

impl Transaction for BentTransaction<'_> {
    fn commit(mut self) -> Result<()> {
        if self.bent.flaw != Flaw::ForgottenRefusal {
            self.state.check()?;
        }
        let inner = self.inner.take().ok_or(Error::ReadOnly)?;
        let writes = std::mem::take(&mut self.writes);
        let half = writes.len().div_ceil(2);
        let (first, second) = writes.split_at(half);
        let bent = self.bent;
        match bent.flaw {
            Flaw::LostWrite if writes.len() >= 3 => {
                bent.apply(writes.split_last().map_or(&[], |(_, others)| others))
            }
            Flaw::ForgottenDelete => {
                let is_kept = |write: &&Write| !matches!(write, Write::Delete(_));
                bent.apply(&writes.iter().filter(is_kept).cloned().collect::<Vec<_>>())
            }
            Flaw::CommitHalfDone => bent.apply(first),
            Flaw::CommitInTwoSteps => {
                bent.apply(first)?;
                thread::sleep(Duration::from_micros(200));
                bent.apply(second)
            }
            Flaw::ForgottenCommit if bent.is_seventh_commit() => Ok(()),
            Flaw::DeniedCommit if bent.is_seventh_commit() => {
                inner.commit()?;
                Err(Error::Conflict { what: "nothing, in truth".into() })
            }
            Flaw::LostUpdate => bent.apply(&writes),
            Flaw::WriteSkew => bent.commit_if_unwritten(&self.base, &writes),
            Flaw::ConflictKeeps => inner.commit().inspect_err(|_| {
                let _ = bent.apply(writes.get(..1).unwrap_or_default());
            }),
            _ => inner.commit(),
        }
    }
}

impl Drop for BentTransaction<'_> {
    fn drop(&mut self) {
        self.bent.uncommitted().clear();
        if self.bent.flaw == Flaw::RollbackKeeps && self.inner.take().is_some() {
            let _ = self.bent.apply(&self.writes);
        }
    }
}

impl Bent {
    /// Applies `writes` to whatever is there, without a look.
    fn apply(&self, writes: &[Write]) -> Result<()> {
        self.memory.transact(|txn| writes.iter().try_for_each(|write| write.apply(txn)))
    }

    fn is_seventh_commit(&self) -> bool {
        self.commits.fetch_add(1, Relaxed) % 7 == 6
    }

    /// First committer wins: applies `writes` unless what they touch was changed since `base`.
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
