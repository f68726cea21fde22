//! Polygons, with holes.

mod edges;
mod shape;
mod valid;

use geo::algorithm::{BoundingRect, Intersects};
use geo::{Coord, LineString, Rect};
use keyloom::{Error, Result};

use self::edges::Edges;
use super::area::{Area, BoundingBox, CellBounds, CellRelation};
use super::position::{LatLng, check_finite, check_latitude};

/// A polygon, which may have holes. Its edges and the edges of its holes belong to it.
///
/// An edge is a straight line in degrees, as on a map with equal steps of latitude and longitude,
/// and as in GeoJSON (RFC 7946, 3.1.1). It is not the shortest path on the sphere. The longitudes
/// of a polygon that crosses the meridian at ±180 degrees continue beyond it: from 170 to 190. A
/// polygon around a pole has an edge along the pole: from -180 to 180 at latitude 90.
///
/// ```
/// use keyloom_spatial::{Area, Polygon};
/// use keyloom_spatial::LatLng;
/// // Around Fiji, on both sides of the antimeridian; latitude first.
/// let fiji = Polygon::new(&[(-21.0, 176.0), (-21.0, 183.0), (-12.0, 180.0), (-21.0, 176.0)])?;
/// assert!(fiji.contains(&LatLng::new(-17.8, 178.0)?));
/// assert!(fiji.contains(&LatLng::new(-18.0, -179.0)?));
/// assert!(!fiji.contains(&LatLng::new(-12.5, 177.0)?));
/// // Not closed.
/// assert!(Polygon::new(&[(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]).is_err());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Polygon {
    polygon: geo::Polygon<f64>,
    /// The edges of the shell and the holes.
    edges: Edges,
    bounds: Rect<f64>,
}

/// Whole turns by which a longitude may differ from the longitudes of a polygon.
const TURNS: [f64; 3] = [0.0, 360.0, -360.0];
/// A bound on the rounding error of a corner, in degrees.
const MARGIN: f64 = 1e-9;

impl Polygon {
    /// The polygon inside a ring of latitudes and longitudes. The last corner must equal the first.
    ///
    /// Takes about n log n time for the n corners of a border, because only edges whose bounding
    /// boxes meet are compared. Many bounding boxes meet if long slanting edges are side by side,
    /// as in a star of many rays.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a ring that is not closed, has fewer than three corners,
    /// crosses itself, or is wider than 360 degrees; for a latitude beyond ±90 degrees or a
    /// longitude beyond ±540 degrees; and for a number that is not finite.
    pub fn new(ring: &[(f64, f64)]) -> Result<Self> {
        Self::valid(geo::Polygon::new(line_string(ring)?, Vec::new()), 0)
    }

    /// The same polygon without the area inside `ring`.
    ///
    /// # Errors
    /// Errors of [`new`](Polygon::new), and [`Error::InvalidArgument`] for a hole that is not
    /// within the polygon or overlaps another one.
    pub fn with_hole(self, ring: &[(f64, f64)]) -> Result<Self> {
        let mut polygon = self.polygon;
        polygon.interiors_push(line_string(ring)?);
        let hole = polygon.interiors().len();
        Self::valid(polygon, hole)
    }

    /// A polygon of the crate `geo`, with its holes: x is the longitude, y the latitude. The crate
    /// `wkt` converts well-known text from and to this type, and `geojson` converts GeoJSON.
    ///
    /// ```
    /// use keyloom_spatial::{Area, LatLng, Polygon};
    /// use wkt::{ToWkt, TryFromWkt};
    /// let text = "POLYGON((6 46,10 47,7 48,6 46))";
    /// let polygon = Polygon::from_geo(geo::Polygon::try_from_wkt_str(text)?)?;
    /// assert!(polygon.contains(&LatLng::new(47.0, 8.0)?));
    /// assert_eq!(polygon.as_geo().wkt_string(), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`new`](Polygon::new) and [`with_hole`](Polygon::with_hole). (`geo` closes rings
    /// itself.)
    pub fn from_geo(polygon: geo::Polygon<f64>) -> Result<Self> {
        for ring in std::iter::once(polygon.exterior()).chain(polygon.interiors()) {
            let corners: Vec<_> = ring.coords().map(|corner| (corner.y, corner.x)).collect();
            line_string(&corners)?;
        }
        Self::valid(polygon, 0)
    }

