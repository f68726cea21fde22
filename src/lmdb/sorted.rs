//! A sorted load that fills its pages, whatever the position of its keys in the store.
//!
//! If a page overflows, the engine splits it in the middle. If the new entry is the last one of the
//! page, only the previous last entry moves to the new page with it. So a sorted load leaves a gap
//! of one entry on each page, which matters if a page holds only a few entries. If stored entries
//! after the load are on the same page as its end, each page stays half full. At the end of the
//! store the engine avoids both problems (`MDB_APPEND`). Elsewhere this module avoids them with
//! dummy entries that are deleted again before the call returns:
//!
//! * When the first entries of the load fill a third of a page, two dummy entries are put after the
//!   last key of the whole load. They have the largest size of which two entries fit on a page. No
//!   third entry fits on a page with both dummies, so the second dummy is on another page than the
//!   end of the load. The first dummy is deleted, and the load continues at the end of its page.
//!   The second dummy stays until the load is complete: without it the next page could become so
//!   empty that the engine merges this page with the page of the load. For the same reason the load
//!   first fills a third of its page.
//! * If an entry does not fit on the page, a dummy entry without a value is put before this entry,
//!   if the dummy fits. The dummy is then the last entry of the page, so the split moves only the
//!   dummy, and the old page stays full. The dummy is deleted when the new page is full: if it were
//!   deleted earlier, the engine would move another entry to the emptier page.
//!
//! The free space of a page is computed from the entries that were put since the last observed
//! split. A wrong result would only leave pages less full.

use heed::types::Bytes;
use heed::{Database, RwTxn};

use crate::{KeyBuf, check_key, successor};

/// A key and its value.
pub(super) type Put<'e> = (&'e [u8], &'e [u8]);

/// The length of a page's header.
const PAGE_HEADER: usize = 16;
/// The length of an entry's header.
const ENTRY_HEADER: usize = 8;
/// The length of the offset of an entry in its page.
const PLACE: usize = 2;
/// The length of the page number that refers to an overflow value.
const PAGE_NUMBER: usize = 8;

/// Puts entries in ascending key order. No stored key may be between two of the entries, or between
/// the last entry and `next`. After an error the transaction must be aborted.
pub(super) fn lay(
    database: &Database<'_, Bytes, Bytes>,
    txn: &mut RwTxn<'_>,
    entries: &[Put<'_>],
    next: &[u8],
) -> heed::Result<()> {
    let page = database.stat(txn)?.page_size as usize;
    let mut load = Load { database, txn, page, pages: 0, room: None, mark: None, end: None };
    let Some((last, _)) = entries.last() else { return Ok(()) };
    let (mut before, mut bytes) = (None, 0);
    load.pages = load.leaf_pages()?;
    for entry in entries {
        let was_little = is_little(bytes, page);
        load.put(*entry, before)?;
        before = Some(*entry);
        bytes += load.bytes(*entry);
        if was_little && !is_little(bytes, page) {
            load.part_from(last, next)?;
        }
    }
    load.delete_mark()?;
    load.end.take().map_or(Ok(()), |end| load.delete(&end))
}

/// Whether a page with `bytes` bytes of entries may be so empty that the engine refills it from a
/// neighbour when an entry is deleted there.
fn is_little(bytes: usize, page: usize) -> bool {
    bytes < page / 3
}

/// A load in progress.
struct Load<'l, 'd, 't> {
    database: &'l Database<'d, Bytes, Bytes>,
    txn: &'l mut RwTxn<'t>,
    /// The size of a page.
    page: usize,
    /// The number of leaf pages of the tree, as last read.
    pages: usize,
    /// The free space on the current page of the load, if known.
    room: Option<usize>,
    /// The dummy entry without a value at the beginning of the current page.
    mark: Option<KeyBuf>,
    /// The large dummy entry after the load.
    end: Option<KeyBuf>,
}

impl Load<'_, '_, '_> {
    /// Moves the entries after the load to another page.
    fn part_from(&mut self, last: &[u8], next: &[u8]) -> heed::Result<()> {
        let first = successor(last);
        let second = successor(&first);
        if &second[..] >= next || check_key(&second).is_err() {
            return Ok(());
        }
        for key in [&first, &second] {
            let value = vec![0; self.most() - ENTRY_HEADER - key.len()];
            self.database.put(self.txn, key, &value)?;
        }
        self.delete(&first)?;
        self.end = Some(second);
        (self.room, self.pages) = (None, self.leaf_pages()?);
        Ok(())
    }

    fn put(&mut self, entry: Put<'_>, before: Option<Put<'_>>) -> heed::Result<()> {
        let bytes = self.bytes(entry);
        if self.is_too_large(bytes) {
            self.delete_mark()?;
        }
        let mark = match before {
            Some((last, _)) if self.is_too_large(bytes) => self.put_mark(last, entry.0)?,
            _ => None,
        };
        self.database.put(self.txn, entry.0, entry.1)?;
        let (pages, is_marked) = (self.leaf_pages()?, mark.is_some());
        let was_split = std::mem::replace(&mut self.pages, pages) != pages;
        // The length of the first entry of the new page.
        let beside = match &mark {
            Some(mark) => Some(self.bytes((mark, &[]))),
            None => before.map(|before| self.bytes(before)),
        };
        self.mark = mark.or(self.mark.take());
        self.room = match beside {
            Some(beside) if was_split => (self.page - PAGE_HEADER).checked_sub(beside + bytes),
            _ if was_split || is_marked => None,
            _ => self.room.and_then(|room| room.checked_sub(bytes)),
        };
        Ok(())
    }

    fn is_too_large(&self, bytes: usize) -> bool {
        self.room.is_some_and(|room| room < bytes)
    }

    /// Puts a dummy entry without a value between two keys, if the page has room for the dummy.
    fn put_mark(&mut self, last: &[u8], next: &[u8]) -> heed::Result<Option<KeyBuf>> {
        let mark = successor(last);
        if self.is_too_large(self.bytes((&mark, &[])))
            || mark[..] >= *next
            || check_key(&mark).is_err()
        {
            return Ok(None);
        }
        self.database.put(self.txn, &mark, &[])?;
        Ok(Some(mark))
    }

    fn delete_mark(&mut self) -> heed::Result<()> {
        let Some(mark) = self.mark.take() else { return Ok(()) };
        self.delete(&mark)?;
        self.room = self.room.map(|room| room + self.bytes((&mark, &[])));
        self.pages = self.leaf_pages()?;
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> heed::Result<()> {
        self.database.delete(self.txn, key).map(drop)
    }

    fn leaf_pages(&self) -> heed::Result<usize> {
        Ok(self.database.stat(self.txn)?.leaf_pages)
    }

    /// The greatest length of an entry in a page, without its offset: two such entries fit.
    fn most(&self) -> usize {
        (self.page - PAGE_HEADER) / 2 - PLACE
    }

    /// The length of an entry in a page.
    fn bytes(&self, (key, value): Put<'_>) -> usize {
        let whole = ENTRY_HEADER + key.len() + value.len();
        let here = if whole > self.most() { ENTRY_HEADER + key.len() + PAGE_NUMBER } else { whole };
        here.next_multiple_of(2) + PLACE
    }
}
