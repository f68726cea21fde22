//! Measures how often an operation waits for the server.

use keyloom::{KeyRange, Order, Reader, Result, Store, Subspace, Transaction, Writer};
use keyloom_patterns::{BatchSize, Index, Table, entry};

use crate::{FarResult, FarStore};

/// The number of keys to read.
const KEYS: u32 = 30_000;
/// The number of records, a third of them in each town.
const PEOPLE: u32 = 3_000;

pub fn print(store: &FarStore, space: &Subspace) -> FarResult {
    println!("\n{:<64} {:>9} {:>9}", "waits", "counted", "ms");
    let numbers = space.child("numbers");
    let key = |n: u32| numbers.pack(&n);
    let keys: Vec<u32> = (0..KEYS).collect();
    BatchSize::new(10_000).transact_all(store, &keys, |txn, some| {
        some.iter().try_for_each(|n| txn.put(&key(*n), b"value"))
    })?;
    let line = |what: &str, work: &dyn Fn() -> Result<()>| -> FarResult {
        let started = std::time::Instant::now();
        let (done, cost) = store.measure(|_| work());
        done?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        println!("{what:<64} {:>9} {ms:>9.1}", cost.round_trips);
        Ok(())
    };
    let thousand: Vec<_> = (0..1_000).map(|n| key(n * 29)).collect();

    line("a snapshot", &|| store.snapshot().map(drop))?;
    let snapshot = store.snapshot()?;
    line("a get", &|| snapshot.get(&key(7)).map(drop))?;
    line("1,000 gets", &|| thousand.iter().try_for_each(|key| snapshot.get(key).map(drop)))?;
    line("get_many of 1,000 keys", &|| snapshot.get_many(&thousand).map(drop))?;
    let ends: Vec<_> = (0..1_000).map(|n| key(n * 29 + 10)).collect();
    let ranges: Vec<_> =
        thousand.iter().zip(&ends).map(|(start, end)| KeyRange::half_open(start, end)).collect();
    line("range_many of 1,000 ranges of 10", &|| snapshot.range_many(&ranges, 10).map(drop))?;
    line("first", &|| snapshot.first(numbers.range()).map(drop))?;
    line("last", &|| snapshot.last(numbers.range()).map(drop))?;
    line("a page of 100", &|| snapshot.page(numbers.range(), Order::Ascending, 100).map(drop))?;
    line("count of 30,000", &|| snapshot.count(numbers.range()).map(drop))?;
    for n in [100, 1_000, 10_000, 30_000] {
        line(&format!("a range of {n}"), &|| {
            let mut range = snapshot.range(numbers.range(), Order::Ascending)?.take(n);
            range.try_for_each(|entry| entry.map(drop))
        })?;
    }
    drop(snapshot);
    line("a range of 1,000 in a transaction", &|| {
        let txn = store.begin()?;
        let mut range = txn.range(numbers.range(), Order::Ascending)?.take(1_000);
        range.try_for_each(|entry| entry.map(drop))
    })?;

    line("a transaction of nothing", &|| store.begin()?.commit())?;
    line("a put", &|| store.transact(|txn| txn.put(&key(1), b"1")))?;
    line("1,000 puts", &|| {
        store.transact(|txn| (0..1_000).try_for_each(|n| txn.put(&key(n), b"2")))
    })?;
    line("1,000 transactions of one put", &|| {
        (0..1_000).try_for_each(|n| store.transact(|txn| txn.put(&key(n), b"3")))
    })?;
    line("a get and a put", &|| {
        store.transact(|txn| {
            txn.get(&key(1))?;
            txn.put(&key(1), b"4")
        })
    })?;
    line("an add", &|| store.transact(|txn| txn.add(&space.pack(&"counter"), 1)))?;

    let by_town = Index::new(&space.child("by_town"), |_id, town: &String| entry(town));
    let by_length = Index::new(&space.child("by_length"), |_id, town: &String| entry(town.len()));
    let people = Table::<u32, String>::new(&space.child("people")).with(&by_town).with(&by_length);
    let records: Vec<_> = (0..PEOPLE).map(|n| (n, format!("town {}", n % 3))).collect();
    let (some, rest) = records.split_at(1_000);
    line("put_many of 1,000 records with two indexes", &|| {
        store.transact(|txn| people.put_many(txn, some))
    })?;
    line("put of each of them again", &|| {
        store.transact(|txn| some.iter().try_for_each(|(id, town)| people.put(txn, id, town)))
    })?;
    BatchSize::new(1_000).transact_all(store, rest, |txn, some| people.put_many(txn, some))?;
    let snapshot = store.snapshot()?;
    let ids = || -> Result<Vec<u32>> {
        let found = by_town.range(&snapshot, "town 1")?;
        found.map(|found| found?.record_key()).collect()
    };
    line("1,000 records of an index, one get each", &|| {
        ids()?.iter().try_for_each(|id| people.get(&snapshot, id).map(drop))
    })?;
    line("1,000 records of an index, get_many", &|| people.get_many(&snapshot, &ids()?).map(drop))?;
    line("1,000 records of an index, records", &|| {
        by_town.query().prefix("town 1").limit(1_000).records(&snapshot, &people).map(drop)
    })?;
    line("delete_many of 1,000 records with two indexes", &|| {
        let ids: Vec<u32> = (0..1_000).collect();
        store.transact(|txn| people.delete_many(txn, &ids)).map(drop)
    })?;
    Ok(())
}
