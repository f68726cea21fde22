//! A schema: a table with a covering index, a unique index, and deferred data. The deferred data
//! are idempotent (an index of some records) and not idempotent (totals). Some operations drain and
//! rebuild them.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{Desc, DynWriter, Error, Memory, Result, Subspace};
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::schema::State;
use keyloom_patterns::{AnyParts, Attached, Index, IndexEntries, Schema, Table, Totals, entry};
use serde::{Deserialize, Serialize};

use crate::Workload;
use crate::workload::WatchedBy;

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    name: String,
    town: String,
    age: u8,
    email: Option<u8>,
}

type MemberIndex = Attached<Index<u8, Member, AnyParts>>;

/// The table and its indexes.
#[derive(Clone)]
pub struct Members {
    table: Table<u8, Member>,
    indexes: [MemberIndex; 3],
    /// Members by town. The totals are deferred, like the last index.
    totals: Attached<Totals<u8, Member, String>>,
}

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Operation {
    Put(u8, Member),
    Delete(u8),
    DeleteMany(Vec<u8>),
    /// Updates the deferred data.
    Drain,
    /// Disables an index, clears it and builds it, in one transaction.
    Build(usize, usize),
}

/// The expected data.
#[derive(Clone, Default)]
pub struct Model {
    members: BTreeMap<u8, Member>,
    /// The values at the last drain of the members that have changed since.
    queued: BTreeMap<u8, Option<Member>>,
}

const IDS: u8 = 40;
const BY_TOWN: usize = 0;
const BY_EMAIL: usize = 1;
const BY_AGE: usize = 2;

impl Members {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let table = schema.table("members")?;
        let indexes = [
            schema
                .index(&table, "by_town", 1, |_, m: &Member| {
                    entry((&m.town, Desc(m.age))).covering(&m.name)
                })?
                .untyped(),
            schema
                .unique_index(&table, "by_email", 1, |_, m: &Member| {
                    m.email.iter().map(|email| entry(email).covering(m.age)).collect()
                })?
                .untyped(),
            schema
                .derive_deferred(&table, "by_age", 1, |space| {
                    Ok(Index::new(space, |_, m: &Member| by_age(m)))
                })?
                .untyped(),
        ];
        let totals = schema.derive_deferred(&table, "totals", 1, |space| {
            Ok(Totals::new(space, |_, m: &Member| contribution(&m.town, 1)))
        })?;
        Ok(Self { table, indexes, totals })
    }

    fn queues(&self) -> impl Iterator<Item = Subspace> {
        [self.indexes[BY_AGE].space(), self.totals.space()].into_iter().filter_map(|of| queue(&of))
    }

    fn member(rng: &mut Rng) -> Member {
        let any = |rng: &mut Rng, of: &[&str]| {
            rng.choice(of.iter().copied()).unwrap_or_default().to_owned()
        };
        Member {
            name: any(rng, &["", "n", "n\0"]),
            town: any(rng, &["Oslo", "Rome", ""]),
            age: rng.u8(..3),
            email: rng.bool().then(|| rng.u8(..60)),
        }
    }
}

/// The subspace of the queue of deferred data.
fn queue(data: &Subspace) -> Option<Subspace> {
    // The id of the queue follows that of the data.
    let id: Option<i64> = keyloom::unpack(data.prefix()).ok();
    id.map(|id| Subspace::new(&(id - 1)))
}

/// Runs batches until one of them is the last.
///
/// # Errors
/// If more batches run than can be needed: on a store that forgets deletes, a queue is never empty.
fn until_finished(mut batch: impl FnMut() -> Result<bool>) -> Result<()> {
    for _ in 0..10_000 {
        if batch()? {
            return Ok(());
        }
    }
    Err(Error::other("work in batches goes on without an end"))
}

fn by_age(member: &Member) -> IndexEntries<u8> {
    match member.age {
        0 => IndexEntries::none(),
        age => entry(age).covering(&member.town),
    }
}

impl Model {
    fn is_taken(&self, id: u8, member: &Member) -> bool {
        member.email.is_some()
            && self.members.iter().any(|(other, m)| *other != id && m.email == member.email)
    }

    fn set(&mut self, id: u8, new: Option<Member>) {
        let old = match new.clone() {
            Some(new) => self.members.insert(id, new),
            None => self.members.remove(&id),
        };
        if old.is_some() || new.is_some() {
            self.queued.entry(id).or_insert(old);
        }
    }
}

impl Workload for Members {
    type Operation = Operation;
    type Model = Model;

