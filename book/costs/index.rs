//! A table with two indexes.

use keyloom::{Cost, Memory, Metered, Store};

use super::Table;
use crate::geo::{City, Geo};

/// A transaction on a store with cities of the country `XX`, which has none before.
fn written(
    before: usize,
    write: impl Fn(&Geo, &mut <Metered<Memory> as Store>::Transaction<'_>) -> keyloom::Result<()>,
) -> Cost {
    let (store, geo) = filled(before);
    let (done, cost) = store.measure(|store| store.transact(|txn| write(&geo, txn)));
    done.unwrap();
    cost
}

fn city(n: u32, population: u64) -> (u32, City) {
    (n, City::new(&format!("city {n}"), "XX", "1", population))
}

fn filled(many: usize) -> (Metered<Memory>, Geo) {
    let store = Metered::new(Memory::new());
    let geo = Geo::open(&store).unwrap();
    let all = (0..).take(many).map(|n| city(n, 100 + u64::from(n)));
    store.transact(|txn| geo.cities.put_many(txn, all.clone())).unwrap();
    // Another city, so that no page ends with the index.
    store.transact(|txn| geo.cities.put(txn, &999, &city(999, 1).1)).unwrap();
    (store, geo)
}

#[test]
fn the_table_of_an_index_states_its_costs() {
    let mut table = Table::of("composite_key_index.md");
    let put =
        |population| written(1, move |geo, txn| geo.cities.put(txn, &0, &city(0, population).1));
    let new = written(0, |geo, txn| geo.cities.put(txn, &0, &city(0, 1).1));
    table.compare("put of a new record, two indexes", 0, &[], &new);
    table.compare("put again, nothing changed", 0, &[], &put(100));
    table.compare("put with another population", 0, &[], &put(7));
    let delete = written(1, |geo, txn| geo.cities.delete(txn, &0).map(drop));
    table.compare("delete", 0, &[], &delete);
    for n in [3_u32, 20] {
        let sizes = [('n', u64::from(n))];
        let many = written(0, move |geo, txn| {
            geo.cities.put_many(txn, (0..n).map(|id| city(id, id.into()))).map(drop)
        });
        table.compare("put_many of n new records, two indexes", 0, &sizes, &many);
        let many = written(n as usize, move |geo, txn| {
            geo.cities.delete_many(txn, &(0..n).collect::<Vec<_>>()).map(drop)
        });
        table.compare("delete_many of n", 0, &sizes, &many);
        reads(&mut table, n);
    }
    table.end(&[]);
}

fn reads(table: &mut Table, n: u32) {
    let (store, geo) = filled(n as usize);
    let (snapshot, sizes) = (store.snapshot().unwrap(), [('n', u64::from(n))]);
    let (by_size, cost) = store.measure(|_| geo.by_size.at(&snapshot).unwrap());
    table.compare("`at`", 0, &[], &cost);
    let (read, cost) = store.measure(|_| {
        by_size.range(&snapshot, "XX").unwrap().take(n as usize).filter(Result::is_ok).count()
    });
    assert_eq!(read, n as usize);
    table.compare("read n entries of an index, after `at`", 0, &sizes, &cost);
    let query = geo.by_size.query().prefix("XX").limit(n as usize);
    let (page, cost) = store.measure(|_| query.page(&snapshot).unwrap());
    assert!(page.next.is_some() && page.items.len() == n as usize);
    table.compare("a page of n entries by `query`", 0, &sizes, &cost);
    let (records, cost) = store.measure(|_| query.records(&snapshot).unwrap());
    assert_eq!(records.items.len(), n as usize);
    table.compare("`records`: a page of n entries with their records", 0, &sizes, &cost);
    let ids: Vec<u32> = records.into_iter().map(|(id, _)| id).collect();
    let (_, cost) = store.measure(|_| geo.cities.get_many(&snapshot, &ids).unwrap());
    table.compare("n records by key, `get_many`", 0, &sizes, &cost);
}
