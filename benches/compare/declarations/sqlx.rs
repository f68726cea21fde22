//! The application declared with sqlx on SQLite.
//!
//! Cannot be declared:
//! - an unsigned integer of 64 bits: the columns are signed, and a number above `i64::MAX` does not
//!   fit.
//! - an integer of 128 bits: the id of a session is a blob of 16 bytes.
//! - an index on the elements of a collection: a second table has a row for each element, and every
//!   read or write of the record needs separate statements for this table.
//! - a mapping between tables and record types: the statements and the structs are separate, and a
//!   mismatch is found only when a statement runs.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{FromRow, Result, SqliteConnection, Type};
use tokio::runtime::{Builder, Runtime};

use super::application::derived;
use super::application::{Peer, Records};

// Declarations.

#[derive(Clone, Copy, Debug, PartialEq, Type)]
#[repr(i64)]
pub enum Status {
    Open = 0,
    Waiting = 1,
    Closed = 2,
}

#[derive(Clone, Debug, FromRow)]
pub struct Tenant {
    pub id: u32,
    pub name: String,
}

#[derive(Clone, Debug, FromRow)]
pub struct Person {
    pub tenant: u32,
    pub id: i64,
    pub name: String,
    pub mail: String,
    #[sqlx(skip)]
    pub teams: Vec<String>,
}

#[derive(Clone, Debug, FromRow)]
pub struct Ticket {
    pub tenant: u32,
    pub id: i64,
    pub title: String,
    pub status: Status,
    pub opened: i64,
    pub assignee: Option<i64>,
    #[sqlx(skip)]
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, FromRow)]
pub struct Comment {
    pub tenant: u32,
    pub ticket: i64,
    pub number: u32,
    pub author: i64,
    pub at: i64,
    pub text: String,
}

#[derive(Clone, Debug, FromRow)]
pub struct Session {
    pub id: Vec<u8>,
    pub tenant: u32,
    pub person: i64,
    pub ends: i64,
    pub address: String,
}

