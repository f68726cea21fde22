//! Injects a fault into every operation of a change and every read of a query.

use keyloom::{Fault, Faulty, Order, Store};
use keyloom_documents::json::{Collection, Condition};
use keyloom_tables::Schema;
use keyloom_testing::laws;
use keyloom_text::Analyzer;
use serde_json::json;

use super::fixture::stored;

#[test]
fn a_patch_happens_as_a_whole_or_not_at_all() {
    let store = keyloom_testing::memory();
    let open = |store: &keyloom_testing::AnyStore| {
        let schema = Schema::open(store, "shop").unwrap();
        Collection::<u32>::open(&schema, "orders")
            .unwrap()
            .with_unique(&schema, ["number"])
            .unwrap()
            .with_index(&schema, ["items[].sku"])
            .unwrap()
            .with_nested(&schema, "items[]", ["sku", "count"])
            .unwrap()
            .with_text(&schema, "text", [("note", Analyzer::simple())])
            .unwrap()
    };
    let orders = std::cell::RefCell::new(None);
    let prepare = |store: &keyloom_testing::AnyStore| {
        let opened = open(store);
        let order =
            json!({ "number": 1, "items": [{ "sku": "a", "count": 1 }], "note": "two words" });
        store.transact(|txn| opened.put(txn, &1, &order)).unwrap();
        *orders.borrow_mut() = Some(opened);
    };
    let patch = json!([
        { "op": "replace", "path": "/number", "value": 2 },
        { "op": "add", "path": "/items/-", "value": { "sku": "b", "count": 2 } },
        { "op": "replace", "path": "/note", "value": "other words" },
    ]);
    laws::faults_leave_nothing_half_done(
        &store,
        prepare,
        |txn| orders.borrow().as_ref().unwrap().patch(txn, &1, &patch).map(drop),
        |store| {
            let orders = orders.borrow();
            let faults = orders.as_ref().unwrap().check(&store.snapshot().unwrap()).unwrap();
            faults.iter().map(ToString::to_string).collect()
        },
    );
}

#[test]
fn a_read_that_fails_is_an_error_of_the_query() {
    let store = keyloom_testing::memory();
    let document = |n: u32| json!({ "city": n % 3, "total": n, "items": [{ "sku": n % 5 }] });
    let orders = stored(&store, &(0..40).map(document).collect::<Vec<_>>());
    let faulty = Faulty::new(store);
    let example = json!({ "city": 1, "items": [{ "sku": 2 }] });
    let condition = Condition::one_of("city", [1, 2]).unwrap();
    let mut failed = 0;
    for n in 0.. {
        faulty.clear_fault();
        let snapshot = faulty.snapshot().unwrap();
        faulty.fail_at(faulty.operations() + n, Fault::Error);
        let query = orders.find(["city", "total"]).unwrap().equal(1);
        let query = query.range(json!(9)..).order(Order::Descending);
        let found = query.page(&snapshot).map(|page| page.items.len()).and_then(|many| {
            let like =
                orders.find_like(&snapshot, &example)?.collect::<keyloom::Result<Vec<_>>>()?;
            let several = orders.find_where(&snapshot, &condition)?;
            let several = several.collect::<keyloom::Result<Vec<_>>>()?;
            Ok((many, like.len(), several.len()))
        });
        match found {
            Ok(found) => {
                assert_eq!(found, (10, 3, 26));
                break;
            }
            Err(error) => assert!(error.to_string().contains("made to fail"), "{error}"),
        }
        failed += 1;
    }
    assert!(failed > 8, "only {failed} reads can fail");
}
