//! Which pages a commit writes: those of the file that are others after it.

use std::fmt;

use super::Scratch;

const PAGE: usize = 4_096;
/// The flags of a page that its header has at byte 10, as in LMDB's `mdb.c`.
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
const META: u16 = 8;

/// Pages written by a number of commits.
#[derive(Clone, Copy, Default)]
pub struct Pages {
    commits: u64,
    /// Leaves with the keys that are looked at, and overflow pages.
    leaves: u64,
    overflow: u64,
    /// The most of these two together in one commit.
    most_data: u64,
    branches: u64,
    /// Leaves of what the engine keeps for itself, and meta pages.
    others: u64,
}

impl Pages {
    /// Does some work that commits once, some times, and counts.
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
                // The pages of a run behind its first have no header.
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

/// The keys of a leaf: behind its header stand the offsets of the entries, as far as byte 12 says;
/// a key stands behind the header of its entry, which ends in its length.
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
