//! Points, and the cells in which their index sorts them.

use std::iter;
use std::ops::RangeInclusive;

use super::super::area::{Area, CellBounds, CellRelation};
use super::super::cell::{GeoCell, code};
use super::super::position::{Centre, Haversine, LatLng};
use super::{Cell, Places};

/// The points in an area.
pub(in super::super) struct NearPoints<A>(pub(in super::super) A);

impl<A: Area> Places for NearPoints<A> {
    type Cell = GeoCell;
    type Place = LatLng;

    /// Code, latitude and longitude.
    const ELEMENTS: Option<usize> = Some(3);

    fn code(position: &LatLng) -> u64 {
        code(position)
    }

    fn haversine(centre: &Centre, position: &LatLng) -> Haversine {
        centre.haversine(position)
    }

    fn has(&self, position: &LatLng) -> bool {
        self.0.contains(position)
    }

    fn may_be_in(&self, cell: &GeoCell) -> bool {
        self.0.relation(&cell.outer_bounds()) != CellRelation::Outside
    }
}

impl Cell for GeoCell {
    const WORLD: Self = GeoCell::WORLD;

    fn around(first: u64, last: u64) -> Self {
        GeoCell::of_code(first, (last - first).leading_zeros())
    }

    fn codes(&self) -> RangeInclusive<u64> {
        GeoCell::codes(self)
    }

    fn parts(self) -> impl Iterator<Item = Self> {
        self.children().into_iter().flatten()
    }

    fn size(&self) -> f64 {
        GeoCell::size(self)
    }

    fn bounds(&self) -> impl Iterator<Item = CellBounds> {
        iter::once(self.outer_bounds())
    }

    fn inner_bounds(&self) -> impl Iterator<Item = CellBounds> {
        iter::once(self.outer_bounds())
    }
}
