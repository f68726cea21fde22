//! Conditions, against loops over all documents.

use std::ops::{Bound, ControlFlow};

use keyloom::{Fault, Faulty, Metered, Reader, Store};
use keyloom_documents::json::{Collection, Condition};
use keyloom_tables::{Progress, RepairOptions, RepairPosition};
use keyloom_testing::laws;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{Orders, a_bound, a_value, compare, documents, is_within, open, stored};

/// A condition in the test's representation.
#[derive(Clone, Debug)]
enum Asked {
    OneOf(usize, Vec<Value>),
    Within(usize, (Bound<Value>, Bound<Value>)),
    Missing(usize),
    Present(usize),
    And(Box<Asked>, Box<Asked>),
    Or(Box<Asked>, Box<Asked>),
    Not(Box<Asked>),
    /// One item satisfies the condition.
    Item(Box<Asked>),
}

/// Paths with an index (as its first or second path), a path without one, and two of an item.
const PATHS: [&str; 8] = [
    "city",
    "total",
    "items[].sku",
    "items[].count",
    "items[0].count",
    "nowhere.a",
    "sku",
    "count",
];

fn items(document: &Value) -> Vec<Value> {
    document.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The values at a path, computed from the definition.
fn values(path: usize, document: &Value) -> Vec<Value> {
    let items = items(document);
    let of_items = |items: &[Value], name: &str| {
        items.iter().filter_map(|item| item.get(name).cloned()).collect::<Vec<_>>()
    };
    match path {
        0 | 1 | 6 | 7 => document.get(PATHS[path]).cloned().into_iter().collect(),
        2 => of_items(&items, "sku"),
        3 => of_items(&items, "count"),
        4 => of_items(items.get(..1).unwrap_or_default(), "count"),
        _ => Vec::new(),
    }
}

impl Asked {
    fn holds(&self, document: &Value) -> bool {
        match self {
            Self::OneOf(path, all) => values(*path, document)
                .iter()
                .any(|value| all.iter().any(|one| compare(one, value).is_eq())),
            Self::Within(path, range) => {
                values(*path, document).iter().any(|value| is_within(value, range))
            }
            Self::Missing(path) => values(*path, document).is_empty(),
            Self::Present(path) => !values(*path, document).is_empty(),
            Self::And(a, b) => a.holds(document) && b.holds(document),
            Self::Or(a, b) => a.holds(document) || b.holds(document),
            Self::Not(one) => !one.holds(document),
            Self::Item(one) => items(document).iter().any(|item| one.holds(item)),
        }
    }

    fn condition(&self) -> Condition {
        match self {
            Self::OneOf(path, all) => Condition::one_of(PATHS[*path], all.clone()),
            Self::Within(path, range) => Condition::range(PATHS[*path], range.clone()),
            Self::Missing(path) => Condition::missing(PATHS[*path]),
            Self::Present(path) => Condition::present(PATHS[*path]),
            Self::And(a, b) => Ok(a.condition() & b.condition()),
            Self::Or(a, b) => Ok(a.condition() | b.condition()),
            Self::Not(one) => Ok(!one.condition()),
            Self::Item(one) => Condition::element("items[]", one.condition()),
        }
        .unwrap()
    }
}

fn asked_at(path: usize) -> impl Strategy<Value = Asked> {
    prop_oneof![
        3 => prop::collection::vec(a_value(), 0..4).prop_map(move |all| Asked::OneOf(path, all)),
        2 => (a_bound(), a_bound()).prop_map(move |range| Asked::Within(path, range)),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    let path = 0..6_usize;
    let leaf = prop_oneof![
        2 => (asked_at(6), asked_at(7)).prop_map(|(sku, count)| {
            Asked::Item(Asked::And(sku.into(), count.into()).into())
        }),
        4 => (path.clone(), prop::collection::vec(a_value(), 0..4))
            .prop_map(|(path, all)| Asked::OneOf(path, all)),
        3 => (path.clone(), (a_bound(), a_bound()))
            .prop_map(|(path, range)| Asked::Within(path, range)),
        1 => path.clone().prop_map(Asked::Missing),
        1 => path.prop_map(Asked::Present),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            3 => two.clone().prop_map(|(a, b)| Asked::And(a.into(), b.into())),
            2 => two.prop_map(|(a, b)| Asked::Or(a.into(), b.into())),
            1 => inner.clone().prop_map(|one| Asked::Not(one.into())),
            1 => inner.prop_map(|one| Asked::Item(one.into())),
        ]
    })
}

