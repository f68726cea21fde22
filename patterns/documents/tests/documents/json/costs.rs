//! The costs of queries and changes.

use keyloom::{Metered, Store};
use keyloom_testing::laws;
use serde_json::json;

use super::fixture::stored;

#[test]
fn costs_are_those_of_the_table() {
    let store = Metered::new(keyloom_testing::memory());
    let document =
        |n: u32| json!({ "city": n % 100, "total": n, "items": [{ "sku": n, "count": 1 }] });
    let orders = stored(&store, &(0..2_000).map(document).collect::<Vec<_>>());

    // The state of the index, 20 entries in one range read, and 20 documents.
    let query = orders.find(["city"]).unwrap().equal(7);
    let (page, cost) = store.measure(|store| query.page(&store.snapshot().unwrap()).unwrap());
    assert_eq!(page.items.len(), 20);
    let [gets, ranges, _, written] = laws::counts(cost);
    assert_eq!((gets, ranges, written), (21, 1, 0));

    // One path changes: the document is written, one entry is removed and one is put.
    let merge = json!({ "items": [{ "sku": 3, "count": 1 }] });
    // The document is read once, and the entry of the table.
    let [gets, ranges, read, unindexed] =
        laws::writing(&store, |txn| orders.merge(txn, &5, &json!({ "note": 1 })).map(drop));
    assert_eq!([gets, ranges, read, unindexed], [2, 0, 2, 1]);
    let new = json!({ "city": 200, "total": 1 });
    let [gets, ..] = laws::writing(&store, |txn| orders.insert(txn, &9_999, &new));
    assert_eq!(gets, 2);
    let [.., total] =
        laws::writing(&store, |txn| orders.merge(txn, &5, &json!({ "total": -1 })).map(drop));
    assert_eq!(total, 3);
    let [.., sku] = laws::writing(&store, |txn| orders.merge(txn, &5, &merge).map(drop));
    assert_eq!(sku, 5);
    let [.., same] = laws::writing(&store, |txn| orders.merge(txn, &5, &merge).map(drop));
    assert_eq!(same, 1);

    // A query by example reads only the documents that the index returns; without an index, all
    // documents.
    let like = |example: serde_json::Value| {
        let count = |store: &Metered<keyloom_testing::AnyStore>| {
            let snapshot = store.snapshot().unwrap();
            orders.find_like(&snapshot, &example).unwrap().count()
        };
        let (many, cost) = store.measure(count);
        (many, laws::counts(cost)[2])
    };
    let (many, read) = like(json!({ "city": 7, "total": 107 }));
    assert!(many == 1 && read < 10, "{many} documents, {read} keys");
    let (many, read) = like(json!({ "total": 107 }));
    assert!(many == 1 && read >= 2_000, "{many} documents, {read} keys");
}

#[test]
fn a_document_with_many_entries_is_read_once() {
    let store = Metered::new(keyloom_testing::memory());
    let items: Vec<_> = (0..100).map(|n| json!({ "sku": n })).collect();
    let orders = stored(&store, &vec![json!({ "items": items }); 10]);
    // 1,000 entries in batches that start at 100; each batch reads the state of the index.
    let query = orders.find(["items[].sku"]).unwrap().range(..);
    let (page, cost) = store.measure(|store| query.page(&store.snapshot().unwrap()).unwrap());
    assert_eq!((page.items.len(), page.next), (10, None));
    let [gets, ranges, ..] = laws::counts(cost);
    assert!((1..=12).contains(&ranges), "{ranges} ranges");
    assert_eq!(gets, 10 + ranges);
}
