//! keyloom on PostgreSQL and in etcd, compared with the clients that it is built on: the same
//! server, the same kind of transaction, the same number of messages. 10,000 records of 100 bytes.
//!
//! ```text
//! tests/servers/with.sh cargo bench -p keyloom-compare --features servers --bench servers
//! ```

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hint::black_box;

use etcd_client::{Client as EtcdClient, GetOptions, Txn, TxnOp};
use keyloom::{KeyRange, Metered, Order, Reader, Store, Writer};
use keyloom_compare::compare;
use keyloom_etcd::Etcd;
use keyloom_patterns::Schema;
use keyloom_patterns::graph::Graph;
use keyloom_postgres::Postgres;
use postgres::{Client as PgClient, IsolationLevel, NoTls};

const RECORDS: u32 = 10_000;
const VALUE: [u8; 100] = [0x2A; 100];
const ROUNDS: usize = 200;

fn key(n: u32) -> [u8; 4] {
    (n % RECORDS).to_be_bytes()
}

fn keys(n: u32) -> impl Iterator<Item = [u8; 4]> {
    (0..n).map(|n| key(n * 7_919))
}

fn fill(store: &impl Store) {
    for part in 0..10 {
        let part = part * RECORDS / 10..(part + 1) * RECORDS / 10;
        store.transact(|txn| part.clone().try_for_each(|n| txn.put(&key(n), &VALUE))).unwrap();
    }
}

fn main() {
    println!("ratios are keyloom / the client alone: below 1 keyloom is faster\n");
    match std::env::var("KEYLOOM_POSTGRES") {
        Ok(address) => {
            postgres(&address);
            graph(&address);
        }
        Err(_) => println!("no KEYLOOM_POSTGRES: run it under tests/servers/with.sh"),
    }
    match std::env::var("KEYLOOM_ETCD") {
        Ok(address) => etcd(&address),
        Err(_) => println!("no KEYLOOM_ETCD: run it under tests/servers/with.sh"),
    }
}

fn postgres(address: &str) {
    let store = Postgres::options().table("compared").open(address).unwrap();
    fill(&store);
    let raw = RefCell::new(PgClient::connect(address, NoTls).unwrap());
    let prepare = |sql: &str| raw.borrow_mut().prepare(sql).unwrap();
    let one = prepare("SELECT value FROM compared WHERE key = $1");
    let many = prepare("SELECT key, value FROM compared WHERE key = ANY($1)");
    let page = prepare("SELECT key, value FROM compared ORDER BY key LIMIT 1000");
    let put = prepare(
        "INSERT INTO compared SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    );
    let snapshot = store.snapshot().unwrap();
    let mut next = 0;
    compare(
        "PostgreSQL: get",
        20,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                // A snapshot serves a repeated key from its cache, so each round reads other keys.
                next += 20;
                let keys = (next..next + 20).map(key);
                keys.for_each(|key| assert!(black_box(snapshot.get(&key).unwrap()).is_some()));
            }),
            ("postgres", &mut || {
                let mut raw = raw.borrow_mut();
                for key in keys(20) {
                    let row = raw.query_one(&one, &[&&key[..]]).unwrap();
                    black_box(row.get::<_, Vec<u8>>(0));
                }
            }),
        ],
    );
    compare(
        "PostgreSQL: get_many of 1,000",
        1_000,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                let keys: Vec<_> = keys(1_000).collect();
                // A new snapshot each time, since a snapshot serves a repeated key from its cache.
                black_box(store.snapshot().unwrap().get_many(&keys).unwrap());
            }),
            ("postgres", &mut || {
                let keys: Vec<_> = keys(1_000).collect();
                let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                let rows = raw.borrow_mut().query(&many, &[&keys]).unwrap();
                let found =
                    rows.iter().map(|row| (row.get::<_, Vec<u8>>(0), row.get::<_, Vec<u8>>(1)));
                black_box(found.collect::<Vec<_>>());
            }),
        ],
    );
    compare(
        "PostgreSQL: a page of 1,000",
        1_000,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                black_box(snapshot.page(KeyRange::all(), Order::Ascending, 1_000).unwrap());
            }),
            ("postgres", &mut || {
                let rows = raw.borrow_mut().query(&page, &[]).unwrap();
                let found =
                    rows.iter().map(|row| (row.get::<_, Vec<u8>>(0), row.get::<_, Vec<u8>>(1)));
                black_box(found.collect::<Vec<_>>());
            }),
        ],
    );
    drop(snapshot);
    compare(
        "PostgreSQL: read one, put 100",
        100,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                store
                    .transact(|txn| {
                        black_box(txn.get(&key(0))?);
                        keys(100).try_for_each(|key| txn.put(&key, &VALUE))
                    })
                    .unwrap();
            }),
            ("postgres", &mut || {
                let mut raw = raw.borrow_mut();
                let level = IsolationLevel::Serializable;
                let mut txn = raw.build_transaction().isolation_level(level).start().unwrap();
                black_box(txn.query_opt(&one, &[&&key(0)[..]]).unwrap());
                let keys: Vec<_> = keys(100).collect();
                let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                txn.execute(&put, &[&keys, &vec![&VALUE[..]; 100]]).unwrap();
                txn.commit().unwrap();
            }),
        ],
    );
}

