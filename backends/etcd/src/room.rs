//! The size of requests.

use keyloom::{Limits, MAX_KEY_BYTES};

/// The server's limits of one request. A reserve is kept for the prefix and the frame of each
/// write, and for the checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// `--max-txn-ops`.
    pub(super) max_operations: usize,
    /// `--max-request-bytes`.
    pub(super) max_request_bytes: usize,
    /// The number of bytes that the prefix adds to a key in etcd.
    prefix_bytes: usize,
}

/// The frame of one operation: the tags and lengths of four nested messages, and its share of the
/// frames of the enclosing transactions.
const OPERATION_FRAME: usize = 20;
/// The frame of a check, including revisions, and of the operation that finds the changed key.
const CHECK_FRAME: usize = 32;
/// The bytes that the server adds to a request before it measures it, including the user's name.
const ENVELOPE: usize = 384;
/// The bytes of the write of the mark.
const MARK: usize = 128;
/// Limits are rounded down to a multiple of this number.
// Gives up at most 1,023 bytes of a request.
const ROUND: usize = 1 << 10;
/// A conflict names its key only if the commit has at most this number of checks.
// Each name takes one more read in the commit, and every transaction reserves room for all of them.
// With a lower number, more conflicts are reported without their key.
pub(super) const MOST_NAMED: usize = 16;

impl Room {
    // Checks and frames are subtracted from both limits: with lower limits, little would remain for
    // writes.
    pub(super) const LEAST_OPERATIONS: usize = 16;
    pub(super) const LEAST_REQUEST_BYTES: usize = 64 << 10;

    pub(super) fn new(
        max_operations: usize,
        max_request_bytes: usize,
        prefix_bytes: usize,
    ) -> Self {
        Self { max_operations, max_request_bytes, prefix_bytes }
    }

    /// The limits for users. A transaction within these limits fits into a request, regardless of
    /// the number of reads and the length of keys. The only exception is puts into ranges that the
    /// transaction deletes.
    pub(super) fn limits(&self) -> Limits {
        let writes = self.writes();
        let flat = self.writes_and_checks(self.max_operations, self.max_operations);
        let nested = self.writes_and_checks(writes, self.max_operations / 2);
        let names = MOST_NAMED.min(self.most_checks()) * self.longest_check();
        let kept = flat.max(nested) + names + ENVELOPE + MARK;
        let bytes = self.max_request_bytes.saturating_sub(kept) / ROUND * ROUND;
        Limits::default()
            .with_max_value_bytes(bytes.saturating_sub(MAX_KEY_BYTES))
            .with_max_transaction(Some(bytes), Some(writes))
    }

    /// The maximum number of writes in one transaction. They fit in a transaction with at most two
    /// nested levels, and their frames fill at most an eighth of the request.
    fn writes(&self) -> usize {
        let half = self.max_operations / 2;
        (half * half).min(self.max_request_bytes / 8 / self.frame())
    }

    /// The number of checks that fit, however long their keys are.
    fn most_checks(&self) -> usize {
        (self.max_request_bytes / 8 / self.longest_check()).max(2)
    }

    /// The number of ranges that one request may read, however long their bounds are.
    pub(super) fn most_ranges(&self) -> usize {
        self.max_operations.min(self.most_checks())
    }

    fn writes_and_checks(&self, writes: usize, checks: usize) -> usize {
        writes.min(self.writes()) * self.frame()
            + checks.min(self.most_checks()) * self.longest_check()
    }

    fn frame(&self) -> usize {
        OPERATION_FRAME + self.prefix_bytes
    }

    fn longest_check(&self) -> usize {
        2 * (MAX_KEY_BYTES + 1 + self.prefix_bytes) + CHECK_FRAME
    }

    /// The layout for `writes` operations.
    pub(super) fn layout(&self, writes: usize) -> Layout {
        let mut depth = 1;
        loop {
            let levels = self.levels(depth);
            let holds = holds(&levels);
            // With levels this small, more levels do not hold more operations.
            if holds >= writes || levels.iter().any(|level| *level < 4) {
                let top = levels.first().copied().unwrap_or(0);
                return Layout { checks: top.min(self.most_checks()), levels };
            }
            depth += 1;
        }
    }

    /// The number of operations per level. The server allows `max_operations` at the first level.
    /// At each further level, it subtracts the number of operations in the levels above. So the
    /// levels share `max_operations`.
    fn levels(&self, depth: usize) -> Vec<usize> {
        let (each, rest) = (self.max_operations / depth, self.max_operations % depth);
        (0..depth).map(|level| each + usize::from(level >= depth - rest)).collect()
    }

    /// An upper bound of the bytes of an operation with keys and values of these lengths.
    pub(super) fn operation(parts: &[usize]) -> usize {
        OPERATION_FRAME + parts.iter().sum::<usize>()
    }

    /// An upper bound of the bytes of a check with keys of these lengths.
    pub(super) fn check(parts: &[usize]) -> usize {
        CHECK_FRAME + parts.iter().sum::<usize>()
    }

    /// An upper bound of the bytes of a request with this content.
    pub(super) fn request(operations: usize, checks: usize) -> usize {
        ENVELOPE + operations + checks
    }
}

/// The nesting of operations.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The number of checks that the request may have.
    pub(super) checks: usize,
    /// The number of operations in a transaction of each level, from the outermost on.
    pub(super) levels: Vec<usize>,
}

/// The capacity of these levels. The top level holds one operation and nested transactions.
fn holds(levels: &[usize]) -> usize {
    match levels {
        [] => 0,
        [flat] => *flat,
        [top, below @ ..] => {
            let each = below.iter().fold(1_usize, |holds, level| holds.saturating_mul(*level));
            top.saturating_sub(1).saturating_mul(each).saturating_add(1)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn limits_with_default_options_are_those_of_limits_etcd() {
        let room = Room::new(128, 1_572_864, "keyloom/".len());
        assert_eq!(room.limits(), Limits::etcd());
    }

    #[test]
    fn few_writes_lie_flat_and_many_are_nested() {
        let room = Room::new(128, 1_572_864, 8);
        assert_eq!(room.layout(0).levels, [128]);
        assert_eq!(room.layout(128).levels, [128]);
        assert_eq!(room.layout(129), Layout { checks: 64, levels: vec![64, 64] });
        assert_eq!(room.layout(4_033).levels, [64, 64]);
        assert_eq!(room.layout(4_034), Layout { checks: 42, levels: vec![42, 43, 43] });
    }

    #[test]
    fn every_layout_holds_its_writes_within_the_server_limits() {
        for max_operations in [16, 17, 33, 128, 1_000, 100_000] {
            for max_request_bytes in [64 << 10, 1_572_864, 64 << 20] {
                let room = Room::new(max_operations, max_request_bytes, 65);
                let limits = room.limits();
                let most = limits.max_transaction_operations.unwrap();
                assert!(limits.max_transaction_bytes.unwrap() > max_request_bytes / 3, "{room:?}");
                // The last case has the most operations: each put, the deleted ranges around the
                // puts, and the mark.
                for writes in [0, 1, most, most + 1, 2 * most + 2] {
                    let Layout { checks, levels } = room.layout(writes);
                    assert!(holds(&levels) >= writes, "{room:?} {writes}");
                    assert!(levels.iter().sum::<usize>() <= max_operations);
                    assert!((2..=levels[0]).contains(&checks));
                }
            }
        }
    }
}
