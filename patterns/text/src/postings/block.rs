//! A stored block, read in place.

use super::bits::{bytes_of, get, unpack};
use super::bounds::Stored;
use super::{
    BLOCK_POSTINGS, Detail, HAS_OCCURRENCES, IdRange, Malformed, Occurrences, Postings, VERSION,
    varint,
};

/// A block whose columns are decoded when they are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'b> {
    pub(crate) range: IdRange,
    count: usize,
    min_len: u32,
    bounds: Stored<'b>,
    gaps: (&'b [u8], u8),
    freqs: (&'b [u8], u8),
    lens: (&'b [u8], u8),
    /// The occurrences that follow in the block; empty if they are elsewhere.
    inline: &'b [u8],
}

impl<'b> Block<'b> {
    /// Reads the block that is stored under the last id of its range.
    pub(crate) fn parse(bytes: &'b [u8], last: u32) -> Result<Self, Malformed> {
        let (head, rest) = bytes.split_first_chunk::<6>().ok_or(Malformed::Broken("no header"))?;
        let [flags, level, count, gap_width, freq_width, len_width] = *head;
        match u32::from(flags >> 4) {
            VERSION => {}
            0 => return Err(Malformed::Broken("the version")),
            newer => return Err(Malformed::Newer(newer)),
        }
        let range = IdRange::ending_at(last, level).ok_or(Malformed::Broken("the range"))?;
        let count = usize::from(count) + 1;
        if count > BLOCK_POSTINGS || flags & 0x0F > HAS_OCCURRENCES {
            return Err(Malformed::Broken("the number of postings"));
        }
        let mut rest = rest;
        let min_len = varint::take(&mut rest).ok_or(Malformed::Broken("the smallest length"))?;
        let bounds = Stored::take(&mut rest, min_len).ok_or(Malformed::Broken("the bounds"))?;
        if bounds.is_empty() != (count == 1) {
            return Err(Malformed::Broken("the number of bounds"));
        }
        let mut column = |width: u8| {
            let column = rest.split_at_checked(bytes_of(count, width)).filter(|_| width <= 32);
            let (column, after) = column.ok_or(Malformed::Broken("the length of a column"))?;
            rest = after;
            Ok((column, width))
        };
        let [gaps, freqs, lens] = [column(gap_width)?, column(freq_width)?, column(len_width)?];
        let block = Self { range, count, min_len, bounds, gaps, freqs, lens, inline: rest };
        match rest.is_empty() == (flags & HAS_OCCURRENCES == 0) {
            true => Ok(block),
            false => Err(Malformed::Broken("the length")),
        }
    }

    /// The number of postings.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether the occurrences follow in the block, and need no second read.
    pub(crate) fn inline(&self) -> Option<&'b [u8]> {
        (!self.inline.is_empty()).then_some(self.inline)
    }

    /// The pairs of frequency and length of which one has the best score.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = (u32, u32)> + use<'b> {
        let alone = self.bounds.is_empty().then(|| {
            let (mut freq, mut len) = ([0], [0]);
            self.freqs(&mut freq);
            self.lens(&mut len);
            let ([freq], [len]) = (freq, len);
            (freq, len)
        });
        self.bounds.iter().chain(alone)
    }

    /// Decodes the documents, in ascending order. `out` has room for all of them.
    #[inline]
    pub(crate) fn docs(&self, out: &mut [u32; BLOCK_POSTINGS]) -> Result<(), Malformed> {
        let out = out.get_mut(..self.count).unwrap_or_default();
        unpack(self.gaps.0, self.gaps.1, out);
        let mut next = u64::from(self.range.first());
        for doc in out {
            let this = next + u64::from(*doc);
            *doc = this as u32;
            next = this + 1;
        }
        match next > u64::from(self.range.last()) + 1 {
            true => Err(Malformed::Broken("a document outside of the range")),
            false => Ok(()),
        }
    }

    /// Decodes the frequencies.
    #[inline]
    pub(crate) fn freqs(&self, out: &mut [u32]) {
        let end = self.count.min(out.len());
        let out = out.get_mut(..end).unwrap_or_default();
        unpack(self.freqs.0, self.freqs.1, out);
        out.iter_mut().for_each(|freq| *freq = freq.saturating_add(1));
    }

    /// Decodes the lengths of the fields.
    #[inline]
    pub(crate) fn lens(&self, out: &mut [u32]) {
        let end = self.count.min(out.len());
        let out = out.get_mut(..end).unwrap_or_default();
        unpack(self.lens.0, self.lens.1, out);
        out.iter_mut().for_each(|len| *len = len.saturating_add(self.min_len));
    }

    /// The frequency and the length of one posting.
    #[inline]
    pub(crate) fn numbers_at(&self, n: usize) -> (u32, u32) {
        let freq = get(self.freqs.0, self.freqs.1, n).saturating_add(1);
        (freq, get(self.lens.0, self.lens.1, n).saturating_add(self.min_len))
    }

    /// The number of occurrences of all postings.
    pub(crate) fn total(&self) -> u64 {
        let mut freqs = [0; BLOCK_POSTINGS];
        self.freqs(&mut freqs);
        freqs.iter().map(|freq| u64::from(*freq)).sum()
    }

    /// Decodes all postings. `separate` is the value of the second key, if it is there.
    pub(crate) fn decode(
        &self,
        separate: Option<&[u8]>,
        detail: Detail,
    ) -> Result<Postings, Malformed> {
        let mut docs = [0; BLOCK_POSTINGS];
        self.docs(&mut docs)?;
        let mut postings = Postings {
            docs: docs.get(..self.count).unwrap_or_default().to_vec(),
            freqs: vec![0; self.count],
            lens: vec![0; self.count],
            occurrences: Vec::new(),
        };
        self.freqs(&mut postings.freqs);
        self.lens(&mut postings.lens);
        let stored = match (self.inline(), separate) {
            (inline, None) => inline,
            (None, separate) => separate,
            (Some(_), Some(_)) => return Err(Malformed::Broken("occurrences in two places")),
        };
        if detail == Detail::Frequencies {
            let is_plain = stored.is_none();
            return is_plain.then_some(postings).ok_or(Malformed::Broken("it has occurrences"));
        }
        let stored = stored.ok_or(Malformed::Broken("the occurrences are missing"))?;
        let stored = Occurrences::parse(stored, self.total(), detail)?;
        postings.occurrences = stored.all(&postings.freqs);
        Ok(postings)
    }
}
