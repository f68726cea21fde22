//! Circles.

use std::f64::consts::{FRAC_PI_2, PI};

use keyloom::{Error, Result};

use super::area::{Area, BoundingBox, CellBounds, CellRelation};
use super::position::{Centre, EARTH_RADIUS, Haversine, LatLng};
use super::shape::Shape;
use super::sides::{ABSOLUTE, RELATIVE, Sides};

/// All positions within a distance of a centre.
///
/// ```
/// use keyloom_spatial::Area;
/// use keyloom_spatial::{Circle, LatLng};
/// let near_paris = Circle::new(LatLng::new(48.8534, 2.3488)?, 20_000.0)?;
/// assert!(near_paris.contains(&LatLng::new(48.8049, 2.1204)?)); // Versailles
/// assert!(!near_paris.contains(&LatLng::new(49.4431, 1.0993)?)); // Rouen
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Circle {
    centre: Centre,
    radius: f64,
    /// Positions nearer than this are within the radius despite rounding.
    surely_in: Haversine,
    /// Positions farther than this are outside the radius despite rounding.
    surely_out: Haversine,
    /// The southernmost and the northernmost latitude of the circle, in degrees.
    south: f64,
    north: f64,
    /// Half of the width of the circle, in degrees of longitude.
    half_width: f64,
}

impl Circle {
    /// All positions at most `radius` metres from `centre`. A radius of more than half of the
    /// Earth's circumference contains everything.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a radius that is negative or not finite.
    pub fn new(centre: LatLng, radius: f64) -> Result<Self> {
        if !radius.is_finite() || radius < 0.0 {
            return Err(Error::InvalidArgument {
                what: "the radius",
                value: radius.to_string(),
                why: "a radius is a number of metres, 0 or more",
            });
        }
        let angle = radius / EARTH_RADIUS;
        let haversine = Haversine::of_metres(radius).0;
        let margin = haversine * RELATIVE + ABSOLUTE;
        let surely_in = if angle > PI { f64::INFINITY } else { haversine - margin };
        // Near the antipode, a distance has only half of the significant digits of its haversine: a
        // position whose computed distance equals the radius may be 0.1 m farther. The limits
        // contain such positions.
        let surely_out = Haversine(haversine + margin);
        let limit = if angle > PI { angle } else { surely_out.metres() / EARTH_RADIUS };
        let degrees = limit.to_degrees() * (1.0 + RELATIVE) + 1e-12;
        let (south, north) = (centre.latitude() - degrees, centre.latitude() + degrees);
        let centre = Centre::new(centre);
        let has_pole = south <= -90.0 || north >= 90.0 || limit >= FRAC_PI_2;
        let half_width = match has_pole {
            true => 180.0,
            false => {
                (limit.sin() / centre.cosine * (1.0 + RELATIVE)).min(1.0).asin().to_degrees() + 1e-9
            }
        };
        Ok(Self {
            centre,
            radius,
            surely_in: Haversine(surely_in),
            surely_out,
            south,
            north,
            half_width,
        })
    }

    /// The centre of the circle.
    pub fn centre(&self) -> LatLng {
        self.centre.position
    }

    /// The radius in metres.
    pub fn radius(&self) -> f64 {
        self.radius
    }
}

impl Area for Circle {
    #[inline]
    fn contains(&self, position: &LatLng) -> bool {
        let haversine = self.centre.haversine(position);
        haversine < self.surely_in
            || (haversine <= self.surely_out && haversine.metres() <= self.radius)
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        if cell.south > self.north || cell.north < self.south {
            return CellRelation::Outside;
        }
        let sides = Sides::of(&self.centre, cell);
        if sides.nearest > self.half_width {
            return CellRelation::Outside;
        }
        let latitude = self.centre.position.latitude();
        let has_centre = sides.nearest == 0.0 && (cell.south..=cell.north).contains(&latitude);
        if has_centre && cell.north - cell.south > self.north - self.south {
            return CellRelation::Across;
        }
        let (nearest, farthest) = sides.distances(&self.centre, cell);
        if nearest > self.surely_out {
            CellRelation::Outside
        } else if farthest < self.surely_in {
            CellRelation::Inside
        } else {
            CellRelation::Across
        }
    }

    fn bounds(&self) -> BoundingBox {
        let longitude = self.centre.position.longitude();
        let (west, east) = (longitude - self.half_width, longitude + self.half_width);
        let (south, north) = (self.south.max(-90.0), self.north.min(90.0));
        BoundingBox::wrapping(south, west, north, east).unwrap_or(BoundingBox::WORLD)
    }
}

/// The circle contains the nearest position of a box that it overlaps, and the farthest position of
/// a box that is in it. So the decision has the error of one [distance](LatLng::distance).
impl Shape for Circle {
    fn overlaps(&self, extent: &BoundingBox) -> bool {
        extent.cells().any(|cell| {
            let near = Sides::of(&self.centre, &cell).near(&self.centre, &cell);
            near.iter().any(|position| self.contains(position))
        })
    }

    fn contains_box(&self, extent: &BoundingBox) -> bool {
        extent.cells().all(|cell| {
            let far = Sides::of(&self.centre, &cell).far(&self.centre, &cell);
            far.iter().all(|position| self.contains(position))
        })
    }
}
