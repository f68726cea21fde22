//! The application declared with toasty on SQLite.
//!
//! Cannot be declared:
//! - a descending part: the file creates the index with SQL.
//! - a partial index: the file creates the index with SQL.
//! - an index on the elements of a collection: a second model has a row for each element, and every
//!   write of the record must write its rows too. A query with `contains` reads the whole table.
//! - a key of 128 bits: the id of a session is a UUID.
//! - a key outside of the record: the id of a session is a field.

use std::path::Path;

use toasty::{Db, Embed, Executor, Model, Result};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use super::application::derived;
use super::application::{Peer, Records};

// Declarations.

#[derive(Clone, Copy, Debug, PartialEq, Embed)]
pub enum Status {
    #[column(variant = 0)]
    Open,
    #[column(variant = 1)]
    Waiting,
    #[column(variant = 2)]
    Closed,
}

#[derive(Clone, Debug, Model)]
pub struct Tenant {
    #[key]
    pub id: u32,
    #[unique]
    pub name: String,
}

#[derive(Clone, Debug, Model)]
#[key(tenant, id)]
#[index(tenant, name)]
pub struct Person {
    pub tenant: u32,
    pub id: u64,
    pub name: String,
    #[unique]
    pub mail: String,
    pub teams: Vec<String>,
}

#[derive(Clone, Debug, Model)]
#[key(tenant, person, team)]
pub struct PersonTeam {
    pub tenant: u32,
    pub person: u64,
    #[index]
    pub team: String,
}

#[derive(Clone, Debug, Model)]
#[key(tenant, id)]
pub struct Ticket {
    pub tenant: u32,
    pub id: u64,
    pub title: String,
    pub status: Status,
    pub opened: u64,
    #[index]
    pub assignee: Option<u64>,
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, Model)]
#[key(tenant, ticket, tag)]
pub struct TicketTag {
    pub tenant: u32,
    pub ticket: u64,
    #[index]
    pub tag: String,
}

#[derive(Clone, Debug, Model)]
#[key(tenant, ticket, number)]
pub struct Comment {
    pub tenant: u32,
    pub ticket: u64,
    pub number: u32,
    pub author: u64,
    pub at: u64,
    pub text: String,
}

#[derive(Clone, Debug, Model)]
#[index(tenant, person)]
pub struct Session {
    #[key]
    pub id: Uuid,
    pub tenant: u32,
    pub person: u64,
    #[index]
    pub ends: u64,
    pub address: String,
}

const INDEXES: [&str; 4] = [
    "CREATE INDEX tickets_by_status ON tickets (tenant, status, opened DESC)",
    "CREATE INDEX tickets_unassigned ON tickets (tenant, opened) WHERE assignee IS NULL",
    "CREATE INDEX comments_by_author ON comments (author, at DESC)",
    "CREATE INDEX sessions_by_address ON sessions (address) WHERE address <> ''",
];

pub async fn declare(path: &Path) -> Result<Db> {
    let mut db = Db::builder()
        .models(toasty::models!(Tenant, Person, PersonTeam, Ticket, TicketTag, Comment, Session))
        .connect(&format!("sqlite:{}", path.display()))
        .await?;
    db.push_schema().await?;
    for index in INDEXES {
        toasty::sql::statement(index).exec(&mut db).await?;
    }
    Ok(db)
}

// Inserts.

/// Inserts a person and the rows of its teams.
pub async fn insert_person(txn: &mut dyn Executor, one: &Person) -> Result<()> {
    let Person { tenant, id, name, mail, teams } = one;
    toasty::create!(Person { tenant, id, name, mail, teams: teams.clone() }).exec(txn).await?;
    for team in teams {
        toasty::create!(PersonTeam { tenant, person: id, team }).exec(txn).await?;
    }
    Ok(())
}

/// Inserts a ticket and the rows of its tags.
pub async fn insert_ticket(txn: &mut dyn Executor, one: &Ticket) -> Result<()> {
    let Ticket { tenant, id, title, status, opened, assignee, tags } = one;
    toasty::create!(Ticket { tenant, id, title, status, opened, assignee, tags: tags.clone() })
        .exec(txn)
        .await?;
    for tag in tags {
        toasty::create!(TicketTag { tenant, ticket: id, tag }).exec(txn).await?;
    }
    Ok(())
}

