//! Records and covered fields of the points that a query finds.

use keyloom::{Memory, Metered, Result, Store, Subspace};
use keyloom_spatial::{GeoCell, LatLng, PointIndex};
use keyloom_tables::{Continuation, Page, Table};

use super::fixture::position;
use keyloom_testing::laws::{counts, writing};

type Shop = (f64, f64, String);

fn shops() -> (Table<u32, Shop>, PointIndex<u32, Shop>) {
    let index = PointIndex::covering(&Subspace::new("by_place"), |_id, shop: &Shop| {
        Ok(Some((LatLng::new(shop.0, shop.1)?, (shop.2.clone(), shop.2.len() as u64))))
    });
    (Table::new(&Subspace::new("shops")).with(&index), index)
}

fn shop(id: u32) -> Shop {
    (f64::from(id % 20), f64::from(id / 20), format!("shop {id}"))
}

#[test]
fn covered_fields_are_those_of_the_record() {
    let store = Metered::new(Memory::new());
    let (table, index) = shops();
    store.transact(|txn| table.put_many(txn, (0..200).map(|id| (id, shop(id))))).unwrap();
    // Another name at the same place writes the record and its entry.
    let renamed = (3.0, 0.0, "tea".to_owned());
    assert_eq!(writing(&store, |txn| table.put(txn, &3, &renamed)), [1, 0, 1, 2]);
    let snapshot = store.snapshot().unwrap();
    let before = store.cost();
    let mut found = 0;
    for point in index.within(GeoCell::WORLD).points(&snapshot).unwrap() {
        let point = point.unwrap();
        let id = point.record_key().unwrap();
        let name = if id == 3 { "tea".to_owned() } else { shop(id).2 };
        let (covered, length): (&str, u64) = point.covered().unwrap();
        assert_eq!((covered, length), (name.as_str(), name.len() as u64));
        found += 1;
    }
    assert_eq!((found, (store.cost() - before).gets), (200, 0));
}

fn all<T>(mut page: impl FnMut(Option<&Continuation>) -> Result<Page<T>>) -> Vec<T> {
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = page(after.as_ref()).unwrap();
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            return items;
        }
    }
}

#[test]
fn pages_of_records_are_those_of_the_table() {
    let store = Metered::new(Memory::new());
    let (table, index) = shops();
    store.transact(|txn| table.put_many(txn, (0..200).map(|id| (id, shop(id))))).unwrap();
    // A record is deleted without its derived data, so the index is damaged.
    store.transact(|txn| keyloom::Writer::delete(txn, &table.space().pack(&7_u32))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let expected = |id: u32| (id != 7).then(|| shop(id));
    let query = || index.within(GeoCell::WORLD);
    let found = all(|after| query().records(&snapshot, &table, 30, after));
    let mut ids = Vec::new();
    for (point, record) in &found {
        let id = point.record_key().unwrap();
        assert_eq!(*record, expected(id));
        ids.push(id);
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..200));

    let from = position((5.0, 5.0));
    let near = all(|after| query().records_by_distance(&snapshot, from, &table, 30, after));
    assert!(near.is_sorted_by(|a, b| a.0.distance() <= b.0.distance()));
    for (near, record) in &near {
        assert_eq!(*record, expected(near.record_key().unwrap()));
    }
    assert_eq!(near.len(), 200);

    // The records of a page cost one get each, in one round trip.
    let cost = |work: &dyn Fn()| store.measure(|_| work()).1;
    let plain = cost(&|| drop(query().page(&snapshot, 30, None).unwrap()));
    let whole = cost(&|| drop(query().records(&snapshot, &table, 30, None).unwrap()));
    assert_eq!(whole.gets, 30);
    assert_eq!(whole.round_trips, plain.round_trips + 1);
    assert_eq!(counts(plain)[0], 0);
}

#[test]
fn records_of_another_table_are_refused() {
    let (table, index) = shops();
    let other = Table::<u32, Shop>::new(&Subspace::new("others"));
    let store = Memory::new();
    store
        .transact(|txn| {
            table.put(txn, &1, &shop(1))?;
            other.put(txn, &1, &shop(2))
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let query = || index.within(GeoCell::WORLD);
    let from = position((0.0, 0.0));
    query().records(&snapshot, &other, 9, None).unwrap_err();
    query().records_by_distance(&snapshot, from, &other, 9, None).unwrap_err();
    assert_eq!(query().records(&snapshot, &table, 9, None).unwrap().items.len(), 1);
}
