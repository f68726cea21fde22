//! A transaction of FoundationDB's client, on which a snapshot or a transaction is built.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use foundationdb::future::FdbValues;
use foundationdb::options::{MutationType, StreamingMode, TransactionOption};
use foundationdb::{
    FdbError, FdbResult, KeySelector, RangeOption, Transaction, TransactionCommitError,
};
use futures_util::future::try_join_all;

use super::Shared;
use super::again::Failed;
use super::error::{self, Asked};
use keyloom::backend::Span;
use keyloom::backend::shown_key;
use keyloom::key::Versionstamp;
use keyloom::{AtomicOp, Error, Order, Result, TransactionState, VersionstampedKey, successor};
use keyloom_remote::{Buffer, Fetched, Native, Outcome, Session, Write, WriteSession};

/// Reads at one version, and commits.
pub struct FoundationDbSession {
    shared: Arc<Shared>,
    /// `Some` until the commit, or until the session is dropped.
    txn: Option<Transaction>,
    kind: Kind,
    /// Whether the reads of a transaction can conflict.
    is_checked: Cell<bool>,
    /// When the read version was requested. `None` before the first read.
    began: Cell<Option<Instant>>,
    /// How long the session waited for a recovery of the cluster.
    delayed: Cell<Duration>,
    failed: Cell<Option<Broken>>,
    has_written: bool,
    /// The total bytes of the bounds of all reads.
    read_bytes: Cell<usize>,
    /// The number of versionstamps requested so far.
    stamped: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only reads, so its reads cannot conflict.
    Snapshot,
    Transaction,
}

/// If the cluster takes longer to answer, it counts as recovering.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);

/// The reason why a transaction ended before its commit.
#[derive(Clone, Copy, Debug)]
enum Broken {
    /// The cluster ended the transaction with this error, at this age.
    Said(FdbError, Duration),
    /// No answer came in time.
    Silent,
}

/// The source of the error of an operation after the end of the transaction.
#[derive(Debug, thiserror::Error)]
#[error("this transaction has ended; begin another one")]
struct Ended;

impl FoundationDbSession {
    pub(super) fn new(shared: Arc<Shared>, txn: Transaction, kind: Kind) -> Result<Self> {
        let option = match kind {
            // A snapshot has no writes of its own to read.
            Kind::Snapshot => Some(TransactionOption::ReadYourWritesDisable),
            // Required for a conflict to name its key.
            Kind::Transaction if shared.conflict_keys => {
                Some(TransactionOption::ReportConflictingKeys)
            }
            Kind::Transaction => None,
        };
        option.map_or(Ok(()), |option| txn.set_option(option)).map_err(error::of_setup)?;
        if shared.batch_priority {
            txn.set_option(TransactionOption::PriorityBatch).map_err(error::of_setup)?;
        }
        Ok(Self {
            shared,
            txn: Some(txn),
            kind,
            is_checked: Cell::new(true),
            began: Cell::default(),
            delayed: Cell::default(),
            failed: Cell::default(),
            has_written: false,
            read_bytes: Cell::default(),
            stamped: 0,
        })
    }

    /// Fetches the read version.
    pub(super) fn look(&self) -> Result<()> {
        self.began.set(Some(Instant::now()));
        self.ask(|txn| txn.get_read_version()).map(drop)
    }

    fn txn(&self) -> Result<&Transaction> {
        match (&self.txn, self.failed.get()) {
            (Some(txn), None) => Ok(txn),
            (_, Some(broken)) => Err(self.error(broken)),
            (None, None) => Err(Error::Backend(Ended.into())),
        }
    }

    /// The error of every operation after this transaction has failed.
    fn error(&self, broken: Broken) -> Error {
        match broken {
            Broken::Said(error, age) => error::of(error, Asked::Read, age, &self.shared.link),
            Broken::Silent => self.shared.link.silent(),
        }
    }

    /// The age of the transaction, without the waits for a recovery.
    fn age(&self) -> Duration {
        let age = self.began.get().map(|began| began.elapsed()).unwrap_or_default();
        age.saturating_sub(self.delayed.get())
    }

