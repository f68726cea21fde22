//! The countries of the world: the table for the joins with cities.

use std::path::Path;

use keyloom::Store;
use keyloom_patterns::Table;
use serde::{Deserialize, Serialize};

use crate::{TourResult, TourStore};

/// A country, by its ISO 3166 code of two letters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Country {
    pub name: String,
    /// GeoNames' code of two letters.
    pub continent: String,
}

#[derive(Deserialize)]
struct Row {
    code: String,
    name: String,
    continent: String,
}

/// Puts all countries into `countries`. Idempotent.
pub fn load(store: &TourStore, countries: &Table<String, Country>, data: &Path) -> TourResult {
    let rows = rows(data)?;
    Ok(store.transact(|txn| countries.put_many(txn, &rows))?)
}

/// All countries, by their codes.
pub fn rows(data: &Path) -> TourResult<Vec<(String, Country)>> {
    let path = data.join("countries.csv");
    let damaged = |error: csv::Error| format!("{}: {error}", path.display());
    let mut rows = Vec::new();
    for row in csv::Reader::from_path(&path).map_err(damaged)?.into_deserialize::<Row>() {
        let Row { code, name, continent } = row.map_err(damaged)?;
        rows.push((code, Country { name, continent }));
    }
    Ok(rows)
}
