//! Parents with a matching child, and sums over children, compared with `EXISTS` and `GROUP BY` of
//! SQLite with indexes for both orders.

use std::hint::black_box;

use keyloom::{Lmdb, Store};
use keyloom_compare::compare;
use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_documents::{Documents, Matches, ScoreMode};
use keyloom_tables::Schema;
use rusqlite::{Connection, params};

use super::{BATCH, open, open_sqlite};

/// The kind and the amount of a child.
type Child = (u32, i64);
type Staff = Children<u32, (), (u32, u32), Child>;
type Row = ((u32, u32), Child);

fn load(store: &Lmdb, parents: u32, rows: &[Row]) -> Staff {
    let schema = Schema::open(store, "company").unwrap();
    let branches = Documents::<u32, ()>::declare(&schema, "branches", 1, |index| index).unwrap();
    let staff = Staff::declare(
        &schema,
        &branches,
        "staff",
        1,
        Link::by_key(),
        OnParentDelete::Refuse,
        |index| {
            index
                .integers("kind", |_, child: &Child| Some(child.0.into()))
                .integers("amount", |_, child| Some(child.1))
        },
    )
    .unwrap();
    let all: Vec<u32> = (0..parents).collect();
    for some in all.chunks(BATCH) {
        let some = some.iter().map(|parent| (*parent, ()));
        store.transact(|txn| branches.table().put_many(txn, some.clone())).unwrap();
    }
    for some in rows.chunks(BATCH) {
        let table = staff.documents().table();
        store.transact(|txn| table.put_many(txn, some.iter().copied())).unwrap();
    }
    staff
}

fn load_sqlite(directory: &tempfile::TempDir, parents: u32, rows: &[Row]) -> Connection {
    let mut sqlite = open_sqlite(
        directory,
        "CREATE TABLE branches (id INTEGER PRIMARY KEY);
         CREATE TABLE staff (branch INTEGER, number INTEGER, kind INTEGER, amount INTEGER,
             PRIMARY KEY (branch, number)) WITHOUT ROWID;
         CREATE INDEX by_branch ON staff (branch, kind);
         CREATE INDEX by_kind ON staff (kind, branch);",
    );
    let txn = sqlite.transaction().unwrap();
    for parent in 0..parents {
        let mut insert = txn.prepare_cached("INSERT INTO branches VALUES (?1)").unwrap();
        insert.execute([parent]).unwrap();
    }
    for ((parent, number), (kind, amount)) in rows {
        let mut insert = txn.prepare_cached("INSERT INTO staff VALUES (?1, ?2, ?3, ?4)").unwrap();
        insert.execute(params![parent, number, kind, amount]).unwrap();
    }
    txn.commit().unwrap();
    sqlite.execute_batch("ANALYZE").unwrap();
    sqlite
}

/// The children of a parent are adjacent, or in random order.
fn rows(many: u32, parents: u32, is_adjacent: bool) -> Vec<Row> {
    let mut random = fastrand::Rng::with_seed(2);
    let row = |n: u32| {
        let parent = if is_adjacent { n / (many / parents) } else { random.u32(0..parents) };
        ((parent, n), (random.u32(0..1_000), random.i64(0..1_000)))
    };
    (0..many).map(row).collect()
}

pub fn measure(many: u32) {
    let parents = many / 10;
    for (name, is_adjacent) in [("adjacent", true), ("in no order", false)] {
        println!("{parents} parents, children {name}");
        let rows = rows(many, parents, is_adjacent);
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let staff = load(&store, parents, &rows);
        let sqlite = load_sqlite(&directory, parents, &rows);
        for kinds in [1, 100, 1_000] {
            measure_exists(&store, &staff, &sqlite, kinds);
        }
        measure_sums(&store, &staff, &sqlite);
    }
}

/// Parents with a child of one of the first kinds.
fn measure_exists(store: &Lmdb, staff: &Staff, sqlite: &Connection, kinds: u32) {
    let snapshot = store.snapshot().unwrap();
    let index = staff.at(&snapshot).unwrap();
    let ids = index.records().integers_of("kind").unwrap().lt(kinds.into());
    let own = || {
        let children = Matches::of_ids(index, &ids, 1.0, &snapshot).unwrap();
        staff.to_parents(&snapshot, &children, ScoreMode::None).unwrap().len()
    };
    let mut exists = sqlite
        .prepare(
            "SELECT id FROM branches WHERE EXISTS
                 (SELECT 1 FROM staff WHERE branch = id AND kind < ?1)",
        )
        .unwrap();
    let mut grouped = sqlite.prepare("SELECT DISTINCT branch FROM staff WHERE kind < ?1").unwrap();
    let count = |statement: &mut rusqlite::Statement<'_>| {
        let rows = statement.query_map([kinds], |row| row.get::<_, u32>(0)).unwrap();
        rows.map(|row| usize::from(row.unwrap() < u32::MAX)).sum::<usize>()
    };
    let found = own();
    assert_eq!([found, found], [count(&mut exists), count(&mut grouped)]);
    compare(
        &format!("child of {kinds} of 1000 kinds: {found}"),
        1,
        5,
        &mut [
            ("has_child", &mut || _ = black_box(own())),
            ("SQLite, EXISTS", &mut || _ = black_box(count(&mut exists))),
            ("SQLite, DISTINCT", &mut || _ = black_box(count(&mut grouped))),
        ],
    );
}

fn measure_sums(store: &Lmdb, staff: &Staff, sqlite: &Connection) {
    let snapshot = store.snapshot().unwrap();
    let index = staff.at(&snapshot).unwrap();
    let own = || {
        let all = index.records().all();
        let children = Matches::of_ids(index, &all, 1.0, &snapshot).unwrap();
        let sums = staff.values_of_children(&snapshot, &children, "amount", ScoreMode::Sum);
        sums.unwrap().scores().iter().map(|(_, sum)| *sum as i64).sum::<i64>()
    };
    let mut sums = sqlite.prepare("SELECT branch, sum(amount) FROM staff GROUP BY branch").unwrap();
    let mut theirs = || {
        let rows = sums.query_map((), |row| row.get::<_, i64>(1)).unwrap();
        rows.map(|sum| sum.unwrap()).sum::<i64>()
    };
    assert_eq!(own(), theirs());
    compare(
        "sum of a field of all children",
        1,
        5,
        &mut [
            ("keyloom", &mut || _ = black_box(own())),
            ("SQLite, GROUP BY", &mut || _ = black_box(theirs())),
        ],
    );
}
