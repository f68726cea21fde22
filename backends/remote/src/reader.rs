//! Snapshots and transactions of remote stores.

use std::cell::Cell;
use std::fmt;

use bytes::Bytes;

use super::many::first_pages;
use super::pages::{FIRST_PAGE, FIRST_PAGE_OF_TRANSACTION, LARGEST_PAGE, RemoteEntries};
use super::remembered::Remembered;
use super::{Buffer, Native, Session, Span, Write, WriteSession};
use keyloom::backend::{TransactionSize, apply_by_reading, stamp_by_counting};
use keyloom::key::Versionstamp;
use keyloom::{
    AtomicOp, Entry, EntryPage, KeyBuf, KeyRange, Limits, Order, Reader, Result, Transaction,
    TransactionState, VersionstampedKey, Writer, check_key, check_value,
};

/// A snapshot of a remote store. It borrows nothing: it can be stored in a struct or moved to
/// another thread.
///
/// A key is fetched only once, as long as the cached answers take less than 4 MiB.
pub struct RemoteSnapshot<S> {
    session: S,
    remembered: Remembered,
}

/// A transaction of a remote store.
///
/// Writes are buffered in memory until the commit, and reads of the transaction see them. A server
/// that accepts writes before the commit receives them earlier if there are many. A key is fetched
/// only once, as long as the cached answers take less than 4 MiB.
pub struct RemoteTransaction<S> {
    session: S,
    buffer: Buffer,
    remembered: Remembered,
    limits: Limits,
    size: TransactionSize,
    state: TransactionState,
    /// Whether the commit checks reads.
    is_checked: Cell<bool>,
}

impl<S> RemoteSnapshot<S> {
    /// A snapshot that reads through `session`.
    pub fn new(session: S) -> Self {
        Self { session, remembered: Remembered::default() }
    }
}

impl<S> RemoteTransaction<S> {
    /// A transaction that reads and commits through `session`, within `limits`.
    pub fn new(session: S, limits: Limits) -> Self {
        Self {
            session,
            buffer: Buffer::default(),
            remembered: Remembered::default(),
            limits,
            size: TransactionSize::default(),
            state: TransactionState::default(),
            is_checked: Cell::new(true),
        }
    }
}

impl<S> fmt::Debug for RemoteSnapshot<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSnapshot").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for RemoteTransaction<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTransaction").field("buffer", &self.buffer).finish_non_exhaustive()
    }
}

/// The differences between snapshots and transactions.
struct Parts<'r, S> {
    session: &'r S,
    buffer: Option<&'r Buffer>,
    remembered: &'r Remembered,
    first_page: usize,
    /// Whether the commit checks the reads. The answers of other reads are not cached: a later read
    /// that is checked must reach the session.
    is_checked: bool,
}

impl<'r, S: Session> Parts<'r, S> {
    fn values(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        keys.iter().try_for_each(|key| check_key(key))?;
        let known: Vec<_> = keys.iter().map(|key| self.known(key)).collect();
        let unknown = keys.iter().zip(&known).filter(|(_, known)| known.is_none());
        let mut unknown: Vec<&[u8]> = unknown.map(|(key, _)| *key).collect();
        // A key that occurs several times is requested once.
        unknown.sort_unstable();
        unknown.dedup();
        let answers =
            if unknown.is_empty() { Vec::new() } else { self.session.values(&unknown)? };
        if self.is_checked {
            self.remembered.keep(&unknown, &answers);
        }
        let answer = |key| unknown.binary_search(&key).ok().and_then(|at| answers.get(at).cloned());
        let values = keys.iter().zip(known);
        Ok(values.map(|(key, known)| known.or_else(|| answer(*key)).flatten()).collect())
    }

    /// The value of a key that was already written or read, without a request.
    fn known(&self, key: &[u8]) -> Option<Option<Bytes>> {
        match self.buffer.and_then(|buffer| buffer.get(key)) {
            Some(written) => Some(written.cloned()),
            None => self.remembered.get(key),
        }
    }

    /// Caches the answers to ranges of one key. So one `range_many` can fetch ranges together with
    /// keys that are read by `get` later.
    fn remember(&self, ranges: &[KeyRange<'_>], pages: &[EntryPage<Bytes>]) {
        for (range, page) in ranges.iter().zip(pages).filter(|_| self.is_checked) {
            let Some(key) = Span::of(range).and_then(Span::only_key) else { continue };
            let is_own = self.buffer.is_some_and(|buffer| buffer.get(&key).is_some());
            if !is_own {
                let value = page.entries.first().map(|(_, value)| value.clone());
                self.remembered.keep(&[&key], &[value]);
            }
        }
    }

    fn value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.values(&[key])?.pop().flatten())
    }

    fn range(&self, range: &KeyRange<'_>, order: Order, first: usize) -> RemoteEntries<'r, S> {
        RemoteEntries::open(self.session, self.buffer, range, order, first, self.is_checked)
    }

    fn page(&self, range: &KeyRange<'_>, order: Order, limit: usize) -> Result<EntryPage<Bytes>> {
        let limit = limit.max(1);
        // One entry beyond the limit shows in the same message whether there are more.
        let mut walk = self.range(range, order, limit.saturating_add(1).min(LARGEST_PAGE));
        let entries = walk.by_ref().take(limit).collect::<Result<Vec<_>>>()?;
        let last = match (entries.last(), walk.next().transpose()?) {
            (Some((key, _)), Some(_)) => Some(KeyBuf::from_slice(key)),
            _ => None,
        };
        Ok(EntryPage { entries, last })
    }

    fn count(&self, range: &KeyRange<'_>) -> Result<u64> {
        let Some(span) = Span::of(range) else { return Ok(0) };
        if self.buffer.is_none_or(|buffer| buffer.leaves_whole(&span))
            && let Some(count) = self.session.count(&span)?
        {
            return Ok(count);
        }
        // Only a scan shows which writes of the transaction add keys that the server does not have.
        self.range(range, Order::Ascending, LARGEST_PAGE)
            .try_fold(0, |count, entry| entry.map(|_| count + 1))
    }
}