const SCHEMA: &str = "
    CREATE TABLE tenants (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX tenants_by_name ON tenants (name);

    CREATE TABLE people (
        tenant INTEGER NOT NULL,
        id INTEGER NOT NULL,
        name TEXT NOT NULL,
        mail TEXT NOT NULL,
        PRIMARY KEY (tenant, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX people_by_name ON people (tenant, name);
    CREATE UNIQUE INDEX people_by_mail ON people (mail);

    CREATE TABLE people_teams (
        tenant INTEGER NOT NULL,
        person INTEGER NOT NULL,
        place INTEGER NOT NULL,
        team TEXT NOT NULL,
        PRIMARY KEY (tenant, person, place),
        FOREIGN KEY (tenant, person) REFERENCES people (tenant, id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX people_by_teams ON people_teams (team, tenant, person);

    CREATE TABLE tickets (
        tenant INTEGER NOT NULL,
        id INTEGER NOT NULL,
        title TEXT NOT NULL,
        status INTEGER NOT NULL,
        opened INTEGER NOT NULL,
        assignee INTEGER,
        PRIMARY KEY (tenant, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tickets_by_status ON tickets (tenant, status, opened DESC);
    CREATE INDEX tickets_unassigned ON tickets (tenant, opened) WHERE assignee IS NULL;
    CREATE INDEX tickets_by_assignee ON tickets (assignee);

    CREATE TABLE tickets_tags (
        tenant INTEGER NOT NULL,
        ticket INTEGER NOT NULL,
        place INTEGER NOT NULL,
        tag TEXT NOT NULL,
        PRIMARY KEY (tenant, ticket, place),
        FOREIGN KEY (tenant, ticket) REFERENCES tickets (tenant, id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tickets_by_tags ON tickets_tags (tag, tenant, ticket);

    CREATE TABLE comments (
        tenant INTEGER NOT NULL,
        ticket INTEGER NOT NULL,
        number INTEGER NOT NULL,
        author INTEGER NOT NULL,
        at INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (tenant, ticket, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX comments_by_author ON comments (author, at DESC);

    CREATE TABLE sessions (
        id BLOB NOT NULL PRIMARY KEY,
        tenant INTEGER NOT NULL,
        person INTEGER NOT NULL,
        ends INTEGER NOT NULL,
        address TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_by_person ON sessions (tenant, person);
    CREATE INDEX sessions_by_ends ON sessions (ends);
    CREATE INDEX sessions_by_address ON sessions (address) WHERE address <> '';
";

pub async fn declare(path: &Path) -> Result<SqlitePool> {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
    sqlx::raw_sql(SCHEMA).execute(&pool).await?;
    Ok(pool)
}

// Inserts.

pub async fn insert_tenant(txn: &mut SqliteConnection, one: &Tenant) -> Result<()> {
    let insert = sqlx::query("INSERT INTO tenants (id, name) VALUES (?, ?)");
    insert.bind(one.id).bind(&one.name).execute(txn).await?;
    Ok(())
}

pub async fn insert_person(txn: &mut SqliteConnection, one: &Person) -> Result<()> {
    sqlx::query("INSERT INTO people (tenant, id, name, mail) VALUES (?, ?, ?, ?)")
        .bind(one.tenant)
        .bind(one.id)
        .bind(&one.name)
        .bind(&one.mail)
        .execute(&mut *txn)
        .await?;
    for (place, team) in (0_i64..).zip(&one.teams) {
        sqlx::query("INSERT INTO people_teams (tenant, person, place, team) VALUES (?, ?, ?, ?)")
            .bind(one.tenant)
            .bind(one.id)
            .bind(place)
            .bind(team)
            .execute(&mut *txn)
            .await?;
    }
    Ok(())
}

pub async fn insert_ticket(txn: &mut SqliteConnection, one: &Ticket) -> Result<()> {
    sqlx::query(
        "INSERT INTO tickets (tenant, id, title, status, opened, assignee)
        VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(one.tenant)
    .bind(one.id)
    .bind(&one.title)
    .bind(one.status)
    .bind(one.opened)
    .bind(one.assignee)
    .execute(&mut *txn)
    .await?;
    for (place, tag) in (0_i64..).zip(&one.tags) {
        sqlx::query("INSERT INTO tickets_tags (tenant, ticket, place, tag) VALUES (?, ?, ?, ?)")
            .bind(one.tenant)
            .bind(one.id)
            .bind(place)
            .bind(tag)
            .execute(&mut *txn)
            .await?;
    }
    Ok(())
}

pub async fn insert_comment(txn: &mut SqliteConnection, one: &Comment) -> Result<()> {
    sqlx::query(
        "INSERT INTO comments (tenant, ticket, number, author, at, text)
        VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(one.tenant)
    .bind(one.ticket)
    .bind(one.number)
    .bind(one.author)
    .bind(one.at)
    .bind(&one.text)
    .execute(txn)
    .await?;
    Ok(())
}

pub async fn insert_session(txn: &mut SqliteConnection, one: &Session) -> Result<()> {
    sqlx::query("INSERT INTO sessions (id, tenant, person, ends, address) VALUES (?, ?, ?, ?, ?)")
        .bind(&one.id)
        .bind(one.tenant)
        .bind(one.person)
        .bind(one.ends)
        .bind(&one.address)
        .execute(txn)
        .await?;
    Ok(())
}

// Queries.

pub struct Sqlx(Runtime, SqlitePool);

async fn write(pool: &SqlitePool, records: &Records) -> Result<()> {
    let mut txn = pool.begin().await?;
    for derived::Tenant { id, name } in records.tenants.clone() {
        insert_tenant(&mut txn, &Tenant { id, name }).await?;
    }
    for person in records.people.clone() {
        insert_person(&mut txn, &person.into()).await?;
    }
    for ticket in records.tickets.clone() {
        insert_ticket(&mut txn, &ticket.into()).await?;
    }
    for comment in records.comments.clone() {
        insert_comment(&mut txn, &comment.into()).await?;
    }
    for (id, session) in records.sessions.clone() {
        let derived::Session { tenant, person, ends, address } = session;
        let (id, person, ends) = (id.to_be_bytes().to_vec(), signed(person), signed(ends));
        insert_session(&mut txn, &Session { id, tenant, person, ends, address }).await?;
    }
    txn.commit().await
}

/// Reads the tags of tickets.
async fn with_tags(pool: &SqlitePool, mut tickets: Vec<Ticket>) -> Result<Vec<derived::Ticket>> {
    for ticket in &mut tickets {
        let select = "SELECT tag FROM tickets_tags WHERE tenant = ? AND ticket = ? ORDER BY place";
        let select = sqlx::query_scalar(select).bind(ticket.tenant).bind(ticket.id);
        ticket.tags = select.fetch_all(pool).await?;
    }
    Ok(tickets.into_iter().map(derived::Ticket::from).collect())
}

async fn open_tickets(pool: &SqlitePool, tenant: u32) -> Result<Vec<derived::Ticket>> {
    let select = "SELECT * FROM tickets WHERE tenant = ? AND status = ? ORDER BY opened DESC, id";
    let select = sqlx::query_as(select).bind(tenant).bind(Status::Open);
    with_tags(pool, select.fetch_all(pool).await?).await
}

async fn person_with(pool: &SqlitePool, mail: &str) -> Result<Option<derived::Person>> {
    let select = sqlx::query_as("SELECT * FROM people WHERE mail = ?").bind(mail);
    let person: Option<Person> = select.fetch_optional(pool).await?;
    let Some(mut person) = person else { return Ok(None) };
    let select = "SELECT team FROM people_teams WHERE tenant = ? AND person = ? ORDER BY place";
    let select = sqlx::query_scalar(select).bind(person.tenant).bind(person.id);
    person.teams = select.fetch_all(pool).await?;
    Ok(Some(person.into()))
}

async fn tagged(pool: &SqlitePool, tag: &str) -> Result<Vec<derived::Ticket>> {
    let select = sqlx::query_as(
        "SELECT DISTINCT tickets.* FROM tickets_tags
        JOIN tickets ON tickets.tenant = tickets_tags.tenant AND tickets.id = tickets_tags.ticket
        WHERE tag = ? ORDER BY tickets.tenant, tickets.id",
    );
    with_tags(pool, select.bind(tag).fetch_all(pool).await?).await
}

impl Peer for Sqlx {
    const NAME: &'static str = "sqlx and SQLite";
    const FILE: &'static str = include_str!("sqlx.rs");

    fn open(directory: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let pool = runtime.block_on(declare(&directory.join("sqlx"))).unwrap();
        Self(runtime, pool)
    }

    fn insert(&mut self, records: &Records) {
        self.0.block_on(write(&self.1, records)).unwrap();
    }

    fn refuses(&mut self, person: &derived::Person) -> bool {
        let done = self.0.block_on(async {
            let mut txn = self.1.begin().await?;
            insert_person(&mut txn, &person.clone().into()).await?;
            txn.rollback().await
        });
        let error = done.err();
        error.is_some_and(|error| {
            error.as_database_error().is_some_and(|error| error.is_unique_violation())
        })
    }

    fn open_tickets(&mut self, tenant: u32) -> Vec<derived::Ticket> {
        self.0.block_on(open_tickets(&self.1, tenant)).unwrap()
    }

    fn person_with(&mut self, mail: &str) -> Option<derived::Person> {
        self.0.block_on(person_with(&self.1, mail)).unwrap()
    }

    fn tagged(&mut self, tag: &str) -> Vec<derived::Ticket> {
        self.0.block_on(tagged(&self.1, tag)).unwrap()
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap()
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap()
}

impl From<derived::Person> for Person {
    fn from(person: derived::Person) -> Self {
        let derived::Person { tenant, id, name, mail, teams } = person;
        Self { tenant, id: signed(id), name, mail, teams }
    }
}

impl From<Person> for derived::Person {
    fn from(person: Person) -> Self {
        let Person { tenant, id, name, mail, teams } = person;
        Self { tenant, id: unsigned(id), name, mail, teams }
    }
}

impl From<derived::Comment> for Comment {
    fn from(comment: derived::Comment) -> Self {
        let derived::Comment { tenant, ticket, number, author, at, text } = comment;
        let [ticket, author, at] = [ticket, author, at].map(signed);
        Self { tenant, ticket, number, author, at, text }
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
        let ([id, opened], assignee) = ([id, opened].map(signed), assignee.map(signed));
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
        let ([id, opened], assignee) = ([id, opened].map(unsigned), assignee.map(unsigned));
        Self { tenant, id, title, status, opened, assignee, tags }
    }
}