/// Inserts a comment.
pub async fn insert_comment(txn: &mut dyn Executor, one: &Comment) -> Result<()> {
    let Comment { tenant, ticket, number, author, at, text } = one;
    toasty::create!(Comment { tenant, ticket, number, author, at, text }).exec(txn).await?;
    Ok(())
}

/// Inserts a session.
pub async fn insert_session(txn: &mut dyn Executor, one: &Session) -> Result<()> {
    let Session { id, tenant, person, ends, address } = one;
    toasty::create!(Session { id, tenant, person, ends, address }).exec(txn).await?;
    Ok(())
}

// Queries.

pub struct Toasty(Runtime, Db);

async fn write(db: &mut Db, records: &Records) -> Result<()> {
    let mut txn = db.transaction().await?;
    for derived::Tenant { id, name } in &records.tenants {
        toasty::create!(Tenant { id, name }).exec(&mut txn).await?;
    }
    for person in records.people.clone() {
        insert_person(&mut txn, &person.into()).await?;
    }
    for ticket in records.tickets.clone() {
        insert_ticket(&mut txn, &ticket.into()).await?;
    }
    for comment in records.comments.clone() {
        let derived::Comment { tenant, ticket, number, author, at, text } = comment;
        insert_comment(&mut txn, &Comment { tenant, ticket, number, author, at, text }).await?;
    }
    for (id, session) in records.sessions.clone() {
        let derived::Session { tenant, person, ends, address } = session;
        let id = Uuid::from_u128(id);
        insert_session(&mut txn, &Session { id, tenant, person, ends, address }).await?;
    }
    txn.commit().await
}

async fn tagged(db: &mut Db, tag: &str) -> Result<Vec<Ticket>> {
    let fields = TicketTag::fields();
    let rows =
        TicketTag::filter_by_tag(tag).order_by((fields.tenant().asc(), fields.ticket().asc()));
    let mut tickets = Vec::new();
    for row in rows.exec(db).await? {
        tickets.push(Ticket::get_by_tenant_and_id(db, row.tenant, row.ticket).await?);
    }
    Ok(tickets)
}

impl Peer for Toasty {
    const NAME: &'static str = "toasty on SQLite";
    const FILE: &'static str = include_str!("toasty.rs");

    fn open(directory: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let db = runtime.block_on(declare(&directory.join("toasty"))).unwrap();
        Self(runtime, db)
    }

    fn insert(&mut self, records: &Records) {
        self.0.block_on(write(&mut self.1, records)).unwrap();
    }

    fn refuses(&mut self, person: &derived::Person) -> bool {
        let done = self.0.block_on(async {
            let mut txn = self.1.transaction().await?;
            insert_person(&mut txn, &person.clone().into()).await?;
            txn.rollback().await
        });
        // toasty has no error variant for a unique index.
        done.is_err_and(|error| error.to_string().contains("UNIQUE constraint failed: people.mail"))
    }

    fn open_tickets(&mut self, tenant: u32) -> Vec<derived::Ticket> {
        let fields = Ticket::fields();
        let is_open = fields.tenant().eq(tenant).and(fields.status().eq(Status::Open));
        let order = (fields.opened().desc(), fields.id().asc());
        let query = Ticket::filter(is_open).order_by(order).exec(&mut self.1);
        self.0.block_on(query).unwrap().into_iter().map(derived::Ticket::from).collect()
    }

    fn person_with(&mut self, mail: &str) -> Option<derived::Person> {
        let query = Person::filter_by_mail(mail).first().exec(&mut self.1);
        self.0.block_on(query).unwrap().map(derived::Person::from)
    }

    fn tagged(&mut self, tag: &str) -> Vec<derived::Ticket> {
        let tickets = self.0.block_on(tagged(&mut self.1, tag)).unwrap();
        tickets.into_iter().map(derived::Ticket::from).collect()
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
