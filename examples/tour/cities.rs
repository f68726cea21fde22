//! The cities of the world: what a record holds, and how the file is read.

use std::fmt;
use std::fs::File;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use crate::TourResult;
use crate::report::grouped;

/// A city, by its GeoNames id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct City {
    pub name: String,
    /// ISO 3166 code of two letters.
    pub country: String,
    /// The first administrative division, in the numbering of its country.
    pub admin1: String,
    /// GeoNames' code of what kind of place it is.
    pub feature: String,
    pub population: u64,
    pub latitude: f64,
    pub longitude: f64,
}

/// How many rows `cities.csv.gz` has.
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
    // A file whose very first bytes are unreadable would else pass for one without rows.
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
