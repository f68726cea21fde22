//! A graph on LMDB, compared with the same edges in SQLite, with an index for each direction: a
//! load, the neighbours of a vertex, two steps. The load is also compared with raw heed, which puts
//! the finished entries.
//!
//! `KEYLOOM_GRAPH_SCALE` sets the number of vertices as a power of two, with 16 edges per vertex.
//! Neither file is synced.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;

use heed::{EnvFlags, PutFlags};
use keyloom::lmdb::Durability;
use keyloom::{KeyRange, Lmdb, Order, Reader, Store};
use keyloom_compare::peers::raw_lmdb;
use keyloom_compare::{compare, rmat};
use keyloom_patterns::Schema;
use keyloom_patterns::graph::{Direction, Graph};
use rusqlite::{Connection, params};

const LABEL: &str = "to";
/// Number of edges that keyloom sorts and writes per transaction.
const BATCH: usize = 1_000_000;

type Numbers = Graph<u32, (), u32>;

fn scale() -> u32 {
    std::env::var("KEYLOOM_GRAPH_SCALE").map_or(16, |scale| scale.parse().unwrap())
}

fn open(directory: &tempfile::TempDir) -> Lmdb {
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(16 << 30);
    options.open(directory.path().join("lmdb")).unwrap()
}

fn graph(store: &Lmdb) -> Numbers {
    Graph::directed(&Schema::open(store, "compare").unwrap(), "graph").unwrap()
}

fn load(store: &Lmdb, edges: &[(u32, u32)]) -> Numbers {
    let graph = graph(store);
    for part in edges.chunks(BATCH) {
        let part = part.iter().map(|(a, b)| ((*a, LABEL.to_owned(), *b), 1));
        store.transact(|txn| graph.put_edges(txn, part.clone())).unwrap();
    }
    graph
}

fn load_sqlite(directory: &tempfile::TempDir, edges: &[(u32, u32)]) -> Connection {
    let mut sqlite = Connection::open(directory.path().join("sqlite")).unwrap();
    sqlite
        .execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;
             CREATE TABLE edges (source INTEGER, label TEXT, target INTEGER, weight INTEGER,
                 PRIMARY KEY (source, label, target)) WITHOUT ROWID;
             CREATE INDEX incoming ON edges (target, label, source, weight);",
        )
        .unwrap();
    let txn = sqlite.transaction().unwrap();
    {
        let insert = "INSERT OR REPLACE INTO edges VALUES (?1, ?2, ?3, 1)";
        let mut insert = txn.prepare(insert).unwrap();
        for (a, b) in edges {
            insert.execute(params![a, LABEL, b]).unwrap();
        }
    }
    txn.commit().unwrap();
    sqlite
}

/// The entries of a loaded store, in the order of their keys.
fn entries(edges: &[(u32, u32)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    load(&store, edges);
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    entries.map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Puts entries in the order of their keys through heed, in one transaction.
fn load_raw(directory: &tempfile::TempDir, entries: &[(Vec<u8>, Vec<u8>)], flags: PutFlags) {
    let (env, database) = raw_lmdb(directory.path(), 16 << 30, EnvFlags::NO_SYNC);
    let mut txn = env.write_txn().unwrap();
    for (key, value) in entries {
        database.put_with_flags(&mut txn, flags, key, value).unwrap();
    }
    txn.commit().unwrap();
}

fn main() {
    println!("ratios are keyloom / peer: below 1 keyloom is faster; files are not synced\n");
    let edges = rmat::edges(scale(), 16, 1);
    println!("{} vertices, {} edges, with repetitions", 1_u64 << scale(), edges.len());
    let entries = entries(&edges);
    compare(
        "load, both directions",
        edges.len(),
        3,
        &mut [
            ("keyloom on LMDB, with degrees", &mut || {
                let directory = tempfile::tempdir().unwrap();
                black_box(load(&open(&directory), &edges));
            }),
            ("SQLite", &mut || {
                let directory = tempfile::tempdir().unwrap();
                black_box(load_sqlite(&directory, &edges));
            }),
            ("raw heed, the entries in order", &mut || {
                load_raw(&tempfile::tempdir().unwrap(), &entries, PutFlags::empty());
            }),
            ("raw heed, the same, MDB_APPEND", &mut || {
                load_raw(&tempfile::tempdir().unwrap(), &entries, PutFlags::APPEND);
            }),
        ],
    );
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    let graph = load(&store, &edges);
    let sqlite = load_sqlite(&directory, &edges);
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    let ends: Vec<u32> = edges.iter().step_by(edges.len() / 1_000).map(|edge| edge.1).collect();
    for (name, direction, sql) in [
        (
            "neighbours, out",
            Direction::Out,
            "SELECT target FROM edges WHERE source = ?1 AND label = ?2",
        ),
        (
            "neighbours, in",
            Direction::In,
            "SELECT source FROM edges WHERE target = ?1 AND label = ?2",
        ),
    ] {
        let mut query = sqlite.prepare(sql).unwrap();
        let own = || -> u64 {
            let of = |end: &u32| {
                let found = view.neighbours(end, direction, Some(LABEL)).unwrap();
                found.map(|n| u64::from(n.unwrap().into_vertex())).sum::<u64>()
            };
            ends.iter().map(of).sum()
        };
        let mut theirs = || -> u64 {
            let mut sum = 0;
            for end in &ends {
                let found = query.query_map(params![end, LABEL], |row| row.get::<_, u32>(0));
                sum += found.unwrap().map(|n| u64::from(n.unwrap())).sum::<u64>();
            }
            sum
        };
        assert_eq!(own(), theirs());
        compare(
            name,
            ends.len(),
            9,
            &mut [
                ("keyloom", &mut || _ = black_box(own())),
                ("SQLite", &mut || _ = black_box(theirs())),
            ],
        );
    }
    let sql = "SELECT count(*) FROM edges a JOIN edges b ON b.source = a.target AND b.label = ?2
               WHERE a.source = ?1 AND a.label = ?2";
    let mut query = sqlite.prepare(sql).unwrap();
    let few = &ends[..20];
    let own = || -> i64 {
        let of = |end: &u32| {
            view.from([end]).max_walks(100_000_000).out([LABEL]).out([LABEL]).count().unwrap().found
                as i64
        };
        few.iter().map(of).sum()
    };
    let mut theirs = || -> i64 {
        few.iter()
            .map(|end| query.query_row(params![end, LABEL], |row| row.get::<_, i64>(0)).unwrap())
            .sum()
    };
    assert_eq!(own(), theirs());
    compare(
        "two steps, counted",
        few.len(),
        5,
        &mut [
            ("keyloom", &mut || _ = black_box(own())),
            ("SQLite", &mut || _ = black_box(theirs())),
        ],
    );
}
