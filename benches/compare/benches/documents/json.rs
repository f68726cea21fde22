//! A collection of JSON documents with two path indexes, compared with JSON in SQLite. SQLite has
//! an indexed expression for the path of a field. For the path of an array, which an expression
//! cannot index, it has a table of the elements, and triggers that keep this table.

use std::hint::black_box;

use keyloom::{Lmdb, Store};
use keyloom_compare::compare;
use keyloom_documents::json::Collection;
use keyloom_tables::Schema;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::{open, open_sqlite};

/// Number of documents written per transaction.
const BATCH: usize = 10_000;
/// Number of queries or updates per round.
const MANY: u32 = 1_000;

fn order(random: &mut fastrand::Rng, id: u32, many: u32) -> Value {
    let item = |random: &mut fastrand::Rng| {
        let sku = format!("sku {}", random.u32(0..many));
        json!({ "sku": sku, "count": random.u32(1..9) })
    };
    let items: Vec<Value> = (0..random.usize(1..4)).map(|_| item(random)).collect();
    let city = format!("city {}", random.u32(0..many / 10));
    json!({ "number": id, "address": { "city": city, "street": "a street" }, "items": items })
}

fn load(store: &Lmdb, documents: &[Value]) -> Collection<u32> {
    let schema = Schema::open(store, "shop").unwrap();
    let orders = Collection::<u32>::open(&schema, "orders").unwrap();
    let orders = orders.with_index(&schema, ["address.city"]).unwrap();
    let orders = orders.with_index(&schema, ["items[].sku"]).unwrap();
    let mut keys = 0..;
    for some in documents.chunks(BATCH) {
        let some: Vec<(u32, Value)> = keys.by_ref().zip(some.iter().cloned()).collect();
        store.transact(|txn| orders.put_many(txn, some.iter().cloned())).unwrap();
    }
    orders
}

fn load_sqlite(directory: &tempfile::TempDir, documents: &[Value]) -> Connection {
    let mut sqlite = open_sqlite(
        directory,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, body TEXT);
         CREATE TABLE skus (sku TEXT, id INTEGER, PRIMARY KEY (sku, id)) WITHOUT ROWID;
         CREATE INDEX by_city ON orders (body ->> '$.address.city');
         CREATE TRIGGER added AFTER INSERT ON orders BEGIN
             INSERT OR IGNORE INTO skus
             SELECT value ->> 'sku', new.id FROM json_each(new.body, '$.items');
         END;
         CREATE TRIGGER changed AFTER UPDATE OF body ON orders
         WHEN old.body -> '$.items' IS NOT new.body -> '$.items' BEGIN
             DELETE FROM skus WHERE id = old.id
             AND sku IN (SELECT value ->> 'sku' FROM json_each(old.body, '$.items'));
             INSERT OR IGNORE INTO skus
             SELECT value ->> 'sku', new.id FROM json_each(new.body, '$.items');
         END;",
    );
    let txn = sqlite.transaction().unwrap();
    for (id, document) in (0_u32..).zip(documents) {
        let mut insert = txn.prepare_cached("INSERT INTO orders VALUES (?1, ?2)").unwrap();
        insert.execute(params![id, document.to_string()]).unwrap();
    }
    txn.commit().unwrap();
    sqlite
}

pub fn measure(many: u32) {
    let mut random = fastrand::Rng::with_seed(1);
    let documents: Vec<Value> = (0..many).map(|id| order(&mut random, id, many)).collect();
    compare(
        "insert",
        documents.len(),
        3,
        &mut [
            ("keyloom on LMDB", &mut || {
                let directory = tempfile::tempdir().unwrap();
                black_box(load(&open(&directory), &documents));
            }),
            ("SQLite", &mut || {
                let directory = tempfile::tempdir().unwrap();
                black_box(load_sqlite(&directory, &documents));
            }),
        ],
    );
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    let orders = load(&store, &documents);
    let mut sqlite = load_sqlite(&directory, &documents);
    measure_find(&store, &orders, &sqlite);
    measure_update(&store, &orders, &mut sqlite, many);
}

fn measure_find(store: &Lmdb, orders: &Collection<u32>, sqlite: &Connection) {
    let snapshot = store.snapshot().unwrap();
    for (path, name, sql) in [
        ("address.city", "city", "SELECT body FROM orders WHERE body ->> '$.address.city' = ?1"),
        ("items[].sku", "sku", "SELECT body FROM skus JOIN orders USING (id) WHERE sku = ?1"),
    ] {
        let own = || -> usize {
            let found = |n| {
                let query = orders.find([path]).unwrap().equal(format!("{name} {n}"));
                query.limit(1_000).page(&snapshot).unwrap().items.len()
            };
            (0..MANY).map(found).sum()
        };
        let mut query = sqlite.prepare(sql).unwrap();
        // Both return parsed documents.
        let mut theirs = || -> usize {
            let mut found = |n| {
                let rows = query.query_map([format!("{name} {n}")], |row| {
                    Ok(serde_json::from_str::<Value>(row.get_ref(0)?.as_str()?).unwrap())
                });
                rows.unwrap().map(|row| usize::from(row.unwrap().is_object())).sum::<usize>()
            };
            (0..MANY).map(&mut found).sum()
        };
        let found = own();
        assert_eq!(found, theirs());
        compare(
            &format!("find by {path}, {:.1} found", found as f64 / f64::from(MANY)),
            MANY as usize,
            9,
            &mut [
                ("keyloom", &mut || _ = black_box(own())),
                ("SQLite", &mut || _ = black_box(theirs())),
            ],
        );
    }
}

/// Updates of one path; one transaction per round.
fn measure_update(store: &Lmdb, orders: &Collection<u32>, sqlite: &mut Connection, many: u32) {
    for (path, name) in [("$.address.city", "city"), ("$.address.street", "street")] {
        let (mut round, mut other) = (0, 0);
        let key = |n: u32| n.wrapping_mul(7_919) % many;
        compare(
            &format!("update of address.{name}"),
            MANY as usize,
            9,
            &mut [
                ("keyloom", &mut || {
                    round += 1;
                    let patch = json!({ "address": { name: format!("{name} {round}") } });
                    let mut keys = (0..MANY).map(key);
                    store
                        .transact(|txn| {
                            keys.try_for_each(|key| orders.merge(txn, &key, &patch).map(drop))
                        })
                        .unwrap();
                }),
                ("SQLite", &mut || {
                    other += 1;
                    let txn = sqlite.transaction().unwrap();
                    for n in 0..MANY {
                        let sql = "UPDATE orders SET body = json_set(body, ?2, ?3) WHERE id = ?1";
                        let value = format!("{name} {other}");
                        let mut update = txn.prepare_cached(sql).unwrap();
                        update.execute(params![key(n), path, value]).unwrap();
                    }
                    txn.commit().unwrap();
                }),
            ],
        );
    }
}
