//! What a refresh keeps of the blocks from one transaction to the next.

use std::collections::HashMap;
use std::ops::Range;

use super::keys::{Side, Stored};
use crate::csr::{Adjacency, Bytes, Rows, packed_id, sorted_number};

/// The ids, and where the blocks of the lists begin: what all steps need, so that each step reads
/// only the blocks that it rewrites. It belongs to one state of the blocks.
pub(super) struct Layout {
    pub(super) stored: Stored,
    /// All blocks of ids at first; only those in order are searched.
    ids: Vec<Bytes<'static>>,
    /// The numbers of the ids that were added later.
    later: HashMap<Vec<u8>, u32>,
    /// The first vertices of the outgoing and of the incoming blocks; a hub counts once.
    starts: [Vec<u32>; 2],
}

/// What a step changed in the layout.
pub(super) struct Relaid {
    pub(super) stored: Stored,
    pub(super) added: Vec<Vec<u8>>,
    /// The vertices that a side has in new blocks, and the first vertices of these.
    pub(super) starts: Vec<(Side, Range<u32>, Vec<u32>)>,
}

impl Layout {
    pub(super) fn of(rows: &Adjacency<'_>, stored: Stored) -> Self {
        let starts = |rows: Rows<'_>| rows.ranges().into_iter().map(|range| range.start).collect();
        let incoming = if rows.is_directed { starts(rows.incoming()) } else { Vec::new() };
        let later = (stored.sorted..stored.vertices)
            .map(|number| (packed_id(&rows.ids, number).to_vec(), number))
            .collect();
        let ids = rows.ids.iter().map(|block| Box::new(block.to_vec()) as Bytes<'static>);
        Self { ids: ids.collect(), later, starts: [starts(rows.out()), incoming], stored }
    }

    /// The number of a packed id.
    pub(super) fn number(&self, id: &[u8]) -> Option<u32> {
        self.later.get(id).copied().or_else(|| sorted_number(&self.ids, self.stored.sorted, id))
    }

    /// The vertices of the block that has this one; `None` for an added vertex.
    pub(super) fn range(&self, side: Side, vertex: u32) -> Option<Range<u32>> {
        if vertex >= self.stored.vertices {
            return None;
        }
        let starts = self.starts(side);
        let after = starts.partition_point(|start| *start <= vertex);
        let start = *starts.get(after.checked_sub(1)?)?;
        Some(start..starts.get(after).copied().unwrap_or(self.stored.vertices))
    }

    fn starts(&self, side: Side) -> &[u32] {
        let [out, incoming] = &self.starts;
        match side {
            Side::Ids => &[],
            Side::Out => out,
            Side::Incoming => incoming,
        }
    }

    /// Follows a step that was committed.
    pub(super) fn apply(&mut self, relaid: Relaid) {
        self.later.extend(relaid.added.into_iter().zip(self.stored.vertices..));
        let [out, incoming] = &mut self.starts;
        for (side, range, new) in relaid.starts {
            let starts = if side == Side::Out { &mut *out } else { &mut *incoming };
            let from = starts.partition_point(|start| *start < range.start);
            let to = starts.partition_point(|start| *start < range.end);
            drop(starts.splice(from..to, new));
        }
        self.stored = relaid.stored;
    }
}
