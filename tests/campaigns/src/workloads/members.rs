//! An index table: a catalog with an index that covers fields, a unique one and a deferred one, drained and built
//! anew in between.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{Desc, DynWriter, Error, Memory, Order, Result, Store, Subspace};
use keyloom_patterns::general::index_table::{DrainProgress, IndexInfo};
use keyloom_patterns::{Index, IndexCatalog, IndexEntries, Table, entry};
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

/// The table and its catalog.
#[derive(Clone)]
pub struct Members {
    table: Table<u8, Member>,
    catalog: IndexCatalog<u8, Member>,
    by_email: Index<u8, Member>,
}

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Operation {
    Put(u8, Member),
    Delete(u8),
    DeleteMany(Vec<u8>),
    Drain,
    /// Takes an index out of use, clears it and builds it, all in one transaction.
    Build(&'static str, usize),
}

/// What should be there.
#[derive(Clone, Default)]
pub struct Model {
    is_open: bool,
    members: BTreeMap<u8, Member>,
    /// What the deferred index has of members that changed since the last drain.
    queued: BTreeMap<u8, Option<Member>>,
}

const IDS: u8 = 40;
const NAMES: [&str; 3] = ["by_age", "by_email", "by_town"];

impl Members {
    /// In a subspace of its own.
    pub fn new() -> Self {
        let space = Subspace::new("members");
        let by_town = Index::new(&space.child("by_town"), |_, m: &Member| {
            entry((&m.town, Desc(m.age))).covering(&m.name)
        });
        let by_email = Index::new(&space.child("by_email"), |_, m: &Member| {
            m.email.iter().map(|email| entry(email).covering(m.age)).collect()
        });
        let by_email = by_email.unique();
        let by_age = Index::new(&space.child("by_age"), |_, m: &Member| by_age(m));
        let catalog = IndexCatalog::new(&space.child("indexes"))
            .with("by_town", 1, &by_town)
            .with("by_email", 1, &by_email)
            .with_deferred("by_age", 1, &by_age);
        let table = Table::new(&space.child("records")).with(&catalog);
        Self { table, catalog, by_email }
    }

    /// What the catalog notes when all is readable.
    fn declared(&self) -> Result<Vec<IndexInfo>> {
        let store = Memory::new();
        store.transact(|txn| self.catalog.open(txn, &self.table))?;
        self.catalog.states(&store.snapshot()?)
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

    fn drain(&self, txn: &mut DynWriter<'_>) -> Result<()> {
        let mut done = DrainProgress::default();
        until_finished(|| {
            done = self.catalog.drain_batch(
                txn,
                &self.table,
                "by_age",
                3,
                std::mem::take(&mut done),
            )?;
            Ok(done.finished)
        })
    }
}

/// Work in batches, each of which tells whether it was the last.
///
/// # Errors
/// After more batches than there can be to do: on a store that forgets what is deleted, a queue is never empty.
fn until_finished(mut batch: impl FnMut() -> Result<bool>) -> Result<()> {
    for _ in 0..10_000 {
        if batch()? {
            return Ok(());
        }
    }
    Err(Error::other("work in batches goes on without an end"))
}

fn by_age(member: &Member) -> IndexEntries {
    match member.age {
        0 => IndexEntries::none(),
        age => entry(age).covering(&member.town),
    }
}

impl Model {
    fn set(&mut self, id: u8, new: Option<Member>) {
        let old = self.members.get(&id).cloned();
        let entries =
            |member: &Option<Member>| member.as_ref().map_or(IndexEntries::none(), by_age);
        if entries(&old) != entries(&new) {
            self.queued.entry(id).or_insert(old);
        }
        match new {
            Some(new) => drop(self.members.insert(id, new)),
            None => drop(self.members.remove(&id)),
        }
    }

    fn is_taken(&self, id: u8, member: &Member) -> bool {
        member.email.is_some()
            && self.members.iter().any(|(other, m)| *other != id && m.email == member.email)
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
            _ => {
                let name = rng.choice(NAMES).unwrap_or_default();
                Operation::Build(name, rng.usize(1..9))
            }
        }
    }

    fn perform(&self, operation: &Operation, txn: &mut DynWriter<'_>) -> Result<()> {
        self.catalog.open(txn, &self.table)?;
        match operation {
            Operation::Put(id, member) => {
                let holder = match &member.email {
                    Some(email) => self.by_email.get(txn, email)?,
                    None => None,
                };
                match holder.map(|found| found.record_key()).transpose()? {
                    Some(holder) if holder != *id => Ok(()),
                    _ => self.table.put(txn, id, member),
                }
            }
            Operation::Delete(id) => self.table.delete(txn, id).map(drop),
            Operation::DeleteMany(ids) => self.table.delete_many(txn, ids).map(drop),
            Operation::Drain => self.drain(txn),
            Operation::Build(name, batch) => {
                self.catalog.disable(txn, name)?;
                until_finished(|| {
                    Ok(self.catalog.build_batch(txn, &self.table, name, *batch)?.is_finished())
                })
            }
        }
    }

    fn imitate(&self, operation: &Operation, model: &mut Model) {
        model.is_open = true;
        match operation {
            Operation::Put(id, member) if model.is_taken(*id, member) => {}
            Operation::Put(id, member) => model.set(*id, Some(member.clone())),
            Operation::Delete(id) => model.set(*id, None),
            Operation::DeleteMany(ids) => ids.iter().for_each(|id| model.set(*id, None)),
            Operation::Drain | Operation::Build("by_age", _) => model.queued.clear(),
            Operation::Build(..) => {}
        }
    }

    /// Of a record that is queued, the deferred index is rightly another, and what the queue tells of it is
    /// told by nothing else; its place in the queue is.
    fn watched_by(&self, key: &[u8], _: &[u8], model: &Model) -> WatchedBy {
        let space = Subspace::new(self.name());
        let (noted, by_age) = (space.child("indexes"), space.child("by_age"));
        let is_queued = |(_, id): (u8, u8)| model.queued.contains_key(&id);
        match () {
            () if noted.child("queue").contains(key) => WatchedBy::ModelFrom(usize::MAX),
            () if *noted.pack("states") == *key => WatchedBy::Model,
            // Whose catalog it is and how far a build came matter to whoever writes.
            () if noted.contains(key) => WatchedBy::Nobody,
            () if by_age.unpack(key).is_ok_and(is_queued) => WatchedBy::Nobody,
            () => super::derived_in(self.name(), &NAMES, key),
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        if self.catalog.states(txn)?.is_empty() {
            return Ok(wrong);
        }
        for name in NAMES {
            wrong.extend(super::told(&self.catalog.check(txn, &self.table, name)?));
        }
        Ok(wrong)
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let records: BTreeMap<u8, Member> =
            self.table.range(txn, (), Order::Ascending)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table", &records, &model.members);
        let states = self.catalog.states(txn)?;
        let declared = if model.is_open { self.declared()? } else { Vec::new() };
        super::compare(&mut wrong, "the catalog", &states, &declared);
        if states.is_empty() {
            return Ok(wrong);
        }
        let pending = self.catalog.pending(txn, "by_age")?;
        super::compare(&mut wrong, "the queue", pending, model.queued.len() as u64);
        // And what a user would ask: names by town, the oldest first, from the entries alone.
        let by_town = self.catalog.readable(txn, "by_town")?;
        let mut found = Vec::new();
        for entry in by_town.range(txn, "Oslo", Order::Ascending)? {
            let entry = entry?;
            let (_town, Desc(age)) = entry.parts::<(String, Desc<u8>)>()?;
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
        if !model.is_open {
            return Ok(());
        }
        self.catalog.open(txn, &self.table)?;
        // What the deferred index has of them, and nothing in the queue.
        for (id, member) in &model.members {
            let indexed = match model.queued.get(id) {
                None => Some(member.clone()),
                Some(old) => old.as_ref().map(without_email),
            };
            indexed.iter().try_for_each(|member| self.table.put(txn, id, member))?;
        }
        for (id, old) in model.queued.iter().filter(|(id, _)| !model.members.contains_key(id)) {
            old.iter().try_for_each(|old| self.table.put(txn, id, &without_email(old)))?;
        }
        self.drain(txn)?;
        // A change that nobody makes, so that they are queued, and then what is there now.
        let nobody = Member { name: String::new(), town: String::new(), age: 100, email: None };
        for id in model.queued.keys() {
            self.table.put(txn, id, &nobody)?;
            match model.members.get(id) {
                Some(member) => self.table.put(txn, id, member)?,
                None => drop(self.table.delete(txn, id)?),
            }
        }
        Ok(())
    }
}

/// An address would be in the way of whoever has it now.
fn without_email(member: &Member) -> Member {
    Member { email: None, ..member.clone() }
}