fn found(orders: &Orders, reader: &impl Reader, condition: &Condition) -> Vec<(u32, Value)> {
    orders.find_where(reader, condition).unwrap().map(Result::unwrap).collect()
}

pub fn conditions_find_the_documents_that_satisfy_them(store: &impl Store) {
    laws::long_property((documents(), asked()), |(all, asked)| {
        let orders = stored(store, &all);
        let condition = asked.condition();
        let mut all_found = found(&orders, &store.snapshot().unwrap(), &condition);
        all_found.sort_by_key(|(key, _)| *key);
        let wanted = (0..).zip(all).filter(|(_, document)| asked.holds(document));
        assert_eq!(all_found, wanted.collect::<Vec<_>>(), "{asked:?}");
    });
}

#[test]
fn the_index_that_knows_most_is_used() {
    let orders = open(&keyloom_testing::memory());
    let of = |condition: &Condition| orders.indexes_for(condition).unwrap_or_default();
    let city = || Condition::equal("city", "Oslo").unwrap();
    let total = || Condition::range("total", json!(7)..).unwrap();
    let sku = || Condition::one_of("items[].sku", ["a", "b"]).unwrap();
    assert_eq!(of(&(city() & total())), ["city, total"]);
    assert_eq!(of(&total()), [""; 0], "the total is the second path");
    assert_eq!(of(&(city() | sku())), ["city, total", "items[].sku"]);
    assert_eq!(of(&(city() | total())), [""; 0], "one alternative needs all documents");
    assert_eq!(of(&(total() & (city() | sku()))), ["city, total", "items[].sku"]);
    assert_eq!(of(&!city()), [""; 0]);
    assert_eq!(of(&(!total() & city())), ["city, total"]);
    assert_eq!(of(&Condition::present("city").unwrap()), ["city, total"]);
    assert_eq!(of(&Condition::missing("city").unwrap()), [""; 0]);
    // Many values become a range; an empty list becomes no query.
    assert_eq!(of(&Condition::one_of("city", 0..101).unwrap()), ["city, total"]);
    let none = Condition::one_of("city", [0; 0]).unwrap();
    assert_eq!(orders.indexes_for(&none), Some(vec![]));
    assert_eq!(orders.indexes_for(&!none), None);
    // A range is narrower than the set of all documents with a value.
    let count = Condition::range("items[0].count", json!(7)..).unwrap();
    let any = Condition::present("city").unwrap() | Condition::present("items[].sku").unwrap();
    assert_eq!(of(&(count & any)), ["items[0].count"]);
}

