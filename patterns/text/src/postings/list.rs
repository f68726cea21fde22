//! Postings in memory.

use super::Occurrence;

/// Postings in the order of their documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Postings {
    pub(super) docs: Vec<u32>,
    pub(super) freqs: Vec<u32>,
    pub(super) lens: Vec<u32>,
    /// The occurrences of all postings; empty if only frequencies are stored.
    pub(super) occurrences: Vec<Occurrence>,
}

/// Consecutive postings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostingsSlice<'p> {
    pub(super) docs: &'p [u32],
    pub(super) freqs: &'p [u32],
    pub(super) lens: &'p [u32],
    pub(super) occurrences: &'p [Occurrence],
}

/// One posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting<'p> {
    pub(crate) doc: u32,
    /// How often the term occurs.
    pub(crate) freq: u32,
    /// The length of the field in tokens.
    pub(crate) len: u32,
    pub(crate) occurrences: &'p [Occurrence],
}

impl Postings {
    /// Appends a posting. Its document must be after all others.
    pub(crate) fn push(&mut self, posting: Posting<'_>) {
        self.docs.push(posting.doc);
        self.freqs.push(posting.freq);
        self.lens.push(posting.len);
        self.occurrences.extend_from_slice(posting.occurrences);
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
        self.occurrences.extend_from_slice(other.occurrences);
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
            occurrences: &self.occurrences,
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
        let has_occurrences = !self.occurrences.is_empty();
        let freqs = self.freqs.get(..at).unwrap_or_default();
        let many = freqs.iter().map(|freq| *freq as usize).sum();
        let many = if has_occurrences { many } else { 0 };
        let halves = |slice: &'p [u32]| slice.split_at_checked(at).unwrap_or_default();
        let (docs, freqs, lens) = (halves(self.docs), halves(self.freqs), halves(self.lens));
        let occurrences = self.occurrences.split_at_checked(many).unwrap_or_default();
        let part = |docs, freqs, lens, occurrences| Self { docs, freqs, lens, occurrences };
        (part(docs.0, freqs.0, lens.0, occurrences.0), part(docs.1, freqs.1, lens.1, occurrences.1))
    }

    /// The postings one by one.
    pub(crate) fn iter(self) -> impl Iterator<Item = Posting<'p>> {
        let has_occurrences = !self.occurrences.is_empty();
        let mut rest = self.occurrences;
        let of_each = self.docs.iter().zip(self.freqs).zip(self.lens);
        of_each.map(move |((doc, freq), len)| {
            let many = if has_occurrences { *freq as usize } else { 0 };
            let (occurrences, others) = rest.split_at_checked(many).unwrap_or((rest, &[]));
            rest = others;
            Posting { doc: *doc, freq: *freq, len: *len, occurrences }
        })
    }
}
