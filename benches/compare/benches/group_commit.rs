//! Durable commits of many threads: one record with two index entries in each.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench group_commit [-- THREADS ...]
//! ```
//!
//! All contenders sync at each commit (SQLite in WAL mode with `synchronous = FULL`). The peers run
//! as users run them: either with a connection per thread, or with a writer thread that drains a
//! channel and commits once, which is group commit by hand.

#![allow(missing_docs, clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use keyloom::{Batched, Lmdb, Store, Subspace};
use keyloom_compare::compare;
use keyloom_patterns::{Index, Table, entry};
use keyloom_redb::Redb;
use redb::{ReadableDatabase as _, TableDefinition};
use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ticket {
    customer: u32,
    state: u16,
    title: String,
}

fn ticket(number: u64) -> Ticket {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let title = format!("{mixed:064x}");
    Ticket { customer: (mixed % 50_000) as u32, state: (mixed % 7) as u16, title }
}

/// Number of transactions of one thread per round.
const EACH: u64 = 32;

/// Puts the next tickets from `threads` threads.
fn round(threads: u64, next: &AtomicU64, put: &(impl Fn(u64) + Sync)) {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..EACH).for_each(|_| put(next.fetch_add(1, Relaxed))));
        }
    });
}

struct Tickets<S> {
    store: S,
    tickets: Table<u64, Ticket>,
}

impl<S: Store> Tickets<S> {
    fn new(store: S) -> Self {
        let space = Subspace::new(&1_u8);
        let by_customer =
            Index::new(&space.child(&2_u8), |_, ticket: &Ticket| entry(ticket.customer));
        let by_state = Index::new(&space.child(&3_u8), |_, ticket: &Ticket| entry(ticket.state));
        let tickets = Table::new(&space.child(&4_u8)).with(&by_customer).with(&by_state);
        Self { store, tickets }
    }

    fn put(&self, number: u64) {
        self.store.transact(|txn| self.tickets.put(txn, &number, &ticket(number))).unwrap();
    }

    /// The minimum cost of a batch: the same transactions, without the threads.
    fn put_at_once(&self, numbers: std::ops::Range<u64>) {
        let mut tickets = numbers.map(|number| (number, ticket(number)));
        self.store
            .transact(|txn| {
                tickets.try_for_each(|(id, ticket)| self.tickets.put(txn, &id, &ticket))
            })
            .unwrap();
    }

    fn put_batched(&self, number: u64) {
        let ticket = ticket(number);
        self.store.transact_batched(|txn| self.tickets.put(txn, &number, &ticket)).unwrap();
    }
}

/// Group commit by hand: a thread that drains a channel and commits all of its requests at once.
struct Writer {
    requests: mpsc::Sender<(u64, mpsc::SyncSender<()>)>,
}

impl Writer {
    fn new(mut commit: impl FnMut(&[u64]) + Send + 'static) -> Self {
        let (requests, waiting) = mpsc::channel::<(u64, mpsc::SyncSender<()>)>();
        thread::spawn(move || {
            while let Ok(first) = waiting.recv() {
                let batch: Vec<_> = std::iter::once(first).chain(waiting.try_iter()).collect();
                commit(&batch.iter().map(|(number, _)| *number).collect::<Vec<_>>());
                batch.into_iter().for_each(|(_, done)| done.send(()).unwrap());
            }
        });
        Self { requests }
    }

    fn put(&self, number: u64) {
        let (done, waits) = mpsc::sync_channel(1);
        self.requests.send((number, done)).unwrap();
        waits.recv().unwrap();
    }
}

fn sqlite(directory: &Path) -> Connection {
    let connection = Connection::open(directory.join("tickets.sqlite")).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS tickets
                 (id INTEGER PRIMARY KEY, customer INTEGER, state INTEGER, title TEXT);
             CREATE INDEX IF NOT EXISTS by_customer ON tickets (customer);
             CREATE INDEX IF NOT EXISTS by_state ON tickets (state);",
        )
        .unwrap();
    connection
}