macro_rules! reads {
    ($reader:ident, $self:ident => $parts:expr) => {
        impl<S: Session> $reader<S> {
            fn parts(&$self) -> Parts<'_, S> {
                $parts
            }
        }

        impl<S: Session> Reader for $reader<S> {
            type Bytes<'r>
                = Bytes
            where
                Self: 'r;
            type Entries<'r>
                = RemoteEntries<'r, S>
            where
                Self: 'r;

            fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
                self.parts().value(key)
            }

            fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Bytes>>> {
                self.parts().values(&keys.iter().map(AsRef::as_ref).collect::<Vec<_>>())
            }

            fn range(&self, range: KeyRange<'_>, order: Order) -> Result<RemoteEntries<'_, S>> {
                let parts = self.parts();
                Ok(parts.range(&range, order, parts.first_page))
            }

            fn prefetched(&self) -> usize {
                self.parts().first_page
            }

            fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
                self.parts().values(keys).map(drop)
            }

            fn count(&self, range: KeyRange<'_>) -> Result<u64> {
                self.parts().count(&range)
            }

            fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Bytes>>> {
                self.parts().range(&range, Order::Ascending, 1).next().transpose()
            }

            fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Bytes>>> {
                self.parts().range(&range, Order::Descending, 1).next().transpose()
            }

            fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<EntryPage<Bytes>> {
                self.parts().page(&range, order, limit)
            }

            fn range_many(
                &self,
                ranges: &[KeyRange<'_>],
                limit: usize,
            ) -> Result<Vec<EntryPage<Bytes>>> {
                let parts = self.parts();
                let pages = first_pages(parts.session, parts.buffer, ranges, limit)?;
                parts.remember(ranges, &pages);
                Ok(pages)
            }
        }
    };
}

reads!(RemoteSnapshot, self => Parts {
    session: &self.session,
    buffer: None,
    remembered: &self.remembered,
    first_page: FIRST_PAGE,
    is_checked: true,
});
reads!(RemoteTransaction, self => Parts {
    session: &self.session,
    buffer: Some(&self.buffer),
    remembered: &self.remembered,
    first_page: FIRST_PAGE_OF_TRANSACTION,
    is_checked: self.is_checked.get(),
});

impl<S: WriteSession> RemoteTransaction<S> {
    fn write(&mut self, write: Write<'_>) -> Result<()> {
        let weight = self.session.weight(&write);
        self.remembered.forget(&write);
        self.session.write(&mut self.buffer, write)?;
        self.size.charge(weight, &self.limits)?;
        self.session.relieve(&mut self.buffer)
    }

    /// Counts a write that the server executes itself as if it were a put.
    fn done(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.remembered.forget(&Write::Put(key, value));
        self.size.charge(self.session.weight(&Write::Put(key, value)), &self.limits)
    }
}

impl<S: WriteSession> Writer for RemoteTransaction<S> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(key, value, self.limits.max_value_bytes)?;
        self.write(Write::Put(key, value))
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn check_reads(&self, is_checked: bool) -> bool {
        self.session.check_reads(is_checked);
        // A session that checks all reads does not keep the setting.
        let is_kept = self.session.check_reads(is_checked) == is_checked;
        self.is_checked.replace(is_checked || !is_kept)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.write(Write::Delete(key))
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        match Span::of(&range) {
            Some(span) => self.write(Write::DeleteSpan(span)),
            None => Ok(()),
        }
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        operation.check(key, self.limits.max_value_bytes)?;
        match self.session.apply(key, &operation)? {
            Native::Done => self.done(key, &operation.operand()),
            Native::Unknown => apply_by_reading(self, key, &operation),
        }
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        let stamped = key.with(Versionstamp::new([0; 10], 0));
        check_key(&stamped)?;
        check_value(&stamped, value, self.limits.max_value_bytes)?;
        match self.session.put_versionstamped(key, value)? {
            Native::Done => self.done(&stamped, value),
            Native::Unknown => stamp_by_counting(self, key, value),
        }
    }
}

impl<S: WriteSession> Transaction for RemoteTransaction<S> {
    fn commit(self) -> Result<()> {
        self.state.check()?;
        self.size.check(&self.limits)?;
        self.session.commit(self.buffer, &self.state)
    }

    fn must_restart(&self) -> bool {
        self.session.must_restart()
    }
}
