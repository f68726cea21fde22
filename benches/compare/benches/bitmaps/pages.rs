//! The pages that a commit writes: pages of the file whose bytes differ afterwards.

use std::fmt;

use super::Scratch;

const PAGE: usize = 4_096;
/// Flags of a page, from byte 10 of its header, as in LMDB's `mdb.c`.
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
const META: u16 = 8;

/// Pages written by a number of commits.
#[derive(Clone, Copy, Default)]
pub struct Pages {
    commits: u64,
    /// Leaves with keys of the measured subspace, and overflow pages.
    leaves: u64,
    overflow: u64,
    /// The maximum of these two together in one commit.
    most_data: u64,
    branches: u64,
    /// Leaves of LMDB's own trees, and meta pages.
    others: u64,
}

impl Pages {
    /// Runs `work`, which commits once, several times, and counts the pages.
    pub fn of_commits(
        scratch: &Scratch,
        prefix: &[u8],
        commits: u64,
        mut work: impl FnMut(),
    ) -> Self {
        let path = scratch.directory.path().join("data.mdb");
        let mut pages = Self::default();
        let mut before = std::fs::read(&path).unwrap();
        for _ in 0..commits {
            work();
            let after = std::fs::read(&path).unwrap();
            pages.add(&before, &after, prefix);
            before = after;
        }
        pages
    }

    fn add(&mut self, before: &[u8], after: &[u8], prefix: &[u8]) {
        let (data_before, mut run_end) = (self.leaves + self.overflow, 0);
        for (number, page) in after.chunks_exact(PAGE).enumerate() {
            if before.get(number * PAGE..(number + 1) * PAGE) == Some(page) {
                continue;
            }
            match number16(page, 10) & 0xF {
                // Only the first page of an overflow run has a header.
                _ if number < run_end => self.overflow += 1,
                BRANCH => self.branches += 1,
                LEAF if keys(page).any(|key| key.starts_with(prefix)) => self.leaves += 1,
                OVERFLOW => {
                    self.overflow += 1;
                    run_end = number + usize::from(number16(page, 12));
                }
                LEAF | META => self.others += 1,
                flags => panic!("page {number} has flags {flags}"),
            }
        }
        self.commits += 1;
        self.most_data = self.most_data.max(self.leaves + self.overflow - data_before);
    }
}

fn number16(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

/// The keys of a leaf. The offsets of the entries follow the page header and end at the offset in
/// byte 12. A key follows the header of its entry, whose last field is the length of the key.
fn keys(page: &[u8]) -> impl Iterator<Item = &[u8]> {
    let entries = page[16..number16(page, 12).into()].as_chunks::<2>().0;
    entries.iter().map(|at| {
        let entry = usize::from(u16::from_le_bytes(*at));
        &page[entry + 8..][..number16(page, entry + 6).into()]
    })
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |pages: u64| pages as f64 / self.commits as f64;
        let (leaves, overflow, most) = (each(self.leaves), each(self.overflow), self.most_data);
        write!(
            f,
            "{leaves:.2} leaves and {overflow:.2} overflow pages of data, {most} at the most; "
        )?;
        write!(f, "{:.2} branches, {:.2} others", each(self.branches), each(self.others))
    }
}
