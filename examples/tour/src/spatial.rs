//! Cities by position: around a place, nearest to a place, within an outline, and counts per area.

use std::cmp::Reverse;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

use keyloom::{Reader, Result, Store};
#[cfg(feature = "polygons")]
use keyloom_patterns::Polygon;
use keyloom_patterns::schema::State;
use keyloom_patterns::spatial::{Area, GeoCell};
use keyloom_patterns::{Attached, Circle, LatLng, PointIndex, Table};

use crate::cities::City;
use crate::options::Options;
use crate::report::{ask, grouped, say, some_of};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "dimensionality reduction",
    title: "Find the places near a position",
    chapter: "book/src/spatial.md",
    layout: "(cities.by_position, code on the Z-order curve, latitude, longitude, id)",
    data: &["cities.by_position"],
    shown: "ten nearest",
};

/// The number of cities per transaction of the build of the index.
const BATCH: usize = 10_000;
#[cfg(feature = "polygons")]
/// A rough outline of Switzerland, by latitude and longitude, drawn by hand.
const SWITZERLAND: [(f64, f64); 18] = [
    (46.13, 5.96), // Geneva
    (46.60, 6.11),
    (47.37, 6.88),
    (47.58, 7.59), // Basel
    (47.55, 8.18),
    (47.80, 8.57), // Schaffhausen
    (47.66, 9.18),
    (47.47, 9.66), // Lake Constance
    (47.05, 9.48),
    (46.98, 10.45),
    (46.56, 10.47), // Müstair
    (46.25, 10.15),
    (46.33, 9.45),
    (45.82, 9.03), // Chiasso
    (46.40, 8.45),
    (45.92, 7.87), // Monte Rosa
    (45.92, 7.04),
    (46.13, 5.96),
];

/// The cities of a cell, and the sums of their coordinates.
#[derive(Default)]
struct Cluster {
    count: u64,
    latitudes: f64,
    longitudes: f64,
}

impl Cluster {
    fn add(&mut self, position: &LatLng) {
        self.count += 1;
        self.latitudes += position.latitude();
        self.longitudes += position.longitude();
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let middle = |sum: f64| sum / self.count as f64;
        let (latitude, longitude) = (middle(self.latitudes), middle(self.longitudes));
        write!(f, "{}, around {latitude:.1}, {longitude:.1}", grouped(self.count))
    }
}

pub struct DimensionalityReduction {
    cities: Table<u32, City>,
    by_position: Attached<PointIndex<u32, City>>,
}

impl DimensionalityReduction {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let cities = tour.cities.table.clone();
        let by_position = tour.schema.derive(&cities, "by_position", 1, |space| {
            Ok(PointIndex::new(space, |_id, city: &City| {
                LatLng::new(city.latitude, city.longitude).map(Some)
            }))
        })?;
        Ok(Self { cities, by_position })
    }

    /// The cities with these ids, in the order of the ids.
    fn cities(&self, snapshot: &impl Reader, ids: &[u32]) -> Result<Vec<City>> {
        Ok(self.cities.get_many(snapshot, ids)?.into_iter().flatten().collect())
    }
}

