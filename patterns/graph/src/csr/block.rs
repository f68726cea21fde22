//! The encoding of a block: the lists of consecutive vertices.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | format |
//! | 1 | 1 if the edges have weights, else 0 |
//! | 2 | 0 |
//! | 4 | first vertex, little-endian like all numbers here |
//! | 4 | number of vertices, n |
//! | 4 n | the end of each list; the upper 4 bits are two widths |
//! | | the lists |
//!
//! A list contains the neighbours in ascending order. The first neighbour is stored as its distance
//! from the vertex, zigzag-encoded; each further neighbour as its distance from the previous one.
//! All distances of a list have the same width of 1 to 4 bytes, so decoding does not branch on the
//! width of each. The weights follow, with 1, 2 or 4 bytes each if all are whole numbers below
//! 2<sup>32</sup>, else with 8.
//!
//! A hub has more neighbours than one block takes. The list of a hub is split over separate blocks
//! with the same first vertex.

const FORMAT: u8 = 1;
const HEADER: usize = 12;
/// The lower 28 bits are the end of a list, the upper 4 bits its widths.
const TAG_SHIFT: u32 = 28;
/// The size at which a block is complete. It is below the 100 KB that FoundationDB allows, and
/// leaves few overflow pages of LMDB partly empty.
const BLOCK_BYTES: usize = 32 << 10;
/// The largest number of neighbours of a vertex in one block.
// With weights, a piece takes at most about 48 KiB, below the 100 KB that FoundationDB allows.
const PIECE: usize = 4_096;

/// The neighbours of a vertex in one block: its list, or a piece of a hub's list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'c> {
    pub(crate) vertex: u32,
    width: usize,
    distances: &'c [u8],
    weight_width: usize,
    weights: &'c [u8],
}

impl<'c> Piece<'c> {
    fn new(vertex: u32, tag: u32, list: &'c [u8], is_weighted: bool) -> Self {
        let width = (tag & 3) as usize + 1;
        let weight_width = if is_weighted { 1 << (tag >> 2) } else { 0 };
        // Without weights, saves a division for each vertex.
        let distances = match weight_width {
            0 => list.len(),
            _ => list.len() / (width + weight_width) * width,
        };
        let (distances, weights) = list.split_at_checked(distances).unwrap_or_default();
        Self { vertex, width, distances, weight_width, weights }
    }

    pub(crate) fn len(&self) -> usize {
        let bytes = self.distances.len();
        // A division by a constant is several times as fast.
        match self.width {
            1 => bytes,
            2 => bytes / 2,
            3 => bytes / 3,
            _ => bytes / 4,
        }
    }

    /// Calls `visit` with each neighbour.
    #[inline]
    pub(crate) fn each(self, visit: impl FnMut(u32)) {
        match self.width {
            1 => walk::<1>(self.vertex, self.distances, visit),
            2 => walk::<2>(self.vertex, self.distances, visit),
            3 => walk::<3>(self.vertex, self.distances, visit),
            _ => walk::<4>(self.vertex, self.distances, visit),
        }
    }

    /// The largest neighbour plus 1; more than 2^32 if the distances overflow, as they can in a
    /// damaged block.
    // The neighbours ascend, so the sum of the distances bounds them all. To check all lists of a
    // graph with sums took 0.7 of the time of a look at each neighbour.
    pub(crate) fn end(self) -> u64 {
        let (first, rest) = self.distances.split_at_checked(self.width).unwrap_or_default();
        if first.is_empty() {
            return 0;
        }
        let sum = match self.width {
            1 => total::<1>(rest),
            2 => total::<2>(rest),
            3 => total::<3>(rest),
            _ => total::<4>(rest),
        };
        u64::from(near(self.vertex, number(first))) + sum + 1
    }

    /// An iterator over the neighbours, for visits that end early.
    pub(crate) fn neighbours(self) -> impl Iterator<Item = u32> + use<'c> {
        let mut last = None;
        self.distances.chunks_exact(self.width).map(move |bytes| {
            let distance = number(bytes);
            let next = match last {
                None => near(self.vertex, distance),
                Some(last) => distance.wrapping_add(last),
            };
            last = Some(next);
            next
        })
    }

    /// The weights, in the order of the neighbours.
    pub(crate) fn weights(self) -> impl Iterator<Item = f64> + use<'c> {
        self.weights.chunks_exact(self.weight_width.max(1)).map(|bytes| match bytes.try_into() {
            Ok(bytes) => f64::from_le_bytes(bytes),
            Err(_) => f64::from(number(bytes)),
        })
    }
}

