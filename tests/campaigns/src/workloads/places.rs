//! Places, found by their positions, by the extents around them, and by time.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use keyloom::{DynWriter, Memory, Result, Subspace};
use keyloom_patterns::{
    Attached, BoundingBox, Circle, ExtentIndex, LatLng, PointIndex, Schema, SpaceTimeIndex, Table,
};

use crate::Workload;

/// Latitude and longitude, or `None` without a position.
type Place = Option<(f64, f64)>;

/// The table and its indexes.
#[derive(Clone)]
pub struct Places {
    table: Table<u16, Place>,
    index: Attached<PointIndex<u16, Place>>,
    extents: Attached<ExtentIndex<u16, Place>>,
    events: Attached<SpaceTimeIndex<u16, Place>>,
}

/// A box of some degrees around a place.
fn around((latitude, longitude): (f64, f64)) -> Result<BoundingBox> {
    let (south, north) = ((latitude - 2.0).max(-90.0), (latitude + 1.0).min(90.0));
    BoundingBox::wrapping(south, longitude - 3.0, north, longitude + 20.0)
}

/// A time computed from a place, on either side of the epoch.
fn time((latitude, longitude): (f64, f64)) -> i64 {
    (latitude * 7.0 + longitude) as i64
}

/// The width of the bins is so small that there are many.
const BIN: Duration = Duration::from_millis(100);
const TIMES: std::ops::Range<i64> = -150..230;

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Change {
    Put(u16, Place),
    Delete(u16),
    PutMany(Vec<(u16, Place)>),
}

const IDS: u16 = 120;
/// Difficult latitudes: poles and borders of cells. The longitudes include the antimeridian.
const LATITUDES: [f64; 6] = [-90.0, -45.0, 0.0, 45.0, 89.99, 90.0];
const LONGITUDES: [f64; 6] = [-180.0, -90.0, 0.0, 90.0, 179.99, 180.0];

impl Places {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let table = schema.table("places")?;
        let index = schema.derive(&table, "by_place", 1, |space| {
            Ok(PointIndex::new(space, |_, place: &Place| {
                place.map(|(latitude, longitude)| LatLng::new(latitude, longitude)).transpose()
            }))
        })?;
        let extents = schema.derive(&table, "by_extent", 1, |space| {
            Ok(ExtentIndex::new(space, |_, place: &Place| place.map(around).transpose()))
        })?;
        let events = schema.derive(&table, "by_event", 1, |space| {
            SpaceTimeIndex::new(space, BIN, |_, place: &Place| {
                place.map(|at| Ok((LatLng::new(at.0, at.1)?, time(at)))).transpose()
            })
        })?;
        Ok(Self { table, index, extents, events })
    }

    fn place(rng: &mut Rng) -> Place {
        let coordinate = |rng: &mut Rng, some: [f64; 6], most: f64| match rng.bool() {
            true => rng.choice(some).unwrap_or_default(),
            false => (rng.f64() * 2.0 - 1.0) * most,
        };
        let latitude = coordinate(rng, LATITUDES, 90.0);
        (rng.u8(..10) > 0).then(|| (latitude, coordinate(rng, LONGITUDES, 180.0)))
    }

    /// The ids in a circle, in a box, of all places by distance, of extents that overlap the box,
    /// and of places in the circle at certain times.
    fn asked(&self, txn: &DynWriter<'_>) -> Result<[Vec<u16>; 5]> {
        let index = self.index.at(txn)?;
        let (circle, area, from) = areas()?;
        let circle = index.within(circle).in_ranges(5)?.points(txn)?;
        let area = index.within(area).points(txn)?;
        let mut circle = circle.map(|point| point?.record_key()).collect::<Result<Vec<u16>>>()?;
        let mut area = area.map(|point| point?.record_key()).collect::<Result<Vec<u16>>>()?;
        circle.sort_unstable();
        area.sort_unstable();
        let nearest = index.nearest(txn, from)?;
        let nearest = nearest.map(|near| near?.record_key()).collect::<Result<_>>()?;
        let (_, edges, _) = areas()?;
        let overlapping = self.extents.at(txn)?.overlapping(edges).extents(txn)?;
        let mut overlapping =
            overlapping.map(|extent| extent?.record_key()).collect::<Result<Vec<u16>>>()?;
        overlapping.sort_unstable();
        let (whole, ..) = areas()?;
        let events = self.events.at(txn)?.within(whole, TIMES).points(txn)?;
        let mut events = events.map(|event| event?.record_key()).collect::<Result<Vec<u16>>>()?;
        events.sort_unstable();
        Ok([circle, area, nearest, overlapping, events])
    }
}

/// A circle and a box across the antimeridian, and a place near a pole.
fn areas() -> Result<(Circle, BoundingBox, LatLng)> {
    let circle = Circle::new(LatLng::new(40.0, 179.0)?, 4_000_000.0)?;
    let area = BoundingBox::new(-60.0, 100.0, 90.0, -80.0)?;
    Ok((circle, area, LatLng::new(85.0, -170.0)?))
}

