//! The populations of some cities, and a consumer that sums up the changes.

use keyloom::{Reader, Store, Subspace, Writer};
use keyloom_patterns::feed::Consumer;
use keyloom_patterns::{Feed, Table};

use crate::cities::City;
use crate::options::Options;
use crate::report::{act, grouped, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "change feed",
    title: "Report each change to other programs",
    chapter: "book/src/feed.md",
    layout: r#"("tour", "feed", "changes", share, number) -> change"#,
    data: &["feed"],
    shown: "A consumer adds",
};

/// Paris, Lyon and Marseille.
const CITIES: [u32; 3] = [2_988_507, 2_996_944, 2_995_469];

pub struct Feeds {
    cities: Table<u32, City>,
    populations: Table<u32, u64>,
    feed: Feed<u32, u64>,
    space: Subspace,
}

impl Feeds {
    pub fn new(tour: &Tour<'_>) -> Self {
        let space = Subspace::new("tour").child("feed");
        let feed = Feed::new(&space.child("changes")).with_old_values();
        let populations = Table::new(&space.child("populations")).with(&feed);
        Self { cities: tour.cities.table.clone(), populations, feed, space }
    }

    fn consumer(&self) -> Consumer<u32, u64, keyloom::value::Postcard> {
        self.feed.consumer("sum")
    }
}

impl Step for Feeds {
    /// Replaces the data in each run, so that the feed starts with the first change.
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        let cities = self.cities.get_many(&store.snapshot()?, &CITIES)?;
        let cities = CITIES.into_iter().zip(cities.into_iter().flatten());
        let populations: Vec<_> = cities.map(|(id, city)| (id, city.population)).collect();
        store.transact(|txn| {
            txn.delete_range(self.space.self_and_children())?;
            self.consumer().start(txn, 0)?;
            self.populations.put_many(txn, &populations)
        })?;
        say!("{} populations, each of which is a change in the feed", populations.len());
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let what = "Two clerks change one population and delete another one:";
        act(store, what, |store| {
            let [paris, lyon, _] = CITIES;
            store.transact(|txn| self.populations.put(txn, &paris, &2_145_906))?;
            store.transact(|txn| self.populations.delete(txn, &lyon))?;
            let last = self.feed.last(&store.snapshot()?)?;
            Ok(vec![format!("the newest change is number {last}")])
        })?;
        act(store, "A consumer adds them up, each change exactly once:", |store| {
            let sum = self.space.pack("sum");
            let consumer = self.consumer();
            let processed = store.transact(|txn| {
                consumer.process(txn, 100, |txn, change| {
                    let [old, new] = [change.old, change.new].map(|value| value.unwrap_or(0));
                    txn.add(&sum, new as i64 - old as i64)
                })
            })?;
            let sum = store.snapshot()?.counter(&sum)?.unsigned_abs();
            Ok(vec![format!("{processed} changes, sum of the populations {}", grouped(sum))])
        })
    }
}
