//! Clicks and their aggregates: totals, ranks, and sums per time bucket.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use keyloom::{Desc, DynWriter, Memory, Result, Subspace};
use keyloom_patterns::aggregate::{Contributions, Event, RankedIndex, RollUp, Totals};
use keyloom_patterns::{Attached, Schema, Table, entry};
use serde::{Deserialize, Serialize};

use crate::Workload;

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Click {
    site: String,
    second: i64,
    bytes: i64,
}

/// The table and its derived data.
#[derive(Clone)]
pub struct Clicks {
    table: Table<u16, Click>,
    totals: Attached<Totals<u16, Click, (String, String)>>,
    ranked: Attached<RankedIndex<u16, Click, (String, Desc<i64>)>>,
    roll_up: Attached<RollUp<u16, Click, String>>,
}

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Change {
    Put(u16, Click),
    Delete(u16),
    PutMany(Vec<(u16, Click)>),
}

/// The expected data.
#[derive(Clone, Default)]
pub struct Model {
    records: BTreeMap<u16, Click>,
    /// All sites and seconds that ever had a click: a total of 0 remains stored.
    touched: BTreeSet<(String, i64)>,
}

/// Enough ids for two levels of counts.
const IDS: u16 = 300;
const SITES: [&str; 4] = ["", "a", "a\0", "b.org"];

impl Clicks {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let table = schema.table("clicks")?;
        let totals = schema.totals(&table, "totals", 1, |_, c: &Click| {
            Contributions::from_iter([((&c.site, "clicks"), 1), ((&c.site, "bytes"), c.bytes)])
        })?;
        let ranked = schema.derive(&table, "ranked", 1, |space| {
            Ok(RankedIndex::new(space, |_, c: &Click| entry((&c.site, Desc(c.bytes)))))
        })?;
        let roll_up = schema.derive(&table, "roll_up", 1, |space| {
            RollUp::new(space, &[60, 600], |_, c: &Click| {
                Some(Event::new(&c.site, c.second, c.bytes))
            })
        })?;
        Ok(Self { table, totals, ranked, roll_up })
    }

    fn click(rng: &mut Rng) -> Click {
        let site = rng.choice(SITES).unwrap_or_default().to_owned();
        // Few distinct seconds, so that buckets come and go. Never 0 bytes, so that each click
        // changes the totals.
        Click { site, second: rng.i64(-20..20) * 37, bytes: rng.i64(1..50) }
    }
}

impl Workload for Clicks {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        "clicks"
    }

    fn records(&self) -> Vec<Subspace> {
        vec![self.table.space().clone()]
    }

    fn derived(&self) -> Vec<Subspace> {
        vec![self.totals.space(), self.ranked.space(), self.roll_up.space()]
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        match rng.u8(..10) {
            0..5 => Change::Put(rng.u16(..IDS), Self::click(rng)),
            5..8 => Change::Delete(rng.u16(..IDS)),
            _ => Change::PutMany(
                (0..rng.usize(..8)).map(|_| (rng.u16(..IDS), Self::click(rng))).collect(),
            ),
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::Put(id, click) => self.table.put(txn, id, click),
            Change::Delete(id) => self.table.delete(txn, id).map(drop),
            Change::PutMany(clicks) => self.table.put_many(txn, clicks),
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Model) {
        let mut put = |id: u16, click: &Click| {
            model.touched.insert((click.site.clone(), click.second));
            model.records.insert(id, click.clone());
        };
        match operation {
            Change::Put(id, click) => put(*id, click),
            Change::Delete(id) => drop(model.records.remove(id)),
            // Only the last value of a repeated key is used.
            Change::PutMany(clicks) => {
                let last: BTreeMap<u16, &Click> = clicks.iter().map(|(id, c)| (*id, c)).collect();
                last.into_iter().for_each(|(id, click)| put(id, click));
            }
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut found = self.totals.check(txn)?;
        found.extend(self.ranked.check(txn)?);
        found.extend(self.roll_up.check(txn)?);
        Ok(super::reported(&found))
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let records: BTreeMap<u16, Click> = self.table.range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table", &records, &model.records);
        // Typical queries of a user.
        let (totals, ranked) = (self.totals.at(txn)?, self.ranked.at(txn)?);
        for site in SITES {
            let clicks: Vec<&Click> = records.values().filter(|click| click.site == site).collect();
            let bytes: i64 = clicks.iter().map(|click| click.bytes).sum();
            super::compare(&mut wrong, "a sum", totals.get(txn, (site, "bytes"))?, bytes);
            let before = clicks.iter().filter(|click| click.bytes > 25).count() as u64;
            let rank = ranked.rank(txn, site, (site, Desc(25_i64)))?;
            super::compare(&mut wrong, "a rank", rank, before);
            let within = clicks.iter().filter(|click| (-100..333).contains(&click.second));
            let within: i64 = within.map(|click| click.bytes).sum();
            let (total, _) = self.roll_up.at(txn)?.total(txn, site, -100..333)?;
            super::compare(&mut wrong, "a sum over an interval", total, within);
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        // Each total that was ever changed is stored, even if it is 0 again.
        for (site, second) in &model.touched {
            let click = Click { site: site.clone(), second: *second, bytes: 1 };
            self.table.put(txn, &0, &click)?;
        }
        self.table.delete(txn, &0)?;
        model.records.iter().try_for_each(|(id, click)| self.table.put(txn, id, click))
    }
}
