//! How much goes into one request.

use crate::{Limits, MAX_KEY_BYTES};

/// What the server takes in one request, and what of it is kept free for what users do not count:
/// the prefix and the frame of each write, and the checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// `--max-txn-ops`.
    pub(super) max_operations: usize,
    /// `--max-request-bytes`.
    pub(super) max_request_bytes: usize,
    /// How much longer a key is for etcd.
    prefix_bytes: usize,
}

/// The frame of one operation: the tags and lengths of four nested messages, and its share of the
/// frames of the transactions that hold it.
const OPERATION_FRAME: usize = 20;
/// The frame of a check, revisions included, and of the operation that finds out what changed.
const CHECK_FRAME: usize = 32;
/// What the server adds to a request before it measures it, the name of the user included.
const ENVELOPE: usize = 384;
/// The write of the mark.
const MARK: usize = 128;
/// Limits are round numbers.
const ROUND: usize = 1 << 10;
/// For how many checks a conflict names the key.
pub(super) const MOST_NAMED: usize = 16;

impl Room {
    pub(super) const LEAST_OPERATIONS: usize = 16;
    pub(super) const LEAST_REQUEST_BYTES: usize = 64 << 10;

    pub(super) fn new(
        max_operations: usize,
        max_request_bytes: usize,
        prefix_bytes: usize,
    ) -> Self {
        Self { max_operations, max_request_bytes, prefix_bytes }
    }

    /// What users may write, so that whatever they read, and however long their keys, the request
    /// is not too large.
    pub(super) fn limits(&self) -> Limits {
        let writes = self.writes();
        let flat = self.writes_and_checks(self.max_operations, self.max_operations);
        let nested = self.writes_and_checks(writes, self.max_operations / 2);
        let names = MOST_NAMED.min(self.most_checks()) * self.longest_check();
        let kept = flat.max(nested) + names + ENVELOPE + MARK;
        let bytes = self.max_request_bytes.saturating_sub(kept) / ROUND * ROUND;
        Limits {
            max_value_bytes: bytes.saturating_sub(MAX_KEY_BYTES),
            max_transaction_bytes: Some(bytes),
            max_transaction_operations: Some(writes),
            ..Limits::default()
        }
    }

    /// How many writes one transaction may have: two levels of nesting, and not so many that their
    /// frames alone fill more than an eighth of the request.
    fn writes(&self) -> usize {
        let half = self.max_operations / 2;
        (half * half).min(self.max_request_bytes / 8 / self.frame())
    }

    /// For how many checks there is room, however long their keys.
    fn most_checks(&self) -> usize {
        (self.max_request_bytes / 8 / self.longest_check()).max(2)
    }

    /// How many ranges one request may read, however long their bounds.
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

    /// How to lay out `writes` operations.
    pub(super) fn layout(&self, writes: usize) -> Layout {
        let mut depth = 1;
        loop {
            let levels = self.levels(depth);
            let holds = holds(&levels);
            // More levels hold no more when each of them is that small.
            if holds >= writes || levels.iter().any(|level| *level < 4) {
                let top = levels.first().copied().unwrap_or(0);
                return Layout { checks: top.min(self.most_checks()), levels };
            }
            depth += 1;
        }
    }

    /// The server takes `max_operations` at the first level, and at each level below as many less
    /// as the levels above have.
    fn levels(&self, depth: usize) -> Vec<usize> {
        let (each, rest) = (self.max_operations / depth, self.max_operations % depth);
        (0..depth).map(|level| each + usize::from(level >= depth - rest)).collect()
    }

    /// The bytes that an operation with keys and values of these lengths takes, or somewhat more.
    pub(super) fn operation(parts: &[usize]) -> usize {
        OPERATION_FRAME + parts.iter().sum::<usize>()
    }

    /// The bytes that a check with keys of these lengths takes, or somewhat more.
    pub(super) fn check(parts: &[usize]) -> usize {
        CHECK_FRAME + parts.iter().sum::<usize>()
    }

    /// The bytes that a request with this content takes, or somewhat more.
    pub(super) fn request(operations: usize, checks: usize) -> usize {
        ENVELOPE + operations + checks
    }
}

/// How operations are nested.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// How many checks the request may have.
    pub(super) checks: usize,
    /// How many operations a transaction of each level may have, from the outermost on.
    pub(super) levels: Vec<usize>,
}

/// How many operations these levels hold: at the top one operation and, for the rest, transactions.
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
                // A range deleted around each put, and the mark.
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
