//! The documents of many terms.

/// Below so many postings, duplicates are not removed.
const FEW: usize = 4_096;

/// Collects documents with the distances of their terms. It takes memory for at most twice the
/// documents, not for all postings, and in addition for those of one term.
pub(crate) struct Union {
    all: Vec<(u32, u8)>,
    /// At this length duplicates are removed.
    full: usize,
}

impl Union {
    pub(crate) fn new() -> Self {
        Self { all: Vec::new(), full: FEW }
    }

    /// Adds a document of the current term.
    pub(crate) fn push(&mut self, doc: u32, distance: u8) {
        self.all.push((doc, distance));
    }

    /// Ends the postings of a term.
    pub(crate) fn end_term(&mut self) {
        if self.all.len() >= self.full {
            self.remove_duplicates();
            self.full = FEW.max(2 * self.all.len());
        }
    }

    /// The documents in ascending order, each with its smallest distance.
    pub(crate) fn into_columns(mut self) -> (Vec<u32>, Vec<u8>) {
        self.remove_duplicates();
        self.all.into_iter().unzip()
    }

    fn remove_duplicates(&mut self) {
        self.all.sort_unstable();
        self.all.dedup_by_key(|(doc, _)| *doc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_of_equal_lists_takes_memory_for_one() {
        let (mut union, docs) = (Union::new(), 5_000);
        for term in 0..200_u32 {
            (0..docs).for_each(|doc| union.push(doc, (200 - term) as u8));
            union.end_term();
        }
        assert!(union.all.capacity() < 4 * docs as usize, "{}", union.all.capacity());
        let (ids, distances) = union.into_columns();
        assert!(ids.into_iter().eq(0..docs));
        assert!(distances.iter().all(|distance| *distance == 1));
    }
}
