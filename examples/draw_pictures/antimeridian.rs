//! The area within 2,000 km of Suva, on a map that ends at the 180th meridian and on a map centred
//! on this meridian.

use keyloom::Subspace;
use keyloom_patterns::spatial::{CellBounds, CoverPart};
use keyloom_patterns::{Circle, LatLng, PointIndex};

use crate::Drawn;
use crate::card::Card;
use crate::map::{self, Flat};

const RADIUS: f64 = 2_000_000.0;
/// All longitudes, in the order of the keys.
const WORLD: Flat = Flat {
    left: 0.0,
    top: 30.0,
    width: 700.0,
    height: 120.0,
    bounds: CellBounds { south: -45.0, west: -180.0, north: 15.0, east: 180.0 },
};
/// The area around the 180th meridian.
const PACIFIC: Flat = Flat {
    left: 0.0,
    top: 186.0,
    width: 700.0,
    height: 430.0,
    bounds: CellBounds { south: -39.0, west: 150.0, north: 3.0, east: 210.0 },
};

pub fn picture(cities: &[LatLng]) -> Drawn<String> {
    let circle = Circle::new(LatLng::new(-18.1416, 178.4415)?, RADIUS)?;
    let by_position = PointIndex::<u32, ()>::new(&Subspace::new(&()), |_, ()| Ok(None));
    let parts = by_position.within(circle).in_ranges(16)?.cover_parts();
    let mut card = Card::new(
        700,
        644,
        "A circle across the antimeridian",
        "The circle of 2,000 km around Suva in Fiji. On a map from 180 degrees west to 180 degrees east it lies \
         in two halves at both ends; around the meridian at 180 degrees it is one circle. The same cells cover it \
         on both maps.",
    );
    card.text(10, 20, "From 180° west to 180° east, as the keys have it: two halves at both ends.");
    draw(&mut card, &WORLD, &circle, &parts, cities, 2.5);
    card.blank(0, 150, 700, 36);
    card.text(
        10,
        176,
        "From 150° east to 150° west: the same circle and the same cells around 180°.",
    );
    draw(&mut card, &PACIFIC, &circle, &parts, cities, 1.0);
    let middle = PACIFIC.x(180.0);
    card.path("meridian", format!("M{middle} {}v{}", PACIFIC.top, PACIFIC.height));
    card.legend(634);
    Ok(card.finish())
}

fn draw(
    card: &mut Card,
    map: &Flat,
    circle: &Circle,
    parts: &[CoverPart],
    cities: &[LatLng],
    pixels: f64,
) {
    map::cells(card, parts, |cell| map.cell(cell));
    map::cities(card, circle, parts, cities, pixels, |city| map.place(city));
    card.path("area", map::edge(circle, map.ends(), |position| map.place(position)));
}
