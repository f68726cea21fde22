//! Extents, and the elements in which their index sorts them.

use std::iter;
use std::ops::RangeInclusive;

use super::super::area::{BoundingBox, CellBounds, CellRelation};
use super::super::cell;
use super::super::position::{Centre, Haversine, LatLng};
use super::super::shape::Shape;
use super::super::xz::{Element, Query, code};
use super::{Cell, Places};

/// The extents that a query selects.
pub(in super::super) struct NearExtents<A>(pub(in super::super) Query<A>);

impl<A: Shape> Places for NearExtents<A> {
    type Cell = Branch;
    type Place = BoundingBox;

    const ELEMENTS: Option<usize> = None;

    fn code(position: &LatLng) -> u64 {
        code(&BoundingBox::of_position(position))
    }

    fn haversine(centre: &Centre, extent: &BoundingBox) -> Haversine {
        extent.haversine(centre)
    }

    fn has(&self, extent: &BoundingBox) -> bool {
        self.0.has(extent)
    }

    fn may_be_in(&self, branch: &Branch) -> bool {
        self.0.relation(&branch.element) != CellRelation::Outside
    }
}

/// The extents of an element and of all elements below it, or of the element alone.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Branch {
    element: Element,
    is_alone: bool,
}

impl Cell for Branch {
    const WORLD: Self = Self { element: Element::WHOLE, is_alone: false };

    fn around(first: u64, last: u64) -> Self {
        let mut branch = Self::WORLD;
        let holds = |part: &Self| part.codes().contains(&first) && part.codes().contains(&last);
        while let Some(part) = branch.parts().find(holds) {
            branch = part;
        }
        branch
    }

    fn codes(&self) -> RangeInclusive<u64> {
        self.element.codes(self.is_alone)
    }

    fn parts(self) -> impl Iterator<Item = Self> {
        let Self { element, is_alone } = self;
        let alone = Self { element, is_alone: true };
        let quarters = element.quarters().map(|element| Self { element, is_alone: false });
        let is_divided = !is_alone && !element.is_smallest();
        is_divided.then(|| iter::once(alone).chain(quarters)).into_iter().flatten()
    }

    /// An element alone counts as empty: its few large extents show no density.
    fn size(&self) -> f64 {
        if self.is_alone { 0.0 } else { self.inner_bounds().map(|cell| cell::size(&cell)).sum() }
    }

    fn bounds(&self) -> impl Iterator<Item = CellBounds> {
        self.element.extents().cells()
    }

    fn inner_bounds(&self) -> impl Iterator<Item = CellBounds> {
        self.element.corners().cells()
    }
}
