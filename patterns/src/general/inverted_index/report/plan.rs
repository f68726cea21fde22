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
    /// Whether it intersected first, and turned to walking when that had cost as much as to walk would.
    pub turned: bool,
    /// How many ids the audience has.
    pub ids: u64,
    /// How many containers the values of the field have in all chunks.
    pub containers: u64,
    /// What intersecting was expected to cost, if all values had as many containers, in nanoseconds of a machine of
    /// this decade with everything in memory: only good for comparison.
    pub intersect_ns: u64,
    /// What walking was expected to cost.
    pub walk_ns: u64,
    /// What was read, of the audience and for the report.
    pub read: Explain,
}

impl fmt::Display for ReportExplain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { way, turned, ids, containers, intersect_ns, walk_ns, read } = self;
        let turned = if *turned { " after intersecting turned out to cost more" } else { "" };
        let (intersect_us, walk_us) = (intersect_ns / 1_000, walk_ns / 1_000);
        write!(
            f,
            "{ids} ids, {way}{turned}: walking them was expected to take {walk_us} us, \
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
/// How many slices a field of integers is taken to have.
const SLICES: u64 = 20;
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
        walk_ns(self.ids)
    }

    /// How many values have so many containers if each has one in every chunk: the least there can be.
    pub(super) fn least_values(&self, containers: u64) -> u64 {
        containers.div_ceil(self.of_chunks.max(1))
    }

    /// What it costs to intersect with so many containers, spread evenly over the chunks of the index. Every container
    /// is stepped to unless far more chunks are left out than wanted.
    pub(super) fn intersect_ns(&self, containers: u64) -> u64 {
        let thin = self.chunks.saturating_sub(self.full).max(1);
        let per_thin = self.ids.min(thin.saturating_mul(255)) / thin;
        let thin_ns = thin.saturating_mul(FEW_NS + FEW_PER_ID_NS * per_thin);
        let others = self.of_chunks.saturating_sub(self.chunks);
        let steps = self.chunks + others.min(self.chunks.saturating_mul(STEPS_PER_SEEK));
        let each_value = thin_ns + self.full * MANY_NS + steps.saturating_mul(STEP_NS);
        self.least_values(containers).saturating_mul(each_value)
    }

    /// What it costs to sum integers for each value of a field with so many containers: all slices of each chunk of
    /// the audience, for every value again.
    pub(super) fn sums_ns(&self, containers: u64) -> u64 {
        let values = self.least_values(containers).min(self.ids);
        self.intersect_ns(containers).saturating_add(values.saturating_mul(sum_ns(self.chunks)))
    }
}

pub(super) fn walk_ns(ids: u64) -> u64 {
    ids.saturating_mul(ID_NS)
}

/// What it costs to sum integers in so many chunks.
pub(super) fn sum_ns(chunks: u64) -> u64 {
    chunks.saturating_mul(SLICES * (STEP_NS + MANY_NS))
}

/// How much more a report may cost by intersecting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget(u64);

impl Budget {
    pub(super) const UNLIMITED: Self = Self(u64::MAX);

    /// No more than to look up so many ids.
    pub(super) fn of_walking(ids: u64) -> Self {
        Self(walk_ns(ids))
    }

    pub(super) fn spend(&mut self, ns: u64) {
        if self.0 != u64::MAX {
            self.0 = self.0.saturating_sub(ns);
        }
    }

    /// What was read between two states of a walk.
    pub(super) fn spend_reading(&mut self, before: Explain, after: Explain) {
        let (seeks, steps) = (after.seeks - before.seeks, after.keys_scanned - before.keys_scanned);
        self.spend((seeks * STEPS_PER_SEEK + steps) * STEP_NS);
    }

    /// What it costs to count in a container: of a chunk with so few ids, or with more.
    pub(super) fn spend_counting(&mut self, few: Option<usize>) {
        self.spend(few.map_or(MANY_NS, |ids| FEW_NS + FEW_PER_ID_NS * ids as u64));
    }

    pub(super) fn is_spent(self) -> bool {
        self.0 == 0
    }
}
