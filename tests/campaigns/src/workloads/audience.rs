//! Visitors, searched through two inverted indexes: one that assigns ids, and one whose keys are
//! ids.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{DynWriter, Memory, Result, Subspace};
use keyloom_patterns::bitmaps::{BitmapExpr, InvertedIndex, one};
use keyloom_patterns::{Attached, Schema, Table, starting_with};
use serde::{Deserialize, Serialize};

use super::numbered::Numbered;
use crate::Workload;

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visitor {
    city: Option<String>,
    sites: Vec<String>,
    cents: Option<i64>,
}

/// The table and its indexes.
#[derive(Clone)]
pub struct Audience {
    table: Table<u16, Visitor>,
    by_given_id: Attached<InvertedIndex<u16, Visitor>>,
    by_key: Attached<InvertedIndex<u16, Visitor>>,
}

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Change {
    Put(u16, Visitor),
    Delete(u16),
    PutMany(Vec<(u16, Visitor)>),
    DeleteMany(Vec<u16>),
}

/// The expected data.
type Model = Numbered<u16, Visitor>;

const CITIES: [&str; 4] = ["", "a", "a\0", "Oslo"];
const SITES: [&str; 3] = ["a.org", "b", "b.org"];

/// The first key that no operation uses. From here on, there is one key for each id.
const NOBODY: u16 = 60_000;

fn declare(index: InvertedIndex<u16, Visitor>) -> InvertedIndex<u16, Visitor> {
    index
        .field("city", |_, visitor| one(visitor.city.as_ref()))
        .field("site", |_, visitor| visitor.sites.iter().collect())
        .integers("cents", |_, visitor| visitor.cents)
}

impl Audience {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let table = schema.table("visitors")?;
        let by_given_id = schema
            .derive(&table, "by_given_id", 1, |space| Ok(declare(InvertedIndex::new(space))))?;
        let by_key = schema.derive(&table, "by_key", 1, |space| {
            Ok(declare(InvertedIndex::with_keys_as_ids(space)))
        })?;
        Ok(Self { table, by_given_id, by_key })
    }

    fn visitor(rng: &mut Rng) -> Visitor {
        let city = rng.bool().then(|| rng.choice(CITIES).unwrap_or_default().to_owned());
        let sites = (0..rng.usize(..3)).map(|_| rng.choice(SITES).unwrap_or_default().into());
        let sites = sites.collect();
        let cents = (rng.u8(..4) > 0).then(|| match rng.u8(..8) {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => rng.i64(-20..20),
        });
        Visitor { city, sites, cents }
    }

    /// A key in one of two chunks, near their common border.
    fn key(rng: &mut Rng) -> u16 {
        rng.u16(..50) + if rng.bool() { 32_487 } else { 0 }
    }

    /// The results of an index: the keys of visitors to sites with a prefix, without a city, with
    /// higher spending, and with all three conditions.
    fn asked(
        index: &InvertedIndex<u16, Visitor>,
        txn: &DynWriter<'_>,
    ) -> Result<([Vec<u16>; 4], i128)> {
        let cents = index.integers_of("cents")?;
        let site = index.any_term(txn, "site", starting_with("b"))?;
        let (nowhere, more) = (index.absent("city")?, cents.gt(3));
        let together = &site & &nowhere & &more;
        let keys = |expr: &BitmapExpr| -> Result<Vec<u16>> {
            let ids = expr.ids(txn, ..)?.collect::<Result<Vec<u64>>>()?;
            let mut keys: Vec<u16> = index.keys(txn, ids)?.into_iter().flatten().collect();
            keys.sort_unstable();
            Ok(keys)
        };
        let sum = cents.sum(txn, Some(&site))?;
        Ok(([keys(&site)?, keys(&nowhere)?, keys(&more)?, keys(&together)?], sum))
    }
}

/// The expected results of [`Audience::asked`].
fn wanted(model: &Model) -> ([Vec<u16>; 4], i128) {
    let keys = |is_so: &dyn Fn(&Visitor) -> bool| {
        model.records.iter().filter(|(_, v)| is_so(v)).map(|(key, _)| *key).collect()
    };
    let site = |v: &Visitor| v.sites.iter().any(|site| site.starts_with('b'));
    let (nowhere, more) = (|v: &Visitor| v.city.is_none(), |v: &Visitor| v.cents > Some(3));
    let of_site = model.records.values().filter(|v| site(v));
    let sum = of_site.filter_map(|v| v.cents).map(i128::from).sum();
    ([keys(&site), keys(&nowhere), keys(&more), keys(&|v| site(v) && nowhere(v) && more(v))], sum)
}

impl Workload for Audience {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        "audience"
    }

    fn records(&self) -> Vec<Subspace> {
        vec![self.table.space().clone()]
    }

    fn derived(&self) -> Vec<Subspace> {
        vec![self.by_given_id.space(), self.by_key.space()]
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        let some = |rng: &mut Rng| 0..rng.usize(..8);
        match rng.u8(..10) {
            0..4 => Change::Put(Self::key(rng), Self::visitor(rng)),
            4..7 => Change::Delete(Self::key(rng)),
            7..9 => {
                Change::PutMany(some(rng).map(|_| (Self::key(rng), Self::visitor(rng))).collect())
            }
            _ => Change::DeleteMany(some(rng).map(|_| Self::key(rng)).collect()),
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::Put(key, visitor) => self.table.put(txn, key, visitor),
            Change::Delete(key) => self.table.delete(txn, key).map(drop),
            Change::PutMany(visitors) => self.table.put_many(txn, visitors),
            Change::DeleteMany(keys) => self.table.delete_many(txn, keys).map(drop),
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Model) {
        match operation {
            Change::Put(key, visitor) => model.put(*key, visitor.clone()),
            Change::Delete(key) => drop(model.delete(key)),
            // Ids are assigned in key order.
            Change::PutMany(visitors) => {
                let last: BTreeMap<u16, &Visitor> = visitors.iter().map(|(k, v)| (*k, v)).collect();
                last.into_iter().for_each(|(key, one)| model.put(key, one.clone()));
            }
            Change::DeleteMany(keys) => keys.iter().for_each(|key| drop(model.delete(key))),
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut found = self.by_given_id.check(txn)?;
        found.extend(self.by_key.check(txn)?);
        Ok(super::reported(&found))
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let records: BTreeMap<u16, Visitor> = self.table.range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table", &records, &model.records);
        let (by_given_id, by_key) = (self.by_given_id.at(txn)?, self.by_key.at(txn)?);
        model.judge_ids(&mut wrong, by_given_id, txn)?;
        let wanted = wanted(model);
        for index in [by_given_id, by_key] {
            super::compare(&mut wrong, "what is found", &Self::asked(index, txn)?, &wanted);
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        let nobody = |id| NOBODY + u16::try_from(id).unwrap_or(u16::MAX - NOBODY);
        let visitor = Visitor { city: None, sites: Vec::new(), cents: None };
        model.rebuild(&self.table, txn, nobody, &visitor)
    }
}
