//! The costs documented in the module.

use keyloom::{Cost, Metered, Result, Store, Writer};
use keyloom_patterns::{Schema, Table};

use crate::fixture::{Sale, Shop, by_serial, by_town, sale};
use keyloom_testing::laws::{counts, writing};

/// Checks the expected round trips of a remote store. A store with a server counts its own round
/// trips, and may have more.
fn waits(store: &impl Store, cost: Cost, modelled: u64) {
    if store.round_trips().is_none() {
        assert_eq!(cost.round_trips, modelled);
    }
}

fn one_by_one(txn: &mut impl Writer, table: &Table<u32, Sale>) -> Result<()> {
    (0..10).try_for_each(|id| table.put(txn, &id, &sale(id)))
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let store = &Metered::new(store.clone());
    Shop::open(store);
    let (shop, cost) = store.measure(Shop::open);
    assert_eq!(counts(cost), [0, 1, 1, 0], "nothing changed");
    waits(store.inner(), cost, 1);

    let schema = Schema::open(store, "bare").unwrap();
    let (bare, cost): (Table<u32, Sale>, _) = store.measure(|_| schema.table("sales").unwrap());
    assert_eq!(counts(cost), [3, 1, 1, 2], "a new table");
    waits(store.inner(), cost, 4);
    // The entry of the table is read, because another program may have declared derived data since.
    assert_eq!(writing(store, |txn| bare.put(txn, &1, &sale(1))), [1, 0, 1, 1]);
    let many = || (0..10).map(|id| (id, sale(id)));
    assert_eq!(writing(store, |txn| bare.put_many(txn, many())), [1, 0, 1, 10]);
    assert_eq!(writing(store, |txn| bare.delete(txn, &1).map(drop)), [2, 0, 2, 1]);
    // A transaction reads the entry once.
    assert_eq!(writing(store, |txn| one_by_one(txn, &bare)), [1, 0, 1, 10]);

    let schema = Schema::open(store, "indexed").unwrap();
    let indexed = schema.table::<u32, Sale>("sales").unwrap();
    let (by_town, cost) = store.measure(|_| schema.index(&indexed, "by_town", 1, by_town).unwrap());
    assert_eq!(counts(cost), [3, 2, 2, 2], "a new index over an empty table");
    waits(store.inner(), cost, 6);
    assert_eq!(writing(store, |txn| indexed.put(txn, &1, &sale(1))), [2, 0, 1, 2]);
    assert_eq!(writing(store, |txn| indexed.put(txn, &1, &sale(1))), [2, 0, 2, 1]);
    assert_eq!(writing(store, |txn| indexed.put_many(txn, many())), [11, 0, 2, 19]);
    assert_eq!(writing(store, |txn| one_by_one(txn, &indexed)), [11, 0, 11, 10]);
    let (_, cost) = store.measure(|store| {
        let snapshot = store.snapshot().unwrap();
        indexed.get(&snapshot, &1).unwrap().unwrap()
    });
    assert_eq!(counts(cost), [1, 0, 1, 0]);
    let (_, cost) = store.measure(|store| {
        let snapshot = store.snapshot().unwrap();
        indexed.range(&snapshot, ..).unwrap().count()
    });
    assert_eq!(counts(cost), [0, 1, 10, 0]);
    let (_, cost) = store.measure(|store| {
        let snapshot = store.snapshot().unwrap();
        let by_town = by_town.at(&snapshot).unwrap();
        by_town.range(&snapshot, "Bern").unwrap().count()
    });
    assert_eq!(counts(cost), [1, 1, 5, 0]);

    let by_serial = schema.unique_index(&indexed, "by_serial", 1, by_serial).unwrap();
    // The build deletes nothing and begins; then it visits ten records, seven of which have an
    // entry. One read of the definition shows whether there is work.
    let (_, cost) = store.measure(|store| by_serial.build(store).unwrap());
    assert_eq!(counts(cost), [1 + 2 + 7, 2, 3 + 10, 2 + 7]);
    // The definition, the entry, and the record.
    let snapshot = store.snapshot().unwrap();
    let serial = sale(1).serial.unwrap();
    let (_, cost) = store.measure(|_| by_serial.query().prefix(serial).first(&snapshot).unwrap());
    assert_eq!(counts(cost), [2, 1, 3, 0]);
    drop(snapshot);
    // All seven entries in one batch, then the definition, and the check for the token of a repair.
    let (_, cost) = store.measure(|store| by_serial.drop_data(store).unwrap());
    assert_eq!(counts(cost), [2, 1, 1 + 7, 7 + 1]);
    waits(store.inner(), cost, 4);
    drop(shop);
}

pub fn opening_an_unchanged_schema_costs_one_range(store: &(impl Store + Clone)) {
    let store = &Metered::new(store.clone());
    fn fifty_tables<'s, S: Store>(store: &'s Metered<S>) -> Schema<'s, Metered<S>> {
        let schema = Schema::open(store, "fifty tables").unwrap();
        for table in 0..50 {
            let table = schema.table::<u32, Sale>(&format!("table {table}")).unwrap();
            for index in 0..4 {
                schema.index(&table, &format!("index {index}"), 1, by_town).unwrap();
            }
        }
        schema
    }
    fifty_tables(store);
    let (schema, cost) = store.measure(|_| fifty_tables(store));
    assert_eq!(counts(cost), [0, 1, 50, 0]);
    // On a server, one round trip for the snapshot and one for the range.
    let is_remote = store.inner().round_trips().is_some();
    let of_a_range = if is_remote { 2 } else { 1 };
    assert_eq!(cost.round_trips, of_a_range);
    // A program applies its plan at each start.
    let (done, cost) = store.measure(|_| schema.apply().unwrap());
    assert!(done.finished);
    assert_eq!((counts(cost), cost.round_trips), ([0, 1, 50, 0], of_a_range));
}
