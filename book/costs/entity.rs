//! Entities in parts, and wide columns.

use std::collections::BTreeMap;

use keyloom::{Cost, Memory, Metered, Result, Store, Subspace};
use keyloom_patterns::Aggregates;
use keyloom_patterns::entity::ListPlace;
use keyloom_patterns::entity::wide_column::{NOW, WideColumns};
use serde::{Deserialize, Serialize};

use super::Table;

type Counted = Metered<Memory>;
type Txn<'t> = <Counted as Store>::Transaction<'t>;

/// An entity of 4 + k parts: itself, a name, a list and a map of k fields.
#[derive(Clone, Serialize, Deserialize)]
struct Entity {
    name: String,
    list: Vec<u32>,
    map: BTreeMap<String, u32>,
}

impl Entity {
    fn of(fields: u32) -> Self {
        let map = (0..fields).map(|n| (format!("field {n}"), n)).collect();
        Self { name: "a".into(), list: vec![1], map }
    }
}

struct Filled {
    store: Counted,
    all: Aggregates<u32>,
}

impl Filled {
    fn with(fields: u32) -> Self {
        let (store, all) = (Counted::new(Memory::new()), Aggregates::new(&Subspace::new("e")));
        store.transact(|txn| all.put(txn, &1, &Entity::of(fields))).unwrap();
        Self { store, all }
    }

    fn written<T>(
        &self,
        mut write: impl FnMut(&Aggregates<u32>, &mut Txn<'_>) -> Result<T>,
    ) -> Cost {
        let (done, cost) = self.store.measure(|store| store.transact(|txn| write(&self.all, txn)));
        done.unwrap();
        cost
    }
}

#[test]
fn the_table_of_entities_states_its_costs() {
    let mut table = Table::of("entity.md");
    for fields in [2, 30] {
        reads(&mut table, fields);
        writes(&mut table, fields);
    }
    wide_columns(&mut table);
    table.end(&[]);
}

fn reads(table: &mut Table, fields: u32) {
    let Filled { store, all } = Filled::with(fields);
    let snapshot = store.snapshot().unwrap();
    // The list has one item more than itself.
    let parts = u64::from(fields) + 5;
    let (found, cost) = store.measure(|_| all.get::<Entity>(&snapshot, &1));
    assert_eq!(found.unwrap().unwrap().map.len(), fields as usize);
    table.compare("`get`", 0, &[('n', parts)], &cost);
    let (_, cost) = store.measure(|_| all.field::<String>(&snapshot, &1, "name").unwrap());
    table.compare("`field`, a scalar", 0, &[], &cost);
    let (map, cost) =
        store.measure(|_| all.field::<BTreeMap<String, u32>>(&snapshot, &1, "map").unwrap());
    assert_eq!(map.unwrap().len(), fields as usize);
    // The map itself is a part, too.
    table.compare("`field`, a list or a map", 0, &[('n', u64::from(fields) + 1)], &cost);
}

fn writes(table: &mut Table, fields: u32) {
    let parts = [('n', u64::from(fields) + 5)];
    // The difference is one field.
    let mut changed = Entity::of(fields);
    changed.name = "b".into();
    let put = Filled::with(fields).written(|all, txn| all.put(txn, &1, &changed));
    assert_eq!(put.keys_written, 1);
    table.compare("`put`, `update`", 0, &parts, &put);
    let update = Filled::with(fields).written(|all, txn| {
        all.update(txn, &1, |entity: &mut Entity| {
            entity.name = "b".into();
            Ok(())
        })
    });
    assert_eq!(update.keys_written, 1);
    table.compare("`put`, `update`", 0, &parts, &update);

    let set = Filled::with(fields).written(|all, txn| all.set(txn, &1, "name", "b"));
    assert_eq!(set.keys_written, 1);
    table.compare("`set`", 0, &[('d', 1), ('n', 1)], &set);
    let set = Filled::with(fields).written(|all, txn| all.set(txn, &1, ("map", "field 0"), &9));
    table.compare("`set`", 0, &[('d', 2), ('n', 1)], &set);

    // An item of three parts: itself and two fields.
    let item = BTreeMap::from([("a", 1), ("b", 2)]);
    let push = Filled::with(fields).written(|all, txn| all.push(txn, &1, "list", &item));
    table.compare("`push`, `insert`", 0, &[('d', 1), ('n', 3)], &push);
    let insert = Filled::with(fields)
        .written(|all, txn| all.insert(txn, &1, "list", ListPlace::First, &item));
    table.compare("`push`, `insert`", 0, &[('d', 1), ('n', 3)], &insert);
    let remove = Filled::with(fields).written(|all, txn| all.remove(txn, &1, "map"));
    table.compare("`remove`, `delete`", 0, &[], &remove);
    let delete = Filled::with(fields).written(|all, txn| all.delete(txn, &1));
    table.compare("`remove`, `delete`", 0, &[], &delete);
}

fn wide_columns(table: &mut Table) {
    let (store, columns) = (Counted::new(Memory::new()), WideColumns::new(&Subspace::new("w")));
    let write = |write: &dyn Fn(&mut Txn<'_>) -> Result<()>| {
        let (done, cost) = store.measure(|store| store.transact(|txn| write(txn)));
        done.unwrap();
        cost
    };
    for time in 1..=10 {
        let put = write(&|txn| columns.put(txn, &1_u32, "family", "column", time, b"value"));
        table.compare("wide columns: `put`, `delete`", 0, &[], &put);
    }
    let delete = write(&|txn| columns.delete(txn, &1, "family", "other", 1));
    table.compare("wide columns: `put`, `delete`", 0, &[], &delete);
    let snapshot = store.snapshot().unwrap();
    for as_of in [3, 10, NOW] {
        let (found, cost) =
            store.measure(|_| columns.get(&snapshot, &1, "family", "column", as_of).unwrap());
        assert!(found.is_some());
        table.compare("wide columns: `get` as of any time", 0, &[], &cost);
    }
    // All versions of both columns.
    let (row, cost) = store.measure(|_| columns.row(&snapshot, &1, NOW).unwrap());
    assert_eq!((row.len(), cost.keys_read), (1, 11));
    table.compare("wide columns: `row`, `columns`", 0, &[], &cost);
    let (_, cost) = store.measure(|_| columns.columns(&snapshot, &1, "family", .., NOW).unwrap());
    assert_eq!(cost.keys_read, 11);
    table.compare("wide columns: `row`, `columns`", 0, &[], &cost);
}
