//! Countries as boxes around their cities, and by the positions of their largest cities; a flight
//! that enters and leaves them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use keyloom::{Result, Store};
use keyloom_patterns::{Attached, BoundingBox, Circle, ExtentIndex, LatLng, PointIndex, Table};
use serde::{Deserialize, Serialize};

use crate::cities::{self, City};
use crate::options::Options;
use crate::report::{act, ask, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "areas and geofences",
    title: "Find the areas that meet a place, and notice when one is entered",
    chapter: "book/src/spatial_boxes.md",
    layout: "(outlines.by_extent, code of a cell, south, west, north, east, country)",
    data: &["outlines", "outlines.by_extent", "outlines.by_city", "planes"],
    shown: "boxes of countries",
};

/// The number of largest cities of a country that are kept with it.
const LARGEST: usize = 10;
/// From Paris to Vienna, in a straight line on the map.
const ROUTE: [(f64, f64); 2] = [(48.8534, 2.3488), (48.2085, 16.3721)];
const POSITIONS: u32 = 50;
const PLANE: u32 = 1;

/// The box around the cities of a country: south, west, north, east. And its largest cities.
#[derive(Serialize, Deserialize)]
struct Outline {
    edges: [f64; 4],
    largest: Vec<(f64, f64)>,
}

pub struct Extents {
    outlines: Table<String, Outline>,
    by_extent: Attached<ExtentIndex<String, Outline>>,
    by_city: Attached<PointIndex<String, Outline>>,
    /// The countries in whose boxes each plane is.
    planes: Table<(u32, String), ()>,
}

impl Extents {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let outlines = tour.schema.table("outlines")?;
        let by_extent = tour.schema.derive(&outlines, "by_extent", 1, |space| {
            Ok(ExtentIndex::new(space, |_country, outline: &Outline| {
                let [south, west, north, east] = outline.edges;
                BoundingBox::new(south, west, north, east).map(Some)
            }))
        })?;
        let by_city = tour.schema.derive(&outlines, "by_city", 1, |space| {
            Ok(PointIndex::new(space, |_country, outline: &Outline| {
                let cities = outline.largest.iter();
                cities.map(|city| LatLng::new(city.0, city.1)).collect::<Result<Vec<_>>>()
            }))
        })?;
        Ok(Self { outlines, by_extent, by_city, planes: tour.schema.table("planes")? })
    }

    /// Moves the plane, or lands it, in one transaction. Returns the countries that it has entered
    /// or left.
    fn moved(&self, store: &TourStore, to: Option<LatLng>) -> Result<Vec<String>> {
        store.transact(|txn| {
            let mut now = BTreeSet::new();
            if let Some(to) = to {
                for extent in self.by_extent.at(txn)?.containing(to).extents(txn)? {
                    now.insert((PLANE, extent?.record_key()?));
                }
            }
            let before = self.planes.range(txn, PLANE)?.map(|row| Ok(row?.0));
            let before = before.collect::<Result<BTreeSet<_>>>()?;
            let entered: Vec<_> = now.difference(&before).cloned().collect();
            let left: Vec<_> = before.difference(&now).cloned().collect();
            self.planes.put_many(txn, entered.iter().map(|key| (key.clone(), ())))?;
            self.planes.delete_many(txn, &left)?;
            let entered = entered.iter().map(|(_, country)| format!("+{country}"));
            Ok(entered.chain(left.iter().map(|(_, country)| format!("-{country}"))).collect())
        })
    }
}

/// The outlines of all countries that have a city.
fn outlines(data: &Path) -> TourResult<Vec<(String, Outline)>> {
    let mut countries = BTreeMap::<String, Vec<City>>::new();
    for city in cities::read(data)? {
        let (_, city) = city?;
        countries.entry(city.country.clone()).or_default().push(city);
    }
    let outlines = countries.into_iter().map(|(country, mut cities)| {
        let edges = edges(&cities);
        cities.sort_by_key(|city| Reverse(city.population));
        let largest = cities.iter().take(LARGEST).map(|city| (city.latitude, city.longitude));
        (country, Outline { edges, largest: largest.collect() })
    });
    Ok(outlines.collect())
}

/// The smallest box around cities. Its west is the end of the widest gap between longitudes, so
/// that a country across the antimeridian does not get a box around the globe.
fn edges(cities: &[City]) -> [f64; 4] {
    let latitudes = cities.iter().map(|city| city.latitude);
    let (south, north) = latitudes.fold((90.0_f64, -90.0_f64), |(south, north), latitude| {
        (south.min(latitude), north.max(latitude))
    });
    let mut longitudes: Vec<f64> = cities.iter().map(|city| city.longitude).collect();
    longitudes.sort_by(f64::total_cmp);
    let next = longitudes.iter().skip(1);
    let mut gaps: Vec<_> = longitudes.iter().copied().zip(next.copied()).collect();
    if let (Some(first), Some(last)) = (longitudes.first(), longitudes.last()) {
        gaps.push((*last, *first + 360.0));
    }
    let widest = gaps.into_iter().max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    let (east, west) = widest.unwrap_or_default();
    [south, if west > 180.0 { west - 360.0 } else { west }, north, east]
}

impl Step for Extents {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        if self.outlines.get(&store.snapshot()?, "CH")?.is_some() {
            say!("outlines   in the store already");
            return Ok(());
        }
        let outlines = outlines(&options.data)?;
        store.transact(|txn| self.outlines.put_many(txn, &outlines))?;
        say!("outlines   boxes and {LARGEST} largest cities of {} countries", outlines.len());
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let basel = LatLng::new(47.5584, 7.5733)?;
        ask(store, "Which boxes of countries meet 30 km around Basel? (a circle)", |snapshot| {
            let circle = Circle::new(basel, 30_000.0)?;
            let found = self.by_extent.at(snapshot)?.overlapping(circle).extents(snapshot)?;
            let mut found: Vec<String> =
                found.map(|extent| extent?.record_key()).collect::<Result<_>>()?;
            found.sort();
            Ok((vec![found.join(", ")], ()))
        })?;
        ask(
            store,
            "Which have one of their ten largest cities within 300 km of it? (many positions)",
            |snapshot| {
                let circle = Circle::new(basel, 300_000.0)?;
                let points = self.by_city.at(snapshot)?.within(circle).points(snapshot)?;
                let found: BTreeSet<String> =
                    points.map(|point| point?.record_key()).collect::<Result<_>>()?;
                Ok((vec![found.into_iter().collect::<Vec<_>>().join(", ")], ()))
            },
        )?;
        act(store, "A plane from Paris to Vienna enters (+) and leaves (-): (geofences)", |store| {
            let [from, to] = ROUTE;
            // A run that was interrupted in the air has left the plane there.
            self.moved(store, None)?;
            let mut events = Vec::new();
            for step in 0..=POSITIONS {
                let way = f64::from(step) / f64::from(POSITIONS);
                let between = |a: f64, b: f64| a + (b - a) * way;
                let at = LatLng::new(between(from.0, to.0), between(from.1, to.1))?;
                events.extend(self.moved(store, Some(at))?);
            }
            self.moved(store, None)?;
            Ok(vec![events.join(" ")])
        })
    }
}