#[test]
fn conditions_on_one_element_use_all_paths_of_a_nested_index() {
    let store = Metered::new(keyloom_testing::memory());
    let items = |n: u32| json!([{ "sku": "cup", "count": n }, { "sku": "tea", "count": n + 1 }]);
    let document = |n: u32| json!({ "items": items(n % 100) });
    let orders = stored(&store, &(0..1_000).map(document).collect::<Vec<_>>());
    let of = |condition: &Condition| orders.indexes_for(condition).unwrap_or_default();
    let at = |path: &str, value: Value| Condition::equal(path, value).unwrap();
    let item = |condition: Condition| Condition::element("items[]", condition).unwrap();
    let cups = |n: u32| at("sku", json!("cup")) & at("count", json!(n));
    assert_eq!(of(&item(cups(7))), ["items[]: sku, count"]);
    // Two elements together: one index entry has the values of one element.
    let two = item(cups(7)) & item(at("sku", json!("tea")) & at("count", json!(8)));
    assert_eq!(of(&two), ["items[]: sku, count"]);
    // Alternatives of an element have an index each, and elements of other paths one of their own.
    let either = item(cups(7) | at("sku", json!("tea")));
    assert_eq!(of(&either), ["items[]: sku, count", "items[].sku"]);
    assert_eq!(of(&item(at("nowhere", json!(1)))), [""; 0]);
    assert_eq!(of(&item(!at("sku", json!("cup")))), [""; 0]);
    assert_eq!(of(&Condition::element("lines[]", cups(7)).unwrap()), [""; 0]);

    let condition = item(cups(7));
    let (all, cost) = store.measure(|store| found(&orders, &store.snapshot().unwrap(), &condition));
    // Ten documents by their entries, and the states of four indexes and of the one read.
    assert_eq!((all.len(), laws::counts(cost)), (10, [15, 1, 25, 0]));
    // Without `element`, the count may be that of another item.
    let any = at("items[].sku", json!("cup")) & at("items[].count", json!(7));
    assert_eq!(found(&orders, &store.snapshot().unwrap(), &any).len(), 20);
    // Elements of elements are those of the longer path.
    let deep = Condition::element("a[]", Condition::element("b[]", cups(1)).unwrap()).unwrap();
    assert_eq!(deep, Condition::element("a[].b[]", cups(1)).unwrap());
    assert!(Condition::element("items[", cups(1)).is_err());
}

#[test]
fn a_condition_reads_what_its_indexes_find() {
    let store = Metered::new(keyloom_testing::memory());
    let document = |n: u32| json!({ "city": n % 100, "total": n });
    let orders = stored(&store, &(0..2_000).map(document).collect::<Vec<_>>());
    let cities = Condition::one_of("city", [3, 7, 7, 99]).unwrap();
    let condition = cities & Condition::range("total", ..json!(1_000)).unwrap();
    let (all, cost) = store.measure(|store| found(&orders, &store.snapshot().unwrap(), &condition));
    assert_eq!(all.len(), 30);
    // The states of four indexes. Each of three queries also reads its state, 10 entries and 10
    // documents.
    let [gets, ranges, keys, written] = laws::counts(cost);
    assert_eq!((gets, ranges, written), (4 + 3 * 11, 3, 0));
    assert!(keys < 120, "{keys} keys");
}

/// An update reads the documents twice, and writes the changed documents with their entries.
#[test]
fn an_update_costs_its_documents() {
    let store = Metered::new(keyloom_testing::memory());
    let document = |n: u32| json!({ "city": n % 100, "total": n });
    let orders = stored(&store, &(0..2_000).map(document).collect::<Vec<_>>());
    let condition = Condition::equal("city", 7).unwrap();
    let change = |_: &u32, mut document: Value| {
        document["city"] = json!(-1);
        Ok(Some(document))
    };
    let (done, cost) = store.measure(|store| orders.update_where(store, &condition, change));
    assert_eq!(done.unwrap().written, 20);
    let [gets, ranges, keys, written] = laws::counts(cost);
    // The query reads the states of four indexes, the state of its own index, 20 entries and 20
    // documents. The update reads the entry of the table and the old documents. For each document
    // it writes the document, removes an entry and puts another one.
    assert_eq!((ranges, written), (1, 20 * 3));
    assert!(gets <= 4 + 1 + 20 * 3 + 2, "{gets} gets");
    assert!(keys <= 100, "{keys} keys");
}

#[test]
fn long_alternatives_and_deep_values() {
    let store = keyloom_testing::memory();
    let orders = stored(&store, &[json!({ "city": 5 }), json!({ "city": 70_000 })]);
    let none = Condition::equal("city", -1).unwrap();
    let any = (0..10_000).fold(none, |any, n| any | Condition::equal("city", n).unwrap());
    assert_eq!(found(&orders, &store.snapshot().unwrap(), &any).len(), 1);
    // The order of the alternatives does not matter.
    let of = |n: i32| Condition::equal("city", n).unwrap();
    let right = (0..10_000).fold(of(-1), |any, n| of(n) | any);
    assert_eq!(found(&orders, &store.snapshot().unwrap(), &right).len(), 1);
    let all = (0..10_000).fold(of(5), |all, n| all & !of(n + 100_000));
    assert_eq!(found(&orders, &store.snapshot().unwrap(), &all).len(), 1);
    let not = (0..100_001).fold(of(5), |one, _| !one);
    assert_eq!(found(&orders, &store.snapshot().unwrap(), &not).len(), 1);
    assert_eq!(Condition::all_of([]), Condition::all_of([Condition::all_of([])]));
    assert!(Condition::all_of([]).matches(&json!(1)) && !Condition::any_of([]).matches(&json!(1)));
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    assert!(Condition::equal("city", deep.clone()).is_err());
    assert!(Condition::range("city", deep..).is_err());
    assert!(Condition::missing("city[").is_err());
}

