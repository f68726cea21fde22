//! The choice of the index that a report reads.

use crate::column::BLOCKS_PER_CHUNK;

/// The index that a report reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The inverted index.
    Intersect,
    /// The forward index.
    Walk,
}

// Costs are counted in steps: one step reads the next key of a range.
//
// Measured on 1 million users on LMDB: a step takes 120 ns, the column of a block 400 ns, the
// values of an id 20 to 200 ns. Intersecting a container with a chunk in memory takes 40 to 120 ns
// if one of them has few ids, and 900 ns if both have many.
const STEPS_PER_BLOCK: u64 = 3;
const STEPS_PER_FULL_CHUNK: u64 = 8;
/// The assumed number of slices of a field of integers.
// This is the number for integers of 18 bits, with existence and sign. With a higher number,
// reports walk where the slices are cheaper; with a lower one, they read slices where a walk is
// cheaper.
const SLICES: u64 = 20;

// Measured in the same way, with integers of 30 bits: a pass over their slices takes 10 µs per
// chunk. A walk takes 80 ns to open the column of a block, and 20 ns for each integer of the
// column.
const STEPS_PER_SLICED_CHUNK: u64 = 80;
const INTEGERS_PER_STEP: u64 = 6;

/// The facts about an audience that are known before its report is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) ids: u64,
    /// The number of chunks of the audience.
    pub(super) chunks: u64,
    /// The number of these chunks whose ids are kept as plain words, because they are not few.
    pub(super) full: u64,
    /// The number of chunks of the whole index.
    pub(super) of_chunks: u64,
}

impl Known {
    /// The cost of looking up all ids in the columns of `fields` fields.
    pub(super) fn walk(&self, fields: usize) -> u64 {
        let each = self.blocks().saturating_mul(STEPS_PER_BLOCK).saturating_add(self.ids);
        each.saturating_mul(fields as u64)
    }

    /// The maximum number of blocks with ids of the audience.
    fn blocks(&self) -> u64 {
        self.ids.min(self.chunks.saturating_mul(BLOCKS_PER_CHUNK))
    }

    /// The minimum number of values that this many containers can belong to.
    fn least_values(&self, containers: u64) -> u64 {
        containers.div_ceil(self.of_chunks.max(1))
    }

    /// The cost of nested intersections of fields with these numbers of containers: each inner
    /// field is read once for every value of the outer one. Every container counts as read, because
    /// the number of containers that seeks skip depends on the number of values, which is not
    /// stored.
    pub(super) fn intersect(&self, containers: &[u64]) -> u64 {
        let each_value = self.chunks - self.full + self.full * STEPS_PER_FULL_CHUNK;
        containers.iter().rev().fold(0, |inner: u64, containers| {
            let values = self.least_values(*containers);
            let own = containers.saturating_add(values.saturating_mul(each_value));
            own.saturating_add(values.min(self.ids).saturating_mul(inner))
        })
    }

    /// Whether looking up the integers of all ids is cheaper than some passes over the slices.
    pub(super) fn prefers_integers(&self, passes: u64) -> bool {
        let lookups = self.blocks().saturating_add(self.ids / INTEGERS_PER_STEP);
        lookups <= self.chunks.saturating_mul(passes * STEPS_PER_SLICED_CHUNK)
    }

    /// The cost of summing integers for each value of a field with this many containers: all slices
    /// of each chunk of the audience, once for every value.
    pub(super) fn intersect_sums(&self, containers: u64) -> u64 {
        let sum = self.chunks * SLICES * (1 + STEPS_PER_FULL_CHUNK);
        let values = containers.min(self.ids);
        self.intersect(&[containers]).saturating_add(values.saturating_mul(sum))
    }
}
