//! The application declared with native_db.
//!
//! Cannot be declared:
//! - a descending part: the key function returns the complement of the number.
//! - an enum as a part: the key function returns the number of the variant.
//! - an index on the elements of a collection: a second model has a row for each element, and every
//!   write of the record must write its rows too.
//! - a key outside of the record: the id of a session is a field.
//! - a string before another part of a key: the parts are concatenated without a separator, so a
//!   string must be the last part.

use std::path::Path;

use native_db::db_type::{Error, Result};
use native_db::native_db;
use native_db::transaction::RwTransaction;
use native_db::{Builder, Database, Models, ToKey};
use native_model::{Model, native_model};
use serde::{Deserialize, Serialize};

use super::application::derived;
use super::application::{Peer, Records};

// Declarations.

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Status {
    Open = 0,
    Waiting = 1,
    Closed = 2,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[native_model(id = 1, version = 1)]
#[native_db]
pub struct Tenant {
    #[primary_key]
    pub id: u32,
    #[secondary_key(unique)]
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[native_model(id = 2, version = 1)]
#[native_db(primary_key(key -> (u32, u64)), secondary_key(by_name -> (u32, String)))]
pub struct Person {
    pub tenant: u32,
    pub id: u64,
    pub name: String,
    #[secondary_key(unique)]
    pub mail: String,
    pub teams: Vec<String>,
}

impl Person {
    fn key(&self) -> (u32, u64) {
        (self.tenant, self.id)
    }

    fn by_name(&self) -> (u32, String) {
        (self.tenant, self.name.clone())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[native_model(id = 3, version = 1)]
#[native_db(primary_key(key -> (u32, u64, String)))]
pub struct PersonTeam {
    pub tenant: u32,
    pub person: u64,
    #[secondary_key]
    pub team: String,
}

impl PersonTeam {
    fn key(&self) -> (u32, u64, String) {
        (self.tenant, self.person, self.team.clone())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[native_model(id = 4, version = 1)]
#[native_db(
    primary_key(key -> (u32, u64)),
    secondary_key(by_status -> (u32, u8, u64)),
    secondary_key(unassigned -> Option<(u32, u64)>, optional)
)]
pub struct Ticket {
    pub tenant: u32,
    pub id: u64,
    pub title: String,
    pub status: Status,
    pub opened: u64,
    #[secondary_key]
    pub assignee: Option<u64>,
    pub tags: Vec<String>,
}

impl Ticket {
    fn key(&self) -> (u32, u64) {
        (self.tenant, self.id)
    }

    fn by_status(&self) -> (u32, u8, u64) {
        (self.tenant, self.status as u8, !self.opened)
    }

    fn unassigned(&self) -> Option<(u32, u64)> {
        self.assignee.is_none().then_some((self.tenant, self.opened))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[native_model(id = 5, version = 1)]
#[native_db(primary_key(key -> (u32, u64, String)))]
pub struct TicketTag {
    pub tenant: u32,
    pub ticket: u64,
    #[secondary_key]
    pub tag: String,
}

impl TicketTag {
    fn key(&self) -> (u32, u64, String) {
        (self.tenant, self.ticket, self.tag.clone())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[native_model(id = 6, version = 1)]
#[native_db(primary_key(key -> (u32, u64, u32)), secondary_key(by_author -> (u64, u64)))]
pub struct Comment {
    pub tenant: u32,
    pub ticket: u64,
    pub number: u32,
    pub author: u64,
    pub at: u64,
    pub text: String,
}

impl Comment {
    fn key(&self) -> (u32, u64, u32) {
        (self.tenant, self.ticket, self.number)
    }

    fn by_author(&self) -> (u64, u64) {
        (self.author, !self.at)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[native_model(id = 7, version = 1)]
#[native_db(
    secondary_key(by_person -> (u32, u64)),
    secondary_key(by_address -> Option<String>, optional)
)]
pub struct Session {
    #[primary_key]
    pub id: u128,
    pub tenant: u32,
    pub person: u64,
    #[secondary_key]
    pub ends: u64,
    pub address: String,
}

impl Session {
    fn by_person(&self) -> (u32, u64) {
        (self.tenant, self.person)
    }

    fn by_address(&self) -> Option<String> {
        (!self.address.is_empty()).then(|| self.address.clone())
    }
}

pub fn models() -> Result<Models> {
    let mut models = Models::new();
    models.define::<Tenant>()?;
    models.define::<Person>()?;
    models.define::<PersonTeam>()?;
    models.define::<Ticket>()?;
    models.define::<TicketTag>()?;
    models.define::<Comment>()?;
    models.define::<Session>()?;
    Ok(models)
}

// Inserts.

/// Inserts a person and the rows of its teams.
pub fn insert_person(txn: &RwTransaction<'_>, person: Person) -> Result<()> {
    for team in &person.teams {
        let (tenant, person) = person.key();
        txn.upsert(PersonTeam { tenant, person, team: team.clone() })?;
    }
    txn.insert(person)
}

/// Inserts a ticket and the rows of its tags.
pub fn insert_ticket(txn: &RwTransaction<'_>, ticket: Ticket) -> Result<()> {
    for tag in &ticket.tags {
        let (tenant, ticket) = ticket.key();
        txn.upsert(TicketTag { tenant, ticket, tag: tag.clone() })?;
    }
    txn.insert(ticket)
}

// Queries.

pub struct NativeDb(Database<'static>);

impl NativeDb {
    fn write(&self, records: &Records) -> Result<()> {
        let txn = self.0.rw_transaction()?;
        for derived::Tenant { id, name } in records.tenants.clone() {
            txn.insert(Tenant { id, name })?;
        }
        for person in records.people.clone() {
            insert_person(&txn, person.into())?;
        }
        for ticket in records.tickets.clone() {
            insert_ticket(&txn, ticket.into())?;
        }
        for comment in records.comments.clone() {
            let derived::Comment { tenant, ticket, number, author, at, text } = comment;
            txn.insert(Comment { tenant, ticket, number, author, at, text })?;
        }
        for (id, session) in records.sessions.clone() {
            let derived::Session { tenant, person, ends, address } = session;
            txn.insert(Session { id, tenant, person, ends, address })?;
        }
        txn.commit()
    }
}

impl Peer for NativeDb {
    const NAME: &'static str = "native_db";
    const FILE: &'static str = include_str!("native_db.rs");

    fn open(directory: &Path) -> Self {
        // The database borrows its models.
        let models = Box::leak(Box::new(models().unwrap()));
        Self(Builder::new().create(models, directory.join("native_db")).unwrap())
    }

    fn insert(&mut self, records: &Records) {
        self.write(records).unwrap();
    }

    fn refuses(&mut self, person: &derived::Person) -> bool {
        // Without a commit the rows of the teams are rolled back.
        let txn = self.0.rw_transaction().unwrap();
        matches!(insert_person(&txn, person.clone().into()), Err(Error::DuplicateKey { .. }))
    }

    fn open_tickets(&mut self, tenant: u32) -> Vec<derived::Ticket> {
        let txn = self.0.r_transaction().unwrap();
        let newest = (tenant, Status::Open as u8, u64::MIN);
        let oldest = (tenant, Status::Open as u8, u64::MAX);
        let scan = txn.scan().secondary::<Ticket>(TicketKey::by_status).unwrap();
        let found = scan.range(newest..=oldest).unwrap();
        found.map(|ticket| ticket.unwrap().into()).collect()
    }

    fn person_with(&mut self, mail: &str) -> Option<derived::Person> {
        let txn = self.0.r_transaction().unwrap();
        let found: Option<Person> = txn.get().secondary(PersonKey::mail, mail).unwrap();
        found.map(derived::Person::from)
    }

    fn tagged(&mut self, tag: &str) -> Vec<derived::Ticket> {
        let txn = self.0.r_transaction().unwrap();
        let scan = txn.scan().secondary::<TicketTag>(TicketTagKey::tag).unwrap();
        let rows = scan.range(tag..=tag).unwrap().map(Result::unwrap);
        let tickets = rows.map(|row| {
            let ticket: Option<Ticket> = txn.get().primary((row.tenant, row.ticket)).unwrap();
            ticket.unwrap().into()
        });
        tickets.collect()
    }
}

impl From<derived::Person> for Person {
    fn from(person: derived::Person) -> Self {
        let derived::Person { tenant, id, name, mail, teams } = person;
        Self { tenant, id, name, mail, teams }
    }
}

impl From<Person> for derived::Person {
    fn from(person: Person) -> Self {
        let Person { tenant, id, name, mail, teams } = person;
        Self { tenant, id, name, mail, teams }
    }
}

impl From<derived::Ticket> for Ticket {
    fn from(ticket: derived::Ticket) -> Self {
        let derived::Ticket { tenant, id, title, status, opened, assignee, tags } = ticket;
        let status = match status {
            derived::Status::Open => Status::Open,
            derived::Status::Waiting => Status::Waiting,
            derived::Status::Closed => Status::Closed,
        };
        Self { tenant, id, title, status, opened, assignee, tags }
    }
}

impl From<Ticket> for derived::Ticket {
    fn from(ticket: Ticket) -> Self {
        let Ticket { tenant, id, title, status, opened, assignee, tags } = ticket;
        let status = match status {
            Status::Open => derived::Status::Open,
            Status::Waiting => derived::Status::Waiting,
            Status::Closed => derived::Status::Closed,
        };
        Self { tenant, id, title, status, opened, assignee, tags }
    }
}
