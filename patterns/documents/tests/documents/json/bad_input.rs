//! Documents and queries that are refused.

use keyloom::{Order, Store, Writer};
use keyloom_documents::json::{Collection, JsonError, MAX_DEPTH, MAX_PATCH_OPERATIONS};
use keyloom_tables::{Schema, UnreadableEntry};
use keyloom_testing::laws;
use serde_json::{Value, json};

use super::fixture::stored;

fn nested(depth: usize) -> Value {
    (0..depth)
        .fold(json!(1), |inner, n| if n % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) })
}

/// A query ends before a document that does not decode. The next page continues after it.
pub fn unreadable_documents_are_skipped(store: &impl Store) {
    let orders = stored(store, &(0..9).map(|n| json!({ "city": n })).collect::<Vec<_>>());
    let broken = orders.table().space().pack(&4);
    store.transact(|txn| txn.put(&broken, b"{")).unwrap();
    let snapshot = store.snapshot().unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let query = orders.find(["city"]).unwrap().range(..).order(order);
        let first = query.page(&snapshot).unwrap();
        assert_eq!(first.items.len(), 4);
        let error = query.clone().after(first.next).page(&snapshot).unwrap_err();
        let next = &error.downcast_ref::<UnreadableEntry>().unwrap().next;
        let rest = query.after(next.clone()).page(&snapshot).unwrap();
        assert_eq!((rest.items.len(), rest.next), (4, None));
    }
    let all: Vec<bool> =
        orders.find_like(&snapshot, &json!({})).unwrap().map(|found| found.is_ok()).collect();
    assert_eq!(all.iter().filter(|is_ok| **is_ok).count(), 8);
    assert_eq!(all.len(), 9);

    // A page with limit 0 still contains one document.
    let query = orders.find(["city"]).unwrap().range(..).limit(0);
    assert_eq!(query.page(&snapshot).unwrap().items.len(), 1);
}

pub fn long_lists_have_an_entry_for_each_element(store: &impl Store) {
    laws::clear(store);
    let schema = Schema::open(store, "shop").unwrap();
    let all = Collection::<u32>::open(&schema, "all").unwrap();
    let all = all.with_index(&schema, ["a[]", "b"]).unwrap();
    let all = all.with_nested(&schema, "c[]", ["a[]", "b[]"]).unwrap();
    // More values than the maximum number of combinations, or as many as fit into a transaction of
    // the store.
    let most = store.limits().max_transaction_operations.unwrap_or(usize::MAX);
    let length = most.saturating_sub(96).min(10_100) as u32;
    let many: Vec<u32> = (0..length).collect();
    store.transact(|txn| all.put(txn, &1, &json!({ "a": many, "b": 1 }))).unwrap();
    // Each element has few combinations, but the document has many.
    let few: Vec<u32> = (0..50).collect();
    let elements = json!({ "c": vec![json!({ "a": few, "b": few }); 9] });
    let error = store.transact(|txn| all.put(txn, &2, &elements));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("store the elements as documents"), "{error}");
    let found = all.find(["a[]", "b"]).unwrap().equal(length - 1);
    assert_eq!(found.page(&store.snapshot().unwrap()).unwrap().items.len(), 1);
}

