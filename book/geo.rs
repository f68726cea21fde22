//! The cities of the chapters: what the first block of a chapter declares, for the blocks that
//! follow.
//!
//! The rows are from [GeoNames](https://www.geonames.org),
//! [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/).

use keyloom::{Desc, Result, Store};
use keyloom_patterns::{Attached, Index, Schema, Table, entry};
use serde::{Deserialize, Serialize};

/// A city; its GeoNames id is its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct City {
    /// The name, in the spelling of the place.
    pub name: String,
    /// The ISO 3166 code of the country, two letters.
    pub country: String,
    /// The first administrative division, as the country numbers or names it.
    pub admin1: String,
    /// How many people live there.
    pub population: u64,
}

/// Some cities: id, name, country, first administrative division, population.
pub const CITIES: [(u32, &str, &str, &str, u64); 12] = [
    (2_988_507, "Paris", "FR", "11", 2_138_551),
    (2_980_916, "Saint-Denis", "FR", "11", 96_128),
    (2_969_679, "Versailles", "FR", "11", 85_416),
    (2_988_447, "Parthenay", "FR", "75", 11_599),
    (2_996_944, "Lyon", "FR", "84", 472_317),
    (2_657_896, "Zürich", "CH", "ZH", 341_730),
    (5_368_361, "Los Angeles", "US", "CA", 3_971_883),
    (5_391_811, "San Diego", "US", "CA", 1_394_928),
    (5_392_171, "San Jose", "US", "CA", 1_026_908),
    (5_391_959, "San Francisco", "US", "CA", 864_816),
    (5_389_489, "Sacramento", "US", "CA", 490_712),
    (4_717_560, "Paris", "US", "TX", 24_782),
];

impl City {
    /// A city from the columns of a row.
    pub fn new(name: &str, country: &str, admin1: &str, population: u64) -> Self {
        Self { name: name.into(), country: country.into(), admin1: admin1.into(), population }
    }
}

/// The table of cities and its two indexes.
#[derive(Clone, Debug)]
pub struct Geo {
    /// The records.
    pub cities: Table<u32, City>,
    /// By country, division and name.
    pub by_place: CityIndex<(String, String, String)>,
    /// By country and division, the largest first.
    pub by_size: CityIndex<(String, String, Desc<u64>)>,
}

/// An index of cities by the parts `P`.
pub type CityIndex<P> = Attached<Index<u32, City, P>>;

impl Geo {
    /// The declaration of the chapter on tables and indexes.
    ///
    /// # Errors
    /// If the store holds another schema of this name; any error of the store.
    pub fn open(store: &impl Store) -> Result<Self> {
        let schema = Schema::open(store, "geo")?;
        let cities = schema.table::<u32, City>("cities")?;
        let by_place = schema
            .index(&cities, "by_place", 1, |_id, c| entry((&c.country, &c.admin1, &c.name)))?;
        let by_size = schema.index(&cities, "by_size", 1, |_id, c| {
            entry((&c.country, &c.admin1, Desc(c.population)))
        })?;
        Ok(Self { cities, by_place, by_size })
    }

    /// Puts all of [`CITIES`] in one transaction.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn load(&self, store: &impl Store) -> Result<()> {
        let cities = CITIES.map(|(id, name, country, admin1, population)| {
            (id, City::new(name, country, admin1, population))
        });
        store.transact(|txn| self.cities.put_many(txn, &cities))
    }
}
