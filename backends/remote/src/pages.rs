//! Ranges, page by page.

use std::fmt;

use bytes::Bytes;

use super::session::refuse_no_progress;
use super::{Buffer, Fetched, Session, Span};
use keyloom::backend::{Merge, Merged};
use keyloom::{Entry, KeyRange, Order, Result};

/// The number of entries of the first page of a range in a snapshot. Sending this many entries
/// costs about as much as the request.
pub(super) const FIRST_PAGE: usize = 1_024;
/// The number of entries of the first page in a transaction. It is smaller because every fetched
/// entry counts as read, and fewer reads cause fewer conflicts.
pub(super) const FIRST_PAGE_OF_TRANSACTION: usize = 128;
/// The factor by which the next page is larger.
// A snapshot reaches the largest page in two steps, a transaction in four. Slower growth costs long
// scans more round trips. With faster growth, scans that end early fetch more unused entries.
const GROWTH: usize = 4;
/// The largest number of entries of a page.
// With entries of less than 256 bytes, this limit ends a page before 4 MiB. Larger pages save few
// round trips, and scans that end early would fetch more unused entries.
pub const LARGEST_PAGE: usize = 16_384;
/// The largest size of a page. The server ends a page at this size if it can; otherwise the number
/// of entries is estimated from the previous page. A larger entry forms a page of its own.
// Bounds the memory of a scan, on the server too. A lower limit adds round trips to scans of large
// values.
pub const PAGE_BYTES: usize = 4 << 20;

/// The entries of a range of a remote store. The iterator fetches page after page. Pages grow from
/// 1,024 entries (in a transaction from 128) to 16,384 or some 4 MiB, whichever is less.
pub struct RemoteEntries<'r, S: Session> {
    walk: Walk<'r, S>,
}

enum Walk<'r, S: Session> {
    Server(Pages<'r, S>),
    /// The pages of the server, merged with the writes of the transaction.
    Merged(Merge<'r, Pages<'r, S>, Bytes>),
}

/// The entries of a range on the server.
struct Pages<'r, S> {
    session: &'r S,
    /// The writes of the transaction. Ranges that it has deleted need not be fetched.
    buffer: Option<&'r Buffer>,
    /// The span still to be fetched.
    rest: Option<Span>,
    order: Order,
    page: std::vec::IntoIter<Entry<Bytes>>,
    next_page: usize,
    /// Whether the commit checks these reads.
    is_checked: bool,
}

impl<'r, S: Session> RemoteEntries<'r, S> {
    pub(super) fn open(
        session: &'r S,
        buffer: Option<&'r Buffer>,
        range: &KeyRange<'_>,
        order: Order,
        first_page: usize,
        is_checked: bool,
    ) -> Self {
        let span = Span::of(range);
        let buffer = buffer.filter(|buffer| !buffer.is_empty());
        let next_page = first_page.min(LARGEST_PAGE);
        let page = Vec::new().into_iter();
        let rest = span.clone();
        let pages = Pages { session, buffer, rest, order, page, next_page, is_checked };
        let walk = match buffer {
            Some(buffer) => Walk::Merged(Merge::new(buffer, span.as_ref(), order, pages)),
            None => Walk::Server(pages),
        };
        Self { walk }
    }
}

/// Restores the setting of a session after a fetch, also after a panic.
struct Restored<'s, S: Session> {
    session: &'s S,
    was_checked: bool,
}

impl<'s, S: Session> Restored<'s, S> {
    fn new(session: &'s S, is_checked: bool) -> Self {
        Self { session, was_checked: session.check_reads(is_checked) }
    }
}

impl<S: Session> Drop for Restored<'_, S> {
    fn drop(&mut self) {
        self.session.check_reads(self.was_checked);
    }
}

impl<S: Session> Pages<'_, S> {
    fn fetch(&mut self) -> Result<()> {
        // Taken, so that a failed iterator stays ended.
        let rest = self.rest.take();
        let rest = match self.buffer {
            Some(buffer) => rest.and_then(|span| buffer.beyond_cleared(span, self.order)),
            None => rest,
        };
        let Some(span) = rest else { return Ok(()) };
        let fetched = {
            let _restored = Restored::new(self.session, self.is_checked);
            self.session.fetch(&span, self.order, self.next_page)?
        };
        refuse_no_progress(std::slice::from_ref(&fetched))?;
        let Fetched { entries, more } = fetched;
        if let Some((last, _)) = entries.last().filter(|_| more) {
            self.rest = span.behind(self.order, last);
        }
        let bytes: usize = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
        let most = PAGE_BYTES / (bytes / entries.len().max(1)).max(1);
        self.next_page = (self.next_page * GROWTH).min(LARGEST_PAGE).min(most).max(1);
        self.page = entries.into_iter();
        Ok(())
    }
}

impl<S: Session> Iterator for Pages<'_, S> {
    type Item = Result<Entry<Bytes>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0
            && let Err(error) = self.fetch()
        {
            return Some(Err(error));
        }
        self.page.next().map(Ok)
    }
}

impl<S: Session> Iterator for RemoteEntries<'_, S> {
    type Item = Result<Entry<Bytes>>;

    fn next(&mut self) -> Option<Self::Item> {
        let merge = match &mut self.walk {
            Walk::Server(pages) => return pages.next(),
            Walk::Merged(merge) => merge,
        };
        Some(merge.next()?.map(pair))
    }
}

pub(super) fn pair(entry: Merged<'_, Bytes, Bytes>) -> Entry<Bytes> {
    match entry {
        Merged::Written(key, value) => (Bytes::copy_from_slice(key), value.clone()),
        Merged::Below(key, value) => (key, value),
    }
}

impl<S: Session> fmt::Debug for RemoteEntries<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteEntries").finish_non_exhaustive()
    }
}
