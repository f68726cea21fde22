//! Countries and their cities: groups computed at query time, and maintained totals and ranks.

use std::ops::ControlFlow;
use std::time::Instant;

use keyloom::{Desc, Result, Store};
use keyloom_patterns::aggregate::{Contributions, RankedIndex, Totals};
use keyloom_patterns::schema::State;
use keyloom_patterns::{Attached, Grouping, entry};

use crate::cities::{Cities, City};
use crate::options::Options;
use crate::report::{ask, ask_in_parallel, grouped, say, some_of};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "aggregation with composite keys",
    title: "Count, total and rank records",
    chapter: "book/src/aggregate.md",
    layout: r#"(cities.totals, country, "people") -> sum"#,
    data: &["cities.totals", "cities.ranked"],
    shown: "How many people",
};

/// The number of cities per transaction of a build of totals and ranks.
const BATCH: usize = 10_000;

pub struct Aggregation {
    cities: Cities,
    totals: Attached<Totals<u32, City, (String, String)>>,
    ranked: Attached<RankedIndex<u32, City, (String, Desc<u64>)>>,
}

impl Aggregation {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let cities = tour.cities.clone();
        let totals = tour.schema.totals(&cities.table, "totals", 1, |_id, city| {
            let people = i64::try_from(city.population).unwrap_or(i64::MAX);
            Contributions::from_iter([
                ((&city.country, "cities"), 1),
                ((&city.country, "people"), people),
            ])
        })?;
        let ranked = tour.schema.derive(&cities.table, "ranked", 1, |space| {
            Ok(RankedIndex::new(space, |_id, city: &City| {
                entry((&city.country, Desc(city.population)))
            }))
        })?;
        Ok(Self { cities, totals, ranked })
    }
}

impl Step for Aggregation {
    fn load(&self, store: &TourStore, _options: &Options) -> TourResult {
        if self.ranked.state(&store.snapshot()?)? == State::Readable {
            say!("totals     in the store already");
            return Ok(());
        }
        let started = Instant::now();
        let on = |_: &_| ControlFlow::Continue(());
        self.totals.build_with(store, BATCH, on)?;
        let visited = grouped(self.ranked.build_with(store, BATCH, on)?.records);
        let seconds = started.elapsed().as_secs_f64();
        say!("built      totals and ranks of {visited} cities in {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(store, "Which countries are there? (by_size, skip scan)", |snapshot| {
            let by_size = self.cities.by_size.at(snapshot)?;
            let countries = by_size.grouped_by(1).values(snapshot, ..)?;
            let countries = countries.collect::<Result<Vec<String>>>()?;
            Ok((some_of(&countries, 3, "countries"), ()))
        })?;
        ask(store, "The largest city of each country? (first of each group)", |snapshot| {
            let found = self.ranked.at(snapshot)?.index().first_of_each(snapshot, .., 1)?;
            let ids = found.map(|found| found?.record_key()).collect::<Result<Vec<u32>>>()?;
            let cities = self.cities.table.get_many(snapshot, &ids)?;
            let mut cities: Vec<_> = cities.into_iter().flatten().collect();
            cities.sort_by_key(|city| std::cmp::Reverse(city.population));
            Ok((some_of(&cities, 3, "cities"), ()))
        })?;
        ask(store, "How many divisions has each country? (skip scan, folded)", |snapshot| {
            let by_size = self.cities.by_size.at(snapshot)?;
            let (by_country, both) = (by_size.grouped_by(1), by_size.grouped_by(2));
            let divisions = both.first_of_each(snapshot, ..)?;
            let counted = by_country.fold(divisions, 0_u64, |count, _| {
                *count += 1;
                Ok(())
            });
            let counted = counted.map(|group| group.and_then(named(&by_country)));
            let mut counted = counted.collect::<Result<Vec<(u64, String)>>>()?;
            counted.sort_by(|a, b| b.cmp(a));
            let lines: Vec<_> = counted.iter().map(|(n, name)| format!("{name}: {n}")).collect();
            Ok((some_of(&lines, 3, "countries"), ()))
        })?;
        ask(store, "How many people live in the cities of France? (a total)", |snapshot| {
            let totals = self.totals.at(snapshot)?;
            let people = totals.get(snapshot, ("FR", "people"))?;
            let cities = totals.get(snapshot, ("FR", "cities"))?;
            let [people, cities] = [people, cities].map(|n| grouped(n.unsigned_abs()));
            Ok((vec![format!("{people} in {cities} cities")], ()))
        })?;
        ask(store, "Which place has Lyon (472,317) among them? (a rank)", |snapshot| {
            let ranked = self.ranked.at(snapshot)?;
            let before = ranked.rank(snapshot, "FR", ("FR", Desc(472_317_u64)))?;
            Ok((vec![format!("{} of {}", before + 1, grouped(ranked.count(snapshot, "FR")?))], ()))
        })?;
        ask(store, "Which city is in the middle of them? (the n-th entry)", |snapshot| {
            let ranked = self.ranked.at(snapshot)?;
            let middle = ranked.count(snapshot, "FR")? / 2;
            let Some(found) = ranked.nth(snapshot, "FR", middle)? else {
                return Ok((vec!["none".into()], ()));
            };
            let city = self.cities.table.get(snapshot, &found.record_key()?)?;
            Ok((city.iter().map(ToString::to_string).collect(), ()))
        })?;
        ask_in_parallel(store, "The population of all cities? (on two threads)", |store| {
            let parts = self.cities.table.in_parallel(store, .., 2, |cities| {
                let mut people = 0;
                for city in cities {
                    people += city?.1.population;
                }
                Ok(people)
            })?;
            Ok(vec![grouped(parts.iter().sum())])
        })
    }
}

/// Turns a group and its folded value into the value and the name of the group.
fn named<P>(by: &Grouping<P>) -> impl Fn((keyloom::KeyBuf, u64)) -> Result<(u64, String)> {
    move |(key, count)| Ok((count, by.group(&key)?))
}
