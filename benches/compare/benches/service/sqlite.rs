//! SQLite: one connection for writes and four for reads, each with its own thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyloom_service::desk::{Opened, PAGE, Status, Ticket};
use rusqlite::{OptionalExtension as _, Row, TransactionBehavior, params};
use tokio_rusqlite::Connection;
use uuid::Uuid;

use crate::peer::{Bounds, Peer};

const TABLES: &str = "
    CREATE TABLE tickets (
        number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, customer INTEGER NOT NULL,
        status INTEGER NOT NULL, opened INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
        latitude REAL NOT NULL, longitude REAL NOT NULL);
    CREATE INDEX by_customer ON tickets (customer, opened DESC, id);
    CREATE VIRTUAL TABLE by_words USING fts5 (title, text, content = 'tickets', content_rowid = 'number', tokenize = 'porter');
    CREATE VIRTUAL TABLE by_position USING rtree (number, south, north, west, east);
    CREATE TABLE mails (number INTEGER PRIMARY KEY, customer INTEGER NOT NULL, ticket BLOB NOT NULL);
";
const COLUMNS: &str =
    "t.id, t.customer, t.status, t.opened, t.title, t.text, t.latitude, t.longitude";
const READERS: usize = 4;

#[derive(Clone)]
pub struct Sqlite {
    writer: Connection,
    readers: Arc<[Connection]>,
    next: Arc<AtomicUsize>,
}

type Error = tokio_rusqlite::Error;

impl Sqlite {
    pub async fn open(path: &Path) -> Result<Self, Error> {
        let connect = async || {
            let connection = Connection::open(path).await?;
            connection
                .call(|connection| {
                    connection.execute_batch(
                        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 10000;",
                    )
                })
                .await?;
            Ok::<_, Error>(connection)
        };
        let writer = connect().await?;
        writer.call(|connection| connection.execute_batch(TABLES)).await?;
        let mut readers = Vec::new();
        for _ in 0..READERS {
            readers.push(connect().await?);
        }
        Ok(Self { writer, readers: readers.into(), next: Arc::default() })
    }

    fn reader(&self) -> &Connection {
        &self.readers[self.next.fetch_add(1, Relaxed) % READERS]
    }

    async fn tickets(
        &self,
        from: &str,
        values: impl rusqlite::Params + Send + 'static,
    ) -> Result<Vec<Ticket>, Error> {
        let query = format!("SELECT {COLUMNS} FROM {from}");
        self.reader()
            .call(move |connection| {
                let mut statement = connection.prepare_cached(&query)?;
                statement.query_map(values, ticket)?.collect::<Result<_, _>>()
            })
            .await
    }
}

fn ticket(row: &Row<'_>) -> rusqlite::Result<Ticket> {
    let status = if row.get::<_, u8>(2)? == 0 { Status::Open } else { Status::Closed };
    Ok(Ticket {
        id: Uuid::from_bytes(row.get(0)?),
        customer: row.get(1)?,
        status,
        opened: row.get::<_, i64>(3)? as u64,
        title: row.get(4)?,
        text: row.get(5)?,
        latitude: row.get(6)?,
        longitude: row.get(7)?,
    })
}

impl Peer for Sqlite {
    type Error = Error;

    async fn open_ticket(&self, new: Ticket) -> Result<Opened, Error> {
        let run = move |connection: &mut rusqlite::Connection| {
            let txn = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let query = format!("SELECT {COLUMNS} FROM tickets t WHERE t.id = ?");
            let id = new.id.into_bytes();
            let stored = txn.prepare_cached(&query)?.query_row([id], ticket).optional()?;
            if let Some(stored) = stored {
                let is_same =
                    stored == Ticket { opened: stored.opened, status: stored.status, ..new };
                return Ok(if is_same { Opened::Repeated(stored) } else { Opened::Taken });
            }
            txn.prepare_cached(
                "INSERT INTO tickets (id, customer, status, opened, title, text, latitude, longitude)
                 VALUES (?, ?, 0, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                id, new.customer, new.opened as i64, new.title, new.text, new.latitude, new.longitude
            ])?;
            let number = txn.last_insert_rowid();
            txn.prepare_cached("INSERT INTO by_words (rowid, title, text) VALUES (?, ?, ?)")?
                .execute(params![number, new.title, new.text])?;
            txn.prepare_cached("INSERT INTO by_position VALUES (?1, ?2, ?2, ?3, ?3)")?
                .execute(params![number, new.latitude, new.longitude])?;
            txn.prepare_cached("INSERT INTO mails (customer, ticket) VALUES (?, ?)")?
                .execute(params![new.customer, id])?;
            txn.commit()?;
            Ok::<_, rusqlite::Error>(Opened::New(new))
        };
        self.writer.call(run).await
    }

    async fn close_ticket(&self, id: Uuid) -> Result<bool, Error> {
        self.writer
            .call(move |connection| {
                let mut close =
                    connection.prepare_cached("UPDATE tickets SET status = 1 WHERE id = ?")?;
                Ok::<_, rusqlite::Error>(close.execute([id.into_bytes()])? > 0)
            })
            .await
    }

    async fn ticket(&self, id: Uuid) -> Result<Option<Ticket>, Error> {
        Ok(self.tickets("tickets t WHERE t.id = ?", [id.into_bytes()]).await?.pop())
    }

    async fn of_customer(&self, customer: u32) -> Result<Vec<Ticket>, Error> {
        let from = "tickets t WHERE t.customer = ? ORDER BY t.opened DESC, t.id LIMIT ?";
        self.tickets(from, (customer, PAGE as u32)).await
    }

    async fn search(&self, words: String) -> Result<Vec<Ticket>, Error> {
        let from = "by_words JOIN tickets t ON t.number = by_words.rowid WHERE by_words MATCH ? ORDER BY rank LIMIT ?";
        self.tickets(from, (words, PAGE as u32)).await
    }

    async fn within(&self, bounds: Bounds) -> Result<Vec<Ticket>, Error> {
        let from = "by_position p JOIN tickets t ON t.number = p.number
                    WHERE p.south >= ? AND p.north <= ? AND p.west >= ? AND p.east <= ?";
        let Bounds { latitudes: [south, north], longitudes: [west, east] } = bounds;
        self.tickets(from, [south, north, west, east]).await
    }
}
