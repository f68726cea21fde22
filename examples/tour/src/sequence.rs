//! A journal of the cities of Île-de-France, by number and by day.

use keyloom::value::Postcard;
use keyloom::{Result, Store, Subspace, Writer};
use keyloom_patterns::sequence::{VersionstampedLog, first_id_at, ids_between};
use keyloom_patterns::{AppendLog, TimeBuckets, descending};

use crate::cities::Cities;
use crate::options::Options;
use crate::report::{ask, is_there, say, some_of};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "enumerable keys",
    title: "Keep ids, logs and time series in order",
    chapter: "book/src/sequence.md",
    layout: r#"("tour", "enumerable_keys", "journal", "record", region, number) -> city"#,
    data: &["enumerable_keys"],
    shown: "newest three lines",
};

/// One city per hour, from 2026-01-01.
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const FIRST_DAY: u64 = 20_454;

pub struct EnumerableKeys {
    cities: Cities,
    journal: AppendLog<String, String>,
    by_day: TimeBuckets<String, String, Postcard>,
    changes: VersionstampedLog<String, String>,
    loaded: Subspace,
}

impl EnumerableKeys {
    pub fn new(tour: &Tour<'_>) -> Self {
        let space = Subspace::new("tour").child("enumerable_keys");
        Self {
            cities: tour.cities.clone(),
            journal: AppendLog::new(&space.child("journal")),
            by_day: TimeBuckets::daily(&space.child("by_day")),
            changes: VersionstampedLog::new(&space.child("changes")),
            loaded: space.child("loaded"),
        }
    }
}

fn paris() -> String {
    "Île-de-France".to_owned()
}

impl Step for EnumerableKeys {
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        let loaded = self.loaded.pack("journal");
        if is_there(store, &loaded)? {
            say!("journal    in the store already");
            return Ok(());
        }
        let in_paris = self.cities.by_place.query().prefix(("FR", "11")).limit(1_000);
        let found = in_paris.records(&store.snapshot()?)?;
        store.transact(|txn| {
            for (hour, (_, city)) in (0..).zip(&found.items) {
                self.journal.append(txn, &paris(), &city.name)?;
                let id = first_id_at(FIRST_DAY * DAY_MS + hour * HOUR_MS);
                self.by_day.put(txn, &paris(), id, &city.name)?;
                self.changes.append(txn, &paris(), &city.name)?;
            }
            txn.put(&loaded, b"")
        })?;
        say!("journal    of {} cities", found.items.len());
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(store, "Which are the newest three lines of the journal?", |snapshot| {
            let lines = self.journal.range(snapshot, &paris(), descending(..))?;
            let lines = lines.take(3).map(|line| line.map(|((_, n), city)| format!("{n} {city}")));
            Ok((lines.collect::<Result<_>>()?, ()))
        })?;
        ask(store, "And the three before number 100?", |snapshot| {
            let lines = self.journal.range(snapshot, &paris(), descending(..100))?;
            let lines = lines.take(3).map(|line| line.map(|((_, n), city)| format!("{n} {city}")));
            Ok((lines.collect::<Result<_>>()?, ()))
        })?;
        ask(store, "What was written on 2026-01-10, the tenth day?", |snapshot| {
            let lines = self.by_day.bucket(snapshot, &paris(), FIRST_DAY + 9)?;
            let lines = lines.map(|line| line.map(|(_, city)| city)).collect::<Result<Vec<_>>>()?;
            Ok((some_of(&lines, 2, "lines"), ()))
        })?;
        ask(store, "And last before six o'clock of that day?", |snapshot| {
            let before = ids_between(..(FIRST_DAY + 9) * DAY_MS + 6 * HOUR_MS);
            let lines = self.by_day.range(snapshot, &paris(), descending(before))?;
            let lines = lines.take(1).map(|line| line.map(|(_, city)| city));
            Ok((lines.collect::<Result<_>>()?, ()))
        })?;
        ask(
            store,
            "Which two changes came behind the first hundred, in the order of their commits?",
            |snapshot| {
                let seen = self.changes.read_new(snapshot, &paris(), None, 100)?;
                let last = seen.last().map(|(stamp, _)| *stamp);
                let new = self.changes.read_new(snapshot, &paris(), last, 2)?;
                Ok((new.into_iter().map(|(_, city)| city).collect(), ()))
            },
        )
    }
}