    /// The polygon as a type of the crate `geo`: x is the longitude, y the latitude.
    pub fn as_geo(&self) -> &geo::Polygon<f64> {
        &self.polygon
    }

    /// The polygon if it is valid. The rings before `first_ring` are known to be valid.
    fn valid(polygon: geo::Polygon<f64>, first_ring: usize) -> Result<Self> {
        let edges = Edges::of(&polygon);
        valid::check(&polygon, &edges, first_ring).map_err(|error| {
            refused(error.to_string(), "give rings that do not cross; see `Polygon`")
        })?;
        let Some(bounds) = polygon.bounding_rect() else {
            return Err(refused("no corner".into(), "a ring has three corners or more"));
        };
        if bounds.width() > 360.0 {
            let width = format!("{} degrees wide", bounds.width());
            return Err(refused(width, "all longitudes are 360 degrees; take a narrower ring"));
        }
        if bounds.max().x > 540.0 || bounds.min().x < -540.0 {
            let east = format!("longitudes {} to {}", bounds.min().x, bounds.max().x);
            return Err(refused(east, "begin between -180 and 180 degrees"));
        }
        Ok(Self { polygon, edges, bounds })
    }

    fn has(&self, corner: Coord<f64>) -> bool {
        self.bounds.intersects(&corner) && self.edges.contain(corner)
    }

    /// The relation to a cell, shifted to the longitudes of the polygon.
    fn relation_to(&self, cell: &Rect<f64>) -> CellRelation {
        if !self.bounds.intersects(cell) {
            CellRelation::Outside
        } else if self.edges.cross(cell) {
            CellRelation::Across
        } else if self.has(cell.center()) {
            CellRelation::Inside
        } else {
            CellRelation::Outside
        }
    }
}

impl Area for Polygon {
    fn contains(&self, position: &LatLng) -> bool {
        let (x, y) = (position.longitude(), position.latitude());
        // A pole has all longitudes.
        let is_at_pole =
            position.is_pole() && (self.bounds.min().y..=self.bounds.max().y).contains(&y);
        is_at_pole || TURNS.iter().any(|turn| self.has(Coord { x: x + turn, y }))
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        let has_pole = cell.north >= 90.0 && self.bounds.max().y >= 90.0
            || cell.south <= -90.0 && self.bounds.min().y <= -90.0;
        let mut relation = if has_pole { CellRelation::Across } else { CellRelation::Outside };
        for turn in TURNS {
            let south_west = Coord { x: cell.west + turn - MARGIN, y: cell.south - MARGIN };
            let north_east = Coord { x: cell.east + turn + MARGIN, y: cell.north + MARGIN };
            match self.relation_to(&Rect::new(south_west, north_east)) {
                CellRelation::Inside => return CellRelation::Inside,
                CellRelation::Across => relation = CellRelation::Across,
                CellRelation::Outside => {}
            }
        }
        relation
    }

    fn bounds(&self) -> BoundingBox {
        let (low, high) = (self.bounds.min(), self.bounds.max());
        let (west, east) = (low.x - MARGIN, high.x + MARGIN);
        BoundingBox::wrapping(low.y, west, high.y, east).unwrap_or(BoundingBox::WORLD)
    }
}

fn line_string(ring: &[(f64, f64)]) -> Result<LineString<f64>> {
    for (latitude, longitude) in ring {
        check_latitude("the latitude of a corner", *latitude)?;
        check_finite("the longitude of a corner", *longitude)?;
    }
    match ring {
        [first, .., last] if first != last => {
            let corners = format!("a ring from {first:?} to {last:?}");
            Err(refused(corners, "it is not closed; end it with its first corner"))
        }
        [_, _, _, _, ..] => Ok(ring.iter().map(|(y, x)| Coord { x: *x, y: *y }).collect()),
        _ => {
            let corners = format!("a ring of {} corners", ring.len());
            Err(refused(corners, "give three corners or more, and the first again"))
        }
    }
}

fn refused(value: String, why: &'static str) -> Error {
    Error::InvalidArgument { what: "the polygon", value, why }
}