    fn name(&self) -> &'static str {
        "members"
    }

    fn operation(&self, rng: &mut Rng) -> Operation {
        let id = rng.u8(..IDS);
        match rng.u8(..16) {
            0..9 => Operation::Put(id, Self::member(rng)),
            9..12 => Operation::Delete(id),
            12 => Operation::DeleteMany((0..rng.usize(..6)).map(|_| rng.u8(..IDS)).collect()),
            13 => Operation::Drain,
            _ => Operation::Build(rng.usize(..self.indexes.len()), rng.usize(1..9)),
        }
    }

    fn perform(&self, operation: &Operation, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Operation::Put(id, member) => {
                let holder = match &member.email {
                    Some(email) => self.indexes[BY_EMAIL].at(txn)?.get(txn, email)?,
                    None => None,
                };
                match holder.map(|found| found.record_key()).transpose()? {
                    Some(holder) if holder != *id => Ok(()),
                    _ => self.table.put(txn, id, member),
                }
            }
            Operation::Delete(id) => self.table.delete(txn, id).map(drop),
            Operation::DeleteMany(ids) => self.table.delete_many(txn, ids).map(drop),
            Operation::Drain => {
                until_finished(|| Ok(self.indexes[BY_AGE].drain_batch(txn, 3)?.finished))?;
                until_finished(|| Ok(self.totals.drain_batch(txn, 3)?.finished))
            }
            Operation::Build(at, batch) => {
                self.indexes[*at].disable(txn)?;
                until_finished(|| Ok(self.indexes[*at].build_batch(txn, *batch)?.finished))?;
                if *at != BY_AGE {
                    return Ok(());
                }
                // All deferred data are disabled together, so that they have one queue.
                self.totals.disable(txn)?;
                until_finished(|| Ok(self.totals.build_batch(txn, *batch)?.finished))
            }
        }
    }

    fn imitate(&self, operation: &Operation, model: &mut Model) {
        match operation {
            Operation::Put(id, member) if model.is_taken(*id, member) => {}
            Operation::Put(id, member) => model.set(*id, Some(member.clone())),
            Operation::Delete(id) => model.set(*id, None),
            Operation::DeleteMany(ids) => ids.iter().for_each(|id| model.set(*id, None)),
            Operation::Drain | Operation::Build(BY_AGE, _) => model.queued.clear(),
            Operation::Build(..) => {}
        }
    }

    fn records(&self) -> Vec<Subspace> {
        self.queues().chain([self.table.space().clone()]).collect()
    }

    fn derived(&self) -> Vec<Subspace> {
        let indexes = self.indexes.iter().map(|index| index.space());
        indexes.chain([self.totals.space()]).collect()
    }

    fn watched_by(&self, key: &[u8], value: &[u8], _: &Model) -> WatchedBy {
        match self.queues().any(|queue| queue.contains(key)) {
            // The old value of a queued member is stored nowhere else.
            true => WatchedBy::ModelFrom(usize::MAX),
            false => super::watched_by(self, key, value),
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for index in &self.indexes {
            wrong.extend(super::reported(&index.check(txn)?));
        }
        wrong.extend(super::reported(&self.totals.check(txn)?));
        Ok(wrong)
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let records: BTreeMap<u8, Member> = self.table.range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table", &records, &model.members);
        for index in &self.indexes {
            super::compare(&mut wrong, "the state", index.state(txn)?, State::Readable);
        }
        super::compare(&mut wrong, "the state", self.totals.state(txn)?, State::Readable);
        for pending in [self.indexes[BY_AGE].pending(txn)?, self.totals.pending(txn)?] {
            super::compare(&mut wrong, "the queue", pending, model.queued.len() as u64);
        }
        // A query: names by town, oldest first, from the entries alone.
        let by_town = self.indexes[BY_TOWN].at(txn)?;
        let mut found = Vec::new();
        for entry in by_town.range(txn, "Oslo")? {
            let entry = entry?;
            let (_town, Desc(age)) = entry.parts_as::<(String, Desc<u8>)>()?;
            found.push((std::cmp::Reverse(age), entry.record_key()?, entry.covered::<String>()?));
        }
        let wanted = model.members.iter().filter(|(_, member)| member.town == "Oslo");
        let wanted = wanted.map(|(id, m)| (std::cmp::Reverse(m.age), *id, m.name.clone()));
        let mut wanted: Vec<_> = wanted.collect();
        wanted.sort();
        super::compare(&mut wrong, "Oslo", found, wanted);
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        // The members at the last drain.
        let mut drained = model.members.clone();
        for (id, old) in &model.queued {
            match old {
                Some(old) => drop(drained.insert(*id, old.clone())),
                None => drop(drained.remove(id)),
            }
        }
        self.table.put_many(txn, drained)?;
        self.perform(&Operation::Drain, txn)?;
        // The changes since then, made without a temporary duplicate of an address.
        let nobody = Member { name: String::new(), town: String::new(), age: 0, email: None };
        for id in model.queued.keys() {
            self.table.put(txn, id, &nobody)?;
            self.table.delete(txn, id)?;
        }
        let new = model.queued.keys().filter_map(|id| Some((*id, model.members.get(id)?.clone())));
        self.table.put_many(txn, new)
    }
}
