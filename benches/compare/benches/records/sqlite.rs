//! The records in SQLite: prepared statements, WAL, and the same durability as the others.

use std::path::Path;

use keyloom_compare::peers;
use rusqlite::Connection;

use super::{Peer, Sale};

pub struct Sqlite(Connection);

const INDEXES: &str = "
    CREATE INDEX by_customer ON sales (customer, at, cents);
    CREATE INDEX by_state ON sales (state, cents);";
const INSERT: &str =
    "INSERT INTO sales (id, customer, state, cents, at, note) VALUES (?, ?, ?, ?, ?, ?)";
const COVERED: &str = "SELECT coalesce(sum(cents), 0) FROM sales WHERE customer = ?";
const OF_STATE: &str = "SELECT coalesce(sum(cents), 0) FROM sales WHERE state = ?";
const FETCHED: &str = "SELECT note FROM sales WHERE customer = ? ORDER BY at";

fn open(directory: &Path) -> Connection {
    let connection = peers::sqlite(&directory.join("sales.sqlite"), "FULL");
    connection
        .execute_batch(
            "CREATE TABLE sales (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL,
             state INTEGER NOT NULL, cents INTEGER NOT NULL, at INTEGER NOT NULL, note TEXT NOT NULL)",
        )
        .unwrap();
    connection
}

fn insert(connection: &mut Connection, records: &[(u64, Sale)]) {
    let txn = connection.transaction().unwrap();
    let mut statement = txn.prepare_cached(INSERT).unwrap();
    for (id, sale) in records {
        statement
            .execute((
                *id as i64,
                sale.customer,
                sale.state,
                sale.cents as i64,
                sale.at as i64,
                &sale.note,
            ))
            .unwrap();
    }
    drop(statement);
    txn.commit().unwrap();
}

impl Peer for Sqlite {
    fn open(directory: &Path) -> Self {
        let connection = open(directory);
        connection.execute_batch(INDEXES).unwrap();
        Self(connection)
    }

    fn insert(&mut self, records: &[(u64, Sale)]) {
        insert(&mut self.0, records);
    }

    fn load(&mut self, records: &[(u64, Sale)]) {
        insert(&mut self.0, records);
    }

    fn covered(&mut self, customer: u32) -> u64 {
        let mut statement = self.0.prepare_cached(COVERED).unwrap();
        statement.query_row([customer], |row| row.get::<_, i64>(0)).unwrap() as u64
    }

    fn of_state(&mut self, state: u16) -> u64 {
        let mut statement = self.0.prepare_cached(OF_STATE).unwrap();
        statement.query_row([state], |row| row.get::<_, i64>(0)).unwrap() as u64
    }

    fn fetched(&mut self, customer: u32) -> u64 {
        let mut statement = self.0.prepare_cached(FETCHED).unwrap();
        let mut rows = statement.query([customer]).unwrap();
        let mut sum = 0;
        while let Some(row) = rows.next().unwrap() {
            sum += row.get_ref(0).unwrap().as_str().unwrap().len() as u64;
        }
        sum
    }
}

/// SQLite with the usual order of a bulk load: the indexes are created after the records, by
/// sorting.
pub struct IndexesLast(Connection);

impl Peer for IndexesLast {
    fn open(directory: &Path) -> Self {
        Self(open(directory))
    }

    fn insert(&mut self, records: &[(u64, Sale)]) {
        insert(&mut self.0, records);
    }

    fn load(&mut self, records: &[(u64, Sale)]) {
        insert(&mut self.0, records);
        self.0.execute_batch(INDEXES).unwrap();
    }

    fn covered(&mut self, _: u32) -> u64 {
        0
    }

    fn of_state(&mut self, _: u16) -> u64 {
        0
    }

    fn fetched(&mut self, _: u32) -> u64 {
        0
    }
}