/// Three steps from a vertex of a graph with 10,000 edges, compared with one recursive query over a
/// table of the same edges.
fn graph(address: &str) {
    let mut rng = fastrand::Rng::with_seed(1);
    let edges: BTreeSet<(i32, i32)> =
        std::iter::repeat_with(|| (rng.i32(0..1_000), rng.i32(0..1_000))).take(10_000).collect();
    let store = Metered::new(Postgres::options().table("compared_graph").open(address).unwrap());
    let schema = Schema::open(&store, "compare").unwrap();
    let own = Graph::<i32>::directed(&schema, "graph").unwrap();
    let keys = edges.iter().map(|(a, b)| ((*a, "to".to_owned(), *b), ()));
    store.transact(|txn| own.put_edges(txn, keys.clone())).unwrap();
    let mut raw = PgClient::connect(address, NoTls).unwrap();
    raw.batch_execute(
        "DROP TABLE IF EXISTS compared_edges;
         CREATE TABLE compared_edges
             (source int, label text, target int, PRIMARY KEY (source, label, target));",
    )
    .unwrap();
    let (sources, targets): (Vec<i32>, Vec<i32>) = edges.iter().copied().unzip();
    let insert = "INSERT INTO compared_edges
         SELECT a, 'to', b FROM unnest($1::int[], $2::int[]) AS edge (a, b)";
    raw.execute(insert, &[&sources, &targets]).unwrap();
    raw.batch_execute("ANALYZE compared_edges").unwrap();
    let query = raw
        .prepare(
            "WITH RECURSIVE walk (vertex, depth) AS (
                 SELECT $1::int, 0
                 UNION
                 SELECT edge.target, depth + 1 FROM walk
                 JOIN compared_edges edge ON edge.source = vertex AND edge.label = 'to'
                 WHERE depth < 3
             )
             SELECT count(*) FROM walk WHERE depth = 3",
        )
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let view = own.at(&snapshot).unwrap();
    let own = |from: i32| {
        let steps = view.from([&from]).out(["to"]).dedup().out(["to"]).dedup().out(["to"]).dedup();
        steps.count().unwrap().found as i64
    };
    let mut theirs = |from: i32| raw.query_one(&query, &[&from]).unwrap().get::<_, i64>(0);
    (0..20).for_each(|from| assert_eq!(own(from), theirs(from)));
    let ((), cost) = store.measure(|_| _ = own(0));
    println!("three steps: {} vertices, {} round trips", own(0), cost.round_trips);
    compare(
        "PostgreSQL: three steps over 10,000 edges",
        5,
        ROUNDS / 4,
        &mut [
            ("keyloom", &mut || (0..5).for_each(|from| _ = black_box(own(from)))),
            ("a recursive query", &mut || (0..5).for_each(|from| _ = black_box(theirs(from)))),
        ],
    );
}

fn etcd(address: &str) {
    let members = address.strip_prefix("etcd://").unwrap().split('/').next().unwrap();
    // Both contenders use one member, the same one.
    let member = members.split(',').next().unwrap();
    let store = Etcd::open(&format!("etcd://{member}/compared")).unwrap();
    fill(&store);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let raw = runtime.block_on(EtcdClient::connect([member], None)).unwrap();
    let raw = RefCell::new(raw);
    let outer = |key: [u8; 4]| [b"compared/", &key[..]].concat();
    let local = || Some(GetOptions::new().with_serializable());
    let (snapshot, mut next) = (store.snapshot().unwrap(), 0);
    compare(
        "etcd: get",
        10,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                next += 10;
                let keys = (next..next + 10).map(key);
                keys.for_each(|key| assert!(black_box(snapshot.get(&key).unwrap()).is_some()));
            }),
            ("etcd-client", &mut || {
                let mut raw = raw.borrow_mut();
                for key in keys(10) {
                    let found = runtime.block_on(raw.get(outer(key), local())).unwrap();
                    assert_eq!(found.kvs().len(), 1);
                }
            }),
        ],
    );
    compare(
        "etcd: a page of 1,000",
        1_000,
        ROUNDS / 4,
        &mut [
            ("keyloom", &mut || {
                black_box(snapshot.page(KeyRange::all(), Order::Ascending, 1_000).unwrap());
            }),
            ("etcd-client", &mut || {
                let options = local().map(|options| options.with_prefix().with_limit(1_001));
                let mut raw = raw.borrow_mut();
                let found = runtime.block_on(raw.get("compared/", options));
                black_box(found.unwrap().take_kvs());
            }),
        ],
    );
    compare(
        "etcd: put 100",
        100,
        ROUNDS / 4,
        &mut [
            ("keyloom", &mut || {
                store.transact(|txn| keys(100).try_for_each(|key| txn.put(&key, &VALUE))).unwrap();
            }),
            ("etcd-client", &mut || {
                let puts: Vec<_> =
                    keys(100).map(|key| TxnOp::put(outer(key), VALUE, None)).collect();
                let mut raw = raw.borrow_mut();
                let done = runtime.block_on(raw.txn(Txn::new().and_then(puts)));
                assert!(done.unwrap().succeeded());
            }),
        ],
    );
}