    /// Waits for one answer of the cluster.
    fn ask<'t, T, F>(&'t self, request: impl FnOnce(&'t Transaction) -> F) -> Result<T>
    where
        F: Future<Output = FdbResult<T>>,
    {
        let txn = self.txn()?;
        if self.began.get().is_none() {
            self.began.set(Some(Instant::now()));
            // The client fetches the read version first.
            self.shared.link.waited_also(1);
        }
        let (age, asked) = (self.age(), Instant::now());
        let answer = self.shared.link.wait(request(txn));
        self.delayed.set(self.delayed.get() + asked.elapsed().saturating_sub(LONGEST_ANSWER));
        let broken = match answer {
            Outcome::Answered(Ok(answer)) => return Ok(answer),
            Outcome::Answered(Err(error)) => Broken::Said(error, age),
            Outcome::Refused(error) => return Err(error),
            Outcome::TimedOut => Broken::Silent,
        };
        self.failed.set(Some(broken));
        Err(self.error(broken))
    }

    /// Whether reads are snapshot reads. The client does not record snapshot reads, so they cannot
    /// conflict.
    fn is_snapshot(&self) -> bool {
        self.kind == Kind::Snapshot || !self.is_checked.get()
    }

    /// Whether it is safe to read the client's report of conflicts.
    ///
    /// The binding reads one page of 4,096 bytes of the report. In debug builds it panics if the
    /// page ends between the two bounds of a range. So a debug build reads the report only if it
    /// fits in a page. Each bound takes a prefix of 38 bytes, the key, and a value of one byte.
    fn may_ask_for_conflicts(&self) -> bool {
        const PAGE_BYTES: usize = 4_096;
        let fits = !cfg!(debug_assertions) || self.read_bytes.get() < PAGE_BYTES;
        self.shared.conflict_keys && fits
    }

    /// Records a read between two bounds of this total length.
    fn note_read(&self, bounds_bytes: usize) {
        const BOUND_BYTES: usize = 38 + 1;
        self.read_bytes.set(self.read_bytes.get() + 2 * BOUND_BYTES + bounds_bytes);
    }

    /// Sends the request for a page.
    fn get_range(
        &self,
        txn: &Transaction,
        span: &Span,
        order: Order,
        limit: usize,
    ) -> impl Future<Output = FdbResult<FdbValues>> + use<> {
        let (begin, end) = self.shared.keys.bounds(span);
        // The read conflicts up to the last fetched key, which may have the maximum length.
        self.note_read(begin.len() + self.shared.keys.prefix_bytes() + keyloom::MAX_KEY_BYTES + 1);
        let range = RangeOption {
            begin: KeySelector::first_greater_or_equal(begin),
            end: KeySelector::first_greater_or_equal(end),
            limit: Some(limit),
            // As much as a server sends at once.
            mode: StreamingMode::WantAll,
            reverse: order == Order::Descending,
            ..RangeOption::default()
        };
        txn.get_range(&range, 1, self.is_snapshot())
    }

    fn fetched(&self, values: &FdbValues, limit: usize) -> Fetched {
        let entries = self.shared.keys.entries(values);
        Fetched { more: values.more() || entries.len() >= limit, entries }
    }

    /// The key or range of a conflict. The client already has it, so this costs no round trip.
    fn place_of_conflict(&self, failed: &TransactionCommitError) -> Option<Box<str>> {
        let Shared { link, keys, .. } = &*self.shared;
        if !self.may_ask_for_conflicts() {
            return None;
        }
        let report = link.wait_uncounted(link.timeout(), failed.conflicting_keys());
        let Outcome::Answered(Ok(ranges)) = report else { return None };
        let (begin, end) = ranges.first().map(|range| (range.begin(), range.end()))?;
        let key = shown_key(keys.inner(begin));
        Some(match *end == *successor(begin) {
            true => format!("key {key}").into(),
            false => format!("the keys from {key} on").into(),
        })
    }

    fn refused(&self, failed: TransactionCommitError, age: Duration) -> Error {
        let mut error = error::of(*failed, Asked::Commit, age, &self.shared.link);
        if let Error::Conflict { what } = &mut error
            && let Some(place) = self.place_of_conflict(&failed)
        {
            *what = place;
        }
        if error.is_retryable() {
            self.shared.again.put(Failed::Commit(failed));
        }
        error
    }
}

impl Session for FoundationDbSession {
    // The number of spans whose requests are sent together. A lower number adds round trips; a
    // higher one keeps more answers in memory.
    const MOST_SPANS: usize = 1_024;

    fn values(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        // All requests are sent before the first answer is awaited.
        let get = |txn: &Transaction, key: &[u8]| {
            let key = self.shared.keys.outer(key);
            self.note_read(2 * key.len() + 1);
            txn.get(&key, self.is_snapshot())
        };
        let values = self.ask(|txn| try_join_all(keys.iter().map(|key| get(txn, key))))?;
        Ok(values.into_iter().map(|value| Some(Bytes::from_owner(value?))).collect())
    }

    fn fetch(&self, span: &Span, order: Order, limit: usize) -> Result<Fetched> {
        let values = self.ask(|txn| self.get_range(txn, span, order, limit))?;
        Ok(self.fetched(&values, limit))
    }

