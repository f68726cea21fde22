//! A record of the free list: the pages that one transaction freed.

use super::page_set::PageSet;

/// Reads the record of one transaction piece by piece, since it may span many pages.
#[derive(Debug)]
pub(super) struct FreeRecord {
    value_bytes: u64,
    /// The number of page numbers still to be read; `None` before the count was read.
    to_come: Option<u64>,
    /// The previous page number. Page numbers descend.
    last: u64,
}

/// The state against which the pages of a record are checked.
#[derive(Debug)]
pub(super) struct FreePages<'w> {
    pub(super) free: &'w mut PageSet,
    pub(super) used: &'w PageSet,
    pub(super) last_page: u64,
}

impl FreeRecord {
    /// Begins a record of this length.
    pub(super) fn of(value_bytes: u64) -> Result<Self, String> {
        if value_bytes == 0 || !value_bytes.is_multiple_of(8) {
            return Err(format!("a record of {value_bytes} bytes"));
        }
        Ok(Self { value_bytes, to_come: None, last: u64::MAX })
    }

    /// Reads the next piece, which contains whole numbers, and adds its pages to the free pages.
    /// The space after the last number is ignored: the engine reserves this space before it knows
    /// the count.
    pub(super) fn take(&mut self, piece: &[u8], pages: &mut FreePages<'_>) -> Result<(), String> {
        for number in piece.as_chunks().0 {
            let number = u64::from_le_bytes(*number);
            match self.to_come {
                None => self.to_come = Some(self.checked_count(number)?),
                Some(0) => break,
                Some(to_come) => {
                    self.take_page(number, pages)?;
                    self.to_come = Some(to_come - 1);
                }
            }
        }
        Ok(())
    }

    fn checked_count(&self, count: u64) -> Result<u64, String> {
        if count < self.value_bytes / 8 {
            return Ok(count);
        }
        Err(format!("a record of {} bytes counts {count} pages", self.value_bytes))
    }

    fn take_page(&mut self, page: u64, pages: &mut FreePages<'_>) -> Result<(), String> {
        let last = std::mem::replace(&mut self.last, page);
        if page >= last {
            return Err(format!("page {page} is listed after page {last}"));
        }
        if !(2..=pages.last_page).contains(&page) {
            return Err(format!("page {page} is listed, the last page is {}", pages.last_page));
        }
        if pages.used.contains(page) {
            return Err(format!("page {page} is listed but holds the free list itself"));
        }
        if !pages.free.insert(page) {
            return Err(format!("page {page} is listed twice"));
        }
        Ok(())
    }
}
