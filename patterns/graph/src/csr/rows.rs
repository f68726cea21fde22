//! The lists of all vertices in one direction.

use std::ops::Range;

use keyloom::Result;

use super::block::{Block, Piece};
use crate::GraphError;

/// The hint has one entry for each `1 << HINT_SHIFT` vertices.
// This takes four bytes for 128 vertices. A smaller shift needs more memory; a larger one scans
// more blocks.
const HINT_SHIFT: u32 = 7;

/// The neighbours of every vertex in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows<'c> {
    blocks: Vec<Block<'c>>,
    /// For each `n`, the first block with the vertex `n << HINT_SHIFT`.
    hint: Vec<u32>,
}

impl<'c> Rows<'c> {
    /// Rows from the blocks of all vertices, in order. Bytes that do not parse as a block are
    /// skipped.
    pub(crate) fn new(blocks: impl Iterator<Item = &'c [u8]>) -> Self {
        let blocks: Vec<_> = blocks.filter_map(Block::parse).collect();
        let mut hint = Vec::new();
        for (n, block) in blocks.iter().enumerate() {
            let end = u64::from(block.first + block.count);
            while (hint.len() as u64) << HINT_SHIFT < end {
                hint.push(n as u32);
            }
        }
        Self { blocks, hint }
    }

    /// Checks that the blocks cover the vertices `0..vertices`, and that their lists are complete.
    pub(crate) fn check(&self, vertices: u32) -> Result<()> {
        let mut next = 0;
        for block in &self.blocks {
            let continues = block.count == 1 && block.first + 1 == next;
            let follows = block.first == next || continues;
            if !follows || block.count == 0 || !block.has_whole_lists() {
                return Err(GraphError::DamagedBlocks.into());
            }
            next = block.first + block.count;
        }
        match next == vertices {
            true => Ok(()),
            false => Err(GraphError::DamagedBlocks.into()),
        }
    }

    /// Checks that the blocks cover exactly these ranges of vertices, and that their lists are
    /// complete.
    pub(crate) fn check_ranges(&self, ranges: &[Range<u32>]) -> Result<()> {
        let are_whole = self.blocks.iter().all(Block::has_whole_lists);
        match are_whole && self.ranges() == ranges {
            true => Ok(()),
            false => Err(GraphError::DamagedBlocks.into()),
        }
    }

    /// Calls `visit` with the lists of the vertices in `range`, in order. A long list is passed in
    /// several pieces.
    #[inline]
    pub(crate) fn each_piece(&self, range: Range<u32>, mut visit: impl FnMut(Piece<'c>)) {
        for block in self.blocks_from(range.start) {
            let end = block.first + block.count;
            let (from, to) = (range.start.max(block.first), range.end.min(end));
            (from..to).for_each(|vertex| visit(block.piece(vertex - block.first)));
            // The list at the end of a block may continue in the next block.
            if end > range.end {
                return;
            }
        }
    }

    fn blocks_from(&self, vertex: u32) -> &[Block<'c>] {
        let hint = self.hint.get((vertex >> HINT_SHIFT) as usize).copied().unwrap_or_default();
        let mut blocks = self.blocks.get(hint as usize..).unwrap_or_default();
        while let [block, rest @ ..] = blocks {
            if vertex < block.first + block.count {
                break;
            }
            blocks = rest;
        }
        blocks
    }

    /// The pieces of one list.
    pub(crate) fn pieces(&self, vertex: u32) -> impl Iterator<Item = Piece<'c>> + '_ {
        self.blocks_from(vertex)
            .iter()
            .take_while(move |block| block.first <= vertex)
            .map(move |block| block.piece(vertex - block.first))
    }

    /// The neighbours of a vertex, in ascending order.
    pub(crate) fn neighbours(&self, vertex: u32) -> impl Iterator<Item = u32> + '_ {
        self.pieces(vertex).flat_map(Piece::neighbours)
    }

    /// Calls `visit` with each neighbour of a vertex.
    #[inline]
    pub(crate) fn each(&self, vertex: u32, mut visit: impl FnMut(u32)) {
        self.pieces(vertex).for_each(|piece| piece.each(&mut visit));
    }

    /// The neighbours of a vertex and the weights of the edges.
    pub(crate) fn weighted(&self, vertex: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.pieces(vertex).flat_map(|piece| piece.neighbours().zip(piece.weights()))
    }

    /// The bytes that a block of ids stores for a vertex.
    pub(crate) fn bytes(&self, vertex: u32) -> &'c [u8] {
        let block = self.blocks_from(vertex).first();
        block.map_or(&[], |block| block.bytes(vertex - block.first))
    }

    /// The degrees of all vertices.
    pub(crate) fn degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.vertices() as usize];
        self.each_piece(0..self.vertices(), |piece| {
            if let Some(degree) = degrees.get_mut(piece.vertex as usize) {
                *degree += piece.len() as u32;
            }
        });
        degrees
    }

    fn vertices(&self) -> u32 {
        self.blocks.last().map_or(0, |block| block.first + block.count)
    }

    /// One range of vertices for each block, for work on several threads. All blocks of a hub are
    /// one range.
    pub(crate) fn ranges(&self) -> Vec<Range<u32>> {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for block in &self.blocks {
            let to = block.first + block.count;
            if ranges.last().is_none_or(|range| range.end < to) {
                ranges.push(block.first..to);
            }
        }
        ranges
    }

    /// Checks that every neighbour is a vertex, and returns the number of entries of the lists.
    pub(crate) fn check_neighbours(&self, range: Range<u32>, vertices: u32) -> Result<u64> {
        let (mut end, mut entries) = (0, 0);
        self.each_piece(range, |piece| {
            end = end.max(piece.end());
            entries += piece.len() as u64;
        });
        match end <= u64::from(vertices) {
            true => Ok(entries),
            false => Err(GraphError::DamagedBlocks.into()),
        }
    }
}
