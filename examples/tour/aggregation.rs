//! Countries and their cities: groups found on the fly, and totals and ranks that are kept.

use std::ops::ControlFlow;
use std::time::Instant;

use keyloom::{Desc, Order, Result, Store, Subspace, Writer};
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::general::aggregation::{Contributions, RankedIndex, Totals};
use keyloom_patterns::{Grouping, Index, Maintained, Table, entry};

use crate::cities::City;
use crate::options::Options;
use crate::report::{ask, grouped, is_there, say, some_of};
use crate::{Step, TourResult, TourStore};

/// How many cities one transaction visits while totals and ranks are built.
const BATCH: usize = 10_000;

pub struct Aggregation {
    cities: Table<u32, City>,
    by_size: Index<u32, City, (String, String, Desc<u64>)>,
    totals: Totals<u32, City, (String, String)>,
    ranked: RankedIndex<u32, City, (String, Desc<u64>)>,
    built: Subspace,
}

impl Aggregation {
    pub fn new() -> Self {
        let space = Subspace::new("tour");
        let by_size = Index::new(&space.child("by_size"), |_id, city: &City| {
            entry((&city.country, &city.admin1, Desc(city.population)))
        });
        let totals = Totals::new(&space.child("totals"), |_id, city: &City| {
            let people = i64::try_from(city.population).unwrap_or(i64::MAX);
            Contributions::from_iter([
                ((&city.country, "cities"), 1),
                ((&city.country, "people"), people),
            ])
        });
        let ranked = RankedIndex::new(&space.child("ranked"), |_id, city: &City| {
            entry((&city.country, Desc(city.population)))
        });
        let cities = Table::new(&space.child("cities")).with(&totals).with(&ranked);
        Self { cities, by_size, totals, ranked, built: space.child("built") }
    }
}

impl Step for Aggregation {
    fn name(&self) -> &'static str {
        "aggregation with composite keys"
    }

    fn load(&self, store: &TourStore, _options: &Options) -> TourResult {
        let built = self.built.pack("totals and ranks");
        if is_there(store, &built)? {
            say!("totals     in the store already");
            return Ok(());
        }
        let started = Instant::now();
        let options = RepairOptions { batch: BATCH, resume: None };
        let on = |_: &_| ControlFlow::Continue(());
        let totals = self.totals.repair_with(store, &self.cities, &options, on)?;
        let ranks = self.ranked.repair_with(store, &self.cities, &options, on)?;
        store.transact(|txn| txn.put(&built, b""))?;
        let [totals, ranks] = [totals.written, ranks.written].map(grouped);
        let seconds = started.elapsed().as_secs_f64();
        say!("built      {totals} totals, {ranks} entries and counts of ranks, in {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(store, "Which countries are there? (by_size, skip scan)", |snapshot| {
            let countries = self.by_size.grouped_by(1).values(snapshot, (), Order::Ascending)?;
            let countries = countries.collect::<Result<Vec<String>>>()?;
            Ok((some_of(&countries, 3, "countries"), ()))
        })?;
        ask(store, "The largest city of each country? (first of each group)", |snapshot| {
            let found = self.ranked.index().first_of_each(snapshot, (), 1, Order::Ascending)?;
            let ids = found.map(|found| found?.record_key()).collect::<Result<Vec<u32>>>()?;
            let cities = self.cities.get_many(snapshot, &ids)?;
            let mut cities: Vec<_> = cities.into_iter().flatten().collect();
            cities.sort_by_key(|city| std::cmp::Reverse(city.population));
            Ok((some_of(&cities, 3, "cities"), ()))
        })?;
        ask(store, "How many divisions has each country? (skip scan, folded)", |snapshot| {
            let (by_country, both) = (self.by_size.grouped_by(1), self.by_size.grouped_by(2));
            let divisions = both.first_of_each(snapshot, (), Order::Ascending)?;
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
            let people = self.totals.get(snapshot, ("FR", "people"))?;
            let cities = self.totals.get(snapshot, ("FR", "cities"))?;
            let [people, cities] = [people, cities].map(|n| grouped(n.unsigned_abs()));
            Ok((vec![format!("{people} in {cities} cities")], ()))
        })?;
        ask(store, "Which place has Lyon (472,317) among them? (a rank)", |snapshot| {
            let before = self.ranked.rank(snapshot, "FR", ("FR", Desc(472_317_u64)))?;
            Ok((
                vec![format!("{} of {}", before + 1, grouped(self.ranked.count(snapshot, "FR")?))],
                (),
            ))
        })?;
        ask(store, "Which city is in the middle of them? (the n-th entry)", |snapshot| {
            let middle = self.ranked.count(snapshot, "FR")? / 2;
            let Some(found) = self.ranked.nth(snapshot, "FR", middle)? else {
                return Ok((vec!["none".into()], ()));
            };
            let city = self.cities.get(snapshot, &found.record_key()?)?;
            Ok((city.iter().map(ToString::to_string).collect(), ()))
        })?;
        Ok(())
    }
}

/// A folded group as its value and its name.
fn named<P>(by: &Grouping<P>) -> impl Fn((keyloom::KeyBuf, u64)) -> Result<(u64, String)> {
    move |(key, count)| Ok((count, by.group(&key)?))
}
