//! Areas on the sphere, and their relation to cells.

use keyloom::{Error, Result};
use serde::{Deserialize, Serialize};

use super::position::{LatLng, check_finite, check_latitude, check_longitude, normalize};

/// The relation of an area to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellRelation {
    /// The area and the cell have no position in common.
    Outside,
    /// The area and the cell may have positions in common.
    Across,
    /// All positions of the cell are in the area.
    Inside,
}

/// The edges of a cell, in degrees. The edges belong to the cell. A cell does not cross the
/// meridian at ±180 degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellBounds {
    /// The southern edge.
    pub south: f64,
    /// The western edge, from -180.
    pub west: f64,
    /// The northern edge.
    pub north: f64,
    /// The eastern edge, up to 180.
    pub east: f64,
}

/// An area on the sphere. It defines which positions it contains, and its relation to cells.
///
/// [`Circle`](super::Circle), [`BoundingBox`] and [`Polygon`](super::Polygon) are areas, and a
/// program may define others. Queries find exactly the positions that the area
/// [contains](Area::contains). A [relation](Area::relation) of [`CellRelation::Across`] is always
/// correct and only costs time. A wrong [`CellRelation::Outside`] loses positions, and a wrong
/// [`CellRelation::Inside`] adds positions outside the area.
///
/// ```
/// use keyloom_spatial::{Area, CellBounds, CellRelation};
/// use keyloom_spatial::LatLng;
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
/// ```
pub trait Area {
    /// Whether a position is in the area.
    fn contains(&self, position: &LatLng) -> bool;

    /// The relation of the area to a cell.
    fn relation(&self, cell: &CellBounds) -> CellRelation;

    /// A box that contains the whole area. The default is the whole world.
    ///
    /// After positions outside the area, a query continues where the curve enters this box again. A
    /// box that is too large costs time; a box that is too small loses positions.
    fn bounds(&self) -> BoundingBox {
        BoundingBox::WORLD
    }

    /// The positions in both areas.
    fn intersection<B: Area>(self, other: B) -> Combined<Self, B>
    where
        Self: Sized,
    {
        Combined::new(self, Operation::Intersection, other)
    }

    /// The positions in at least one of the areas. A query finds each point once.
    fn union<B: Area>(self, other: B) -> Combined<Self, B>
    where
        Self: Sized,
    {
        Combined::new(self, Operation::Union, other)
    }

    /// The positions in this area and not in the other one. With two circles around one centre, the
    /// difference is a ring: the positions beyond a minimum distance.
    ///
    /// ```
    /// use keyloom_spatial::{Area, Circle, LatLng};
    /// let paris = LatLng::new(48.8534, 2.3488)?;
    /// let ring = Circle::new(paris, 50_000.0)?.difference(Circle::new(paris, 10_000.0)?);
    /// assert!(ring.contains(&LatLng::new(48.8049, 2.1204)?)); // Versailles
    /// assert!(!ring.contains(&LatLng::new(48.9356, 2.3539)?)); // Saint-Denis
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    fn difference<B: Area>(self, other: B) -> Combined<Self, B>
    where
        Self: Sized,
    {
        Combined::new(self, Operation::Difference, other)
    }
}

macro_rules! same_area {
    ($($pointer:ty)*) => {
        $(impl<A: Area + ?Sized> Area for $pointer {
            fn contains(&self, position: &LatLng) -> bool {
                (**self).contains(position)
            }

            fn relation(&self, cell: &CellBounds) -> CellRelation {
                (**self).relation(cell)
            }

            fn bounds(&self) -> BoundingBox {
                (**self).bounds()
            }
        })*
    };
}

same_area!(&A Box<A>);

/// All positions between two parallels and two meridians. With serde, a box is a struct of `south`,
/// `north`, `west` and `east`; deserialization returns the errors of [`new`](BoundingBox::new).
///
/// ```
/// use keyloom_spatial::Area;
/// use keyloom_spatial::{BoundingBox, LatLng};
/// // From 170° east, across the antimeridian, to 170° west.
/// let fiji = BoundingBox::new(-25.0, 170.0, -10.0, -170.0)?;
/// assert!(fiji.contains(&LatLng::new(-17.8, 178.0)?));
/// assert!(fiji.contains(&LatLng::new(-17.8, -180.0)?));
/// assert!(!fiji.contains(&LatLng::new(-17.8, 0.0)?));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Edges")]
pub struct BoundingBox {
    south: f64,
    north: f64,
    /// Normalized. If the box crosses ±180 degrees, `west` is greater than `east`.
    west: f64,
    east: f64,
}

