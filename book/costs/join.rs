//! Joins, without the cost of reading the left rows.

use keyloom::{Cost, Memory, Metered, Result, Store, Subspace};
use keyloom_patterns::Table as Records;
use keyloom_patterns::join::{BuildSide, Joins, KeySet, Lookup};

use super::Table;

/// Rows per batch of the lookup join.
const BATCH: u32 = 10;
/// Left rows with the same key.
const SAME: u32 = 3;
/// Right rows with the same key in the merge join and the nested-loop join.
const PAIRS: u32 = 2;

#[test]
fn the_table_of_joins_states_its_costs() {
    let mut table = Table::of("join.md");
    for n in [6, 75] {
        joins(&mut table, n);
    }
    table.end(&[]);
}

/// Compares each join of `n` left rows with a right side that has a record for each of their keys.
fn joins(table: &mut Table, n: u32) {
    let store = Metered::new(Memory::new());
    let users = Records::<u32, u32>::new(&Subspace::new("users"));
    let posts = Records::<(u32, u32), u32>::new(&Subspace::new("posts"));
    let keys = n / SAME;
    store
        .transact(|txn| {
            users.put_many(txn, (0..keys).map(|key| (key, key)))?;
            let all = (0..keys).flat_map(|key| (0..PAIRS).map(move |post| ((key, post), 7)));
            posts.put_many(txn, all)
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let left = || (0..n).map(|row| Ok(row / SAME));
    let batches = (0..n).step_by(BATCH as usize).map(|first| first..n.min(first + BATCH));
    let distinct: u32 = batches.map(|rows| (rows.end - 1) / SAME - rows.start / SAME + 1).sum();
    let sizes = [('n', n), ('b', BATCH), ('d', distinct), ('r', keys * PAIRS), ('m', n * PAIRS)];
    let sizes = sizes.map(|(letter, size)| (letter, u64::from(size)));
    let mut compare = |join: &str, rows: u32, (found, cost): (usize, Cost)| {
        assert_eq!(found, rows as usize, "{join}");
        table.compare(join, 0, &sizes, &cost);
    };

    let lookup = || Lookup::new(&users).batch(BATCH as usize);
    let of_batches = store.measure(|_| {
        left().lookup_join(&snapshot, lookup(), |row| *row).map(Result::unwrap).count()
    });
    compare("`lookup_join`", n, of_batches);
    let side = BuildSide::read(users.range(&snapshot, ..).unwrap(), 1_000).unwrap();
    let hashed = store.measure(|_| left().hash_join(&side, |row| *row).map(Result::unwrap).count());
    compare("`hash_join`", n, hashed);
    let merged = store.measure(|_| {
        let right = posts.range(&snapshot, ..).unwrap();
        left().merge_join(right, |row| *row, |((user, _), _)| *user).map(Result::unwrap).count()
    });
    compare("`merge_join`", n * PAIRS, merged);
    let nested = store.measure(|_| {
        let rows = left().nested_loop_join(|row| posts.range(&snapshot, *row));
        rows.map(Result::unwrap).count()
    });
    compare("`nested_loop_join`", n * PAIRS, nested);
    let ids = KeySet::read((0..keys).map(Ok), 1_000).unwrap();
    let kept = store.measure(|_| left().semi_join(&ids, |row| *row).map(Result::unwrap).count());
    compare("`semi_join`, `anti_join`", n, kept);
    let rest = store.measure(|_| left().anti_join(&ids, |row| *row).map(Result::unwrap).count());
    compare("`semi_join`, `anti_join`", 0, rest);
}