pub fn refused_documents_change_nothing(store: &impl Store) {
    laws::clear(store);
    let schema = Schema::open(store, "shop").unwrap();
    let all = Collection::<u32>::open(&schema, "all").unwrap();
    let all = all.with_index(&schema, ["a[]", "b[]"]).unwrap();
    let kept = json!({ "a": [1], "b": [2] });
    store.transact(|txn| all.insert(txn, &1, &kept)).unwrap();

    let before = laws::dump_all(store);
    let unchanged = |what: &str| assert_eq!(laws::dump_all(store), before, "{what}");

    let exists = store.transact(|txn| all.insert(txn, &1, &kept)).unwrap_err();
    assert!(matches!(exists.downcast_ref(), Some(JsonError::Exists { .. })), "{exists}");
    let none = store.transact(|txn| all.replace(txn, &2, &kept)).unwrap_err();
    assert!(matches!(none.downcast_ref(), Some(JsonError::NoDocument { .. })), "{none}");
    let none = store.transact(|txn| all.merge(txn, &2, &kept)).unwrap_err();
    assert!(matches!(none.downcast_ref(), Some(JsonError::NoDocument { .. })), "{none}");

    let deep = store.transact(|txn| all.put(txn, &2, &nested(MAX_DEPTH + 1))).unwrap_err();
    assert!(matches!(deep.downcast_ref(), Some(JsonError::TooDeep { .. })), "{deep}");
    let deep = store.transact(|txn| all.merge(txn, &1, &nested(MAX_DEPTH + 1))).unwrap_err();
    assert!(matches!(deep.downcast_ref(), Some(JsonError::TooDeep { .. })), "{deep}");
    // A patch that is not deep, but makes the document too deep.
    let inner = json!([{ "op": "add", "path": "/a/0", "value": nested(MAX_DEPTH - 3) },
        { "op": "move", "from": "/a", "path": "/b/0" }]);
    store.transact(|txn| all.put(txn, &1, &kept)).unwrap();
    let deep = store.transact(|txn| {
        all.patch(txn, &1, &inner)?;
        all.patch(txn, &1, &json!([{ "op": "copy", "from": "", "path": "/b/0" }]))
    });
    let deep = deep.unwrap_err();
    assert!(matches!(deep.downcast_ref(), Some(JsonError::TooDeep { .. })), "{deep}");

    let many: Vec<u32> = (0..101).collect();
    let many =
        store.transact(|txn| all.put(txn, &2, &json!({ "a": many, "b": many }))).unwrap_err();
    assert!(many.to_string().contains("10000 combinations of values at a[], b[]"), "{many}");
    assert!(matches!(many.downcast_ref(), Some(JsonError::TooManyEntries { .. })), "{many}");

    // A patch with one operation too many, and one that doubles a list again and again.
    let tests = vec![json!({ "op": "test", "path": "/a/0", "value": 1 }); MAX_PATCH_OPERATIONS + 1];
    let copy = |n| json!({ "op": "copy", "from": "", "path": format!("/c{n}") });
    let doubled = (0..25).map(copy).collect::<Vec<_>>();
    for (operations, what) in [(tests, "operations"), (doubled, "bytes of copies")] {
        let error = store.transact(|txn| all.patch(txn, &1, &json!(operations))).unwrap_err();
        let Some(JsonError::PatchTooLarge { what: found, .. }) = error.downcast_ref() else {
            panic!("{error}");
        };
        assert_eq!(*found, what, "{error}");
    }
    unchanged("after all refusals");

    // A document exactly at the depth limit, and a value in the key of an index.
    let deepest = json!({ "c": nested(MAX_DEPTH - 1) });
    store.transact(|txn| all.put(txn, &3, &deepest)).unwrap();
    assert_eq!(all.get(&store.snapshot().unwrap(), &3).unwrap(), Some(deepest));
    let deepest = json!({ "a": [nested(60)], "b": [1] });
    store.transact(|txn| all.put(txn, &4, &deepest)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let found = all.find(["a[]"]).unwrap().equal(nested(60)).page(&snapshot).unwrap();
    assert_eq!(found.items, [(4, deepest)]);

    let orders = stored(store, &[]);
    let error = orders.find(["total"]).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(JsonError::NoIndex { .. })), "{error}");
    assert!(error.to_string().contains("city, total"), "{error}");
    assert!(orders.find_nested("items[]", ["count"]).is_err());
    assert!(orders.find([]).is_err());
    let snapshot = store.snapshot().unwrap();
    let three =
        orders.find(["city"]).unwrap().equal(1).equal(2).equal(3).page(&snapshot).unwrap_err();
    assert!(matches!(three.downcast_ref(), Some(JsonError::TooManyConditions { .. })), "{three}");
    let deep = nested(MAX_DEPTH + 1);
    assert!(orders.find_like(&snapshot, &deep).is_err());
    assert_eq!(orders.index_for(&deep), None);
    let by_city = || orders.find(["city"]).unwrap();
    for query in [by_city().equal(deep.clone()), by_city().range(deep.clone()..)] {
        let error = query.page(&snapshot).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(JsonError::TooDeep { .. })), "{error}");
    }
    // No document contains a value that is too long for a key.
    let long = by_city().equal("x".repeat(2_000)).page(&snapshot);
    assert!(long.is_ok_and(|page| page.items.is_empty()));
}