/// The serialized form of a [`BoundingBox`].
#[derive(Deserialize)]
#[serde(rename = "BoundingBox")]
struct Edges {
    south: f64,
    north: f64,
    west: f64,
    east: f64,
}

impl TryFrom<Edges> for BoundingBox {
    type Error = Error;

    fn try_from(Edges { south, north, west, east }: Edges) -> Result<Self> {
        Self::new(south, west, north, east)
    }
}

impl BoundingBox {
    /// All positions.
    pub const WORLD: Self = Self { south: -90.0, north: 90.0, west: -180.0, east: 180.0 };

    /// The box from the south-western to the north-eastern corner, edges included. If `west` is
    /// greater than `east`, the box crosses the meridian at ±180 degrees. A box from -180 to 180
    /// degrees contains all longitudes. A box that reaches a pole contains the pole, which has all
    /// longitudes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a latitude beyond ±90 degrees, for a longitude beyond ±180
    /// degrees, for a `south` that is north of `north`, and for a number that is not finite.
    pub fn new(south: f64, west: f64, north: f64, east: f64) -> Result<Self> {
        check_longitude("the west of the box", west)?;
        check_longitude("the east of the box", east)?;
        Self::wrapping(south, west, north, east)
    }

    /// Like [`new`](BoundingBox::new), for longitudes of any number of degrees: 170 to 190 means
    /// 170 to -170. If `east` is 360 degrees or more east of `west`, the box contains all
    /// longitudes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a latitude beyond ±90 degrees, for a `south` that is north of
    /// `north`, and for a number that is not finite.
    pub fn wrapping(south: f64, west: f64, north: f64, east: f64) -> Result<Self> {
        check_latitude("the south of the box", south)?;
        check_latitude("the north of the box", north)?;
        check_finite("the west of the box", west)?;
        check_finite("the east of the box", east)?;
        if south > north {
            return Err(Error::InvalidArgument {
                what: "the box",
                value: format!("south {south}, north {north}"),
                why: "its south is north of its north; name the southern edge first",
            });
        }
        let (width, west, east) = (east - west, normalize(west), normalize(east));
        // The box is slightly narrower than 360 degrees, and rounding moved the eastern edge onto
        // or past the western edge.
        let has_lost_a_turn = width > 359.0 && (0.0..1.0).contains(&(east - west));
        if width >= 360.0 || has_lost_a_turn {
            return Ok(Self { south, north, west: -180.0, east: 180.0 });
        }
        Ok(Self { south, north, west, east })
    }

    /// A box from its stored edges.
    pub(super) fn stored([south, west, north, east]: [f64; 4]) -> Self {
        Self { south, north, west, east }
    }

    pub(super) fn of_position(position: &LatLng) -> Self {
        let (latitude, longitude) = (position.latitude(), position.longitude());
        Self::stored([latitude, longitude, latitude, longitude])
    }

    /// The latitude of the southern edge.
    pub fn south(&self) -> f64 {
        self.south
    }

    /// The longitude of the western edge.
    pub fn west(&self) -> f64 {
        self.west
    }

    /// The latitude of the northern edge.
    pub fn north(&self) -> f64 {
        self.north
    }

    /// The longitude of the eastern edge. If the box crosses ±180 degrees, this longitude is less
    /// than that of the western edge.
    pub fn east(&self) -> f64 {
        self.east
    }

    /// The longitudes as two intervals. The intervals are equal unless the box crosses ±180
    /// degrees.
    pub(super) fn stretches(&self) -> [(f64, f64); 2] {
        match self.west <= self.east {
            true => [(self.west, self.east); 2],
            false => [(self.west, 180.0), (-180.0, self.east)],
        }
    }
}

