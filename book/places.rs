//! The towns of the chapter on dimensionality reduction: what one of its blocks declares, for those
//! that follow.
//!
//! The rows are from [GeoNames](https://www.geonames.org),
//! [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/).

use keyloom::{Result, Store};
use keyloom_patterns::{Attached, LatLng, PointIndex, Schema, Table};

/// Name, latitude and longitude.
pub type Town = (String, f64, f64);

/// Some towns: id, name, latitude, longitude.
pub const TOWNS: [(u32, &str, f64, f64); 16] = [
    (2_988_507, "Paris", 48.85341, 2.3488),
    (2_980_916, "Saint-Denis", 48.93564, 2.35387),
    (2_969_679, "Versailles", 48.80359, 2.13424),
    (2_982_652, "Rouen", 49.44313, 1.09932),
    (2_996_944, "Lyon", 45.74846, 4.84671),
    (2_661_604, "Basel", 47.55839, 7.57327),
    (2_657_896, "Zürich", 47.36667, 8.55),
    (8_128_721, "Peacehaven", 50.7927, -0.00652),
    (2_641_637, "Newhaven", 50.79693, 0.05545),
    (2_729_907, "Longyearbyen", 78.22334, 15.64689),
    (2_198_148, "Suva", -18.14161, 178.44149),
    (4_034_778, "Leava", -14.29333, -178.15833),
    (4_035_413, "Apia", -13.83333, -171.76666),
    (4_030_754, "Hanga Roa", -27.15253, -109.42438),
    (4_030_723, "Adamstown", -25.06597, -130.10147),
    (4_030_556, "Rikitea", -23.12322, -134.96858),
];

/// A table of towns and the index of where they are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The records.
    pub towns: Table<u32, Town>,
    /// Where they are.
    pub by_position: Attached<PointIndex<u32, Town>>,
}

impl Places {
    /// The declaration of the chapter.
    ///
    /// # Errors
    /// If the store holds another schema of this name; any error of the store.
    pub fn open(store: &impl Store) -> Result<Self> {
        let schema = Schema::open(store, "places")?;
        let towns = schema.table::<u32, Town>("towns")?;
        let by_position = schema.derive(&towns, "by_position", 1, |space| {
            Ok(PointIndex::new(space, |_id, (_, latitude, longitude): &Town| {
                LatLng::new(*latitude, *longitude).map(Some)
            }))
        })?;
        Ok(Self { towns, by_position })
    }

    /// Puts all of [`TOWNS`] in one transaction.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn load(&self, store: &impl Store) -> Result<()> {
        let towns =
            TOWNS.map(|(id, name, latitude, longitude)| (id, (name.into(), latitude, longitude)));
        store.transact(|txn| self.towns.put_many(txn, &towns))
    }
}

/// The name of a town.
pub fn name_of(id: u32) -> &'static str {
    TOWNS.iter().find(|town| town.0 == id).map_or("unknown", |town| town.1)
}
