//! A table with composite-key indexes: plain, descending and partial, multi-valued.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{Desc, DynWriter, Memory, Result, Subspace};
use keyloom_patterns::{Attached, Index, IndexEntries, Schema, Table, entry};
use serde::{Deserialize, Serialize};

use crate::Workload;

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct City {
    country: String,
    name: String,
    population: u64,
    tags: Vec<String>,
}

/// The table and its derived data.
#[derive(Clone)]
pub struct Cities {
    table: Table<u16, City>,
    by_name: Attached<Index<u16, City, (String, String)>>,
    by_size: Attached<Index<u16, City, (String, Desc<u64>)>>,
    by_tag: Attached<Index<u16, City, String>>,
}

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Change {
    Put(u16, City),
    Delete(u16),
    PutMany(Vec<(u16, City)>),
    DeleteMany(Vec<u16>),
}

/// So few ids that records are often replaced.
const IDS: u16 = 60;

impl Cities {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let table = schema.table("cities")?;
        let by_name =
            schema.index(&table, "by_name", 1, |_, c: &City| entry((&c.country, &c.name)))?;
        let by_size = schema.index(&table, "by_size", 1, |_, c: &City| match c.population {
            0 => IndexEntries::none(),
            some => entry((&c.country, Desc(some))),
        })?;
        let by_tag = schema.index(&table, "by_tag", 1, |_, c: &City| c.tags.iter().collect())?;
        Ok(Self { table, by_name, by_size, by_tag })
    }

    fn city(rng: &mut Rng) -> City {
        let any = |rng: &mut Rng, of: &[&str]| {
            rng.choice(of.iter().copied()).unwrap_or_default().to_owned()
        };
        City {
            country: any(rng, &["FR", "US", ""]),
            name: any(rng, &["", "a", "a\0", "ab", "b", "San José", "\u{10FFFF}"]),
            population: rng.u64(..4),
            tags: (0..rng.usize(..4)).map(|_| any(rng, &["x", "y", "z"])).collect(),
        }
    }
}

impl Workload for Cities {
    type Operation = Change;
    type Model = BTreeMap<u16, City>;

    fn name(&self) -> &'static str {
        "cities"
    }

    fn records(&self) -> Vec<Subspace> {
        vec![self.table.space().clone()]
    }

    fn derived(&self) -> Vec<Subspace> {
        vec![self.by_name.space(), self.by_size.space(), self.by_tag.space()]
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        let id = rng.u16(..IDS);
        match rng.u8(..10) {
            0..5 => Change::Put(id, Self::city(rng)),
            5..7 => Change::Delete(id),
            7..9 => Change::PutMany(
                (0..rng.usize(..8)).map(|_| (rng.u16(..IDS), Self::city(rng))).collect(),
            ),
            _ => Change::DeleteMany((0..rng.usize(..8)).map(|_| rng.u16(..IDS)).collect()),
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::Put(id, city) => self.table.put(txn, id, city),
            Change::Delete(id) => self.table.delete(txn, id).map(drop),
            Change::PutMany(cities) => self.table.put_many(txn, cities.iter().cloned()).map(drop),
            Change::DeleteMany(ids) => self.table.delete_many(txn, ids).map(drop),
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Self::Model) {
        match operation {
            Change::Put(id, city) => drop(model.insert(*id, city.clone())),
            Change::Delete(id) => drop(model.remove(id)),
            Change::PutMany(cities) => model.extend(cities.iter().cloned()),
            Change::DeleteMany(ids) => model.retain(|id, _| !ids.contains(id)),
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for index in [self.by_name.untyped(), self.by_size.untyped(), self.by_tag.untyped()] {
            wrong.extend(super::reported(&index.check(txn)?));
        }
        Ok(wrong)
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Self::Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let records: BTreeMap<u16, City> = self.table.range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table", &records, model);
        // Typical queries of a user.
        for tag in ["x", "y", "z"] {
            let mut ids: Vec<u16> = Vec::new();
            for found in self.by_tag.at(txn)?.range(txn, tag)? {
                ids.push(found?.record_key()?);
            }
            let with_tag = model.iter().filter(|(_, city)| city.tags.iter().any(|one| one == tag));
            super::compare(&mut wrong, tag, ids, with_tag.map(|(id, _)| *id).collect());
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Self::Model, txn: &mut DynWriter<'_>) -> Result<()> {
        model.iter().try_for_each(|(id, city)| self.table.put(txn, id, city))
    }
}
