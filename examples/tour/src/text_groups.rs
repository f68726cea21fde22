//! The names of large cities in one country by their words: in an index with a group for each
//! country, and in one index of all countries with a filter.

use std::time::Instant;

use keyloom::{Result, Store, Subspace, Writer};
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::text::suggest::Suggestion;
use keyloom_patterns::text::{Analyzer, Group, Query, Search, TextIndex};
use keyloom_patterns::{Attached, BatchSize, Table};
use serde::{Deserialize, Serialize};

use crate::options::Options;
use crate::report::{ask, grouped, is_there, say};
use crate::text::{BATCH, large_cities};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "full-text search: groups of texts",
    title: "Search the texts of one tenant only",
    chapter: "book/src/text_results.md",
    layout: "(names_in_countries.by_country, 2, country, field, term, last id) -> postings",
    data: &["names_in_countries", "names_in_countries.by_country", "names_in_countries.of_all"],
    shown: "(the group)",
};

/// The Dominican Republic, with 21 of the 9,062 cities.
const COUNTRY: &str = "DO";
const BEGINNING: &str = "sa";

type Snapshot<'s> = <TourStore as Store>::Snapshot<'s>;

#[derive(Clone, Serialize, Deserialize)]
struct CityName {
    country: String,
    name: String,
}

pub struct TextsOfGroups {
    names: Table<u32, CityName>,
    by_country: Attached<TextIndex<u32, CityName, String>>,
    of_all: Attached<TextIndex<u32, CityName>>,
    loaded: Subspace,
}

impl TextsOfGroups {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        fn with_name<G: 'static>(
            index: TextIndex<u32, CityName, G>,
        ) -> TextIndex<u32, CityName, G> {
            index.field("name", Analyzer::names(), |_id, city, add| add(&city.name))
        }
        let names = tour.schema.table("names_in_countries")?;
        let by_country = tour.schema.derive(&names, "by_country", 1, |space| {
            let of = |_id: &u32, city: &CityName| Group::of(&city.country);
            Ok(with_name(TextIndex::grouped_with_keys_as_ids(space, of)))
        })?;
        let of_all = tour.schema.derive(&names, "of_all", 1, |space| {
            let index = with_name(TextIndex::with_keys_as_ids(space));
            Ok(index.values("country", |_id, city| one(&city.country)))
        })?;
        Ok(Self { names, by_country, of_all, loaded: Subspace::new(&("tour", "loaded")) })
    }

    /// The number of names that a search finds, and the best names.
    fn best(
        &self,
        snapshot: &Snapshot<'_>,
        search: Search<'_, u32, CityName>,
    ) -> Result<(Vec<String>, ())> {
        let mut lines = vec![format!("{} names", search.count(snapshot)?)];
        let found = search.limit(3).records(snapshot, &self.names)?.items;
        lines.extend(found.iter().map(|hit| format!("{:.2}  {}", hit.score, hit.value.name)));
        Ok((lines, ()))
    }
}

fn counts(words: &[Suggestion]) -> (Vec<String>, ()) {
    let words = words.iter().map(|word| format!("{}: {}", word.term, word.documents));
    (vec![words.collect::<Vec<_>>().join(", ")], ())
}

impl Step for TextsOfGroups {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        let loaded = self.loaded.pack("texts of groups");
        if is_there(store, &loaded)? {
            say!("texts      in the store already");
            return Ok(());
        }
        let started = Instant::now();
        let cities = large_cities(&options.data)?.into_iter();
        let names =
            cities.map(|(id, city)| (id, CityName { country: city.country, name: city.name }));
        let names: Vec<_> = names.collect();
        BatchSize::new(BATCH)
            .transact_all(store, &names, |txn, part| self.names.put_many(txn, part))?;
        store.transact(|txn| txn.put(&loaded, b""))?;
        let (count, seconds) = (grouped(names.len() as u64), started.elapsed().as_secs_f64());
        say!("texts      {count} names of cities in two indexes, in {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let query = || Query::prefix("name", BEGINNING);
        let question =
            format!("Which names in {COUNTRY} have a word that begins with {BEGINNING}?");
        ask(store, &format!("{question} (the group)"), |snapshot| {
            let of_country = self.by_country.at(snapshot)?.group(COUNTRY);
            self.best(snapshot, of_country.search(query()))
        })?;
        ask(store, &format!("{question} (all countries, and a filter)"), |snapshot| {
            let of_all = self.of_all.at(snapshot)?;
            let filter = of_all.records().term("country", COUNTRY)?;
            self.best(snapshot, of_all.search(query()).filter(filter))
        })?;
        ask(store, "Which words are these? (suggestions from the group)", |snapshot| {
            let of_country = self.by_country.at(snapshot)?.group(COUNTRY);
            Ok(counts(&of_country.complete(snapshot, "name", BEGINNING, 5)?))
        })?;
        ask(store, "Which words does the index of all countries suggest?", |snapshot| {
            Ok(counts(&self.of_all.at(snapshot)?.complete(snapshot, "name", BEGINNING, 5)?))
        })
    }
}
