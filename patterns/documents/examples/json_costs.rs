//! A collection of many JSON documents with two path indexes on LMDB: inserts, queries by path and
//! updates of one path.
//!
//! `cargo run --release -p keyloom-documents --example json_costs -- 1000000`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Metered, Store};
use keyloom_documents::json::Collection;
use keyloom_tables::Schema;
use serde_json::{Value, json};

/// How many documents a transaction writes.
const BATCH: usize = 10_000;

/// How many queries and updates are measured.
const MANY: u32 = 10_000;

fn order(random: &mut fastrand::Rng, id: u32) -> Value {
    let item = |random: &mut fastrand::Rng| json!({ "sku": format!("sku {}", random.u32(0..100_000)), "count": random.u32(1..9) });
    let items: Vec<Value> = (0..random.usize(1..4)).map(|_| item(random)).collect();
    let city = format!("city {}", random.u32(0..10_000));
    json!({ "number": id, "address": { "city": city, "street": "a street" }, "items": items })
}

fn main() {
    let documents: u32 = std::env::args().nth(1).map_or(100_000, |many| many.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    let store = Metered::new(options.open(directory.path()).unwrap());
    let schema = Schema::open(&store, "shop").unwrap();
    let orders = Collection::<u32>::open(&schema, "orders").unwrap();
    let orders = orders.with_index(&schema, ["address.city"]).unwrap();
    let orders = orders.with_index(&schema, ["items[].sku"]).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let all: Vec<u32> = (0..documents).collect();
    let begin = Instant::now();
    for some in all.chunks(BATCH) {
        let some: Vec<(u32, Value)> =
            some.iter().map(|id| (*id, order(&mut random, *id))).collect();
        store.transact(|txn| orders.put_many(txn, some.clone())).unwrap();
    }
    let took = begin.elapsed();
    println!("{documents} documents, {BATCH} per transaction, not synced: {took:.1?}");

    let snapshot = store.snapshot().unwrap();
    let measure = |what: &str, run: &dyn Fn(u32) -> usize| {
        let (begin, mut found) = (Instant::now(), 0);
        let ((), cost) = store.measure(|_| (0..MANY).for_each(|n| found += run(n)));
        let each = begin.elapsed() / MANY;
        let [read, written] = [cost.keys_read, cost.keys_written].map(|n| n / u64::from(MANY));
        let found = f64::from(u32::try_from(found).unwrap()) / f64::from(MANY);
        println!(
            "{what:<28} {each:>9.1?}, {found:>6.1} documents, {read} keys read, {written} written"
        );
    };
    measure("by address.city", &|n| {
        let query = orders.find(["address.city"]).unwrap().equal(format!("city {n}"));
        query.limit(1_000).page(&snapshot).unwrap().items.len()
    });
    measure("by items[].sku", &|n| {
        let query = orders.find(["items[].sku"]).unwrap().equal(format!("sku {n}"));
        query.limit(1_000).page(&snapshot).unwrap().items.len()
    });
    measure("update of address.city", &|n| {
        let key = n.wrapping_mul(7_919) % documents;
        let patch = json!({ "address": { "city": "another" } });
        store.transact(|txn| orders.merge(txn, &key, &patch)).map(|_| 1).unwrap()
    });
    measure("update of address.street", &|n| {
        let key = n.wrapping_mul(7_919) % documents;
        let patch = json!({ "address": { "street": format!("street {n}") } });
        store.transact(|txn| orders.merge(txn, &key, &patch)).map(|_| 1).unwrap()
    });
}
