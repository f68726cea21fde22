//! Which way a report takes, and why.

use std::fmt;

use crate::explain::Explain;

/// How a report is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportWay {
    /// Through the inverted index: the audience is evaluated once and held, and one scan over the containers of
    /// the field counts how much of each is in it.
    Intersect,
    /// Through the direct index: what each id of the audience has in the field is read and counted.
    Walk,
}

impl fmt::Display for ReportWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Intersect => "intersected with each value",
            Self::Walk => "walked in the direct index",
        })
    }
}

/// Which way a report took, what each was expected to cost, and what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportExplain {
    /// The way that was taken: the cheaper one, unless the [report](super::Report::by) was told another.
    pub way: ReportWay,
    /// How many ids the audience has.
    pub ids: u64,
    /// How many containers the values of the field have in all chunks.
    pub containers: u64,
    /// What intersecting was expected to cost, in nanoseconds of a machine of this decade with everything in
    /// memory: only good for comparison.
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
/// How many steps to a chunk that is wanted cost no more than to seek it.
const STEPS_PER_SEEK: u64 = 16;
/// What counting in a container costs where the chunk has a few ids of the audience, and for each of these.
const FEW_NS: u64 = 40;
const FEW_PER_ID_NS: u64 = 3;
/// What counting in a container costs where the chunk has more.
const MANY_NS: u64 = 900;
/// What an id costs whose values are looked up and counted.
const ID_NS: u64 = 1_500;

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
    pub(super) fn walk_ns(&self) -> u64 {
        self.ids.saturating_mul(ID_NS)
    }

    /// What it costs to intersect with so many containers, spread evenly over the chunks of the index.
    pub(super) fn intersect_ns(&self, containers: u64) -> u64 {
        let thin = self.chunks.saturating_sub(self.full).max(1);
        let per_thin = self.ids.min(thin.saturating_mul(255)) / thin;
        let thin_ns = thin.saturating_mul(FEW_NS + FEW_PER_ID_NS * per_thin);
        let others = self.of_chunks.saturating_sub(self.chunks);
        let steps = self.chunks + others.min(self.chunks.saturating_mul(STEPS_PER_SEEK));
        let each_value = thin_ns + self.full * MANY_NS + steps.saturating_mul(STEP_NS);
        let values = containers.div_ceil(self.of_chunks.max(1));
        values.saturating_mul(each_value)
    }
}
