//! The layout of the blocks, which a refresh caches across its transactions.

use std::collections::HashMap;
use std::ops::Range;

use super::keys::{Side, Stored};
use crate::csr::{Adjacency, Bytes, Rows, packed_id, sorted_number};

/// The ids, and the first vertices of the blocks of lists. With this layout, each step reads only
/// the blocks that it rewrites. A layout is valid for one state of the blocks.
pub(super) struct Layout {
    pub(super) stored: Stored,
    /// The blocks of ids that existed when the layout was loaded. Only the ids from the build,
    /// which are in order, are searched here.
    ids: Vec<Bytes<'static>>,
    /// The numbers of the ids that were added after the build.
    later: HashMap<Vec<u8>, u32>,
    /// The first vertices of the outgoing and of the incoming blocks; a hub counts once.
    starts: [Vec<u32>; 2],
}

/// The changes of a step to the layout.
pub(super) struct Relaid {
    pub(super) stored: Stored,
    pub(super) added: Vec<Vec<u8>>,
    /// For each replacement: its side, the vertices in the new blocks, and the first vertex of each
    /// new block.
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

    /// The vertices of the block that contains `vertex`; `None` for a vertex that is not in the
    /// blocks yet.
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

    /// Applies the changes of a committed step.
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
