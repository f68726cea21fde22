//! A set of page numbers: one bit for each possible page.

#[derive(Debug)]
pub(super) struct PageSet {
    bits: Vec<u64>,
    len: u64,
}

impl PageSet {
    /// An empty set of pages below `limit`.
    pub(super) fn below(limit: u64) -> Self {
        let words = usize::try_from(limit.div_ceil(64)).unwrap_or(usize::MAX);
        Self { bits: vec![0; words], len: 0 }
    }

    /// Adds a page, which must be below the limit. Returns whether the page was not in the set.
    pub(super) fn insert(&mut self, page: u64) -> bool {
        let Some(word) = usize::try_from(page / 64).ok().and_then(|at| self.bits.get_mut(at))
        else {
            return false;
        };
        let bit = 1 << (page % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.len += u64::from(is_new);
        is_new
    }

    pub(super) fn contains(&self, page: u64) -> bool {
        let word = usize::try_from(page / 64).ok().and_then(|at| self.bits.get(at));
        word.is_some_and(|word| word & (1 << (page % 64)) != 0)
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }
}
