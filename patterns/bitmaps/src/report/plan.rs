//! Which way a report takes, and why.

use std::fmt;

use crate::column::BLOCKS_PER_CHUNK;
use crate::few;
use keyloom_tables::Explain;

/// How a report is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportWay {
    /// Through the inverted index: the audience is evaluated once and held, and one scan over the
    /// containers of the field counts how much of each is in it.
    Intersect,
    /// Through the forward index: what each id of the audience has in the field is read and
    /// counted.
    Walk,
}

impl fmt::Display for ReportWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Intersect => "intersected with each value",
            Self::Walk => "walked in the forward index",
        })
    }
}

/// Which way a report took, what each was expected to cost, and what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportExplain {
    /// The way that was taken: the cheaper one, unless the [report](super::Report::by) was told
    /// another.
    pub way: ReportWay,
    /// How many ids the audience has.
    pub ids: u64,
    /// How many containers the values of the field have in all chunks.
    pub containers: u64,
    /// What intersecting was expected to cost at most, in nanoseconds of a machine of this decade
    /// with everything in memory: only good for comparison.
    pub intersect_ns: u64,
    /// What walking was expected to cost.
    pub walk_ns: u64,
    /// What was read, of the audience and for the report.
    pub read: Explain,
}

impl fmt::Display for ReportExplain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { way, ids, containers, intersect_ns, walk_ns, read } = self;
        let (intersect_us, walk_us) = (intersect_ns / 1_000, walk_ns / 1_000);
        write!(
            f,
            "{ids} ids, {way}: walking them was expected to take {walk_us} us, \
             intersecting {containers} containers {intersect_us} us; {read}"
        )
    }
}

/// What it costs to step to a container: a page that is not in the processor's cache.
const STEP_NS: u64 = 120;
/// What counting in a container costs where the chunk has a few ids of the audience, and for each
/// of these.
const FEW_NS: u64 = 40;
const FEW_PER_ID_NS: u64 = 3;
/// What counting in a container costs where the chunk has more.
const MANY_NS: u64 = 900;
/// How many slices a field of integers is taken to have.
const SLICES: u64 = 20;
/// What it costs to come to the column of a block, and what an id costs whose values are counted:
/// between 20 ns where most ids of a block are wanted, and 200 where few are and each lies in a
/// line that no cache holds.
const BLOCK_NS: u64 = 400;
const ID_NS: u64 = 80;

/// What is known of an audience and a field before the report is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) ids: u64,
    /// Chunks of the audience, and those of them with more than a few ids.
    pub(super) chunks: u64,
    pub(super) full: u64,
    /// Chunks of the whole index.
    pub(super) of_chunks: u64,
}

impl Known {
    /// What it costs to look the ids up in the columns of so many fields.
    pub(super) fn walk_ns(&self, fields: usize) -> u64 {
        let blocks = self.ids.min(self.chunks.saturating_mul(BLOCKS_PER_CHUNK));
        let each = blocks.saturating_mul(BLOCK_NS).saturating_add(self.ids.saturating_mul(ID_NS));
        each.saturating_mul(fields as u64)
    }

    /// How many values have so many containers if each has one in every chunk: the least there can
    /// be.
    fn least_values(&self, containers: u64) -> u64 {
        containers.div_ceil(self.of_chunks.max(1))
    }

    /// What it costs to intersect with so many containers, spread evenly over the chunks of the
    /// index. All of them are stepped to: how many of those can be left out by seeking depends on
    /// how many values they are of, which nobody knows.
    pub(super) fn intersect_ns(&self, containers: u64) -> u64 {
        let thin = self.chunks.saturating_sub(self.full);
        let per_thin = self.ids.min(thin.saturating_mul(few::LOOKED_UP as u64)) / thin.max(1);
        let thin_ns = thin.saturating_mul(FEW_NS + FEW_PER_ID_NS * per_thin);
        let each_value = thin_ns + self.full * MANY_NS;
        let counting = self.least_values(containers).saturating_mul(each_value);
        containers.saturating_mul(STEP_NS).saturating_add(counting)
    }

    /// What it costs to sum integers for each value of a field with so many containers: all slices
    /// of each chunk of the audience, for every value again, of which there are no more than
    /// containers and no more than ids.
    pub(super) fn sums_ns(&self, containers: u64) -> u64 {
        let sum_ns = self.chunks.saturating_mul(SLICES * (STEP_NS + MANY_NS));
        let values = containers.min(self.ids);
        self.intersect_ns(containers).saturating_add(values.saturating_mul(sum_ns))
    }

    /// What it costs to intersect with fields that have so many containers, one within the other:
    /// each of the later ones once for every value before it.
    pub(super) fn intersect_all_ns(&self, containers: &[u64]) -> u64 {
        containers.iter().rev().fold(0, |inner: u64, containers| {
            let values = self.least_values(*containers).min(self.ids);
            self.intersect_ns(*containers).saturating_add(values.saturating_mul(inner))
        })
    }
}
