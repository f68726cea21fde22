//! The cities of the world: their record type, their table with its first indexes, and the reader
//! of the file.

use std::fmt;
use std::fs::File;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use keyloom::{Desc, Result};
use keyloom_patterns::{Attached, Index, Schema, Table, entry};
use serde::{Deserialize, Serialize};

use crate::report::grouped;
use crate::{TourResult, TourStore};

/// A city, by its GeoNames id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct City {
    pub name: String,
    /// ISO 3166 code of two letters.
    pub country: String,
    /// The first administrative division, in the numbering of its country.
    pub admin1: String,
    /// GeoNames' code of the kind of place.
    pub feature: String,
    pub population: u64,
    pub latitude: f64,
    pub longitude: f64,
}

/// An index of cities, whose entries begin with `P`.
pub type CityIndex<P> = Attached<Index<u32, City, P>>;

/// The table of cities, and the indexes that are declared before the load.
#[derive(Clone)]
pub struct Cities {
    pub table: Table<u32, City>,
    pub by_place: CityIndex<(String, String, String)>,
    pub by_size: CityIndex<(String, String, Desc<u64>)>,
}

impl Cities {
    pub fn declare(schema: &Schema<'_, TourStore>) -> Result<Self> {
        let table = schema.table::<u32, City>("cities")?;
        let by_place = schema.index(&table, "by_place", 1, |_id, city| {
            entry((&city.country, &city.admin1, &city.name))
        })?;
        let by_size = schema.index(&table, "by_size", 1, |_id, city| {
            entry((&city.country, &city.admin1, Desc(city.population)))
        })?;
        Ok(Self { table, by_place, by_size })
    }
}

/// The number of rows of `cities.csv.gz`.
pub const ROWS: u64 = 135_233;

#[derive(Deserialize)]
struct Row {
    geoname_id: u32,
    name: String,
    country: String,
    admin1: String,
    feature: String,
    population: u64,
    latitude: f64,
    longitude: f64,
}

/// Reads the file row by row. An error names the file and the line.
pub fn read(data: &Path) -> TourResult<impl Iterator<Item = TourResult<(u32, City)>>> {
    let path = data.join("cities.csv.gz");
    let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let damaged = move |error: csv::Error| format!("{} is damaged: {error}", path.display());
    let mut rows = csv::Reader::from_reader(MultiGzDecoder::new(file));
    // Without this, a file whose first bytes are unreadable would count as a file without rows.
    rows.headers().map_err(&damaged)?;
    let rows = rows.into_deserialize::<Row>();
    Ok(rows.map(move |row| row.map(Row::into_city).map_err(|error| damaged(error).into())))
}

impl Row {
    fn into_city(self) -> (u32, City) {
        let Self { geoname_id, name, country, admin1, feature, population, latitude, longitude } =
            self;
        let city = City { name, country, admin1, feature, population, latitude, longitude };
        (geoname_id, city)
    }
}

impl fmt::Display for City {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}), {} inhabitants", self.name, self.country, grouped(self.population))
    }
}
