//! A stored block, read in place.

use super::bits::{bytes_of, get, unpack};
use super::bounds::Stored;
use super::{
    BLOCK_POSTINGS, Detail, HAS_OCCURRENCES, IdRange, Malformed, Occurrences, Postings, VERSION,
    varint,
};

/// A block whose columns are decoded on demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'b> {
    bytes: &'b [u8],
    pub(crate) layout: Layout,
}

/// Where the parts of a block are in its bytes. A cursor keeps the layout, so that each block is
/// parsed only once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) range: IdRange,
    pub(crate) count: usize,
    min_len: u32,
    /// The beginning and the end of the bounds.
    bounds: [usize; 2],
    /// The beginnings of gaps, frequencies and lengths, and their widths in bits.
    columns: [(usize, u8); 3],
    /// The beginning of the occurrences in the block. If the occurrences are stored in a separate
    /// key, this is the end of the block.
    inline: usize,
}

impl<'b> Block<'b> {
    /// Parses the block that is stored under the id `last`, the end of its range.
    pub(crate) fn parse(bytes: &'b [u8], last: u32) -> Result<Self, Malformed> {
        let (head, rest) = bytes.split_first_chunk::<6>().ok_or(Malformed::Broken("no header"))?;
        let [flags, level, count, widths @ ..] = *head;
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
        let of_bounds = bytes.len() - rest.len();
        let bounds = Stored::take(&mut rest, min_len).ok_or(Malformed::Broken("the bounds"))?;
        if bounds.is_empty() != (count == 1) {
            return Err(Malformed::Broken("the number of bounds"));
        }
        let mut end = bytes.len() - rest.len();
        let bounds = [of_bounds + 1, end];
        let columns = widths.map(|width| {
            let begin = end;
            end += bytes_of(count, width);
            (begin, width)
        });
        if end > bytes.len() || widths.iter().any(|width| *width > 32) {
            return Err(Malformed::Broken("the length of a column"));
        }
        let layout = Layout { range, count, min_len, bounds, columns, inline: end };
        match (end == bytes.len()) == (flags & HAS_OCCURRENCES == 0) {
            true => Ok(Self { bytes, layout }),
            false => Err(Malformed::Broken("the length")),
        }
    }

    /// A block that was parsed before.
    #[inline]
    pub(crate) fn of(bytes: &'b [u8], layout: Layout) -> Self {
        Self { bytes, layout }
    }

    /// The bytes of a column, and its width in bits.
    #[inline]
    fn column(&self, of: impl Fn([(usize, u8); 3]) -> (usize, u8)) -> (&'b [u8], u8) {
        let (begin, width) = of(self.layout.columns);
        let end = begin + bytes_of(self.layout.count, width);
        (self.bytes.get(begin..end).unwrap_or_default(), width)
    }

    /// The number of postings.
    pub(crate) fn count(&self) -> usize {
        self.layout.count
    }

    /// The occurrences, if they are stored in the block and need no second read.
    pub(crate) fn inline(&self) -> Option<&'b [u8]> {
        self.bytes.get(self.layout.inline..).filter(|inline| !inline.is_empty())
    }

    /// The bounds: pairs of frequency and length, one of which has the best score.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = (u32, u32)> + use<'b> {
        let [begin, end] = self.layout.bounds;
        let stored = self.bytes.get(begin..end).unwrap_or_default();
        let alone = stored.is_empty().then(|| self.numbers_at(0));
        Stored::of(stored, self.layout.min_len).iter().chain(alone)
    }

    /// The first document. A damaged block may return another id.
    #[inline]
    pub(crate) fn first_doc(&self) -> u32 {
        let (gaps, width) = self.column(|[gaps, ..]| gaps);
        self.layout.range.first().saturating_add(get(gaps, width, 0))
    }

    /// Decodes the documents, in ascending order. `out` has room for all of them.
    #[inline]
    pub(crate) fn docs(&self, out: &mut [u32; BLOCK_POSTINGS]) -> Result<(), Malformed> {
        let (out, (gaps, width)) = (self.part_of(out), self.column(|[gaps, ..]| gaps));
        unpack(gaps, width, out);
        let mut next = u64::from(self.layout.range.first());
        for doc in out {
            let this = next + u64::from(*doc);
            *doc = this as u32;
            next = this + 1;
        }
        match next > u64::from(self.layout.range.last()) + 1 {
            true => Err(Malformed::Broken("a document outside of the range")),
            false => Ok(()),
        }
    }

    fn part_of<'o>(&self, out: &'o mut [u32]) -> &'o mut [u32] {
        let end = self.layout.count.min(out.len());
        out.get_mut(..end).unwrap_or_default()
    }

    /// Decodes the frequencies.
    #[inline]
    pub(crate) fn freqs(&self, out: &mut [u32]) {
        let (out, (freqs, width)) = (self.part_of(out), self.column(|[_, freqs, _]| freqs));
        unpack(freqs, width, out);
        out.iter_mut().for_each(|freq| *freq = freq.saturating_add(1));
    }

    /// Decodes the lengths of the fields.
    #[inline]
    pub(crate) fn lens(&self, out: &mut [u32]) {
        let (out, (lens, width)) = (self.part_of(out), self.column(|[.., lens]| lens));
        unpack(lens, width, out);
        out.iter_mut().for_each(|len| *len = len.saturating_add(self.layout.min_len));
    }

    /// The frequency and the length of one posting.
    #[inline]
    pub(crate) fn numbers_at(&self, n: usize) -> (u32, u32) {
        let ((freqs, of_freqs), (lens, of_lens)) =
            (self.column(|[_, freqs, _]| freqs), self.column(|[.., lens]| lens));
        let freq = get(freqs, of_freqs, n).saturating_add(1);
        (freq, get(lens, of_lens, n).saturating_add(self.layout.min_len))
    }

    /// The number of occurrences of all postings.
    pub(crate) fn total(&self) -> u64 {
        let mut freqs = [0; BLOCK_POSTINGS];
        self.freqs(&mut freqs);
        freqs.iter().map(|freq| u64::from(*freq)).sum()
    }

    /// Decodes all postings. `separate` is the value of the separate key of the occurrences, if it
    /// exists.
    pub(crate) fn decode(
        &self,
        separate: Option<&[u8]>,
        detail: Detail,
    ) -> Result<Postings, Malformed> {
        let mut docs = [0; BLOCK_POSTINGS];
        self.docs(&mut docs)?;
        let mut postings = Postings {
            docs: docs.get(..self.count()).unwrap_or_default().to_vec(),
            freqs: vec![0; self.count()],
            lens: vec![0; self.count()],
            positions: Vec::new(),
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
        let stored = Occurrences::parse(stored, self.total())?;
        postings.positions = stored.all(&postings.freqs);
        Ok(postings)
    }
}
