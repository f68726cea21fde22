//! Postings in memory.

/// Postings in the order of their documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Postings {
    pub(super) docs: Vec<u32>,
    pub(super) freqs: Vec<u32>,
    pub(super) lens: Vec<u32>,
    /// The positions of all postings; empty if only frequencies are stored.
    pub(super) positions: Vec<u32>,
}

/// Consecutive postings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostingsSlice<'p> {
    pub(super) docs: &'p [u32],
    pub(super) freqs: &'p [u32],
    pub(super) lens: &'p [u32],
    pub(super) positions: &'p [u32],
}

/// One posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting<'p> {
    pub(crate) doc: u32,
    /// How often the term occurs.
    pub(crate) freq: u32,
    /// The length of the field in tokens.
    pub(crate) len: u32,
    /// The positions of the term, or none if only frequencies are stored.
    pub(crate) positions: &'p [u32],
}

impl Postings {
    /// Appends a posting. Its document must be after all others.
    pub(crate) fn push(&mut self, posting: Posting<'_>) {
        self.docs.push(posting.doc);
        self.freqs.push(posting.freq);
        self.lens.push(posting.len);
        self.positions.extend_from_slice(posting.positions);
    }

    /// Sorts the postings by document.
    pub(crate) fn sort(&mut self) {
        if self.docs.is_sorted() {
            return;
        }
        let mut sorted = Self::default();
        let mut all: Vec<Posting<'_>> = self.as_slice().iter().collect();
        all.sort_by_key(|posting| posting.doc);
        all.into_iter().for_each(|posting| sorted.push(posting));
        *self = sorted;
    }

    pub(crate) fn append(&mut self, other: &PostingsSlice<'_>) {
        self.docs.extend_from_slice(other.docs);
        self.freqs.extend_from_slice(other.freqs);
        self.lens.extend_from_slice(other.lens);
        self.positions.extend_from_slice(other.positions);
    }

    pub(crate) fn len(&self) -> usize {
        self.docs.len()
    }

    pub(crate) fn docs(&self) -> &[u32] {
        &self.docs
    }

    pub(crate) fn as_slice(&self) -> PostingsSlice<'_> {
        PostingsSlice {
            docs: &self.docs,
            freqs: &self.freqs,
            lens: &self.lens,
            positions: &self.positions,
        }
    }
}

impl<'p> PostingsSlice<'p> {
    pub(crate) fn len(&self) -> usize {
        self.docs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// The postings up to a document, and the rest.
    pub(crate) fn split_after(self, doc: u32) -> (Self, Self) {
        let at = self.docs.partition_point(|other| *other <= doc);
        let has_positions = !self.positions.is_empty();
        let freqs = self.freqs.get(..at).unwrap_or_default();
        let many = freqs.iter().map(|freq| *freq as usize).sum();
        let many = if has_positions { many } else { 0 };
        let halves = |slice: &'p [u32]| slice.split_at_checked(at).unwrap_or_default();
        let (docs, freqs, lens) = (halves(self.docs), halves(self.freqs), halves(self.lens));
        let positions = self.positions.split_at_checked(many).unwrap_or_default();
        let part = |docs, freqs, lens, positions| Self { docs, freqs, lens, positions };
        (part(docs.0, freqs.0, lens.0, positions.0), part(docs.1, freqs.1, lens.1, positions.1))
    }

    /// The postings one by one.
    pub(crate) fn iter(self) -> impl Iterator<Item = Posting<'p>> {
        let has_positions = !self.positions.is_empty();
        let mut rest = self.positions;
        let of_each = self.docs.iter().zip(self.freqs).zip(self.lens);
        of_each.map(move |((doc, freq), len)| {
            let many = if has_positions { *freq as usize } else { 0 };
            let (positions, others) = rest.split_at_checked(many).unwrap_or((rest, &[]));
            rest = others;
            Posting { doc: *doc, freq: *freq, len: *len, positions }
        })
    }
}
