//! Entries that are put in the order of their keys, and fill their pages wherever in the store they
//! lie.
//!
//! The engine splits a page that overflows in the middle. Only where the new entry is the last of
//! its page does the left one stay full, but for the entry that was last so far: that one begins
//! the new page, beside the new entry. So a load leaves a gap of an entry on each page, which
//! counts where a page has room for few; and if what lies behind the load shares its page, each
//! page is left half full. Behind all other entries of the store the engine can be told to do
//! better (`MDB_APPEND`). Here the same comes about anywhere, by entries that are deleted again
//! before the call returns:
//!
//! * Once some of the load is there, two that are as large as a page of the tree can hold are put
//!   behind its place. No third entry fits beside both, so the second lies on another page than
//!   what the load goes on behind. The first is deleted, and the load goes on at the end of its
//!   page. The second stays till the end: without it the page behind might be so empty that the
//!   engine fills it from the left. "Some" is what keeps the engine from filling the page of the
//!   load from the right instead, as it does where less than a quarter of one is left.
//! * Where an entry does not fit any more, one without a value is put before it, if that does fit.
//!   It is then the last of its page, so it is what begins the new page and leaves the old one as
//!   full as it was. It is deleted once the new page is full: on an emptier one the engine would
//!   move an entry there instead.
//!
//! What a page has room for is reckoned from what was put since the last split that was seen. Were
//! it wrong, pages would be emptier, and nothing else.

use heed::types::Bytes;
use heed::{Database, RwTxn};

use crate::{KeyBuf, check_key, successor};

/// A key and its value.
pub(super) type Put<'e> = (&'e [u8], &'e [u8]);

/// What a page begins with.
const PAGE_HEADER: usize = 16;
/// What an entry begins with on its page.
const ENTRY_HEADER: usize = 8;
/// What says where on the page an entry lies.
const PLACE: usize = 2;
/// What stands for a value that has pages of its own.
const PAGE_NUMBER: usize = 8;

/// Puts entries whose keys ascend, where no others lie between them nor behind them before `next`.
/// The transaction is of no use after an error.
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

/// Whether a page with so many bytes of entries would be filled by the engine when another one is
/// deleted there.
fn is_little(bytes: usize, page: usize) -> bool {
    bytes < page / 3
}

/// A load that is under way.
struct Load<'l, 'd, 't> {
    database: &'l Database<'d, Bytes, Bytes>,
    txn: &'l mut RwTxn<'t>,
    /// The size of a page.
    page: usize,
    /// How many pages with entries there were at the last look.
    pages: usize,
    /// The room on the page that the load is at, where it is known.
    room: Option<usize>,
    /// The entry without a value that this page begins with.
    mark: Option<KeyBuf>,
    /// The large entry behind the load.
    end: Option<KeyBuf>,
}

impl Load<'_, '_, '_> {
    /// Lets what lies behind the place of a load begin another page.
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
        // What the new page begins with.
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

    /// Puts an entry without a value between two others, if there is room for it.
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

    /// The most that an entry takes of a page, without its place: two fit.
    fn most(&self) -> usize {
        (self.page - PAGE_HEADER) / 2 - PLACE
    }

    /// What an entry takes of a page.
    fn bytes(&self, (key, value): Put<'_>) -> usize {
        let whole = ENTRY_HEADER + key.len() + value.len();
        let here = if whole > self.most() { ENTRY_HEADER + key.len() + PAGE_NUMBER } else { whole };
        here.next_multiple_of(2) + PLACE
    }
}
