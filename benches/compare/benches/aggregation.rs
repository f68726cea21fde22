//! Distinct values and group-by over a sorted index of one million entries, compared with SQLite,
//! and the costs and savings of maintained totals.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench aggregation [-- ENTRIES]
//! ```
//!
//! keyloom stores keys `(shop, sale, cents)` of sales of 100 shops. SQLite stores a table with an
//! index on `(shop, cents)`, with prepared statements and WAL. Nothing is written during the
//! measurement.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::time::Instant;

use keyloom::lmdb::Durability;
use keyloom::{Desc, Lmdb, Metered, Order, Reader, Store, Subspace, Writer};
use keyloom_compare::{Contender, compare, peers};
use keyloom_patterns::aggregate::{Contributions, Member, RankedIndex, Summary, Totals};
use keyloom_patterns::{Grouping, Scan, Table, entry, within};
use rusqlite::{Connection, Statement};

const SHOPS: u64 = 100;

/// Shop, sale and cents of the n-th sale.
fn sale(n: u64) -> (u32, u32, i64) {
    let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed >> 20) as u32 % SHOPS as u32, n as u32, (mixed >> 40) as i64 % 100_000)
}

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let entries: u64 = numbers.next().unwrap_or(1_000_000);
    println!(
        "ratios are keyloom / SQLite: below 1 keyloom is faster; {entries} entries, {SHOPS} groups\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(8 << 30);
    let store = options.open(directory.path().join("lmdb")).unwrap();
    reading(&store, &sqlite(&directory.path().join("sqlite"), entries), entries);
    maintaining(&store, entries / 5);
}

fn sqlite(path: &std::path::Path, entries: u64) -> Connection {
    let mut sqlite = peers::sqlite(path, "FULL");
    sqlite
        .execute_batch("CREATE TABLE sales (id INTEGER PRIMARY KEY, shop INT, cents INT)")
        .unwrap();
    let transaction = sqlite.transaction().unwrap();
    {
        let mut insert = transaction.prepare("INSERT INTO sales VALUES (?2, ?1, ?3)").unwrap();
        (0..entries).for_each(|n| assert_eq!(insert.execute(sale(n)).unwrap(), 1));
    }
    transaction.commit().unwrap();
    sqlite.execute_batch("CREATE INDEX by_shop ON sales (shop, cents)").unwrap();
    sqlite
}

const DISTINCT: &str = "SELECT DISTINCT shop FROM sales";

/// Number of rows of a query; reads each row.
fn rows(query: &mut Statement<'_>) -> u64 {
    let (mut rows, mut count) = (query.query([]).unwrap(), 0);
    while let Some(row) = rows.next().unwrap() {
        count += u64::from(black_box(row.get::<_, i64>(0).unwrap()) >= 0);
    }
    count
}

fn reading(store: &Lmdb, sqlite: &Connection, entries: u64) {
    let space = Subspace::new("by_shop");
    let mut sales: Vec<_> = (0..entries).map(sale).collect();
    sales.sort_unstable();
    let put = |txn: &mut dyn FnMut(&[u8]) -> keyloom::Result<()>| {
        sales.iter().try_for_each(|sale| txn(&space.pack(sale)))
    };
    store.transact(|txn| put(&mut |key| txn.put(key, b""))).unwrap();
    drop(sales);
    let snapshot = store.snapshot().unwrap();
    let by_shop = Grouping::new(&space, 1);
    let distinct = || {
        let shops = by_shop.values::<_, u32, _>(&snapshot, ..).unwrap();
        assert_eq!(shops.map(Result::unwrap).count(), SHOPS as usize);
    };
    let mut query = sqlite.prepare(DISTINCT).unwrap();
    let mut of_sqlite = || assert_eq!(rows(&mut query), SHOPS);
    compare("distinct", 1, 30, &mut [("keyloom", &mut || distinct()), ("SQLite", &mut of_sqlite)]);

    let scan = by_shop.values::<_, u32, _>(&snapshot, ..);
    let mut scan = scan.unwrap();
    scan.by_ref().for_each(drop);
    println!("    {}", scan.explain());

    let sum = |total: &mut Summary, sale: Member<'_>| {
        total.add(sale.rest::<(u32, i64)>()?.1);
        Ok(())
    };
    let fold = || {
        let all = snapshot.range(space.range(), Order::Ascending).unwrap();
        let folded = by_shop.fold(all, Summary::default(), sum);
        let found: u64 = folded.map(|group| black_box(group.unwrap().1).count).sum();
        assert_eq!(found, entries);
    };
    let query =
        "SELECT shop, count(*), sum(cents), min(cents), max(cents) FROM sales GROUP BY shop";
    let mut query = sqlite.prepare(query).unwrap();
    let mut of_sqlite = || assert_eq!(rows(&mut query), SHOPS);
    compare("group-by", 1, 15, &mut [("keyloom", &mut || fold()), ("SQLite", &mut of_sqlite)]);
    let mut query = sqlite.prepare("SELECT shop, count(*) FROM sales GROUP BY shop").unwrap();
    let mut of_sqlite = || assert_eq!(rows(&mut query), SHOPS);
    let count = || {
        let all = snapshot.range(space.range(), Order::Ascending).unwrap();
        let folded = by_shop.fold(all, 0_u64, |count, _| {
            *count += 1;
            Ok(())
        });
        assert!(folded.map(|group| group.unwrap().1).sum::<u64>() > 0);
    };
    compare(
        "count by group",
        1,
        15,
        &mut [("keyloom", &mut || count()), ("SQLite", &mut of_sqlite)],
    );

    // With statistics SQLite uses skip scans as well.
    sqlite.execute_batch("ANALYZE").unwrap();
    let mut query = sqlite.prepare(DISTINCT).unwrap();
    let mut of_sqlite = || assert_eq!(rows(&mut query), SHOPS);
    let peers: &mut [Contender<'_>] =
        &mut [("keyloom", &mut || distinct()), ("SQLite", &mut of_sqlite)];
    compare("distinct, after ANALYZE", 1, 200, peers);
}

