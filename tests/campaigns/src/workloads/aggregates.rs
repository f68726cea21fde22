//! Mailboxes, entities in parts, versioned records, and columns with a history, in one workload.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{DynWriter, Result, Subspace, Writer};
use keyloom_patterns::entity::wide_column::{NOW, WideColumns};
use keyloom_patterns::versioned::VersionedRecord;
use keyloom_patterns::{
    Aggregates, AppendLog, Index, Maintained, RecordConflict, VersionedTable, entry,
};
use serde::{Deserialize, Serialize};

use super::may_refuse::MayRefuse;
use crate::Workload;
use crate::workload::WatchedBy;

/// The patterns, each in its own subspace.
#[derive(Clone)]
pub struct Parts {
    mail: AppendLog<u8, String>,
    by_length: Index<(u8, u64), String, usize>,
    entities: Aggregates<u8>,
    versions: VersionedTable<u8, String>,
    history: WideColumns<u8>,
    space: Subspace,
}

/// An operation of the workload.
#[derive(Clone, Debug)]
pub enum Change {
    Post(u8, String),
    Forget(u8, u64),
    Set(u8, &'static str, String),
    Remove(u8, &'static str),
    Push(u8, String),
    Rename(u8, String),
    Update(u8, u64, String),
    Delete(u8),
    Write(u8, &'static str, u64, Option<String>),
    DeleteRow(u8),
}

/// The type of an entity in a program that declares only a few fields.
#[derive(Serialize, Deserialize)]
struct Named {
    #[serde(default)]
    name: Option<String>,
}

/// An entity, with the fields that this workload uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Entity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    town: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    list: Option<Vec<String>>,
}

/// The expected data.
#[derive(Clone, Default)]
pub struct Model {
    mail: BTreeMap<(u8, u64), String>,
    last: BTreeMap<u8, u64>,
    entities: BTreeMap<u8, Entity>,
    versions: BTreeMap<u8, (u64, String)>,
    deleted: u64,
    history: BTreeMap<(u8, &'static str, u64), Option<String>>,
}

const IDS: u8 = 6;
/// The times of versions are below this number.
const TIMES: u64 = 5;
/// The number of messages that are kept, and of list items.
const KEPT: u64 = 8;

impl Parts {
    /// Creates the patterns in the workload's subspace.
    pub fn new() -> Self {
        let space = Subspace::new("aggregates");
        let by_length =
            Index::new(&space.child("by_length"), |_: &(u8, u64), text: &String| entry(text.len()));
        Self {
            mail: AppendLog::new(&space.child("mail")).bounded(KEPT).with(&by_length),
            by_length,
            entities: Aggregates::new(&space.child("entities")),
            versions: VersionedTable::new(&space.child("versions")),
            history: WideColumns::new(&space.child("history")),
            space,
        }
    }

    fn push(&self, txn: &mut DynWriter<'_>, id: u8, item: &str) -> Result<()> {
        self.entities.push(txn, &id, "list", item)?;
        let items = self.entities.items::<String>(txn, &id, "list")?;
        if let Some((first, _)) = items.first().filter(|_| items.len() as u64 > KEPT) {
            self.entities.remove(txn, &id, ("list", first))?;
        }
        // Positions depend on the history of a list; renumbered ones depend only on its contents.
        self.entities.renumber(txn, &id, "list")
    }

    fn update(&self, txn: &mut DynWriter<'_>, id: u8, version: u64, text: &str) -> Result<()> {
        let txn = &mut MayRefuse::new(txn);
        let done = match version {
            0 => self.versions.create(txn, &id, text.into()),
            _ => self.versions.update(txn, &id, version, text.into()),
        };
        match done {
            // A refused change wrote nothing, so the operation is complete.
            Err(error) if error.downcast_ref::<RecordConflict<String>>().is_some() => Ok(()),
            done => done.map(drop),
        }
    }
}

impl Workload for Parts {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        "aggregates"
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        let id = rng.u8(..IDS);
        let text = "x".repeat(rng.usize(..4)) + &rng.u16(..).to_string();
        let field = if rng.bool() { "name" } else { "town" };
        match rng.u8(..20) {
            0..4 => Change::Post(id, text),
            4 => Change::Forget(id, rng.u64(..20)),
            5..7 => Change::Set(id, field, text),
            7 => Change::Remove(id, field),
            8..10 => Change::Push(id, text),
            10..12 => Change::Rename(id, text),
            12..15 => Change::Update(id, rng.u64(..4), text),
            15 => Change::Delete(id),
            16..19 => Change::Write(id, field, rng.u64(..TIMES), rng.bool().then_some(text)),
            _ => Change::DeleteRow(id),
        }
    }

    fn perform(&self, change: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match change {
            Change::Post(user, text) => self.mail.append(txn, user, text).map(drop),
            Change::Forget(user, number) => self.mail.delete(txn, user, *number).map(drop),
            Change::Set(id, field, text) => self.entities.set(txn, id, *field, text),
            Change::Remove(id, field) => self.entities.remove(txn, id, *field).map(drop),
            Change::Push(id, item) => self.push(txn, *id, item),
            Change::Rename(id, name) => {
                let rename = |entity: &mut Named| {
                    entity.name = Some(name.clone());
                    Ok(())
                };
                self.entities.update(txn, id, rename).map(drop)
            }
            Change::Update(id, version, text) => self.update(txn, *id, *version, text),
            Change::Delete(id) => self.versions.modify(txn, id, |_| Ok(None)).map(drop),
            Change::Write(row, column, time, Some(text)) => {
                self.history.put(txn, row, "f", column, *time, text.as_bytes())
            }
            Change::Write(row, column, time, None) => {
                self.history.delete(txn, row, "f", column, *time)
            }
            Change::DeleteRow(row) => self.history.delete_row(txn, row),
        }
    }

    fn imitate(&self, change: &Change, model: &mut Model) {
        match change {
            Change::Post(user, text) => {
                let last = model.last.entry(*user).or_default();
                *last += 1;
                model.mail.insert((*user, *last), text.clone());
                let bound = *last;
                model.mail.retain(|(of, number), _| of != user || number + KEPT > bound);
            }
            Change::Forget(user, number) => drop(model.mail.remove(&(*user, *number))),
            Change::Set(id, field, text) => {
                *model.entities.entry(*id).or_default().field(field) = Some(text.clone());
            }
            Change::Remove(id, field) => {
                model
                    .entities
                    .get_mut(id)
                    .into_iter()
                    .for_each(|entity| *entity.field(field) = None);
            }
            Change::Push(id, item) => {
                let list = model.entities.entry(*id).or_default().list.get_or_insert_default();
                list.push(item.clone());
                list.drain(..list.len().saturating_sub(KEPT as usize));
            }
            Change::Rename(id, name) => {
                let there = model.entities.get_mut(id).into_iter();
                there.for_each(|entity| entity.name = Some(name.clone()));
            }
            Change::Update(id, version, text) => model.update(*id, *version, text),
            Change::Delete(id) => {
                let version = model.versions.remove(id).map_or(0, |(version, _)| version);
                model.deleted = model.deleted.max(version);
            }
            Change::Write(row, column, time, text) => {
                model.history.insert((*row, column, *time), text.clone());
            }
            Change::DeleteRow(row) => model.history.retain(|(of, ..), _| of != row),
        }
    }

    /// The counters of assigned numbers matter only to later writes. A tombstone of a column
    /// matters only if an older version exists.
    fn watched_by(&self, key: &[u8], value: &[u8], _: &Model) -> WatchedBy {
        const DELETED: u8 = 0x12;
        let [mail, versions] = ["mail", "versions"].map(|part| self.space.child(part));
        let is_unasked = mail.child("last").contains(key)
            || [versions.pack("deleted"), versions.pack("deleted here")]
                .iter()
                .any(|one| **one == *key)
            || (self.space.child("history").contains(key) && value == [DELETED]);
        match is_unasked {
            true => WatchedBy::Nobody,
            false if self.space.child("by_length").contains(key) => WatchedBy::Check,
            false => WatchedBy::Model,
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut wrong = super::reported(&self.by_length.check(txn, self.mail.records())?);
        wrong.extend(self.mail.check(txn)?.iter().map(ToString::to_string));
        wrong.extend(super::reported(&self.entities.check(txn)?));
        Ok(wrong)
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let mail = self.mail.records().range(txn, ..)?;
        super::compare(&mut wrong, "the mail", &mail.collect::<Result<_>>()?, &model.mail);
        let mut entities = BTreeMap::new();
        for entity in self.entities.range(txn, ..)? {
            let (id, entity) = entity?;
            entities.insert(id, entity.decode::<Entity>()?);
        }
        super::compare(&mut wrong, "the entities", &entities, &model.entities);
        let mut versions = BTreeMap::new();
        for record in self.versions.records().range(txn, ..)? {
            let (id, record) = record?;
            versions.insert(id, (record.version, record.value));
        }
        super::compare(&mut wrong, "the versions", &versions, &model.versions);
        let times = || (0..TIMES).chain([NOW]);
        for (row, as_of) in (0..IDS).flat_map(|row| times().map(move |as_of| (row, as_of))) {
            let cells = self.history.row(txn, &row, as_of)?.into_iter();
            let cells = cells.map(|cell| (cell.column, cell.timestamp, cell.value)).collect();
            super::compare(&mut wrong, "a row", cells, model.row(row, as_of));
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        self.mail.records().put_many(txn, model.mail.clone())?;
        for (user, last) in &model.last {
            self.mail.numbers().advance_to(txn, user, *last)?;
        }
        for (id, entity) in &model.entities {
            self.entities.put(txn, id, entity)?;
        }
        for (id, (version, value)) in &model.versions {
            let record = VersionedRecord { version: *version, value: value.clone() };
            self.versions.records().put(txn, id, &record)?;
        }
        if model.deleted > 0 {
            // No version comes from another system.
            for counter in ["deleted", "deleted here"] {
                txn.max(&self.space.child("versions").pack(counter), model.deleted)?;
            }
        }
        model.history.iter().try_for_each(|((row, column, time), text)| match text {
            Some(text) => self.history.put(txn, row, "f", column, *time, text.as_bytes()),
            None => self.history.delete(txn, row, "f", column, *time),
        })
    }
}

impl Entity {
    fn field(&mut self, name: &str) -> &mut Option<String> {
        if name == "name" { &mut self.name } else { &mut self.town }
    }
}

impl Model {
    fn update(&mut self, id: u8, version: u64, text: &str) {
        let current = self.versions.get(&id).map(|(version, _)| *version);
        let next = match current {
            None if version == 0 => self.deleted + 1,
            Some(current) if current == version => current + 1,
            _ => return,
        };
        self.versions.insert(id, (next, text.into()));
    }

    /// The columns of a row as of a time, found by a scan over all versions.
    fn row(&self, row: u8, as_of: u64) -> Vec<(String, u64, Vec<u8>)> {
        let mut newest = BTreeMap::new();
        let versions = self.history.iter();
        for ((_, column, time), text) in
            versions.filter(|((of, _, time), _)| *of == row && *time <= as_of)
        {
            newest.insert(*column, (*time, text));
        }
        let cell = |(column, (time, text)): (&str, (u64, &Option<String>))| {
            text.as_ref().map(|text| (column.to_owned(), time, text.clone().into_bytes()))
        };
        newest.into_iter().filter_map(cell).collect()
    }
}