/// Numbers of `W` bytes each.
#[inline]
fn numbers<const W: usize>(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(W).map(|bytes| {
        let mut word = [0; 4];
        word.iter_mut().zip(bytes).for_each(|(byte, own)| *byte = *own);
        u32::from_le_bytes(word)
    })
}

fn total<const W: usize>(distances: &[u8]) -> u64 {
    numbers::<W>(distances).map(u64::from).sum()
}

#[inline]
fn walk<const W: usize>(vertex: u32, distances: &[u8], mut visit: impl FnMut(u32)) {
    let mut distances = numbers::<W>(distances);
    let Some(first) = distances.next() else { return };
    let mut neighbour = near(vertex, first);
    visit(neighbour);
    for distance in distances {
        neighbour = neighbour.wrapping_add(distance);
        visit(neighbour);
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn near(vertex: u32, zigzag: u32) -> u32 {
    vertex.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg())
}

fn zigzag(vertex: u32, neighbour: u32) -> u32 {
    let distance = neighbour.wrapping_sub(vertex).cast_signed();
    (distance << 1 ^ distance >> 31).cast_unsigned()
}

/// A stored block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'c> {
    pub(crate) first: u32,
    pub(crate) count: u32,
    is_weighted: bool,
    ends: &'c [u8],
    lists: &'c [u8],
}

impl<'c> Block<'c> {
    /// Parses the header of a block; `None` if the bytes do not begin with a valid header.
    pub(crate) fn parse(bytes: &'c [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let [FORMAT, is_weighted @ 0..=1, 0, 0, numbers @ ..] = header else { return None };
        let (first, count) = (number(numbers.get(..4)?), number(numbers.get(4..)?));
        let (ends, lists) = rest.split_at_checked((count as usize).checked_mul(4)?)?;
        first.checked_add(count)?;
        Some(Self { first, count, is_weighted: *is_weighted == 1, ends, lists })
    }

    /// Whether the lists are consecutive and end at the end of the block.
    pub(crate) fn has_whole_lists(&self) -> bool {
        let mut from = 0;
        let are_whole = (0..self.count).all(|place| {
            let (end, tag) = self.end(place);
            let piece = Piece::new(0, tag, &[], self.is_weighted);
            let width = piece.width + piece.weight_width;
            let is_whole = end.checked_sub(from).is_some_and(|bytes| bytes.is_multiple_of(width));
            from = end;
            is_whole
        });
        are_whole && from == self.lists.len()
    }

    /// The end of a list, and its tag.
    fn end(&self, place: u32) -> (usize, u32) {
        let at = place as usize * 4;
        let end = self.ends.get(at..at + 4).map_or(0, number);
        ((end & ((1 << TAG_SHIFT) - 1)) as usize, end >> TAG_SHIFT)
    }

    /// The list of the vertex `first + place`.
    #[inline]
    pub(crate) fn piece(&self, place: u32) -> Piece<'c> {
        let from = if place == 0 { 0 } else { self.end(place - 1).0 };
        let (end, tag) = self.end(place);
        let list = self.lists.get(from..end).unwrap_or_default();
        Piece::new(self.first.wrapping_add(place), tag, list, self.is_weighted)
    }

    /// The bytes of the list at `place`, for blocks that hold ids.
    pub(crate) fn bytes(&self, place: u32) -> &'c [u8] {
        let from = if place == 0 { 0 } else { self.end(place - 1).0 };
        self.lists.get(from..self.end(place).0).unwrap_or_default()
    }
}

/// The first vertex of a block.
pub(crate) fn first_of(block: &[u8]) -> u32 {
    Block::parse(block).map_or(0, |block| block.first)
}

/// Encodes the lists of consecutive vertices.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    is_weighted: bool,
    first: u32,
    ends: Vec<u32>,
    lists: Vec<u8>,
    full: Vec<Vec<u8>>,
}

impl BlockWriter {
    /// A writer for the lists of the vertices from `first`.
    pub(crate) fn new(first: u32, is_weighted: bool) -> Self {
        Self { is_weighted, first, ends: Vec::new(), lists: Vec::new(), full: Vec::new() }
    }

    /// The vertex of the next list.
    pub(crate) fn next(&self) -> u32 {
        self.first + self.ends.len() as u32
    }

