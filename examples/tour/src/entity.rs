//! Paris as an aggregate: the fields of the data, names in other languages, and a census with its
//! history.

use std::collections::BTreeMap;

use keyloom::{Store, Subspace, Writer};
use keyloom_patterns::entity::wide_column::{NOW, WideColumns};
use keyloom_patterns::{Aggregates, Table};

use crate::cities::City;
use crate::options::Options;
use crate::report::{act, ask, grouped, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "aggregates",
    title: "Store entities of any shape",
    chapter: "book/src/entity.md",
    layout: r#"("tour", "aggregates", "cities", id, field, ...) -> value"#,
    data: &["aggregates"],
    shown: "How is Paris called",
};

const PARIS: u32 = 2_988_507;

pub struct Aggregated {
    cities: Table<u32, City>,
    aggregates: Aggregates<u32>,
    census: WideColumns<u32>,
    space: Subspace,
}

impl Aggregated {
    pub fn new(tour: &Tour<'_>) -> Self {
        let space = Subspace::new("tour").child("aggregates");
        Self {
            cities: tour.cities.table.clone(),
            aggregates: Aggregates::new(&space.child("cities")),
            census: WideColumns::new(&space.child("census")),
            space,
        }
    }
}

impl Step for Aggregated {
    /// Replaces the data in each run, so that every run makes the same changes.
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        let paris = self.cities.get(&store.snapshot()?, &PARIS)?.ok_or("there is no Paris")?;
        store.transact(|txn| {
            txn.delete_range(self.space.self_and_children())?;
            self.aggregates.put(txn, &PARIS, &paris)?;
            for (language, name) in [("it", "Parigi"), ("nl", "Parijs"), ("pl", "Paryż")] {
                self.aggregates.set(txn, &PARIS, ("names", language), name)?;
            }
            [(1999, 2_125_246_u64), (2010, 2_243_833), (2015, paris.population)]
                .iter()
                .try_for_each(|(year, people)| {
                    let people = people.to_be_bytes();
                    self.census.put(txn, &PARIS, "people", "population", *year, &people)
                })
        })?;
        say!("city       {} in parts, with names in three languages", paris.name);
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        act(
            store,
            "One field changes, and one that no other city has appears (here; the table of cities stays as it is):",
            |store| {
                store.transact(|txn| {
                    self.aggregates.set(txn, &PARIS, "population", &2_145_906)?;
                    self.aggregates.set(txn, &PARIS, "mayor", "Hidalgo")
                })?;
                Ok(vec!["done".into()])
            },
        )?;
        ask(store, "How is Paris called elsewhere?", |snapshot| {
            let names: Option<BTreeMap<String, String>> =
                self.aggregates.field(snapshot, &PARIS, "names")?;
            let names = names.unwrap_or_default().into_iter();
            Ok((names.map(|(language, name)| format!("{language}: {name}")).collect(), ()))
        })?;
        ask(
            store,
            "And what is it to a program that knows neither names nor mayor?",
            |snapshot| {
                let paris: Option<City> = self.aggregates.get(snapshot, &PARIS)?;
                Ok((paris.iter().map(City::to_string).collect(), ()))
            },
        )?;
        ask(store, "What was its population as of 2012, and what is it now?", |snapshot| {
            let people = |year| {
                let cell = self.census.get(snapshot, &PARIS, "people", "population", year)?;
                let bytes = cell.and_then(|cell| cell.value.try_into().ok());
                Ok::<_, keyloom::Error>(grouped(bytes.map_or(0, u64::from_be_bytes)))
            };
            Ok((vec![format!("{}, {}", people(2012)?, people(NOW)?)], ()))
        })
    }
}
