//! The walk over all pages that are reachable from a meta page.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::free_list::{FreePages, FreeRecord};
use super::page::{HEADER_BYTES, Kind, Page, Target, pages_for, run_pages};
use super::page_set::PageSet;
use super::tree::{Checked, Found, Holds, Place, Tree};
use super::{Fault, FileReport, FileRule, MAX_DEPTH, Meta, TreeRecord};

/// The number of pages between two reports of progress.
// With pages of 4 KiB, this is one report for each MiB. Fewer pages cost more calls; more pages
// make the progress of small files coarse.
const PROGRESS_PAGES: u64 = 256;
/// The number of meta pages, which belong to no tree.
const META_PAGES: u64 = 2;

#[derive(Debug)]
pub(super) struct Walk<'f, P> {
    file: &'f File,
    page_bytes: usize,
    /// The last page, or the highest possible one if the file is too short for that page.
    last_page: u64,
    used: PageSet,
    free: PageSet,
    /// Page buffers that no level uses at present.
    buffers: Vec<Vec<u8>>,
    spans: Vec<(usize, usize)>,
    progress: P,
    next_progress: u64,
    pub(super) report: FileReport,
}

impl<'f, P: FnMut(u64, u64)> Walk<'f, P> {
    pub(super) fn new(file: &'f File, meta: Meta, file_bytes: u64, progress: P) -> Self {
        let limit = (meta.last_page.saturating_add(1)).min(meta.page_limit(file_bytes));
        Self {
            file,
            page_bytes: usize::try_from(meta.page_bytes).unwrap_or_default(),
            last_page: limit.saturating_sub(1),
            used: PageSet::below(limit),
            free: PageSet::below(limit),
            buffers: Vec::new(),
            spans: Vec::new(),
            progress,
            next_progress: 0,
            report: FileReport::new(meta, file_bytes),
        }
    }

    /// Walks all trees. The free tree comes first, so that every page of another tree can be
    /// compared with the list of free pages.
    pub(super) fn run(mut self) -> FileReport {
        let meta = self.report.meta;
        if let Some(fault) = meta.last_page_fault(self.report.file_bytes) {
            self.report.record(fault);
        }
        self.walk_tree(meta.page, "the free list", Holds::FreePages, &meta.free);
        let main = self.walk_main(&meta);
        for Found { page, name, record } in main {
            if record.flags != 0 {
                let detail = format!("the database {name:?} has flags {:#06x}", record.flags);
                self.report.record(Fault::new(page, FileRule::Unsupported, detail));
                continue;
            }
            let tree =
                self.walk_tree(page, &format!("the database {name:?}"), Holds::Values, &record);
            let counted = TreeRecord {
                entries: tree.entries,
                branch_pages: tree.branch_pages,
                leaf_pages: tree.leaf_pages,
                overflow_pages: tree.overflow_pages,
                ..record
            };
            self.report.databases.push((name, counted));
        }
        self.finish()
    }

    fn walk_main(&mut self, meta: &Meta) -> Vec<Found> {
        if meta.main.flags != 0 {
            let detail = format!("the main tree has flags {:#06x}", meta.main.flags);
            self.report.record(Fault::new(meta.page, FileRule::Unsupported, detail));
            return Vec::new();
        }
        let holds = Holds::Databases(Vec::new());
        match self.walk_tree(meta.page, "the main tree", holds, &meta.main).holds {
            Holds::Databases(databases) => databases,
            Holds::FreePages | Holds::Values => Vec::new(),
        }
    }

    /// Completes the report. A page that is neither used nor free is lost, unless a fault hides the
    /// tree that uses it.
    fn finish(mut self) -> FileReport {
        let accounted = META_PAGES + self.used.len() + self.free.len();
        let lost = (self.last_page + 1).saturating_sub(accounted);
        if lost > 0 && self.report.is_sound() {
            let is_lost = |page: &u64| !self.used.contains(*page) && !self.free.contains(*page);
            let first = (META_PAGES..=self.last_page).find(is_lost).unwrap_or_default();
            let detail = format!("{lost} pages, this is the first, are neither used nor free");
            self.report.record(Fault::new(first, FileRule::Lost, detail));
        }
        self.report.free_pages = self.free.len();
        let pages_in_file = self.report.meta.pages_in(self.report.file_bytes);
        self.report.free_pages_past_end = (pages_in_file..=self.last_page)
            .filter(|page| self.free.contains(*page))
            .count() as u64;
        (self.progress)(accounted, self.last_page + 1);
        self.report
    }