    fn fetch_many(&self, spans: &[Span], limit: usize) -> Result<Vec<Fetched>> {
        // As in `values`, all requests are sent before the first answer is awaited.
        let get = |txn, span| self.get_range(txn, span, Order::Ascending, limit);
        let pages = self.ask(|txn| try_join_all(spans.iter().map(|span| get(txn, span))))?;
        Ok(pages.iter().map(|values| self.fetched(values, limit)).collect())
    }

    fn check_reads(&self, is_checked: bool) -> bool {
        self.is_checked.replace(is_checked)
    }

    fn count(&self, _: &Span) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl WriteSession for FoundationDbSession {
    fn write(&mut self, _: &mut Buffer, write: Write<'_>) -> Result<()> {
        let txn = self.txn()?;
        let keys = &self.shared.keys;
        match write {
            Write::Put(key, value) => txn.set(&keys.outer(key), value),
            Write::Delete(key) => txn.clear(&keys.outer(key)),
            Write::DeleteSpan(span) => {
                let (begin, end) = keys.bounds(&span);
                txn.clear_range(&begin, &end);
            }
        }
        self.has_written = true;
        Ok(())
    }

    fn apply(&mut self, key: &[u8], operation: &AtomicOp<'_>) -> Result<Native> {
        let kind = match operation {
            AtomicOp::Add(_) => MutationType::Add,
            AtomicOp::Min(_) => MutationType::Min,
            AtomicOp::Max(_) => MutationType::Max,
            AtomicOp::AppendIfFits(_) => MutationType::AppendIfFits,
            AtomicOp::CompareAndClear(_) => MutationType::CompareAndClear,
            _ => return Ok(Native::Unknown),
        };
        self.txn()?.atomic_op(&self.shared.keys.outer(key), &operation.operand(), kind);
        self.has_written = true;
        Ok(Native::Done)
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<Native> {
        let (actual, limit) = (self.stamped as usize + 1, 1 << 16);
        let too_many = |_| Error::TransactionTooLarge { unit: "versionstamps", actual, limit };
        let number = u16::try_from(self.stamped).map_err(too_many)?;
        // The cluster fills in ten bytes of the key. The offset of these bytes is appended to the
        // key.
        let mut outer = self.shared.keys.outer(&key.with(Versionstamp::new([0; 10], number)));
        let place = self.shared.keys.prefix_bytes() + key.prefix.len();
        outer.extend(u32::try_from(place).unwrap_or(u32::MAX).to_le_bytes());
        self.txn()?.atomic_op(&outer, value, MutationType::SetVersionstampedKey);
        self.has_written = true;
        self.stamped += 1;
        Ok(Native::Done)
    }

    fn weight(&self, write: &Write<'_>) -> usize {
        // The bytes that the client counts: for the write itself, and for its conflict range.
        const WRITE: usize = 44;
        const RANGE: usize = 24;
        let keys = &self.shared.keys;
        let bounds = |key: &[u8]| 2 * (keys.prefix_bytes() + key.len()) + 1;
        WRITE
            + RANGE
            + match write {
                Write::Put(key, value) => {
                    keys.prefix_bytes() + key.len() + value.len() + bounds(key)
                }
                Write::Delete(key) => 2 * bounds(key),
                Write::DeleteSpan(span) => {
                    let (begin, end) = keys.bounds(span);
                    2 * (begin.len() + end.len())
                }
            }
    }

    fn relieve(&mut self, _: &mut Buffer) -> Result<()> {
        // The client buffers the writes until the commit.
        Ok(())
    }

    fn commit(mut self, _: Buffer, _: &TransactionState) -> Result<()> {
        self.txn()?;
        let Some(txn) = self.txn.take().filter(|_| self.has_written) else { return Ok(()) };
        if self.began.get().is_none() {
            // The client first fetches a read version, which the write conflict ranges require.
            self.shared.link.waited_also(1);
        }
        let age = self.age();
        match self.shared.link.wait(txn.commit()) {
            Outcome::Answered(Ok(_)) => Ok(()),
            Outcome::Answered(Err(failed)) => Err(self.refused(failed, age)),
            Outcome::Refused(error) => Err(error),
            Outcome::TimedOut => Err(self.shared.link.silent_at_commit()),
        }
    }

    fn must_restart(&self) -> bool {
        self.failed.get().is_some_and(|broken| self.error(broken).is_retryable())
    }
}

impl Drop for FoundationDbSession {
    /// Keeps a failed transaction that may be retried, for its back-off.
    fn drop(&mut self) {
        if let (true, Some(txn), Some(Broken::Said(error, _))) =
            (self.must_restart(), self.txn.take(), self.failed.get())
        {
            self.shared.again.put(Failed::Read(txn, error));
        }
    }
}

impl fmt::Debug for FoundationDbSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundationDbSession").field("kind", &self.kind).finish_non_exhaustive()
    }
}
