//! The next version of a program, on the store of the first one: another record type, another
//! index, and totals.

use keyloom::Store;
use keyloom_patterns::{Key, Record, Schema};
use serde::{Deserialize, Serialize};

use crate::countries;
use crate::options::Options;
use crate::report::{ask, grouped, say, some_of};
use crate::{About, Step, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "how a schema changes",
    title: "Change a record type, an index, a schema",
    chapter: "book/src/schema_changes.md",
    layout: "(nations, code) -> record; (nations.by_continent, continent, name, code)",
    data: &["nations", "nations.by_continent", "nations.per_continent"],
    shown: "How many nations",
};

/// The types of the first program.
mod first {
    use super::*;

    #[derive(Clone, Debug, Serialize, Deserialize, Record)]
    #[record(table = "nations", key(code))]
    pub struct Nation {
        pub code: String,
        pub name: String,
        /// GeoNames' code of two letters.
        #[index]
        pub continent: String,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Key)]
enum Continent {
    #[key(0)]
    Africa,
    #[key(1)]
    Antarctica,
    #[key(2)]
    Asia,
    #[key(3)]
    Europe,
    #[key(4)]
    NorthAmerica,
    #[key(5)]
    Oceania,
    #[key(6)]
    SouthAmerica,
}

/// The second version: continents have names, and an order of their own.
#[derive(Clone, Debug, Serialize, Deserialize, Record)]
#[record(table = "nations", key(code), version = 2, from_plain = first::Nation)]
#[record(index(by_continent = (continent, name), version = 2))]
#[record(totals(per_continent = continent))]
struct Nation {
    code: String,
    name: String,
    continent: Continent,
}

impl TryFrom<first::Nation> for Nation {
    type Error = String;

    fn try_from(first::Nation { code, name, continent }: first::Nation) -> Result<Self, String> {
        let continent = match &*continent {
            "AF" => Continent::Africa,
            "AN" => Continent::Antarctica,
            "AS" => Continent::Asia,
            "EU" => Continent::Europe,
            "NA" => Continent::NorthAmerica,
            "OC" => Continent::Oceania,
            "SA" => Continent::SouthAmerica,
            other => return Err(format!("{other} is not the code of a continent")),
        };
        Ok(Self { code, name, continent })
    }
}

pub struct SchemaChange;

impl Step for SchemaChange {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        let tables = Schema::open(store, "tour")?.tables()?;
        let mut nations = tables.iter().filter(|table| table.name == "nations");
        if nations.any(|table| table.definition.version == 2) {
            return finish(store, "in the store already");
        }
        let nations = first::NationTable::declare(&Schema::open(store, "tour")?)?;
        let rows = countries::rows(&options.data)?.into_iter();
        let rows = rows.map(|(code, country)| first::Nation {
            code,
            name: country.name,
            continent: country.continent,
        });
        let rows: Vec<_> = rows.collect();
        store.transact(|txn| rows.iter().try_for_each(|nation| nations.put_record(txn, nation)))?;
        say!("version 1  {} nations", grouped(rows.len() as u64));
        let next = Schema::dry_run(store, "tour")?;
        NationTable::declare(&next)?;
        let plan = next.plan()?.steps;
        let of_nations =
            plan.iter().map(ToString::to_string).filter(|step| step.contains("nations"));
        of_nations.for_each(|step| say!("plan       {step}"));
        finish(store, "applied")
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let nations = NationTable::declare(&Schema::open(store, "tour")?)?;
        ask(store, "How many nations has each continent?", |snapshot| {
            let per_continent = nations.per_continent(snapshot)?;
            let totals = per_continent.range(snapshot, ..)?;
            let lines = totals.map(|total| {
                let (continent, count) = total?;
                Ok(format!("{continent:?}: {count}"))
            });
            Ok((lines.collect::<keyloom::Result<_>>()?, ()))
        })?;
        ask(store, "Which are the first nations of Oceania, by name?", |snapshot| {
            let query = nations.by_continent.query().prefix((Continent::Oceania,));
            let found = query.records(snapshot)?.items.into_iter();
            let names: Vec<_> = found.map(|(_, nation)| nation.name).collect();
            Ok((some_of(&names, 3, "nations"), ()))
        })
    }
}

/// Runs the rest of the plan. Nothing is left if the store has the second version already.
fn finish(store: &TourStore, what: &str) -> TourResult {
    let schema = Schema::open(store, "tour")?;
    NationTable::declare(&schema)?;
    let done = schema.apply()?;
    say!("version 2  {what}: {} records rewritten", grouped(done.written));
    Ok(())
}
