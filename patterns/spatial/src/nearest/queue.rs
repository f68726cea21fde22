//! The priority queue of a search by distance.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Deref;

use super::super::position::Haversine;
use super::part::{Part, Stretch};
use super::{NearestPlace, Places};

/// The points that were read, and the parts of the index that were not read. Both are sorted by
/// distance. The distance of a part is the least distance that a point in it can have.
pub(super) struct Queue<B, K, S: Places> {
    points: BinaryHeap<Candidate<NearestPlace<B, K, S::Place>>>,
    parts: BinaryHeap<Candidate<Part<S::Cell>>>,
}

/// The next step of the search.
pub(super) enum Next<B, K, S: Places> {
    /// The next point of the result: no unread point comes before it.
    Point(NearestPlace<B, K, S::Place>),
    /// The nearest part is to be read.
    Part(Part<S::Cell>),
    End,
}

impl<B: Deref<Target = [u8]>, K, S: Places> Queue<B, K, S> {
    pub(super) fn new() -> Self {
        Self { points: BinaryHeap::new(), parts: BinaryHeap::new() }
    }

    pub(super) fn push_point(&mut self, point: NearestPlace<B, K, S::Place>) {
        self.points.push(Candidate { haversine: Haversine(point.place().1), item: point });
    }

    pub(super) fn push_part(&mut self, least: Haversine, part: Part<S::Cell>) {
        self.parts.push(Candidate { haversine: least, item: part });
    }

    pub(super) fn next(&mut self) -> Next<B, K, S> {
        let is_part = self
            .parts
            .peek()
            .is_some_and(|part| self.points.peek().is_none_or(|point| part.rank() < point.rank()));
        let next = match is_part {
            true => self.parts.pop().map(|part| Next::Part(part.item)),
            false => self.points.pop().map(|point| Next::Point(point.item)),
        };
        next.unwrap_or(Next::End)
    }

    /// The nearest part if it is a stretch, whether it is the next step or not.
    pub(super) fn next_stretch(&mut self) -> Option<Stretch<S::Cell>> {
        let part = self.parts.peek_mut()?;
        match part.item {
            Part::Stretch(stretch) => {
                PeekMut::pop(part);
                Some(stretch)
            }
            Part::Crowd(_) => None,
        }
    }
}

struct Candidate<T> {
    haversine: Haversine,
    item: T,
}

trait Item {
    /// A lower bound of the keys of the item. It decides the order at equal distance.
    fn floor(&self) -> &[u8];
}

impl<B: Deref<Target = [u8]>, K, P> Item for NearestPlace<B, K, P> {
    fn floor(&self) -> &[u8] {
        self.entry().entry_key()
    }
}

impl<C> Item for Part<C> {
    fn floor(&self) -> &[u8] {
        match self {
            Self::Crowd(crowd) => crowd.spot.as_deref().unwrap_or_default(),
            Self::Stretch(_) => &[],
        }
    }
}

impl<T: Item> Candidate<T> {
    fn rank(&self) -> (f64, &[u8]) {
        (self.haversine.0, self.item.floor())
    }
}

/// The heap returns the greatest candidate first, so the nearest candidate is the greatest.
impl<T: Item> Ord for Candidate<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((haversine, floor), (others, other)) = (self.rank(), other.rank());
        others.total_cmp(&haversine).then_with(|| other.cmp(floor))
    }
}

impl<T: Item> PartialOrd for Candidate<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Item> PartialEq for Candidate<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Item> Eq for Candidate<T> {}
