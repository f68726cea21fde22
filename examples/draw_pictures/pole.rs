//! The area within 1,500 km of Longyearbyen, which includes the pole: seen from above the pole, and
//! in the order of the keys.

use keyloom::Subspace;
use keyloom_patterns::spatial::CellBounds;
use keyloom_patterns::{Circle, LatLng, PointIndex};

use crate::Drawn;
use crate::card::Card;
use crate::map::{self, Flat};

const RADIUS: f64 = 1_500_000.0;
/// The southern edge of both maps.
const SOUTH: f64 = 62.0;
/// The centre of the map from above; `DEGREE` is the length of a degree of latitude.
const MIDDLE: (f64, f64) = (350.0, 176.0);
const DEGREE: f64 = 12.0;
/// The map in the order of the keys: the pole is its upper edge.
const STRIP: Flat = Flat {
    left: 0.0,
    top: 550.0,
    width: 700.0,
    height: 130.0,
    bounds: CellBounds { south: SOUTH, west: -180.0, north: 90.0, east: 180.0 },
};

pub fn picture(cities: &[LatLng]) -> Drawn<String> {
    let circle = Circle::new(LatLng::new(78.2186, 15.6401)?, RADIUS)?;
    let by_position = PointIndex::<u32, ()>::new(&Subspace::new(&()), |_, ()| Ok(None));
    let parts = by_position.within(circle).in_ranges(16)?.cover_parts();
    let mut card = Card::new(
        700,
        708,
        "A circle around Longyearbyen with the north pole in it",
        "From above the pole it is a circle, and the cells are sectors of rings. With the longitude to the right \
         and the latitude upwards it has the shape of a bell under a band along the upper edge, which is the pole.",
    );
    map::cells(&mut card, &parts, sector);
    map::cells(&mut card, &parts, |cell| STRIP.cell(cell));
    map::cities(&mut card, &circle, &parts, cities, 1.0, from_above);
    map::cities(&mut card, &circle, &parts, cities, 1.0, |city| STRIP.place(city));
    let no_ends = [f64::NEG_INFINITY, f64::INFINITY];
    card.path("area", map::edge(&circle, no_ends, from_above));
    card.path("area", map::edge(&circle, STRIP.ends(), |position| STRIP.place(position)));
    card.blank(0, 0, 700, 30);
    card.text(10, 20, "From above the pole: cells narrow towards it.");
    card.text(10, 540, "As the keys have it: the pole is the whole upper edge.");
    card.legend(698);
    Ok(card.finish())
}

/// The prime meridian points down, the east to the right.
fn polar(latitude: f64, longitude: f64) -> (f64, f64) {
    let (far, angle) = ((90.0 - latitude) * DEGREE, longitude.to_radians());
    (MIDDLE.0 + far * angle.sin(), MIDDLE.1 + far * angle.cos())
}

fn from_above(position: &LatLng) -> Option<(f64, f64)> {
    (position.latitude() >= SOUTH).then(|| polar(position.latitude(), position.longitude()))
}

/// The outline of a cell, which is part of a ring.
fn sector(cell: &CellBounds) -> String {
    let CellBounds { south, west, north, east } = *cell;
    let south = south.max(SOUTH);
    if south >= north {
        return String::new();
    }
    let is_large = u8::from(east - west > 180.0);
    let (outer, inner) = ((90.0 - south) * DEGREE, (90.0 - north) * DEGREE);
    let [a, b, c, d] = [(south, west), (south, east), (north, east), (north, west)]
        .map(|(latitude, longitude)| polar(latitude, longitude))
        .map(|(x, y)| format!("{x:.1} {y:.1}"));
    format!(
        "M{a}A{outer:.1} {outer:.1} 0 {is_large} 0 {b}L{c}A{inner:.1} {inner:.1} 0 {is_large} 1 {d}z"
    )
}