/// The expected results of [`Places::asked`].
fn wanted(model: &BTreeMap<u16, Place>) -> Result<[Vec<u16>; 5]> {
    let (circle, _, from) = areas()?;
    let mut all = Vec::new();
    for (id, place) in model {
        if let Some((latitude, longitude)) = place {
            all.push((*id, LatLng::new(*latitude, *longitude)?));
        }
    }
    let ids = |is_in: &dyn Fn(&LatLng) -> bool| {
        all.iter().filter(|(_, at)| is_in(at)).map(|(id, _)| *id).collect::<Vec<u16>>()
    };
    let in_circle = ids(&|at| at.distance(&circle.centre()) <= circle.radius());
    let in_box = ids(&|at| {
        let is_between = at.longitude() >= 100.0 || at.longitude() <= -80.0;
        at.latitude() >= -60.0 && (is_between || at.latitude() == 90.0)
    });
    let mut by_distance: Vec<(f64, u16)> =
        all.iter().map(|(id, at)| (at.distance(&from), *id)).collect();
    by_distance.sort_by(|a, b| a.0.total_cmp(&b.0));
    let by_distance = by_distance.into_iter().map(|(_, id)| id).collect();
    let places = || model.iter().filter_map(|(id, place)| Some((*id, (*place)?)));
    let overlapping = places().filter(|(_, place)| overlaps(*place)).map(|(id, _)| id).collect();
    let timely = places().filter(|(id, at)| in_circle.contains(id) && TIMES.contains(&time(*at)));
    let events = timely.map(|(id, _)| id).collect();
    Ok([in_circle, in_box, by_distance, overlapping, events])
}

/// Whether the extent around a place overlaps the box of [`areas`], from 100 degrees east to 80
/// degrees west.
fn overlaps((latitude, longitude): (f64, f64)) -> bool {
    let is_at_pole = latitude + 1.0 >= 90.0;
    // The distance in degrees, going east, from the western edge of the box to the western edge of
    // the extent.
    let way = (longitude - 3.0 - 100.0).rem_euclid(360.0);
    latitude + 1.0 >= -60.0 && (is_at_pole || way <= 180.0 || way + 23.0 >= 360.0)
}

impl Workload for Places {
    type Operation = Change;
    type Model = BTreeMap<u16, Place>;

    fn name(&self) -> &'static str {
        "places"
    }

    fn records(&self) -> Vec<Subspace> {
        vec![self.table.space().clone()]
    }

    fn derived(&self) -> Vec<Subspace> {
        vec![self.index.space(), self.extents.space(), self.events.space()]
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        match rng.u8(..10) {
            0..5 => Change::Put(rng.u16(..IDS), Self::place(rng)),
            5..8 => Change::Delete(rng.u16(..IDS)),
            _ => Change::PutMany(
                (0..rng.usize(..8)).map(|_| (rng.u16(..IDS), Self::place(rng))).collect(),
            ),
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::Put(id, place) => self.table.put(txn, id, place),
            Change::Delete(id) => self.table.delete(txn, id).map(drop),
            Change::PutMany(places) => self.table.put_many(txn, places),
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Self::Model) {
        match operation {
            Change::Put(id, place) => drop(model.insert(*id, *place)),
            Change::Delete(id) => drop(model.remove(id)),
            Change::PutMany(places) => model.extend(places.iter().copied()),
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut found = self.index.check(txn)?;
        found.extend(self.extents.check(txn)?);
        found.extend(self.events.check(txn)?);
        Ok(super::reported(&found))
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Self::Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let records: Self::Model = self.table.range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table", &records, model);
        let [found, wanted] = [self.asked(txn)?, wanted(model)?];
        for (number, what) in [(0, "a circle"), (1, "a box"), (3, "overlapping"), (4, "events")] {
            super::compare(&mut wrong, what, found.get(number), wanted.get(number));
        }
        // Places at equal distances may be in any order.
        let distances = |ids: &[u16]| -> Result<Vec<f64>> {
            let (_, _, from) = areas()?;
            let places = ids.iter().filter_map(|id| *model.get(id)?);
            places
                .map(|(latitude, longitude)| Ok(LatLng::new(latitude, longitude)?.distance(&from)))
                .collect()
        };
        let [[_, _, found, ..], [_, _, wanted, ..]] = [&found, &wanted];
        super::compare(&mut wrong, "by distance", distances(found)?, distances(wanted)?);
        Ok(wrong)
    }

    fn rebuild(&self, model: &Self::Model, txn: &mut DynWriter<'_>) -> Result<()> {
        model.iter().try_for_each(|(id, place)| self.table.put(txn, id, place))
    }
}
