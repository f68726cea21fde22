//! Areas that decide which boxes overlap them and which are in them.

use super::area::{Area, BoundingBox, CellBounds};
use super::position::{Centre, Haversine, LatLng};
use super::sides::Sides;

/// An area that decides exactly which boxes it overlaps, and which are in it. An
/// [`ExtentIndex`](super::ExtentIndex) finds extents by a shape.
///
/// [`BoundingBox`], [`Circle`](super::Circle) and [`Polygon`](super::Polygon) are shapes, and a
/// program may define others. The edges of a box run along parallels and meridians, and belong to
/// the box. A box that reaches a pole contains the pole, which has all longitudes.
///
/// A [`Combined`](super::Combined) area is not a shape: two areas may both overlap a box and have
/// no position in common there.
///
/// Both functions must agree with [`contains`](Area::contains) and [`relation`](Area::relation): a
/// query skips the extents in cells that are [outside](super::CellRelation::Outside) of the shape,
/// and does not check the extents in cells that are [inside](super::CellRelation::Inside).
///
/// ```
/// use keyloom_spatial::{Area, BoundingBox, CellBounds, CellRelation, LatLng, Shape};
/// /// North of the polar circle.
/// struct Arctic;
///
/// impl Area for Arctic {
///     fn contains(&self, position: &LatLng) -> bool {
///         position.latitude() >= 66.56
///     }
///
///     fn relation(&self, cell: &CellBounds) -> CellRelation {
///         match (cell.south >= 66.56, cell.north < 66.56) {
///             (true, _) => CellRelation::Inside,
///             (_, true) => CellRelation::Outside,
///             _ => CellRelation::Across,
///         }
///     }
/// }
///
/// impl Shape for Arctic {
///     fn overlaps(&self, extent: &BoundingBox) -> bool {
///         extent.north() >= 66.56
///     }
///
///     fn contains_box(&self, extent: &BoundingBox) -> bool {
///         extent.south() >= 66.56
///     }
/// }
/// let norway = BoundingBox::new(58.0, 4.6, 71.2, 31.1)?;
/// assert!(Arctic.overlaps(&norway) && !Arctic.contains_box(&norway));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not decide which boxes overlap it",
    note = "query by a `BoundingBox`, a `Circle`, a `Polygon` or a type that implements `Shape`; \
            for a combined area, query by one of its shapes and check each extent"
)]
pub trait Shape: Area {
    /// Whether the shape and the box have a position in common.
    fn overlaps(&self, extent: &BoundingBox) -> bool;

    /// Whether every position of the box is in the shape.
    fn contains_box(&self, extent: &BoundingBox) -> bool;
}

macro_rules! same_shape {
    ($($pointer:ty)*) => {
        $(impl<A: Shape + ?Sized> Shape for $pointer {
            fn overlaps(&self, extent: &BoundingBox) -> bool {
                (**self).overlaps(extent)
            }

            fn contains_box(&self, extent: &BoundingBox) -> bool {
                (**self).contains_box(extent)
            }
        })*
    };
}

same_shape!(&A Box<A>);

impl Shape for BoundingBox {
    fn overlaps(&self, extent: &BoundingBox) -> bool {
        BoundingBox::overlaps(self, extent)
    }

    fn contains_box(&self, extent: &BoundingBox) -> bool {
        extent.is_inside(self)
    }
}

impl BoundingBox {
    /// The distance along the sphere from a position to the nearest position of the box, in metres;
    /// 0 for a position in the box.
    ///
    /// The distance to a box of one position equals [`LatLng::distance`]. The nearest position of
    /// an edge along a meridian is where a great circle through the position meets the edge at a
    /// right angle, or an end of the edge. The relative error is less than 1e-12, except near the
    /// antipode: a distance of half of the circumference has an error of up to 0.1 m.
    ///
    /// ```
    /// use keyloom_spatial::{BoundingBox, LatLng};
    /// let fiji = BoundingBox::new(-21.0, 176.0, -12.4, -178.2)?;
    /// assert_eq!(fiji.distance(&LatLng::new(-18.0, 179.9)?), 0.0);
    /// let apia = LatLng::new(-13.83, -171.76)?;
    /// assert_eq!((fiji.distance(&apia) / 1_000.0).round(), 695.0);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn distance(&self, position: &LatLng) -> f64 {
        self.haversine(&Centre::new(*position)).metres()
    }

    pub(super) fn haversine(&self, centre: &Centre) -> Haversine {
        let near = self.cells().flat_map(|cell| Sides::of(centre, &cell).near(centre, &cell));
        let least =
            near.map(|position| centre.haversine(&position).0).fold(f64::INFINITY, f64::min);
        Haversine(least)
    }

    /// The box as one cell, or as two cells if it crosses ±180 degrees.
    pub(super) fn cells(&self) -> impl Iterator<Item = CellBounds> + use<> {
        let (south, north) = (self.south(), self.north());
        let count = if self.west() <= self.east() { 1 } else { 2 };
        let cell = move |(west, east)| CellBounds { south, west, north, east };
        self.stretches().into_iter().take(count).map(cell)
    }
}
