//! Cities by country, region and name; and by country, region and size.

use std::time::Instant;

use keyloom::{Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::{BatchSize, Continuation, starting_with};

use crate::cities::{self, Cities};
use crate::options::Options;
use crate::output::progress;
use crate::report::{ask, grouped, is_there, say, some_of};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "composite-key index",
    title: "Find, sort and page records by any field",
    chapter: "book/src/composite_key_index.md",
    layout: "(cities.by_size, country, region, population descending, id)",
    data: &["cities", "cities.by_place", "cities.by_size"],
    shown: "five largest cities",
};

/// The number of cities per transaction of the load, if the store allows so many.
const BATCH: usize = 10_000;

pub struct CompositeKeyIndex {
    cities: Cities,
    loaded: Subspace,
}

impl CompositeKeyIndex {
    pub fn new(tour: &Tour<'_>) -> Self {
        Self { cities: tour.cities.clone(), loaded: Subspace::new(&("tour", "loaded")) }
    }

    fn next_largest<R: Reader>(
        &self,
        snapshot: &R,
        after: Option<&Continuation>,
    ) -> Result<(Vec<String>, Option<Continuation>)> {
        let page = self.cities.by_size.query().prefix(("US", "CA")).limit(5).after(after);
        let page = page.records(snapshot)?;
        Ok((page.items.iter().map(|(_id, city)| city.to_string()).collect(), page.next))
    }
}

impl Step for CompositeKeyIndex {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        let loaded = self.loaded.pack("cities");
        if is_there(store, &loaded)? {
            say!("cities     in the store already");
            return Ok(());
        }
        let started = Instant::now();
        // Putting a city is idempotent, so an interrupted load can run again.
        let mut rows = cities::read(&options.data)?;
        let (mut size, mut count) = (BatchSize::new(BATCH), 0);
        loop {
            let batch = rows.by_ref().take(BATCH).collect::<TourResult<Vec<_>>>()?;
            if batch.is_empty() {
                break;
            }
            size.transact_all(store, &batch, |txn, some| self.cities.table.put_many(txn, some))?;
            count += batch.len() as u64;
            progress(format!("loading {} of {} cities", grouped(count), grouped(cities::ROWS)));
        }
        if count != cities::ROWS {
            return Err(format!("the file holds {count} cities and not {}", cities::ROWS).into());
        }
        store.transact(|txn| txn.put(&loaded, &count.to_be_bytes()))?;
        let seconds = started.elapsed().as_secs_f64();
        say!("cities     {} loaded with two indexes in {seconds:.2} s", grouped(count));
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(
            store,
            "Which cities are in France? (by_place, one range, names from the entries)",
            |snapshot| {
                let mut names = Vec::new();
                for found in self.cities.by_place.at(snapshot)?.range(snapshot, "FR")? {
                    let found = found?;
                    let (_country, admin1, name) = found.parts()?;
                    names.push(format!("{name} in region {admin1}"));
                }
                Ok((some_of(&names, 3, "cities"), ()))
            },
        )?;
        ask(store, "And in Île-de-France, France's region 11?", |snapshot| {
            let mut names = Vec::new();
            for found in self.cities.by_place.at(snapshot)?.range(snapshot, ("FR", "11"))? {
                let found = found?;
                let (_country, _admin1, name) = found.parts()?;
                names.push(name.to_owned());
            }
            Ok((some_of(&names, 3, "cities"), ()))
        })?;
        ask(store, "Which cities of California begin with \"San \"?", |snapshot| {
            let found = self
                .cities
                .by_place
                .at(snapshot)?
                .range(snapshot, starting_with(("US", "CA", "San ")))?;
            let ids = found.map(|found| found?.record_key()).collect::<Result<Vec<_>>>()?;
            let cities = self.cities.table.get_many(snapshot, &ids)?;
            let cities: Vec<_> = cities.iter().flatten().collect();
            Ok((some_of(&cities, 3, "cities"), ()))
        })?;
        let next = ask(
            store,
            "Which are the five largest cities of California? (by_size, one page)",
            |snapshot| self.next_largest(snapshot, None),
        )?;
        ask(store, "And the next five? (the page behind the continuation)", |snapshot| {
            self.next_largest(snapshot, next.as_ref())
        })?;
        Ok(())
    }
}