/// The index on two paths also finds documents without the second path, which a later query finds
/// again.
#[test]
fn a_document_is_found_once_by_overlapping_alternatives() {
    let store = keyloom_testing::memory();
    let orders = stored(&store, &[json!({ "city": 1 }), json!({ "city": 1, "total": 2 })]);
    let city = || Condition::equal("city", 1).unwrap();
    let any_total = Condition::range("total", ..).unwrap();
    let other = Condition::one_of("city", [1, 2]).unwrap();
    for condition in [(city() & any_total.clone()) | city(), other | (any_total & city())] {
        let snapshot = store.snapshot().unwrap();
        let keys = found(&orders, &snapshot, &condition).into_iter().map(|(key, _)| key);
        assert_eq!(keys.collect::<Vec<_>>(), [0, 1]);
    }
}

#[test]
fn positions_of_other_collections_are_refused() {
    let store = keyloom_testing::memory();
    let orders = stored(&store, &vec![json!({ "city": 5 }); 10]);
    let schema = keyloom_tables::Schema::open(&store, "shop").unwrap();
    let others = Collection::<u32>::open(&schema, "others").unwrap();
    let condition = Condition::equal("city", 5).unwrap();
    let options = RepairOptions { batch: 4, resume: None };
    let change = |_: &u32, document| Ok(Some(document));
    let stop = |_: &Progress| ControlFlow::Break(());
    let done = orders.update_where_with(&store, &condition, change, &options, stop).unwrap();
    let options = RepairOptions { batch: 4, resume: Some(done.position) };
    let refused = others.update_where_with(&store, &condition, change, &options, stop);
    assert!(refused.unwrap_err().to_string().contains("another repair"));
    // Neither position is one of a repair.
    for position in [
        RepairPosition { stage: 1, ..RepairPosition::default() },
        RepairPosition { entries: true, ..RepairPosition::default() },
    ] {
        let options = RepairOptions { batch: 4, resume: Some(position) };
        let refused = orders.update_where_with(&store, &condition, change, &options, stop);
        assert!(refused.unwrap_err().to_string().contains("not one of an update"));
    }
}

/// A document that does not decode is a separate error, and the other documents are found.
#[test]
fn unreadable_documents_do_not_hide_others() {
    let store = keyloom_testing::memory();
    let orders: Collection<u32> = stored(&store, &vec![json!({ "city": 5 }); 10]);
    let key = orders.table().space().pack(&3_u32);
    store.transact(|txn| keyloom::Writer::put(txn, &key, b"{")).unwrap();
    for condition in
        [Condition::equal("city", 5), Condition::present("city"), Condition::missing("a")]
    {
        let condition = condition.unwrap();
        let snapshot = store.snapshot().unwrap();
        let found: Vec<_> = orders.find_where(&snapshot, &condition).unwrap().collect();
        assert_eq!(found.iter().filter(|one| one.is_ok()).count(), 9);
        assert_eq!(found.iter().filter(|one| one.is_err()).count(), 1);
    }
}

/// The update of a document: deletes it, or sets another city.
fn changed(document: &Value) -> Option<Value> {
    if document.get("total").is_some_and(Value::is_number) {
        return None;
    }
    let mut document = document.clone();
    let old = document.get("city").cloned();
    document["city"] = json!(["was", old]);
    Some(document)
}