/// Read amplification of a fold against write amplification of maintained totals.
fn maintaining(store: &Lmdb, records: u64) {
    println!(
        "\n{records} records put one per call in one transaction, then every total asked for:"
    );
    let store = Metered::new(store.clone());
    let space = Subspace::new("maintained");
    let totals = Totals::new(&space.child("totals"), |_, (shop, _, cents): &(u32, u32, i64)| {
        Contributions::from_iter([((shop, "count"), 1), ((shop, "cents"), *cents)])
    });
    let ranked =
        RankedIndex::new(&space.child("ranked"), |_, (shop, _, cents): &(u32, u32, i64)| {
            entry((shop, Desc(*cents)))
        });
    let table = |name: &str| Table::<u32, (u32, u32, i64)>::new(&space.child(name));
    let tables = [
        ("nothing attached", table("bare")),
        ("totals", table("with totals").with(&totals)),
        ("an index", table("with an index").with(ranked.index())),
        ("a ranked index", table("with ranks").with(&ranked)),
    ];
    for (name, table) in &tables {
        store.transact(|txn| txn.delete_range(space.child("ranked").range())).unwrap();
        let started = Instant::now();
        let (done, cost) = store.measure(|store| {
            store.transact(|txn| {
                (0..records).try_for_each(|n| table.put(txn, &(n as u32), &sale(n)))
            })
        });
        done.unwrap();
        let each = started.elapsed().as_secs_f64() * 1e6 / records as f64;
        let per = |count: u64| count as f64 / records as f64;
        println!(
            "    {name:<18} {each:>6.2} us, {:.2} ranges, {:.2} keys read and {:.2} written per put",
            per(cost.ranges),
            per(cost.keys_read),
            per(cost.keys_written)
        );
    }
    let snapshot = store.snapshot().unwrap();
    let asked = |name: &str, work: &dyn Fn()| {
        work();
        let started = Instant::now();
        let (_, cost) = store.measure(|_| work());
        println!("    {name:<18} {:>9.1} us; {cost}", started.elapsed().as_secs_f64() * 1e6);
    };
    let by_shop = ranked.index().grouped_by(1);
    asked("fold of one shop", &|| {
        let range = ranked.index().space().child(&7_u32).self_and_children();
        let all = snapshot.range(range, Order::Ascending).unwrap();
        let folded = by_shop.fold(all, Summary::default(), |sum, sale| {
            sum.add(sale.rest::<(Desc<i64>, u32)>()?.0.0);
            Ok(())
        });
        assert!(folded.map(|group| black_box(group.unwrap().1).count).sum::<u64>() > 0);
    });
    asked("total of one shop", &|| {
        black_box(totals.get(&snapshot, (7, "cents")).unwrap());
    });
    let middle = (SHOPS as u32 / 2, Desc(50_000_i64));
    asked("rank by counting", &|| {
        black_box(ranked.index().count(&snapshot, within(..middle)).unwrap());
    });
    asked("rank", &|| {
        black_box(ranked.rank(&snapshot, (), middle).unwrap());
    });
}
