//! Countries with their large cities as children: grouped results, and searches of countries by
//! their cities and the reverse.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use keyloom::{Order, Result, Store, Subspace, Writer};
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::documents::json::{Collection, Condition};
use keyloom_patterns::documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_patterns::documents::{Collapse, Documents, Matches, PARENT, ScoreMode};
use keyloom_patterns::text::{Analyzer, Query};
use keyloom_patterns::{BatchSize, Table};
use serde_json::{Value, json};

use crate::cities::{self, City};
use crate::countries::{self, Country};
use crate::options::Options;
use crate::report::{act, ask, grouped, is_there, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "nested documents: parents, children and results in groups",
    title: "Search parents by their children, and the reverse",
    chapter: "book/src/documents.md",
    layout: "(child_cities, country, id) -> city",
    data: &[
        "parent_countries",
        "parent_countries.text",
        "parent_countries.children child_cities",
        "child_cities",
        "child_cities.text",
        "json_countries",
        "json_countries.index continent, cities",
    ],
    shown: "at least 3 cities",
};

/// The number of records per transaction.
const BATCH: usize = 500;
/// Cities with fewer inhabitants are left out.
const INHABITANTS: u64 = 100_000;
/// A smaller city is not named in the document of its country.
const INHABITED: u64 = 1_000;
/// Words for saints in the names of cities.
const SAINTS: [&str; 5] = ["san", "santa", "santo", "são", "saint"];

type Snapshot<'s> = <TourStore as Store>::Snapshot<'s>;

/// A city is the child of its country: the key is the code of the country, and the GeoNames id.
type CityKey = (String, u32);

pub struct Relations {
    countries: Documents<String, Country>,
    cities: Children<String, Country, CityKey, City>,
    json: Collection<String>,
    loaded: Subspace,
}

impl Relations {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let countries = Documents::declare(&tour.schema, "parent_countries", 1, |index| {
            index.values("continent", |_, country: &Country| one(&country.continent))
        })?;
        let (link, rule) = (Link::by_key(), OnParentDelete::Refuse);
        let cities =
            Children::declare(&tour.schema, &countries, "child_cities", 1, link, rule, |index| {
                index
                    .field("name", Analyzer::names(), |_, city: &City, add| add(&city.name))
                    .integers("population", |_, city| i64::try_from(city.population).ok())
            })?;
        let json = Collection::open(&tour.schema, "json_countries")?
            .with_index(&tour.schema, ["continent", "cities"])?;
        Ok(Self { countries, cities, json, loaded: Subspace::new(&("tour", "loaded")) })
    }

    fn table(&self) -> &Table<CityKey, City> {
        self.cities.documents().table()
    }

    /// The cities with these words in their names, in a group per country.
    fn by_country(&self, snapshot: &Snapshot<'_>, words: &[&str]) -> Result<(Vec<String>, ())> {
        let query = Query::any_of(words.iter().map(|word| Query::term("name", *word)));
        let search = self.cities.at(snapshot)?.search(query);
        let by_country = Collapse::new(search.sort_by("population", Order::Descending), PARENT);
        let counts = by_country.counts(snapshot)?;
        let mut lines = vec![format!("{} cities in {} countries", counts.records, counts.groups)];
        let page = by_country.groups(10).page(snapshot)?;
        let best = page.items.iter().map(|group| &group.best.key);
        for city in self.table().get_many(snapshot, best)?.into_iter().flatten() {
            lines.push(city.to_string());
        }
        Ok((lines, ()))
    }

    /// The countries with at least `least` cities of more than `size` inhabitants, ordered by the
    /// number of these cities, descending.
    fn with_cities(&self, snapshot: &Snapshot<'_>, least: u64, size: i64) -> Result<Vec<String>> {
        let index = self.cities.at(snapshot)?;
        let large = index.records().integers_of("population")?.gt(size);
        // Each city has the score 1, so the sum is the number of cities.
        let large = Matches::of_ids(index, &large, 1.0, snapshot)?;
        let found = self.cities.to_parents_with(snapshot, &large, ScoreMode::Sum, least..)?;
        let mut lines = Vec::new();
        for hit in found.top(snapshot, 0, 10)? {
            if let Some(country) = self.countries.get(snapshot, &hit.key)? {
                lines.push(format!("{}: {} cities", country.name, hit.score));
            }
        }
        Ok(lines)
    }

    /// The largest cities of the countries of a continent.
    fn largest_of(&self, snapshot: &Snapshot<'_>, continent: &str) -> Result<Vec<String>> {
        let countries = self.countries.text().at(snapshot)?;
        let of_continent = countries.records().term("continent", continent)?;
        let of_continent = Matches::of_ids(countries, &of_continent, 0.0, snapshot)?;
        let cities = self.cities.to_children(snapshot, &of_continent)?;
        let search = self.cities.at(snapshot)?.search(Query::exists("name"));
        let search = search.filter(cities.filter()).sort_by("population", Order::Descending);
        let found = search.limit(3).records(snapshot, self.table())?.items;
        Ok(found.iter().map(|hit| hit.value.to_string()).collect())
    }
}