pub fn updates_change_each_document_once(store: &impl Store) {
    laws::long_property((documents(), asked(), 1_usize..9), |(all, asked, batch)| {
        let orders = stored(store, &all);
        let condition = asked.condition();
        // The work is stopped after each transaction, and resumed.
        let (mut resume, mut counts) = (None, [0; 3]);
        loop {
            let options = RepairOptions { batch, resume };
            let change = |_: &u32, document: Value| Ok(changed(&document));
            let stop = |_: &Progress| ControlFlow::Break(());
            let done = orders.update_where_with(store, &condition, change, &options, stop).unwrap();
            for (count, more) in counts.iter_mut().zip([done.records, done.written, done.removed]) {
                *count += more;
            }
            if done.finished {
                break;
            }
            resume = Some(done.position);
        }
        let mut wanted = Vec::new();
        let mut expected = [0; 3];
        for (key, document) in (0_u32..).zip(&all) {
            let new = match asked.holds(document) {
                true => changed(document),
                false => Some(document.clone()),
            };
            expected[0] += u64::from(asked.holds(document));
            expected[1] += u64::from(asked.holds(document) && new.is_some());
            expected[2] += u64::from(new.is_none());
            wanted.extend(new.map(|new| (key, new)));
        }
        assert_eq!(counts, expected, "{asked:?}");
        let snapshot = store.snapshot().unwrap();
        let stored: Vec<_> =
            orders.table().range(&snapshot, ..).unwrap().map(Result::unwrap).collect();
        assert_eq!(stored, wanted, "{asked:?}");
        assert_eq!(orders.check(&snapshot).unwrap(), []);
    });
}

#[test]
fn an_update_reads_its_documents_again() {
    let store = keyloom_testing::memory();
    let orders = stored(&store, &vec![json!({ "city": 5 }); 10]);
    let condition = Condition::equal("city", 5).unwrap();
    let options = RepairOptions { batch: 4, resume: None };
    // After the first transaction, another program moves one order out of the condition, and
    // another order back.
    let mut transactions = 0;
    let beside = |_: &Progress| {
        transactions += 1;
        if transactions == 1 {
            store.transact(|txn| orders.put(txn, &8, &json!({ "city": 6 }))).unwrap();
            store.transact(|txn| orders.put(txn, &0, &json!({ "city": 5 }))).unwrap();
        }
        ControlFlow::Continue(())
    };
    let change = |_: &u32, _| Ok(Some(json!({ "city": 7 })));
    let done = orders.update_where_with(&store, &condition, change, &options, beside).unwrap();
    assert_eq!((done.records, done.written), (10, 9));
    let snapshot = store.snapshot().unwrap();
    let city = |key: u32| orders.get(&snapshot, &key).unwrap().unwrap()["city"].clone();
    assert_eq!(
        [city(0), city(1), city(8), city(9)].map(|city| city.as_i64().unwrap()),
        [5, 7, 6, 7]
    );
}

#[test]
fn a_failed_update_keeps_whole_transactions() {
    let store = keyloom_testing::memory();
    let faulty = Faulty::new(store.clone());
    let condition = Condition::equal("city", 5).unwrap();
    for n in 0.. {
        let orders = stored(&store, &vec![json!({ "city": 5, "total": 1 }); 10]);
        faulty.fail_at(n, Fault::Error);
        let options = RepairOptions { batch: 4, resume: None };
        let change = |_: &u32, _| Ok(Some(json!({ "city": 7 })));
        let go_on = |_: &Progress| ControlFlow::Continue(());
        let outcome = orders.update_where_with(&faulty, &condition, change, &options, go_on);
        faulty.clear_fault();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(orders.check(&snapshot).unwrap(), []);
        let moved = orders.find(["city"]).unwrap().equal(7).count(&snapshot).unwrap();
        match outcome {
            Ok(done) => {
                assert!(n > 10 && done.finished && moved == 10);
                break;
            }
            Err(error) => assert!([0, 4, 8, 10].contains(&moved), "{n}: {moved}, {error}"),
        }
        // The next update finishes the work.
        orders.update_where(&store, &condition, |_, _| Ok(None)).unwrap();
        let left = orders.find(["city"]).unwrap().equal(5).count(&store.snapshot().unwrap());
        assert_eq!(left.unwrap(), 0);
    }
}
