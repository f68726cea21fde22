//! Cities with a copy of the name of their country, and a country that changes its name.

use keyloom::{Result, Store};
use keyloom_patterns::denormalize::DenormalizedFields;
use keyloom_patterns::{Attached, Table, entry};
use serde::{Deserialize, Serialize};

use crate::cities::City;
use crate::countries::Country;
use crate::options::Options;
use crate::report::{ask, grouped, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "denormalization",
    title: "Keep copies of a field up to date",
    chapter: "book/src/denormalize.md",
    layout: "(places, id) -> place with the name of its country; (places.by_country, code, id)",
    data: &["places", "places.by_country", "countries.names_in_places"],
    shown: "Turkey becomes",
};

/// Turkey, whose name in the data is changed.
const COUNTRY: &str = "TR";

/// A city with a copy of the name of its country.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    name: String,
    country: String,
    country_name: String,
}

pub struct Denormalization {
    cities: Table<u32, City>,
    countries: Table<String, Country>,
    places: Table<u32, Place>,
    names: Attached<DenormalizedFields<String, Country, u32, Place>>,
}

impl Denormalization {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let Tour { schema, cities, countries } = tour;
        let places = schema.table::<u32, Place>("places")?;
        let by_country =
            schema.index(&places, "by_country", 1, |_, place| entry(&place.country))?;
        let names = schema.derive(countries, "names_in_places", 1, |space| {
            let name = |country: &Country| country.name.clone();
            let set = |place: &mut Place, _: &String, name: Option<String>| {
                place.country_name = name.unwrap_or_default();
            };
            DenormalizedFields::in_schema(space, countries, &by_country, name, set)
        })?;
        let (cities, countries) = (cities.table.clone(), countries.clone());
        Ok(Self { cities, countries, places, names })
    }

    fn rename(&self, store: &TourStore, name: &str) -> Result<()> {
        let code = COUNTRY.to_owned();
        let country = Country { name: name.to_owned(), continent: "AS".to_owned() };
        store.transact(|txn| self.countries.put(txn, &code, &country))
    }

    /// The name of the country in the first place after a refresh, and the number of stale copies
    /// before.
    fn names(&self, reader: &impl keyloom::Reader) -> Result<Vec<String>> {
        let mut places = self.places.range(reader, ..)?.collect::<Result<Vec<_>>>()?;
        let first = places.first().map_or(String::new(), |(_, place)| place.country_name.clone());
        let stale = self.names.at(reader)?.refresh(reader, &mut places)?;
        let stale = stale.iter().filter(|stale| **stale).count();
        Ok(vec![format!(
            "{} places; the first is in {first}; {} copies are stale",
            grouped(places.len() as u64),
            grouped(stale as u64)
        )])
    }
}

impl Step for Denormalization {
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        self.names.build(store)?;
        let snapshot = store.snapshot()?;
        let mut places = Vec::new();
        for row in self.cities.range(&snapshot, ..)? {
            let (id, City { name, country, .. }) = row?;
            if country == COUNTRY {
                places.push((id, Place { name, country, country_name: String::new() }));
            }
        }
        drop(snapshot);
        // 1,000 places with two writes each fit into a transaction of every store.
        for some in places.chunks(1_000) {
            store.transact(|txn| self.names.at(txn)?.put_many(txn, some.to_vec()))?;
        }
        self.names.at(&store.snapshot()?)?.propagate(store)?;
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let said = "Turkey becomes Türkiye. What do its cities say? (too many to change at once)";
        self.rename(store, "Türkiye")?;
        ask(store, said, |snapshot| Ok((self.names(snapshot)?, ())))?;
        let names = self.names.at(&store.snapshot()?)?;
        let (done, cost) = store.measure(|store| names.propagate(store));
        say!("\n  propagated to {} places: {cost}", grouped(done?.written));
        ask(store, "And now?", |snapshot| Ok((self.names(snapshot)?, ())))?;
        // Restore the name, so that the next run begins with the same data.
        self.rename(store, "Turkey")?;
        self.names.at(&store.snapshot()?)?.propagate(store)?;
        Ok(())
    }
}
