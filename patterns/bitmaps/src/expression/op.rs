//! The operations on the ids of one chunk.

use crate::{ChunkIds, Container};

/// How one set of ids is combined with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Set,
    And,
    AndNot,
    Or,
    Xor,
    /// The ids of the other set that are not in this set.
    LessFrom,
}

impl Op {
    pub(super) fn apply(self, ids: &mut ChunkIds, container: Container<'_>) {
        match self {
            Self::Set => ids.set(container),
            Self::And => ids.and(container),
            Self::AndNot => ids.and_not(container),
            Self::Or => ids.or(container),
            Self::Xor => ids.xor(container),
            Self::LessFrom => {
                let mut other = ChunkIds::default();
                other.set(container);
                self.apply_ids(ids, &mut other);
            }
        }
    }

    /// For [`Op::LessFrom`], `other` is unspecified afterwards. For all other operations, `other`
    /// is unchanged.
    pub(crate) fn apply_ids(self, ids: &mut ChunkIds, other: &mut ChunkIds) {
        match self {
            Self::LessFrom => {
                other.and_not_ids(ids);
                std::mem::swap(ids, other);
            }
            _ => self.apply_kept(ids, other),
        }
    }

    /// Like [`apply_ids`](Self::apply_ids), for an `other` that must not change.
    pub(super) fn apply_kept(self, ids: &mut ChunkIds, other: &ChunkIds) {
        match self {
            Self::Set => ids.clone_from(other),
            Self::And => ids.and_ids(other),
            Self::AndNot => ids.and_not_ids(other),
            Self::Or => ids.or_ids(other),
            Self::Xor => ids.xor_ids(other),
            Self::LessFrom => self.apply_ids(ids, &mut other.clone()),
        }
    }
}