impl Relations {
    fn ask_json(&self, store: &TourStore) -> TourResult {
        let tiny = Condition::one_of("continent", ["EU", "OC"])?
            & Condition::range("cities", json!(1)..=json!(5))?
            & Condition::missing("largest.inhabitants")?;
        let question = "Of the countries of Europe and Oceania with at most 5 cities, which have \
                        none of 1,000 inhabitants? (a condition on JSON)";
        ask(store, question, |snapshot| {
            let found = self.json.find_where(snapshot, &tiny)?;
            let codes = found.map(|found| Ok(found?.0)).collect::<Result<Vec<String>>>()?;
            let index = self.json.indexes_for(&tiny).unwrap_or_default().join("; ");
            Ok((vec![format!("{} (by the index of {index})", codes.join(", "))], ()))
        })?;
        act(store, "Each of them is marked, in bounded transactions: (update of many)", |store| {
            let done = self.json.update_where(store, &tiny, |_code, mut country| {
                let fields = country.as_object_mut();
                fields.map(|fields| fields.insert("is tiny".into(), json!(true)));
                Ok(Some(country))
            })?;
            Ok(vec![format!("{} countries", done.records)])
        })
    }
}

/// A document for each country: its continent, its number of cities, and the largest of these, if
/// that has enough inhabitants.
fn json_countries(data: &Path) -> TourResult<Vec<(String, Value)>> {
    let mut of_country = BTreeMap::<String, (u64, Option<City>)>::new();
    for city in cities::read(data)? {
        let (_, city) = city?;
        let (count, largest) = of_country.entry(city.country.clone()).or_default();
        *count += 1;
        let most = largest.as_ref().map_or(INHABITED - 1, |largest| largest.population);
        if city.population > most {
            *largest = Some(city);
        }
    }
    let documents = countries::rows(data)?.into_iter().map(|(code, country)| {
        let Country { name, continent } = country;
        let (cities, largest) = of_country.remove(&code).unwrap_or_default();
        let largest = match largest {
            Some(City { name, population, .. }) => {
                json!({ "name": name, "inhabitants": population })
            }
            None => json!({}),
        };
        let document = json!({
            "name": name, "continent": continent, "cities": cities, "largest": largest,
        });
        (code, document)
    });
    Ok(documents.collect())
}

impl Step for Relations {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        let loaded = self.loaded.pack("documents");
        if is_there(store, &loaded)? {
            say!("documents  in the store already");
            return Ok(());
        }
        let started = Instant::now();
        countries::load(store, self.countries.table(), &options.data)?;
        let mut large = Vec::new();
        for city in cities::read(&options.data)? {
            let (id, city) = city?;
            if city.population >= INHABITANTS {
                large.push(((city.country.clone(), id), city));
            }
        }
        // All countries exist, so the cities are written without a check of each parent.
        BatchSize::new(BATCH)
            .transact_all(store, &large, |txn, part| self.table().put_many(txn, part))?;
        let documents = json_countries(&options.data)?;
        BatchSize::new(BATCH).transact_all(store, &documents, |txn, part| {
            self.json.put_many(txn, part.iter().cloned())
        })?;
        store.transact(|txn| txn.put(&loaded, b""))?;
        let (cities, seconds) = (grouped(large.len() as u64), started.elapsed().as_secs_f64());
        say!("documents  {cities} cities as children of their countries, in {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let question =
            "Which cities are named after saints? The largest of each country (field collapsing)";
        ask(store, question, |snapshot| self.by_country(snapshot, &SAINTS))?;
        let question =
            "Which countries have at least 3 cities of more than 5 million? (parents by children)";
        ask(store, question, |snapshot| Ok((self.with_cities(snapshot, 3, 5_000_000)?, ())))?;
        let question = "Which are the largest cities of Oceania? (children by parents)";
        ask(store, question, |snapshot| Ok((self.largest_of(snapshot, "OC")?, ())))?;
        self.ask_json(store)
    }
}
