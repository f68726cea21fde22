//! The area within 100 km of Paris, and the reads of a query for it.

use keyloom::{Memory, Store, Subspace};
use keyloom_patterns::spatial::{AreaQuery, CellBounds};
use keyloom_patterns::{Circle, Explain, LatLng, PointIndex, Scan, Table};

use crate::Drawn;
use crate::card::Card;
use crate::map::{self, Flat};

const RADIUS: f64 = 100_000.0;
/// The area of the map; a degree of longitude is drawn two thirds as long as a degree of latitude.
const MAP: Flat = Flat {
    left: 0.0,
    top: 0.0,
    width: 700.0,
    height: 560.0,
    bounds: CellBounds { south: 47.72, west: 0.27, north: 49.98, east: 4.43 },
};
const HEIGHT: u32 = 560;

pub fn picture(cities: &[LatLng], ranges: usize) -> Drawn<String> {
    let space = Subspace::new("by_position");
    let by_position = PointIndex::new(&space, |_id: &u32, (latitude, longitude): &(f64, f64)| {
        LatLng::new(*latitude, *longitude).map(Some)
    });
    let circle = Circle::new(LatLng::new(48.8534, 2.3488)?, RADIUS)?;
    let query = by_position.within(circle).in_ranges(ranges)?;
    let parts = query.cover_parts();
    let read: Vec<_> = cities.iter().copied().filter(|city| map::is_read(&parts, city)).collect();
    let explain = explain(&by_position, query, &read)?;

    let title = format!("The cities within 100 km of Paris, in {ranges} ranges");
    let per_hit = explain.keys_scanned as f64 / explain.keys_returned as f64;
    let read_for = format!(
        "In {ranges} ranges: {} cities found (green), {} keys read (red: in vain), {per_hit:.2} for each.",
        explain.keys_returned, explain.keys_scanned,
    );
    let description = format!(
        "A map around Paris with a circle, the cells that a query of {ranges} ranges reads, the gaps \
         in the ranges, and the cities. {read_for}"
    );
    let mut card = Card::new(700, HEIGHT + 52, &title, &description);
    map::cells(&mut card, &parts, |cell| MAP.cell(cell));
    map::cities(&mut card, &circle, &parts, cities, 1.0, |city| MAP.place(city));
    card.path("area", map::edge(&circle, MAP.ends(), |position| MAP.place(position)) + "z");
    card.blank(0, HEIGHT, 700, 52);
    card.text(10, HEIGHT + 20, &read_for);
    card.legend(HEIGHT + 42);
    Ok(card.finish())
}

/// The reads of the query over these cities.
fn explain(
    by_position: &PointIndex<u32, (f64, f64)>,
    query: AreaQuery<'_, u32, Circle>,
    cities: &[LatLng],
) -> keyloom::Result<Explain> {
    let table = Table::<u32, (f64, f64)>::new(&Subspace::new("cities")).with(by_position);
    let degrees = |city: &LatLng| (city.latitude(), city.longitude());
    let records = (0..).zip(cities.iter().map(degrees));
    let store = Memory::new();
    store.transact(|txn| table.put_many(txn, records.clone()))?;
    let snapshot = store.snapshot()?;
    let mut points = query.points(&snapshot)?;
    points.by_ref().try_for_each(|point| point.map(drop))?;
    Ok(points.explain())
}