    /// Walks one tree, whose record is in `page`.
    fn walk_tree(&mut self, page: u64, name: &str, holds: Holds, record: &TreeRecord) -> Tree {
        let mut tree = Tree::new(holds, record.depth);
        let faults_before = self.report.fault_count;
        let walked = match (record.contradiction(self.last_page), record.root) {
            (Some((rule, detail)), _) => Err(Fault::new(page, rule, format!("{name}: {detail}"))),
            (None, None) => Ok(()),
            (None, Some(root)) => {
                let place = Place { from: page, page: root, level: 1, first: None, end: None };
                self.walk_page(&mut tree, place)
            }
        };
        // After another fault, a wrong count gives no new information.
        let is_whole = walked.is_ok() && self.report.fault_count == faults_before;
        let counted = if is_whole { tree.check_counts(page, name, record) } else { Ok(()) };
        if let Err(fault) = walked.and(counted) {
            self.report.record(fault);
        }
        self.report.branch_pages += tree.branch_pages;
        self.report.leaf_pages += tree.leaf_pages;
        self.report.overflow_pages += tree.overflow_pages;
        tree
    }

    /// Walks a page and the pages below it. The recursion is at most [`MAX_DEPTH`] deep, since a
    /// tree record with more levels is refused.
    fn walk_page(&mut self, tree: &mut Tree, place: Place<'_>) -> Checked {
        debug_assert!(place.level <= MAX_DEPTH, "a deeper record is refused");
        self.use_page(place.page, place.from)?;
        let mut buffer = self.buffers.pop().unwrap_or_else(|| vec![0; self.page_bytes]);
        let walked = self.walk_bytes(tree, place, &mut buffer);
        self.buffers.push(buffer);
        walked
    }

    fn walk_bytes(&mut self, tree: &mut Tree, place: Place<'_>, buffer: &mut [u8]) -> Checked {
        self.read(place.page, 0, buffer)?;
        let kind = if place.level == tree.depth { Kind::Leaf } else { Kind::Branch };
        let page = Page::check(buffer, place.page, kind, &mut self.spans)?;
        if !tree.takes_entries(kind, page.len()) {
            let detail = format!("{} in a {kind:?} page", page.len());
            return Err(Fault::new(place.page, FileRule::TooFewEntries, detail));
        }
        tree.check_keys(&page, kind, &place)?;
        match kind {
            Kind::Branch => self.walk_branch(tree, &page, place),
            Kind::Leaf => self.walk_leaf(tree, &page, place.page),
        }
        Ok(())
    }

    fn walk_branch(&mut self, tree: &mut Tree, page: &Page<'_>, place: Place<'_>) {
        tree.branch_pages += 1;
        let mut first = place.first;
        let mut entries = page.entries().peekable();
        while let Some(entry) = entries.next() {
            let Target::Child(child) = entry.points_to else { continue };
            let end = entries.peek().map(|next| next.key).or(place.end);
            let level = place.level + 1;
            let below = Place { from: place.page, page: child, level, first, end };
            if let Err(fault) = self.walk_page(tree, below) {
                self.report.record(fault);
            }
            first = end;
        }
    }

    fn walk_leaf(&mut self, tree: &mut Tree, page: &Page<'_>, number: u64) {
        tree.leaf_pages += 1;
        for entry in page.entries() {
            tree.entries += 1;
            if let Err(fault) = self.walk_entry(tree, entry.key, entry.points_to, number) {
                self.report.record(fault);
            }
        }
    }

    fn walk_entry(
        &mut self,
        tree: &mut Tree,
        key: &[u8],
        points_to: Target<'_>,
        number: u64,
    ) -> Checked {
        if matches!(tree.holds, Holds::FreePages) {
            self.check_freeing_transaction(key, number)?;
        }
        match points_to {
            // Cannot occur: the entries of a leaf were checked when the page was read.
            Target::Child(_) => Ok(()),
            Target::Value(value) => match tree.holds {
                Holds::FreePages => self.free_inline(value, number),
                Holds::Databases(_) | Holds::Values => Ok(()),
            },
            Target::OverflowRun { page, value_bytes } => {
                tree.overflow_pages += self.use_run(page, value_bytes, number)?;
                match tree.holds {
                    Holds::FreePages => self.free_in_run(page, value_bytes, number),
                    Holds::Databases(_) | Holds::Values => Ok(()),
                }
            }
            Target::Tree(record) => match &mut tree.holds {
                Holds::Databases(databases) => {
                    databases.push(Found::parse(key, record, number)?);
                    Ok(())
                }
                Holds::FreePages | Holds::Values => {
                    let detail = "an entry outside the main tree holds a tree";
                    Err(Fault::new(number, FileRule::EntryFlags, detail))
                }
            },
        }
    }