impl Step for DimensionalityReduction {
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        if self.by_position.state(&store.snapshot()?)? == State::Readable {
            say!("positions  in the store already");
            return Ok(());
        }
        let started = Instant::now();
        let on = |_: &_| ControlFlow::Continue(());
        let done = self.by_position.build_with(store, BATCH, on)?;
        let (visited, seconds) = (grouped(done.records), started.elapsed().as_secs_f64());
        say!("positions  an index of {visited} built in {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(
            store,
            "Which cities are within 200 km of Paris, the largest first? (a circle)",
            |snapshot| {
                let circle = Circle::new(LatLng::new(48.8534, 2.3488)?, 200_000.0)?;
                let points = self.by_position.at(snapshot)?.within(circle).points(snapshot)?;
                let ids = points.map(|point| point?.record_key()).collect::<Result<Vec<_>>>()?;
                let mut cities = self.cities(snapshot, &ids)?;
                cities.sort_by_key(|city| Reverse(city.population));
                Ok((some_of(&cities, 3, "cities"), ()))
            },
        )?;
        ask(
            store,
            "Which are the ten nearest to Point Nemo, the place farthest from land? (best first)",
            |snapshot| {
                let nemo = LatLng::new(-48.8767, -123.3933)?;
                let nearest = self.by_position.at(snapshot)?.nearest(snapshot, nemo)?.take(10);
                let nearest = nearest.collect::<Result<Vec<_>>>()?;
                let ids: Vec<_> =
                    nearest.iter().map(|point| point.record_key()).collect::<Result<_>>()?;
                let cities = self.cities(snapshot, &ids)?;
                let far = |metres: f64| grouped((metres / 1_000.0).round() as u64);
                let line = |(city, metres): (&City, f64)| {
                    format!("{} ({}): {} km", city.name, city.country, far(metres))
                };
                let distances = nearest.iter().map(|point| point.distance());
                let lines: Vec<_> = cities.iter().zip(distances).map(line).collect();
                Ok((some_of(&lines, 3, "cities"), ()))
            },
        )?;
        let paris = LatLng::new(48.8534, 2.3488)?;
        ask(
            store,
            "How many are 100 to 200 km away from Paris? (a ring: a difference of circles)",
            |snapshot| {
                let [near, far] = [100_000.0, 200_000.0].map(|metres| Circle::new(paris, metres));
                let ring = far?.difference(near?);
                let count = self.by_position.at(snapshot)?.within(ring).count(snapshot)?;
                Ok((vec![format!("{} cities", grouped(count))], ()))
            },
        )?;
        ask(store, "Which is the farthest from Paris? (nearest to its antipode)", |snapshot| {
            let mut nearest = self.by_position.at(snapshot)?.nearest(snapshot, paris.antipode())?;
            let Some(point) = nearest.next().transpose()? else { return Ok((Vec::new(), ())) };
            let cities = self.cities(snapshot, &[point.record_key()?])?;
            let metres = point.position().distance(&paris);
            let far = grouped((metres / 1_000.0).round() as u64);
            let line = |city: &City| format!("{} ({}): {far} km", city.name, city.country);
            Ok((cities.iter().map(line).collect(), ()))
        })?;
        #[cfg(feature = "polygons")]
        ask(store, "Which are in Switzerland, drawn with 17 corners? (a polygon)", |snapshot| {
            let points = self
                .by_position
                .at(snapshot)?
                .within(Polygon::new(&SWITZERLAND)?)
                .points(snapshot)?;
            let ids = points.map(|point| point?.record_key()).collect::<Result<Vec<_>>>()?;
            let cities = self.cities(snapshot, &ids)?;
            let (inside, beyond): (Vec<_>, Vec<_>) =
                cities.iter().partition(|city| city.country == "CH");
            let [inside, beyond] = [inside, beyond].map(|some| grouped(some.len() as u64));
            Ok((vec![format!("{inside} Swiss cities, and {beyond} beyond the border")], ()))
        })?;
        ask(store, "Where are the most? (folded into cells of 2 characters)", |snapshot| {
            let everywhere = self.by_position.at(snapshot)?.within(GeoCell::WORLD);
            let cells = everywhere.fold_grid(snapshot, 10, |cluster: &mut Cluster, city| {
                cluster.add(&city.position());
                Ok(())
            })?;
            let mut cells = cells.collect::<Result<Vec<(GeoCell, Cluster)>>>()?;
            cells.sort_by_key(|(_, cluster)| Reverse(cluster.count));
            let lines: Vec<_> =
                cells.iter().map(|(cell, cluster)| format!("{cell}: {cluster}")).collect();
            Ok((some_of(&lines, 3, "cells"), ()))
        })
    }
}
