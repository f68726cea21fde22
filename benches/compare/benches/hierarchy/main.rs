//! Hierarchies, compared with SQLite: the 135,233 cities of the world below their regions and
//! countries.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench hierarchy
//! ```
//!
//! Both are on disk and do not sync: LMDB as `Durability::MayLoseStore`; SQLite with a write-ahead
//! log, `synchronous = OFF`, prepared statements, 1 GB of cache and a memory-mapped file. A query
//! reads the id, the depth and the name of each node. keyloom's walks are in tree order. SQLite
//! runs each query without an order, which is faster for it, and in tree order. The ratios are
//! keyloom's time divided by SQLite's. After the cities come small subtrees: posts with 50 comments
//! each.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod cities;
mod small;
mod sqlite;

use std::hint::black_box;
use std::path::Path;

use cities::Cities;
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Reader, Store, Subspace};
use keyloom_compare::{Ratio, compare};
use keyloom_patterns::trees::{
    AdjacencyList, InsertAt, MaterializedPath, NestedSets, NodeId, Tree,
};
use rusqlite::{Connection, Statement};

/// Each model has its own store.
struct Model<T> {
    name: &'static str,
    tree: T,
    store: Lmdb,
    /// Number of gets that return the region and the country of a city, from the model's cost
    /// table.
    gets: usize,
}

