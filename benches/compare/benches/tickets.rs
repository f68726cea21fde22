//! One ticket with five indexes in a durable transaction of its own, compared with SQLite and with
//! raw heed.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench tickets [-- TICKETS]
//! ```
//!
//! Each store first loads 100,000 tickets. All sync at each commit (SQLite in WAL mode with
//! `synchronous = FULL`). heed writes the same number of keys of the same size, but reads and
//! encodes nothing more: the difference to keyloom is what the patterns cost. The write calls and
//! their bytes are those that the kernel counts for the process.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, WithoutTls};
use keyloom::value::{Codec, Postcard};
use keyloom::{Lmdb, Store, Subspace, pack};
use keyloom_compare::compare;
use keyloom_compare::peers::{raw_lmdb, sqlite};
use keyloom_patterns::{Index, Table, entry};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ticket {
    customer: u32,
    assignee: u32,
    state: u16,
    priority: u8,
    opened: u64,
    title: String,
}

fn ticket(n: u64) -> Ticket {
    let mixed = |salt: u64| (n ^ salt << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    Ticket {
        customer: (mixed(1) % 50_000) as u32,
        assignee: (mixed(2) % 500) as u32,
        state: (mixed(3) % 7) as u16,
        priority: (mixed(4) % 5) as u8,
        opened: 1_700_000_000 + mixed(5) % 31_536_000,
        title: format!("{:016x} {:016x}", mixed(6), mixed(7)),
    }
}

/// A contender: a new store in a directory, with tickets and five indexes.
trait Peer {
    /// Puts these tickets in one durable transaction.
    fn put(&mut self, tickets: std::ops::Range<u64>);
}

struct Ours {
    store: Lmdb,
    tickets: Table<u64, Ticket>,
}

impl Ours {
    fn open(directory: &Path) -> Self {
        let store = Lmdb::options().map_bytes(4 << 30).open(directory).unwrap();
        let space = |n: u8| Subspace::new(&n);
        let tickets = Table::new(&space(1))
            .with(&Index::new(&space(2), |_, t: &Ticket| entry((t.customer, t.opened))))
            .with(&Index::new(&space(3), |_, t: &Ticket| entry((t.state, t.priority))))
            .with(&Index::new(&space(4), |_, t: &Ticket| entry(t.assignee)))
            .with(&Index::new(&space(5), |_, t: &Ticket| entry(t.opened)))
            .with(&Index::new(&space(6), |_, t: &Ticket| entry(&*t.title)));
        Self { store, tickets }
    }
}

impl Peer for Ours {
    fn put(&mut self, tickets: std::ops::Range<u64>) {
        self.store
            .transact(|txn| tickets.clone().try_for_each(|n| self.tickets.put(txn, &n, &ticket(n))))
            .unwrap();
    }
}

/// One database with keys as keyloom writes them.
struct ByHand {
    env: Env<WithoutTls>,
    database: Database<'static, Bytes, Bytes>,
}

impl ByHand {
    fn open(directory: &Path) -> Self {
        let (env, database) = raw_lmdb(directory, 4 << 30, EnvFlags::empty());
        Self { env, database }
    }
}

impl Peer for ByHand {
    fn put(&mut self, tickets: std::ops::Range<u64>) {
        let mut txn = self.env.write_txn().unwrap();
        let mut bytes = Vec::new();
        for n in tickets {
            let t = ticket(n);
            let keys = [
                pack(&(2_u8, t.customer, t.opened, n)),
                pack(&(3_u8, t.state, t.priority, n)),
                pack(&(4_u8, t.assignee, n)),
                pack(&(5_u8, t.opened, n)),
                pack(&(6_u8, &*t.title, n)),
            ];
            for key in keys {
                // Two bytes: the format and the length of the record's key.
                self.database.put(&mut txn, &key, &[1, 2]).unwrap();
            }
            bytes.clear();
            <Postcard as Codec<Ticket>>::encode(&t, &mut bytes).unwrap();
            self.database.put(&mut txn, &pack(&(1_u8, n)), &bytes).unwrap();
        }
        txn.commit().unwrap();
    }
}

struct Sqlite(Connection);

const TABLES: &str = "
    CREATE TABLE tickets (id INTEGER PRIMARY KEY, customer INT NOT NULL, assignee INT NOT NULL,
        state INT NOT NULL, priority INT NOT NULL, opened INT NOT NULL, title TEXT NOT NULL);
    CREATE INDEX by_customer ON tickets (customer, opened);
    CREATE INDEX by_state ON tickets (state, priority);
    CREATE INDEX by_assignee ON tickets (assignee);
    CREATE INDEX by_time ON tickets (opened);
    CREATE INDEX by_title ON tickets (title)";

impl Sqlite {
    fn open(directory: &Path) -> Self {
        let sqlite = sqlite(&directory.join("sqlite"), "FULL");
        sqlite.execute_batch(TABLES).unwrap();
        Self(sqlite)
    }
}

impl Peer for Sqlite {
    fn put(&mut self, tickets: std::ops::Range<u64>) {
        let transaction = self.0.transaction().unwrap();
        {
            let insert = "INSERT OR REPLACE INTO tickets VALUES (?, ?, ?, ?, ?, ?, ?)";
            let mut insert = transaction.prepare_cached(insert).unwrap();
            for n in tickets {
                let t = ticket(n);
                let opened = t.opened as i64;
                let row =
                    params![n as i64, t.customer, t.assignee, t.state, t.priority, opened, t.title];
                insert.execute(row).unwrap();
            }
        }
        transaction.commit().unwrap();
    }
}

/// Calls that write, and their bytes, of this process so far.
fn written() -> [u64; 2] {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    ["syscw: ", "wchar: "].map(|name| {
        let line = io.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    })
}

fn file_bytes(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

fn main() {
    let tickets = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(100_000);
    println!("ratios are keyloom / peer: below 1 keyloom is faster; every commit is synced\n");
    let directory = tempfile::tempdir().unwrap();
    let names = ["keyloom", "SQLite", "raw heed by hand"];
    let paths = names.map(|name| directory.path().join(name.replace(' ', "_")));
    paths.iter().for_each(|path| std::fs::create_dir(path).unwrap());
    let (mut ours, mut sqlite, mut by_hand) =
        (Ours::open(&paths[0]), Sqlite::open(&paths[1]), ByHand::open(&paths[2]));
    let peers: [&mut dyn Peer; 3] = [&mut ours, &mut sqlite, &mut by_hand];
    for ((peer, name), path) in peers.into_iter().zip(names).zip(&paths) {
        for first in (0..tickets).step_by(1_000) {
            peer.put(first..(first + 1_000).min(tickets));
        }
        println!("{name:<18} {:>6.1} MB after the load", file_bytes(path) as f64 / 1e6);
        const SINGLE: u64 = 200;
        let before = written();
        (0..SINGLE).for_each(|n| peer.put(tickets + n..tickets + n + 1));
        let after = written();
        let each = |n: usize| (after[n] - before[n]) as f64 / SINGLE as f64;
        println!("{name:<18} {:.1} write calls, {:.0} bytes a ticket", each(0), each(1));
    }
    let mut next = [tickets + 1_000; 3];
    let mut single = |who: usize| {
        next[who] += 1;
        next[who]..next[who] + 1
    };
    let [a, b, c]: [Vec<_>; 3] = [0, 1, 2].map(|who| (0..600).map(|_| single(who)).collect());
    let [mut a, mut b, mut c] = [a, b, c].map(Vec::into_iter);
    let contenders: &mut [(&str, &mut dyn FnMut())] = &mut [
        (names[0], &mut || ours.put(a.next().unwrap())),
        (names[1], &mut || sqlite.put(b.next().unwrap())),
        (names[2], &mut || by_hand.put(c.next().unwrap())),
    ];
    compare("put a ticket with five indexes", 1, 500, contenders);
}
