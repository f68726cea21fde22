//! Snapshots and transactions: reads at a revision, and commits.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bytes::Bytes;

use super::commit::Checks;
use super::members::WriteError;
use super::reading::{Entries, MOST_RANGES, Wanted};
use super::validation::Reads;
use super::{Shared, error};
use keyloom::backend::Span;
use keyloom::{Entry, Error, Order, Result, TransactionState};
use keyloom_remote::{Buffer, Fetched, Outcome, Session, WriteSession};

/// Reads at one revision.
#[derive(Debug)]
pub struct SnapshotSession {
    shared: Arc<Shared>,
    revision: i64,
}

impl SnapshotSession {
    pub(super) fn new(shared: Arc<Shared>, revision: i64) -> Self {
        Self { shared, revision }
    }
}

fn fetched(entries: Vec<(Entry<Bytes>, i64)>, more: bool) -> Fetched {
    Fetched { entries: entries.into_iter().map(|(entry, _)| entry).collect(), more }
}

impl Session for SnapshotSession {
    const MOST_SPANS: usize = MOST_RANGES;

    fn values(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let (values, _) = self.shared.values(keys, Some(self.revision))?;
        Ok(values.into_iter().map(|found| Some(found?.0)).collect())
    }

    fn fetch(&self, span: &Span, order: Order, limit: usize) -> Result<Fetched> {
        let wanted = Wanted::Page(order, limit);
        let Entries { entries, more, .. } =
            self.shared.entries(span, wanted, Some(self.revision))?;
        Ok(fetched(entries, more))
    }

    fn fetch_many(&self, spans: &[Span], limit: usize) -> Result<Vec<Fetched>> {
        let (read, _) = self.shared.entries_of_many(spans, limit, Some(self.revision))?;
        Ok(read.into_iter().map(|read| fetched(read.entries, read.more)).collect())
    }

    fn count(&self, span: &Span) -> Result<Option<u64>> {
        Ok(Some(self.shared.entries(span, Wanted::Count, Some(self.revision))?.count))
    }
}

/// Reads at the revision of its first read, records its reads, and commits.
#[derive(Debug)]
pub struct TransactionSession {
    shared: Arc<Shared>,
    /// `None` before the first read.
    revision: Cell<Option<i64>>,
    reads: RefCell<Reads>,
    /// Whether reads are recorded.
    is_checked: Cell<bool>,
    failed: Cell<bool>,
}

impl TransactionSession {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            revision: Cell::default(),
            reads: RefCell::default(),
            is_checked: Cell::new(true),
            failed: Cell::default(),
        }
    }

    /// Records whether the failure requires a retry of the whole transaction.
    fn tried<T>(&self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(Error::is_retryable) {
            self.failed.set(true);
        }
        result
    }

    /// Reads entries and records them; `span` is the part of a range that was read.
    fn entries(
        &self,
        span: &Span,
        wanted: Wanted,
        seen: impl FnOnce(Span, &Entries) -> Span,
    ) -> Result<Entries> {
        let read = self.tried(self.shared.entries(span, wanted, self.revision.get()))?;
        self.revision.set(Some(read.revision));
        let seen = seen(span.clone(), &read);
        self.note(&read, seen);
        Ok(read)
    }

    /// Records that entries and a part of a range were read.
    fn note(&self, read: &Entries, seen: Span) {
        if !self.is_checked.get() {
            return;
        }
        let mut reads = self.reads.borrow_mut();
        read.entries.iter().for_each(|((key, _), revision)| reads.key(key, *revision));
        reads.span(seen);
    }
}

/// The part of `span` that a page covers.
fn seen_by_page(span: Span, order: Order, read: &Entries) -> Span {
    match read.entries.last().filter(|_| read.more) {
        Some(((last, _), _)) => span.up_to(order, last),
        None => span,
    }
}

impl Session for TransactionSession {
    const MOST_SPANS: usize = MOST_RANGES;

    fn values(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let (values, revision) = self.tried(self.shared.values(keys, self.revision.get()))?;
        self.revision.set(Some(revision));
        let mut reads = self.reads.borrow_mut();
        for (key, found) in keys.iter().zip(&values).filter(|_| self.is_checked.get()) {
            reads.key(key, found.as_ref().map_or(0, |(_, revision)| *revision));
        }
        Ok(values.into_iter().map(|found| Some(found?.0)).collect())
    }

    fn fetch(&self, span: &Span, order: Order, limit: usize) -> Result<Fetched> {
        let read = self.entries(span, Wanted::Page(order, limit), |span, read| {
            seen_by_page(span, order, read)
        })?;
        Ok(fetched(read.entries, read.more))
    }

    fn fetch_many(&self, spans: &[Span], limit: usize) -> Result<Vec<Fetched>> {
        let read = self.shared.entries_of_many(spans, limit, self.revision.get());
        let (read, revision) = self.tried(read)?;
        self.revision.set(Some(revision));
        let note = |(span, read): (&Span, Entries)| {
            self.note(&read, seen_by_page(span.clone(), Order::Ascending, &read));
            fetched(read.entries, read.more)
        };
        Ok(spans.iter().zip(read).map(note).collect())
    }

    fn check_reads(&self, is_checked: bool) -> bool {
        self.is_checked.replace(is_checked)
    }

    fn count(&self, span: &Span) -> Result<Option<u64>> {
        Ok(Some(self.entries(span, Wanted::Keys, |span, _| span)?.count))
    }
}

impl WriteSession for TransactionSession {
    fn relieve(&mut self, _: &mut Buffer) -> Result<()> {
        // etcd accepts writes only at the commit.
        Ok(())
    }

    fn commit(self, buffer: Buffer, _: &TransactionState) -> Result<()> {
        if buffer.is_empty() {
            // A transaction without writes is serializable: it read at one revision.
            return Ok(());
        }
        let Self { shared, revision, reads, .. } = self;
        let revision = revision.get().unwrap_or(0);
        let (checks, request) = Checks::request(&shared, buffer, reads.into_inner(), revision)?;
        let before = shared.newest_seen();
        let is_sent = Cell::new(false);
        let send = shared.members.write(&is_sent, async |mut client| client.txn(request).await);
        match shared.link.wait(send) {
            Outcome::Answered(Ok(answer)) if answer.succeeded() => {
                shared.saw(answer.header());
                Ok(())
            }
            Outcome::Answered(Ok(answer)) => Err(checks.conflict(&shared.keys, &answer)),
            Outcome::Answered(Err(WriteError::NotSent(failure))) => {
                Err(error::of_read(&shared.link, &failure, None))
            }
            Outcome::Answered(Err(WriteError::Sent(failure))) => {
                // A revision seen before the commit was sent is older than the revision of the
                // commit. etcd executes the commit that uses up its quota, but answers as if it
                // refused that commit. Only an executed commit changes the revision. Without this
                // check, each commit into a full quota would have an unknown outcome.
                let is_unchanged = || shared.revision().is_ok_and(|now| now == before);
                Err(error::of_commit(&shared.link, &failure, is_unchanged))
            }
            Outcome::Refused(error) => Err(error),
            Outcome::TimedOut if is_sent.get() => Err(shared.link.silent_at_commit()),
            Outcome::TimedOut => Err(shared.link.silent()),
        }
    }

    fn must_restart(&self) -> bool {
        self.failed.get()
    }
}