impl<T: Tree<Value = u64>> Model<T> {
    fn open(
        (name, gets): (&'static str, usize),
        directory: &Path,
        make: impl Fn(&Subspace) -> T,
        cities: &Cities,
    ) -> Self {
        let options = Lmdb::options().durability(Durability::MayLoseStore);
        let path = directory.join(name.replace(' ', "_"));
        std::fs::create_dir(&path).unwrap();
        let store = options.open(&path).unwrap();
        let tree = make(&Subspace::new("cities"));
        let started = std::time::Instant::now();
        store.transact(|txn| tree.import(txn, None, &cities.forest)).unwrap();
        println!("    {name:<18} loaded in {:.2} s", started.elapsed().as_secs_f64());
        Self { name, tree, store, gets }
    }

    fn descendants(&self, reader: &impl Reader, node: NodeId) -> (usize, u64) {
        let mut found = (0, 0_u64);
        for visit in self.tree.descendants(reader, node, ..).unwrap() {
            let visit = visit.unwrap();
            let name = visit.node.name().unwrap();
            let each = visit.node.id() ^ u64::from(visit.depth) ^ name.len() as u64;
            found = (found.0 + 1, found.1.wrapping_add(each));
        }
        found
    }

    fn ancestors(&self, reader: &impl Reader, node: NodeId) -> (usize, u64) {
        let mut found = (0, 0_u64);
        for above in self.tree.ancestors(reader, node).unwrap() {
            let each = above.id() ^ above.name().unwrap().len() as u64;
            found = (found.0 + 1, found.1.wrapping_add(each));
        }
        found
    }

    /// Runs as many gets as the ancestors of a node cost, on the keys of `node` and of other nodes
    /// above cities: a lower bound, without decoding.
    fn gets_alone(&self, reader: &impl Reader, node: NodeId, above: &[NodeId]) {
        let space = self.tree.space();
        for id in above.iter().cycle().take(self.gets - 1).chain([&node]) {
            black_box(reader.get(&space.pack(&("node", *id))).unwrap());
        }
    }
}

fn main() {
    println!("ratios are keyloom on LMDB / SQLite: below 1 keyloom is faster");
    println!("LMDB MayLoseStore, SQLite WAL with synchronous = OFF");
    let cities = Cities::read();
    println!("{} cities, {} countries", cities.cities.len(), cities.forest.len());
    let directory = tempfile::tempdir().unwrap();
    let sqlite = sqlite::open(&directory.path().join("sqlite"), &cities.forest);
    let path = directory.path();
    let adjacency = Model::open(("adjacency list", 3), path, AdjacencyList::new, &cities);
    let paths = Model::open(("materialized path", 4), path, MaterializedPath::new, &cities);
    let sets = Model::open(("nested sets", 6), path, NestedSets::new, &cities);
    let moved = moves(&adjacency, &sqlite, &cities);
    let ratios = [
        reads_and_inserts(&adjacency, &sqlite, &cities),
        reads_and_inserts(&paths, &sqlite, &cities),
        reads_and_inserts(&sets, &sqlite, &cities),
    ];
    small::compare_all(path);
    println!("\nhow many times as fast as SQLite");
    for (name, [descendants, ancestors, insert]) in
        ["adjacency list", "materialized path", "nested sets"].iter().zip(ratios)
    {
        println!(
            "{name:<18} descendants {descendants:.1} (5), ancestors {ancestors:.1} (3), insert {insert:.2} (1)"
        );
    }
    println!(
        "adjacency list     move {:.2} (1), beside a column of paths {:.0}, ten in a transaction {:.0} (100)",
        moved[0], moved[1], moved[2]
    );
}

/// How many times as fast the first contender was.
fn times(ratios: &[Ratio]) -> f64 {
    1.0 / ratios[0].median
}

fn reads_and_inserts<T: Tree<Value = u64>>(
    model: &Model<T>,
    sqlite: &Connection,
    cities: &Cities,
) -> [f64; 3] {
    println!("\n{}", model.name);
    let snapshot = model.store.snapshot().unwrap();
    let countries: Vec<NodeId> = cities.forest.iter().map(|country| country.id).collect();
    let mut in_order = sqlite.prepare(sqlite::DESCENDANTS_IN_ORDER).unwrap();
    let mut query = sqlite.prepare(sqlite::DESCENDANTS).unwrap();
    let nodes: usize = countries.iter().map(|id| model.descendants(&snapshot, *id).0).sum();
    for country in &countries {
        let own = model.descendants(&snapshot, *country);
        assert_eq!(own, sqlite::descendants(&mut query, *country));
    }
    // All countries, one after the other: every node of the tree.
    let mut own = || countries.iter().for_each(|id| _ = model.descendants(&snapshot, *id));
    let mut of_sqlite = || countries.iter().for_each(|id| _ = sqlite::descendants(&mut query, *id));
    let mut of_sqlite_in_order =
        || countries.iter().for_each(|id| _ = sqlite::descendants(&mut in_order, *id));
    let contenders: &mut [(&str, &mut dyn FnMut())] = &mut [
        (model.name, &mut own),
        ("SQLite", &mut of_sqlite),
        ("SQLite, in tree order", &mut of_sqlite_in_order),
    ];
    let descendants = compare("descendants of a country, a node", nodes, 11, contenders);

    const LEAVES: usize = 50;
    let mut query = sqlite.prepare(sqlite::ANCESTORS).unwrap();
    let some = |n: &mut usize| {
        *n = (*n + 7_919) % cities.cities.len();
        cities.cities[*n]
    };
    (0..1_000).fold(0, |mut n, _| {
        let city = some(&mut n);
        assert_eq!(model.ancestors(&snapshot, city), sqlite::ancestors(&mut query, city));
        n
    });
    let (mut one, mut other) = (0, 0);
    let mut own = || (0..LEAVES).for_each(|_| _ = model.ancestors(&snapshot, some(&mut one)));
    let mut of_sqlite =
        || (0..LEAVES).for_each(|_| _ = sqlite::ancestors(&mut query, some(&mut other)));
    let mut third = 0;
    let mut gets_alone = || {
        (0..LEAVES).for_each(|n| {
            model.gets_alone(&snapshot, some(&mut third), &countries[n % countries.len()..]);
        })
    };
    let contenders: &mut [(&str, &mut dyn FnMut())] = &mut [
        (model.name, &mut own),
        ("SQLite", &mut of_sqlite),
        ("its gets alone", &mut gets_alone),
    ];
    let ancestors = compare("ancestors of a city", LEAVES, 300, contenders);
    drop(snapshot);
    [times(&descendants), times(&ancestors), inserts(model, sqlite, cities)]
}

/// Appends new cities after the others of their region, 100 per transaction, and one per
/// transaction.
fn inserts<T: Tree<Value = u64>>(model: &Model<T>, sqlite: &Connection, cities: &Cities) -> f64 {
    let name = "a city of some name";
    let regions = &cities.regions;
    // Both models in SQLite get the same nodes as ours, and these nodes are deleted after the
    // measurement.
    let first: NodeId = 1 << 33;
    let (mut own_next, mut their_next) = (first, first);
    let region = |id: NodeId| regions[id as usize % regions.len()].0;
    let mut slowest = f64::INFINITY;
    for batch in [100, 1] {
        let mut own = || {
            model
                .store
                .transact(|txn| {
                    (own_next..own_next + batch).try_for_each(|id| {
                        model.tree.insert(txn, id, name, &id, InsertAt::last(region(id)))
                    })
                })
                .unwrap();
            own_next += batch;
        };
        let mut insert = sqlite.prepare(sqlite::INSERT).unwrap();
        let mut of_sqlite = || {
            let transaction = sqlite.unchecked_transaction().unwrap();
            for id in their_next..their_next + batch {
                insert.execute((id as i64, region(id) as i64, name, id as i64)).unwrap();
            }
            transaction.commit().unwrap();
            their_next += batch;
        };
        let contenders: &mut [(&str, &mut dyn FnMut())] =
            &mut [(model.name, &mut own), ("SQLite", &mut of_sqlite)];
        let what = format!("insert, {batch} in a transaction");
        let rounds = if batch == 1 { 1_000 } else { 100 };
        slowest = slowest.min(times(&compare(&what, batch as usize, rounds, contenders)));
    }
    assert_eq!(own_next, their_next);
    sqlite
        .execute("DELETE FROM nodes WHERE id BETWEEN ?1 AND ?2", [first as i64, own_next as i64])
        .unwrap();
    for id in first..own_next {
        model.store.transact(|txn| model.tree.delete_subtree(txn, id)).unwrap();
    }
    slowest
}

/// Moves regions to another country and back. This changes one row of the adjacency table, or a row
/// for each node below in the table of paths.
fn moves<T: Tree<Value = u64>>(model: &Model<T>, sqlite: &Connection, cities: &Cities) -> [f64; 3] {
    println!("\nmoves of regions of 900 to 1,300 cities, one in a transaction");
    let away = cities.forest[0].id;
    let target = |n: &mut usize| {
        *n += 1;
        let (region, home) = cities.regions[*n / 2 % cities.regions.len()];
        if n.is_multiple_of(2) { (region, home, away) } else { (region, away, home) }
    };
    let step = |n: &mut usize| {
        let (region, from, to) = target(n);
        (region, from, to)
    };
    let (mut own_n, mut row_n, mut again_n, mut path_n) = (1, 1, 1, 1);
    let own_move = |n: &mut usize| {
        let (region, _, to) = step(n);
        model.store.transact(|txn| model.tree.move_to(txn, region, InsertAt::last(to))).unwrap();
    };
    let mut own = || own_move(&mut own_n);
    let mut update = sqlite.prepare(sqlite::MOVE).unwrap();
    let mut of_rows = || {
        let (region, _, to) = step(&mut row_n);
        assert_eq!(update.execute([region as i64, to as i64]).unwrap(), 1);
    };
    let contenders: &mut [(&str, &mut dyn FnMut())] =
        &mut [(model.name, &mut own), ("SQLite, the parent", &mut of_rows)];
    let rows = compare("move", 1, 1_000, contenders);
    // Move the regions back, so that both contenders begin with the same tree.
    back_home(own_n, own_move);
    if row_n % 2 == 0 {
        let (region, _, to) = step(&mut row_n);
        update.execute([region as i64, to as i64]).unwrap();
    }
    // Ten moves in a row per contender, so that neither starts with the CPU caches that the other
    // has filled.
    let mut own = || (0..10).for_each(|_| own_move(&mut again_n));
    let mut update: Statement<'_> = sqlite.prepare(sqlite::MOVE_PATH).unwrap();
    let move_path = |update: &mut Statement<'_>, n: &mut usize| {
        let (region, from, to) = step(n);
        let moved = update.execute((format!("{from}/{region}"), format!("{to}/{region}"))).unwrap();
        assert!((901..=1_300).contains(&moved), "{moved} paths");
    };
    let mut of_paths = || (0..10).for_each(|_| move_path(&mut update, &mut path_n));
    let contenders: &mut [(&str, &mut dyn FnMut())] =
        &mut [(model.name, &mut own), ("SQLite, a path each", &mut of_paths)];
    let paths = compare("move, beside a column of paths", 10, 20, contenders);
    // Also ten moves in one transaction, because the commit is most of the cost of a move that
    // writes five keys.
    let mut own = || {
        let moves = std::array::from_fn::<_, 10, _>(|_| step(&mut again_n));
        let all = model.store.transact(|txn| {
            let mut moves = moves.iter();
            moves.try_for_each(|(region, _, to)| {
                model.tree.move_to(txn, *region, InsertAt::last(*to))
            })
        });
        all.unwrap();
    };
    let mut of_paths = || {
        let transaction = sqlite.unchecked_transaction().unwrap();
        (0..10).for_each(|_| move_path(&mut update, &mut path_n));
        transaction.commit().unwrap();
    };
    let contenders: &mut [(&str, &mut dyn FnMut())] =
        &mut [(model.name, &mut own), ("SQLite, a path each", &mut of_paths)];
    let together = compare("move, ten in a transaction", 10, 20, contenders);
    back_home(again_n, own_move);
    [times(&rows), times(&paths), times(&together)]
}

/// After an odd number of steps one region is away; one more step moves it back.
fn back_home(mut n: usize, step: impl Fn(&mut usize)) {
    if n.is_multiple_of(2) {
        step(&mut n);
    }
}
