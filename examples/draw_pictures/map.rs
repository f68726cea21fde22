//! Positions on the picture: cells, dots and circles under a projection.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use keyloom_patterns::spatial::{Area, CellBounds, CellRelation, CoverPart, EARTH_RADIUS, GeoCell};
use keyloom_patterns::{Circle, LatLng};

use crate::card::Card;

/// A part of the world with equal steps of longitude and of latitude.
#[derive(Clone, Copy)]
pub struct Flat {
    /// The position of the north-western corner on the picture.
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    /// The area of the map, in degrees; longitudes may exceed 180.
    pub bounds: CellBounds,
}

impl Flat {
    /// Adds 360 degrees to a longitude west of the map, because the map may extend beyond 180
    /// degrees.
    fn turned(&self, longitude: f64) -> f64 {
        if longitude < self.bounds.west { longitude + 360.0 } else { longitude }
    }

    pub fn x(&self, longitude: f64) -> f64 {
        let CellBounds { west, east, .. } = self.bounds;
        self.left + (longitude - west) * self.width / (east - west)
    }

    pub fn y(&self, latitude: f64) -> f64 {
        let CellBounds { south, north, .. } = self.bounds;
        self.top + (north - latitude) * self.height / (north - south)
    }

    /// The part of a cell that is on the map, in degrees.
    fn clipped(&self, cell: &CellBounds) -> Option<CellBounds> {
        let turn = if cell.east <= self.bounds.west { 360.0 } else { 0.0 };
        let clipped = CellBounds {
            south: cell.south.max(self.bounds.south),
            west: (cell.west + turn).max(self.bounds.west),
            north: cell.north.min(self.bounds.north),
            east: (cell.east + turn).min(self.bounds.east),
        };
        (clipped.south < clipped.north && clipped.west < clipped.east).then_some(clipped)
    }

    /// The outline of a cell, empty if it is not on the map.
    pub fn cell(&self, cell: &CellBounds) -> String {
        let Some(CellBounds { south, west, north, east }) = self.clipped(cell) else {
            return String::new();
        };
        let (left, right, top, bottom) = (self.x(west), self.x(east), self.y(north), self.y(south));
        format!("M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}z")
    }

    /// The horizontal positions of the edges of the map on the picture.
    pub fn ends(&self) -> [f64; 2] {
        [self.left, self.left + self.width]
    }

    /// The position on the picture, if it is on the map.
    pub fn place(&self, position: &LatLng) -> Option<(f64, f64)> {
        let CellBounds { south, west, north, east } = self.bounds;
        let (latitude, longitude) = (position.latitude(), self.turned(position.longitude()));
        let is_there = (south..=north).contains(&latitude) && (west..=east).contains(&longitude);
        is_there.then(|| (self.x(longitude), self.y(latitude)))
    }
}

/// Draws the cells of a cover by `outline`, in the colours of their classes.
pub fn cells(card: &mut Card, parts: &[CoverPart], outline: impl Fn(&CellBounds) -> String) {
    let classes = [
        (CellRelation::Outside, "gap edges"),
        (CellRelation::Across, "across edges"),
        (CellRelation::Inside, "inside edges"),
    ];
    for (relation, class) in classes {
        let parts = parts.iter().filter(|part| part.relation() == relation);
        let cells = parts.flat_map(CoverPart::cells);
        card.path(class, cells.map(|cell| outline(&cell.bounds())).collect());
    }
}

/// Draws the cities of a map as dots: found, read without a match, not read. Draws one dot for all
/// cities of a class within `pixels` pixels.
pub fn cities(
    card: &mut Card,
    circle: &Circle,
    parts: &[CoverPart],
    cities: &[LatLng],
    pixels: f64,
    place: impl Fn(&LatLng) -> Option<(f64, f64)>,
) {
    let class = |city: &LatLng| match (circle.contains(city), is_read(parts, city)) {
        (true, _) => "dots found",
        (false, true) => "dots vain",
        (false, false) => "dots unread",
    };
    let mut places = BTreeMap::<&str, BTreeSet<(i64, i64)>>::new();
    for (city, (x, y)) in cities.iter().filter_map(|city| Some((city, place(city)?))) {
        let place = ((x / pixels).round() as i64, (y / pixels).round() as i64);
        places.entry(class(city)).or_default().insert(place);
    }
    for (class, places) in places {
        let dot =
            |(x, y)| format!("M{} {}h0", tenths(x as f64 * pixels), tenths(y as f64 * pixels));
        card.path(class, places.into_iter().map(dot).collect());
    }
}

/// Whether a query reads a city.
pub fn is_read(parts: &[CoverPart], city: &LatLng) -> bool {
    let Ok(cell) = GeoCell::of(city, u64::BITS) else { return false };
    let code = *cell.codes().start();
    let begun = parts.partition_point(|part| *part.codes().start() <= code);
    parts.iter().take(begun).next_back().is_some_and(|part| part.codes().contains(&code))
}

/// Rounds to one decimal.
fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// The circumference of a circle as a line on the picture. If it leaves a map at one of its `ends`,
/// the line continues at the other.
pub fn edge(
    circle: &Circle,
    ends: [f64; 2],
    place: impl Fn(&LatLng) -> Option<(f64, f64)>,
) -> String {
    let [left, right] = ends;
    let mut data = String::new();
    let mut before: Option<(f64, f64)> = None;
    for bearing in (0..=360).step_by(2) {
        let here = destination(circle, f64::from(bearing).to_radians());
        let here = here.and_then(|position| place(&position));
        if let Some((x, y)) = here {
            let _ = match before {
                None => write!(data, "M{x:.1} {y:.1}"),
                Some((last, _)) if (last - x).abs() < (right - left) / 2.0 => {
                    write!(data, "L{x:.1} {y:.1}")
                }
                Some((last, _)) => {
                    let (out, back) = if last < x { (left, right) } else { (right, left) };
                    write!(data, "L{out:.1} {y:.1}M{back:.1} {y:.1}L{x:.1} {y:.1}")
                }
            };
        }
        before = here;
    }
    data
}

/// The point on the circumference of a circle in this direction from its centre.
fn destination(circle: &Circle, bearing: f64) -> Option<LatLng> {
    let angle = circle.radius() / EARTH_RADIUS;
    let latitude = circle.centre().latitude().to_radians();
    let sine = latitude.sin() * angle.cos() + latitude.cos() * angle.sin() * bearing.cos();
    let east = bearing.sin() * angle.sin() * latitude.cos();
    let north = angle.cos() - latitude.sin() * sine;
    let longitude = circle.centre().longitude() + east.atan2(north).to_degrees();
    LatLng::wrapping(sine.clamp(-1.0, 1.0).asin().to_degrees(), longitude).ok()
}