fn put_sqlite(connection: &mut Connection, numbers: &[u64]) {
    let txn = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    for number in numbers {
        let Ticket { customer, state, title } = ticket(*number);
        let mut insert = txn.prepare_cached("INSERT INTO tickets VALUES (?, ?, ?, ?)").unwrap();
        insert.execute(params![*number as i64, customer, state, title]).unwrap();
    }
    txn.commit().unwrap();
}

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("tickets");
const BY_CUSTOMER: TableDefinition<'_, (u32, u64), ()> = TableDefinition::new("by_customer");
const BY_STATE: TableDefinition<'_, (u16, u64), ()> = TableDefinition::new("by_state");

fn put_redb(database: &redb::Database, numbers: &[u64]) {
    let txn = database.begin_write().unwrap();
    for number in numbers {
        let ticket = ticket(*number);
        let bytes = postcard::to_stdvec(&ticket).unwrap();
        txn.open_table(RECORDS).unwrap().insert(number, &bytes[..]).unwrap();
        txn.open_table(BY_CUSTOMER).unwrap().insert((ticket.customer, *number), ()).unwrap();
        txn.open_table(BY_STATE).unwrap().insert((ticket.state, *number), ()).unwrap();
    }
    txn.commit().unwrap();
}

fn main() {
    let chosen: Vec<u64> = std::env::args().filter_map(|one| one.parse().ok()).collect();
    let threads = if chosen.is_empty() { vec![1, 2, 4, 8, 16, 64] } else { chosen };
    println!(
        "ratios are the first / the other: below 1 the first is faster; every commit is synced"
    );
    for threads in threads {
        on_threads(threads);
    }
}

fn on_threads(threads: u64) {
    let directory = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir(&path).unwrap();
        Lmdb::options().map_bytes(4 << 30).open(path).unwrap()
    };
    let batched = Tickets::new(Batched::new(open("batched")));
    let plain = Tickets::new(open("plain"));
    let at_once = Tickets::new(open("at_once"));
    let on_redb = Redb::open(directory.path().join("batched.redb")).unwrap();
    let on_redb = Tickets::new(Batched::new(on_redb));

    let raw_redb = Arc::new(redb::Database::create(directory.path().join("raw.redb")).unwrap());
    let shared = Arc::clone(&raw_redb);
    let redb_writer = Writer::new(move |numbers| put_redb(&shared, numbers));

    let path = directory.path().to_path_buf();
    let mut connection = sqlite(&path);
    let sqlite_writer = Writer::new(move |numbers| put_sqlite(&mut connection, numbers));
    let apart = directory.path().join("apart");
    std::fs::create_dir(&apart).unwrap();
    thread_local!(static CONNECTION: std::cell::RefCell<Option<Connection>> = const { std::cell::RefCell::new(None) });
    let put_apart = |number: u64| {
        CONNECTION.with_borrow_mut(|own| {
            put_sqlite(own.get_or_insert_with(|| sqlite(&apart)), &[number]);
        });
    };

    let next = [(); 7].map(|()| AtomicU64::new(0));
    let [a, b, c, d, e, f, g] = &next;
    let operations = threads * EACH;
    compare(
        &format!("{threads} threads"),
        operations as usize,
        9,
        &mut [
            ("batched LMDB", &mut || round(threads, a, &|n| batched.put_batched(n))),
            ("LMDB one by one", &mut || round(threads, b, &|n| plain.put(n))),
            ("LMDB, as many in each transaction", &mut || {
                for _ in 0..EACH {
                    let first = g.fetch_add(threads, Relaxed);
                    at_once.put_at_once(first..first + threads);
                }
            }),
            ("batched redb", &mut || round(threads, c, &|n| on_redb.put_batched(n))),
            ("redb, a writer thread", &mut || round(threads, d, &|n| redb_writer.put(n))),
            ("SQLite, a connection per thread", &mut || round(threads, e, &put_apart)),
            ("SQLite, a writer thread", &mut || round(threads, f, &|n| sqlite_writer.put(n))),
        ],
    );
    let counts = batched.store.counts();
    let bodies = counts.together as f64 / counts.batches.max(1) as f64;
    println!("    {bodies:.1} transactions in a batch; {counts:?}");
    let rows = batched.tickets.count(&batched.store.snapshot().unwrap(), ..).unwrap();
    assert_eq!(rows, a.load(Relaxed));
    let stored = raw_redb.begin_read().unwrap().open_table(RECORDS).unwrap();
    assert_eq!(redb::ReadableTableMetadata::len(&stored).unwrap(), d.load(Relaxed));
}