    /// Appends the list of the next vertex: ascending neighbours, and a weight for each of them if
    /// the graph has weights.
    pub(crate) fn push(&mut self, neighbours: &[u32], weights: &[f64]) {
        let vertex = self.next();
        let is_hub = neighbours.len() > PIECE;
        // The blocks of a hub contain no other lists, so they are rewritten only if the hub
        // changes.
        if is_hub && !self.ends.is_empty() {
            self.complete();
        }
        let mut weights = weights.chunks(PIECE);
        self.push_piece(vertex, neighbours.get(..PIECE).unwrap_or(neighbours), weights.next());
        for piece in neighbours.get(PIECE..).unwrap_or_default().chunks(PIECE) {
            self.complete();
            self.first = vertex;
            self.push_piece(vertex, piece, weights.next());
        }
        if is_hub || self.is_full() {
            self.complete();
        }
    }

    /// Appends the list of the next vertex in its encoded form, from another block.
    pub(crate) fn push_encoded(&mut self, list: &Piece<'_>) {
        self.lists.extend(list.distances);
        self.lists.extend(list.weights);
        let weight_tag = list.weight_width.checked_ilog2().unwrap_or_default() << 2;
        self.end(weight_tag | (list.width - 1) as u32);
        if self.is_full() {
            self.complete();
        }
    }

    fn is_full(&self) -> bool {
        self.lists.len() + self.ends.len() * 4 >= BLOCK_BYTES
    }

    fn push_piece(&mut self, vertex: u32, neighbours: &[u32], weights: Option<&[f64]>) {
        let mut last = None;
        let distances = neighbours.iter().map(|neighbour| {
            let distance = last.map_or_else(|| zigzag(vertex, *neighbour), |last| neighbour - last);
            last = Some(*neighbour);
            distance
        });
        let distances: Vec<u32> = distances.collect();
        let width = width_of(distances.iter().fold(0, |all, distance| all | distance));
        for distance in distances {
            self.lists.extend(distance.to_le_bytes().iter().take(width));
        }
        let tag = weights.map_or(0, |weights| push_weights(&mut self.lists, weights)) << 2;
        self.end(tag | (width - 1) as u32);
    }

    /// Appends bytes instead of a list.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.lists.extend(bytes);
        self.end(0);
        if self.is_full() {
            self.complete();
        }
    }

    fn end(&mut self, tag: u32) {
        self.ends.push(self.lists.len() as u32 | tag << TAG_SHIFT);
    }

    fn complete(&mut self) {
        let mut block = vec![FORMAT, u8::from(self.is_weighted), 0, 0];
        block.extend(self.first.to_le_bytes());
        block.extend((self.ends.len() as u32).to_le_bytes());
        block.extend(self.ends.iter().flat_map(|end| end.to_le_bytes()));
        block.append(&mut self.lists);
        self.full.push(block);
        self.first += self.ends.len() as u32;
        self.ends.clear();
    }

    /// The blocks, in order.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        if !self.ends.is_empty() {
            self.complete();
        }
        self.full
    }
}

/// The number of bytes that a number needs, at least 1.
fn width_of(number: u32) -> usize {
    (4 - number.leading_zeros() as usize / 8).max(1)
}

/// Appends the weights, and returns the base-2 logarithm of their width.
fn push_weights(lists: &mut Vec<u8>, weights: &[f64]) -> u32 {
    let whole = |weight: &f64| {
        let number = *weight as u32;
        (f64::from(number).to_bits() == weight.to_bits()).then_some(number)
    };
    let Some(numbers) = weights.iter().map(whole).collect::<Option<Vec<u32>>>() else {
        lists.extend(weights.iter().flat_map(|weight| weight.to_le_bytes()));
        return 3;
    };
    let width = width_of(numbers.iter().fold(0, |all, number| all | number)).next_power_of_two();
    for number in numbers {
        lists.extend(number.to_le_bytes().iter().take(width));
    }
    width.ilog2()
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The end is that of the largest neighbour. Distances whose sum is no `u32` would wrap to
        /// a small neighbour; their end is too large for any graph.
        #[test]
        fn end_bounds_every_neighbour(
            vertex: u32,
            width in 1..=4_usize,
            distances in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (weight_width, weights) = (0, &[][..]);
            let piece = Piece { vertex, width, distances: &distances, weight_width, weights };
            let neighbours: Vec<u32> = piece.neighbours().collect();
            prop_assert_eq!(piece.len(), neighbours.len());
            let steps = neighbours.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
            let steps: u64 = steps.map(u64::from).sum();
            let end = neighbours.first().map_or(0, |first| u64::from(*first) + steps + 1);
            prop_assert_eq!(piece.end(), end);
            if (1..=1 << 32).contains(&end) {
                prop_assert!(neighbours.iter().all(|neighbour| u64::from(*neighbour) < end));
            }
        }
    }
}
