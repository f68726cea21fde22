//! The ids of vertices, in blocks. The ids from the build are in order; ids that were added later
//! follow them.

use super::Bytes;
use super::block::{Block, first_of};

/// The packed id of a vertex; empty for a number that is not a vertex.
pub(crate) fn packed_id<'c>(blocks: &'c [Bytes<'_>], vertex: u32) -> &'c [u8] {
    let after = blocks.partition_point(|block| first_of(block) <= vertex);
    let block = after.checked_sub(1).and_then(|place| block_at(blocks, place));
    block.map_or(&[], |block| block.bytes(vertex - block.first))
}

/// The number of a packed id, if it is among the first `sorted` vertices, which are in the order of
/// their ids.
pub(crate) fn sorted_number(blocks: &[Bytes<'_>], sorted: u32, id: &[u8]) -> Option<u32> {
    let in_order = blocks.partition_point(|block| first_of(block) < sorted);
    let blocks = blocks.get(..in_order)?;
    let after = blocks.partition_point(|block| {
        Block::parse(block).is_some_and(|block| block.count > 0 && block.bytes(0) <= id)
    });
    let block = block_at(blocks, after.checked_sub(1)?)?;
    let (mut from, mut to) = (0, block.count.min(sorted - block.first));
    while from < to {
        let middle = from + (to - from) / 2;
        match block.bytes(middle).cmp(id) {
            std::cmp::Ordering::Less => from = middle + 1,
            std::cmp::Ordering::Greater => to = middle,
            std::cmp::Ordering::Equal => return Some(block.first + middle),
        }
    }
    None
}

fn block_at<'c>(blocks: &'c [Bytes<'_>], place: usize) -> Option<Block<'c>> {
    blocks.get(place).and_then(|block| Block::parse(block))
}
