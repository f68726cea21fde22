//! Places on paper: cells, dots and circles under a projection.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use keyloom_patterns::spatial::{Area, CellBounds, CoverPart, EARTH_RADIUS, GeoCell, Relation};
use keyloom_patterns::{Circle, LatLng};

use crate::card::Card;

/// A part of the world with equal steps of longitude and of latitude.
#[derive(Clone, Copy)]
pub struct Flat {
    /// Where the north-western corner is on paper.
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    /// What is there, in degrees; longitudes may go on behind 180.
    pub bounds: CellBounds,
}

impl Flat {
    /// Longitudes that go on behind the eastern edge come in from the west as they are on the
    /// globe.
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

    /// What of a cell is on the map, in degrees.
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

    /// The outline of a cell, empty when it is not on the map.
    pub fn cell(&self, cell: &CellBounds) -> String {
        let Some(CellBounds { south, west, north, east }) = self.clipped(cell) else {
            return String::new();
        };
        let (left, right, top, bottom) = (self.x(west), self.x(east), self.y(north), self.y(south));
        format!("M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}z")
    }

    /// Where the map ends on paper.
    pub fn ends(&self) -> [f64; 2] {
        [self.left, self.left + self.width]
    }

    /// Where a position is on paper, if it is on the map.
    pub fn place(&self, position: &LatLng) -> Option<(f64, f64)> {
        let CellBounds { south, west, north, east } = self.bounds;
        let (latitude, longitude) = (position.latitude(), self.turned(position.longitude()));
        let is_there = (south..=north).contains(&latitude) && (west..=east).contains(&longitude);
        is_there.then(|| (self.x(longitude), self.y(latitude)))
    }
}

/// The cells of a cover, drawn by `outline`, in their colours.
pub fn cells(card: &mut Card, parts: &[CoverPart], outline: impl Fn(&CellBounds) -> String) {
    let classes = [
        (Relation::Outside, "gap edges"),
        (Relation::Across, "across edges"),
        (Relation::Inside, "inside edges"),
    ];
    for (relation, class) in classes {
        let parts = parts.iter().filter(|part| part.relation() == relation);
        let cells = parts.flat_map(CoverPart::cells);
        card.path(class, cells.map(|cell| outline(&cell.bounds())).collect());
    }
}

/// The cities of a map as dots: found, read in vain, not read. Of those that fall within so many
/// pixels, one.
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

/// Whether a city is in what a query reads.
pub fn is_read(parts: &[CoverPart], city: &LatLng) -> bool {
    let Ok(cell) = GeoCell::of(city, u64::BITS) else { return false };
    let code = *cell.codes().start();
    let begun = parts.partition_point(|part| *part.codes().start() <= code);
    parts.iter().take(begun).next_back().is_some_and(|part| part.codes().contains(&code))
}

/// With at most one digit behind the point.
fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// The edge of a circle as a line on paper. Where it leaves a map at one of its `ends`, it comes in
/// at the other.
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

/// Where one comes on the edge of a circle when one leaves its centre with this bearing.
fn destination(circle: &Circle, bearing: f64) -> Option<LatLng> {
    let angle = circle.radius() / EARTH_RADIUS;
    let latitude = circle.centre().latitude().to_radians();
    let sine = latitude.sin() * angle.cos() + latitude.cos() * angle.sin() * bearing.cos();
    let east = bearing.sin() * angle.sin() * latitude.cos();
    let north = angle.cos() - latitude.sin() * sine;
    let longitude = circle.centre().longitude() + east.atan2(north).to_degrees();
    LatLng::new(sine.clamp(-1.0, 1.0).asin().to_degrees(), longitude).ok()
}