impl Area for BoundingBox {
    #[inline]
    fn contains(&self, position: &LatLng) -> bool {
        let longitude = position.longitude();
        let is_east = longitude >= self.west;
        let is_west = longitude <= self.east;
        let is_between =
            if self.west <= self.east { is_east && is_west } else { is_east || is_west };
        (self.south..=self.north).contains(&position.latitude())
            && (is_between || position.is_pole())
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        if cell.south > self.north || cell.north < self.south {
            return CellRelation::Outside;
        }
        // A pole is stored with longitude 0.
        let has_pole = (cell.north >= 90.0 && self.north >= 90.0
            || cell.south <= -90.0 && self.south <= -90.0)
            && cell.west <= 0.0
            && cell.east >= 0.0;
        let stretches = self.stretches();
        if !has_pole && stretches.iter().all(|(west, east)| cell.east < *west || cell.west > *east)
        {
            return CellRelation::Outside;
        }
        let is_high = self.south <= cell.south && cell.north <= self.north;
        let is_wide = stretches.iter().any(|(west, east)| *west <= cell.west && cell.east <= *east);
        if is_high && is_wide { CellRelation::Inside } else { CellRelation::Across }
    }

    fn bounds(&self) -> BoundingBox {
        *self
    }
}

/// An area made of two others, by [`Area::union`], [`Area::intersection`] or [`Area::difference`].
#[derive(Clone, Copy, Debug)]
pub struct Combined<A, B> {
    first: A,
    second: B,
    operation: Operation,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Union,
    Intersection,
    Difference,
}

impl<A: Area, B: Area> Combined<A, B> {
    pub(super) fn new(first: A, operation: Operation, second: B) -> Self {
        Self { first, second, operation }
    }

    /// The smaller of the boxes of both areas.
    fn smaller_bounds(&self) -> BoundingBox {
        let (first, second) = (self.first.bounds(), self.second.bounds());
        let size = |area: &BoundingBox| (area.north() - area.south()) * width(area);
        if size(&first) <= size(&second) { first } else { second }
    }
}

impl<A: Area, B: Area> Area for Combined<A, B> {
    fn contains(&self, position: &LatLng) -> bool {
        let in_first = self.first.contains(position);
        match self.operation {
            Operation::Union => in_first || self.second.contains(position),
            Operation::Intersection => in_first && self.second.contains(position),
            Operation::Difference => in_first && !self.second.contains(position),
        }
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        use CellRelation::{Across, Inside, Outside};
        let first = self.first.relation(cell);
        // If one area has this relation, the relation of the other area does not matter.
        let decisive = if let Operation::Union = self.operation { Inside } else { Outside };
        if first == decisive {
            return decisive;
        }
        let second = match (self.operation, self.second.relation(cell)) {
            (Operation::Difference, Inside) => Outside,
            (Operation::Difference, Outside) => Inside,
            (_, second) => second,
        };
        match first {
            _ if second == decisive => decisive,
            Across => Across,
            _ => second,
        }
    }

    fn bounds(&self) -> BoundingBox {
        match self.operation {
            Operation::Union => around(&self.first.bounds(), &self.second.bounds()),
            Operation::Intersection => self.smaller_bounds(),
            Operation::Difference => self.first.bounds(),
        }
    }
}

/// A bound on the rounding error of the eastern edge, in degrees.
const MARGIN: f64 = 1e-9;

/// The extent from west to east, in degrees.
fn width(area: &BoundingBox) -> f64 {
    match area.east() - area.west() {
        width if width < 0.0 => width + 360.0,
        width => width,
    }
}

/// The narrower of two boxes that contain both areas. Each begins at the western edge of one area.
fn around(first: &BoundingBox, second: &BoundingBox) -> BoundingBox {
    let from = |begin: &BoundingBox, other: &BoundingBox| {
        let off = (other.west() - begin.west()).rem_euclid(360.0);
        (begin.west(), width(begin).max(off + width(other)) + MARGIN)
    };
    let ways = [from(first, second), from(second, first)];
    let [(west, width), (other_west, other_width)] = ways;
    let (west, width) =
        if width <= other_width { (west, width) } else { (other_west, other_width) };
    let (south, north) = (first.south().min(second.south()), first.north().max(second.north()));
    BoundingBox::wrapping(south, west, north, west + width).unwrap_or(BoundingBox::WORLD)
}