    fn check_freeing_transaction(&self, key: &[u8], number: u64) -> Checked {
        let id = key.first_chunk().map_or(0, |id| u64::from_le_bytes(*id));
        let newest = self.report.meta.transaction_id;
        if (1..=newest).contains(&id) {
            return Ok(());
        }
        let detail = format!("a record of transaction {id}, the newest is {newest}");
        Err(Fault::new(number, FileRule::FreeList, detail))
    }

    fn free_inline(&mut self, value: &[u8], number: u64) -> Checked {
        let fault = |detail| Fault::new(number, FileRule::FreeList, detail);
        let mut record = FreeRecord::of(value.len() as u64).map_err(fault)?;
        let Self { free, used, last_page, .. } = self;
        record.take(value, &mut FreePages { free, used, last_page: *last_page }).map_err(fault)
    }

    fn free_in_run(&mut self, run: u64, value_bytes: u32, number: u64) -> Checked {
        let fault = |detail| Fault::new(number, FileRule::FreeList, detail);
        let mut record = FreeRecord::of(value_bytes.into()).map_err(fault)?;
        let mut buffer = vec![0; self.page_bytes];
        let mut left = usize::try_from(value_bytes).unwrap_or(usize::MAX);
        let mut at = HEADER_BYTES as u64;
        while left > 0 {
            // Both lengths are multiples of 8, so no number is split.
            let Some(piece) = buffer.get_mut(..left.min(self.page_bytes)) else { break };
            self.read(run, at, piece)?;
            let Self { free, used, last_page, .. } = self;
            record
                .take(piece, &mut FreePages { free, used, last_page: *last_page })
                .map_err(fault)?;
            left -= piece.len();
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Marks an overflow run as used, and returns its number of pages. A run may be longer than its
    /// value needs: the engine keeps the run if a shorter value replaces a longer one.
    fn use_run(&mut self, run: u64, value_bytes: u32, from: u64) -> Checked<u64> {
        self.use_page(run, from)?;
        let mut header = [0; HEADER_BYTES];
        self.read(run, 0, &mut header)?;
        let pages = run_pages(&header, run)?;
        let needed = pages_for(value_bytes, self.page_bytes);
        if pages < needed {
            let detail = format!("{pages} pages for {value_bytes} bytes, which need {needed}");
            return Err(Fault::new(run, FileRule::OverflowRun, detail));
        }
        // The loop ends at the first page past the end of the file, so a wrong count does not make
        // it long.
        for page in run + 1..run + pages {
            self.use_page(page, run)?;
        }
        Ok(pages)
    }

    /// Marks a page as used. The page must be valid and not be used yet.
    fn use_page(&mut self, page: u64, from: u64) -> Checked {
        let fault = |rule, detail| Err(Fault::new(from, rule, detail));
        if !(META_PAGES..=self.last_page).contains(&page) {
            let detail = format!("it leads to page {page}, the last page is {}", self.last_page);
            return fault(FileRule::PageRange, detail);
        }
        if page >= self.report.meta.pages_in(self.report.file_bytes) {
            let file_bytes = self.report.file_bytes;
            let detail = format!("it leads to page {page}, the file has {file_bytes} bytes");
            return fault(FileRule::PastEnd, detail);
        }
        if self.free.contains(page) {
            return fault(FileRule::UsedAndFree, format!("it leads to page {page}, which is free"));
        }
        if !self.used.insert(page) {
            return fault(
                FileRule::UsedTwice,
                format!("it leads to page {page}, which is also used elsewhere"),
            );
        }
        self.report_progress();
        Ok(())
    }

    fn report_progress(&mut self) {
        let accounted = META_PAGES + self.used.len() + self.free.len();
        if accounted >= self.next_progress {
            self.next_progress = accounted + PROGRESS_PAGES;
            (self.progress)(accounted, self.last_page + 1);
        }
    }

    fn read(&self, page: u64, at: u64, buffer: &mut [u8]) -> Checked {
        // Cannot overflow: the page is inside the file.
        let position = page * self.page_bytes as u64 + at;
        self.file.read_exact_at(buffer, position).map_err(|error| {
            let rule = match error.kind() {
                io::ErrorKind::UnexpectedEof => FileRule::PastEnd,
                _ => FileRule::Unreadable,
            };
            Fault::new(page, rule, error.to_string())
        })
    }
}
