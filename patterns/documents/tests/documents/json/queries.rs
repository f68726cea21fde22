//! Queries against loops over all documents.

use std::cmp::Ordering;
use std::ops::Bound;

use keyloom::{Order, Store, Writer};
use keyloom_testing::{ids, laws};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{a_bound, a_document, a_value, all_pages, compare, documents, is_within};
use super::fixture::{open, stored};

fn skus(document: &Value) -> Vec<&Value> {
    let items = document.get("items").and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.get("sku")).collect()
}

fn is_equal(a: &Value, b: &Value) -> bool {
    compare(a, b).is_eq()
}

pub fn queries_by_path_are_those_of_their_definition(store: &impl Store) {
    let conditions = (a_value(), (a_bound(), a_bound()), any::<bool>(), 1_usize..6);
    laws::long_property((documents(), conditions), |(all, (one, range, is_up, limit))| {
        let orders = stored(store, &all);
        let snapshot = store.snapshot().unwrap();
        let order = if is_up { Order::Ascending } else { Order::Descending };
        let directed = |by: Ordering| if is_up { by } else { by.reverse() };

        // A path with many values: each document once, at its first value in the range.
        let mut wanted: Vec<(&Value, u32)> = Vec::new();
        for (document, key) in all.iter().zip(0..) {
            let inside = skus(document).into_iter().filter(|sku| is_within(sku, &range));
            let first = match order {
                Order::Ascending => inside.min_by(|a, b| compare(a, b)),
                Order::Descending => inside.max_by(|a, b| compare(a, b)),
            };
            wanted.extend(first.map(|first| (first, key)));
        }
        wanted.sort_by(|a, b| directed(compare(a.0, b.0).then(a.1.cmp(&b.1))));
        let wanted: Vec<u32> = wanted.into_iter().map(|(_, key)| key).collect();
        let query = orders.find(["items[].sku"]).unwrap().range(range.clone()).order(order);
        assert_eq!(all_pages(&query, &snapshot, &all), wanted, "{range:?}");
        assert_eq!(all_pages(&query.limit(limit), &snapshot, &all), wanted, "pages of {limit}");

        // Two paths: equality on the first, a range on the second. Documents without a total come
        // first.
        let mut wanted: Vec<(Option<&Value>, u32)> = Vec::new();
        for (document, key) in all.iter().zip(0..) {
            if document.get("city").is_some_and(|city| is_equal(city, &one)) {
                wanted.push((document.get("total"), key));
            }
        }
        let by_total = |a: Option<&Value>, b: Option<&Value>| match (a, b) {
            (Some(a), Some(b)) => compare(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        wanted.sort_by(|a, b| directed(by_total(a.0, b.0).then(a.1.cmp(&b.1))));
        let keys = |wanted: &[(Option<&Value>, u32)]| -> Vec<u32> {
            wanted.iter().map(|(_, key)| *key).collect()
        };
        let query = orders.find(["city"]).unwrap().equal(one.clone()).order(order).limit(limit);
        assert_eq!(all_pages(&query, &snapshot, &all), keys(&wanted), "{one}");
        let is_everything = matches!(range, (Bound::Unbounded, Bound::Unbounded));
        wanted.retain(|(total, _)| match total {
            Some(total) => is_within(total, &range),
            None => is_everything,
        });
        assert_eq!(all_pages(&query.range(range.clone()), &snapshot, &all), keys(&wanted));
    });
}

/// Generates strings around two lengths: the prefixes that entries hold (159 and 192 bytes), and
/// the longest strings that are stored whole (190 and 223 bytes). Many strings have a common
/// prefix.
fn a_long_string() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec!["x", "\0", "é", "𝄞"]);
    let near = prop::sample::select(vec![32_usize, 159, 190, 192, 223, 700]);
    let end = prop::sample::select(vec!["", "a", "\0", "é", "𝄞", "\u{10FFFF}", "𝄞x"]);
    (unit, near, 0_usize..6, end)
        .prop_map(|(unit, near, less, end)| unit.repeat((near - less) / unit.len()) + end)
}

fn a_long_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => a_long_string().prop_map(Value::from),
        1 => a_value(),
        1 => prop::collection::vec(a_long_string(), 0..3).prop_map(Value::from),
        1 => a_long_string().prop_map(|text| json!({ "a": text })),
    ]
}

/// An entry holds a prefix of a long value and a hash; the query compares the documents.
pub fn long_values_are_found_by_their_documents(store: &impl Store) {
    let item = (a_long_value(), a_long_value());
    let document = (a_long_value(), a_long_value(), prop::collection::vec(item, 0..3));
    let document = document.prop_map(|(city, total, items)| {
        let item = |(sku, count): (Value, Value)| json!({ "sku": sku, "count": count });
        let items: Vec<Value> = items.into_iter().map(item).collect();
        json!({ "city": city, "total": total, "items": items })
    });
    let bound = || {
        prop_oneof![
            a_long_value().prop_map(Bound::Included),
            a_long_value().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    };
    let query = ((bound(), bound()), any::<bool>(), 1_usize..6);
    let all = (prop::collection::vec(document, 0..30), a_long_value(), query);
    laws::long_property(all, |(mut all, one, (range, is_up, limit))| {
        // Some bounds are values of documents.
        all.extend([json!({ "city": one }), json!({ "items": [{ "sku": one }] })]);
        for total in [json!(1), json!("x".repeat(200)), one.clone()] {
            let items = json!([{ "sku": one, "count": total }]);
            all.push(json!({ "city": one, "total": total, "items": items }));
        }
        for bound in [&range.0, &range.1] {
            if let Bound::Included(value) | Bound::Excluded(value) = bound {
                all.push(json!({ "city": value, "items": [{ "sku": value }, { "sku": one }] }));
            }
        }
        let orders = stored(store, &all);
        let snapshot = store.snapshot().unwrap();
        let order = if is_up { Order::Ascending } else { Order::Descending };
        let wanted = |is_wanted: &dyn Fn(&Value) -> bool| -> Vec<u32> {
            let found = all.iter().zip(0..).filter(|(document, _)| is_wanted(document));
            found.map(|(_, key)| key).collect()
        };
        let sorted = |mut keys: Vec<u32>| {
            keys.sort_unstable();
            keys
        };
        let of_city = |document: &Value| document.get("city").cloned();
        let by_city = orders.find(["city"]).unwrap().order(order).limit(limit);
        let by_sku = orders.find(["items[].sku"]).unwrap().order(order).limit(limit);

        let in_range =
            wanted(&|document| of_city(document).is_some_and(|city| is_within(&city, &range)));
        let found = all_pages(&by_city.clone().range(range.clone()), &snapshot, &all);
        // In the order of the part that all entries hold: 159 bytes of each of the two strings.
        let held: Vec<_> = found.iter().map(|key| held(&all[*key as usize]["city"], 156)).collect();
        assert!(held.is_sorted_by(|a, b| if is_up { a <= b } else { a >= b }), "{held:?}");
        assert_eq!(sorted(found), in_range, "{range:?}");
        let in_range =
            wanted(&|document| skus(document).into_iter().any(|sku| is_within(sku, &range)));
        let found = all_pages(&by_sku.clone().range(range.clone()), &snapshot, &all);
        assert_eq!(sorted(found), in_range, "{range:?}");

        let equal = wanted(&|document| of_city(document).is_some_and(|of| is_equal(&of, &one)));
        let found = all_pages(&by_city.clone().equal(one.clone()), &snapshot, &all);
        assert_eq!(sorted(found), equal, "{one}");
        // A long value, followed by a range.
        let is_everything = matches!(range, (Bound::Unbounded, Bound::Unbounded));
        let totals = wanted(&|document| {
            let total = document.get("total");
            of_city(document).is_some_and(|of| is_equal(&of, &one))
                && total.map_or(is_everything, |total| is_within(total, &range))
        });
        let query = by_city.clone().equal(one.clone()).range(range.clone());
        let found = all_pages(&query, &snapshot, &all);
        assert_eq!(sorted(found), totals, "{one}, {range:?}");
        let both = wanted(&|document| {
            let items = document.get("items").and_then(Value::as_array).into_iter().flatten();
            let mut items =
                items.filter(|item| item.get("sku").is_some_and(|of| is_equal(of, &one)));
            items.any(|item| {
                let count = item.get("count");
                count.map_or(is_everything, |count| is_within(count, &range))
            })
        });
        let query = orders.find_nested("items[]", ["sku", "count"]).unwrap();
        let query = query.equal(one.clone()).range(range.clone()).order(order).limit(limit);
        assert_eq!(sorted(all_pages(&query, &snapshot, &all)), both, "{one}, {range:?}");
        let equal = wanted(&|document| skus(document).into_iter().any(|sku| is_equal(sku, &one)));
        let found = all_pages(&by_sku.equal(one.clone()), &snapshot, &all);
        assert_eq!(sorted(found), equal, "{one}");
        assert_eq!(orders.check(&snapshot).unwrap(), []);
    });
}

/// The kind of a value, and the prefix of a string that each entry holds, as encoded in a key.
fn held(value: &Value, bytes: usize) -> (u8, Vec<u8>) {
    match value {
        Value::String(text) => {
            let escaped = text.bytes().flat_map(|byte| [Some(byte), (byte == 0).then_some(0xFF)]);
            (1, escaped.flatten().take(bytes).collect())
        }
        Value::Array(_) => (2, Vec::new()),
        Value::Object(_) => (3, Vec::new()),
        _ => (0, Vec::new()),
    }
}

pub fn nested_queries_match_within_one_element(store: &impl Store) {
    laws::long_property((documents(), a_value(), a_value()), |(all, sku, count)| {
        let orders = stored(store, &all);
        let snapshot = store.snapshot().unwrap();
        let mut wanted = Vec::new();
        for (document, key) in all.iter().zip(0..) {
            let items = document.get("items").and_then(Value::as_array).into_iter().flatten();
            let matches = |item: &Value, name: &str, value: &Value| {
                item.get(name).is_some_and(|of| is_equal(of, value))
            };
            let mut both =
                items.filter(|item| matches(item, "sku", &sku) && matches(item, "count", &count));
            if both.next().is_some() {
                wanted.push(key);
            }
        }
        let query = orders.find_nested("items[]", ["sku", "count"]).unwrap();
        let query = query.equal(sku).equal(count);
        assert_eq!(all_pages(&query, &snapshot, &all), wanted);
    });
}

/// Whether a document contains an example, by the documented rule.
fn has(document: &Value, example: &Value) -> bool {
    match example {
        Value::Object(fields) => document.as_object().is_some_and(|document| {
            fields.iter().all(|(name, inner)| document.get(name).is_some_and(|of| has(of, inner)))
        }),
        Value::Array(values) => document.as_array().is_some_and(|elements| {
            values.iter().all(|inner| elements.iter().any(|element| has(element, inner)))
        }),
        value => !document.is_array() && !document.is_object() && is_equal(document, value),
    }
}

pub fn examples_match_documents_that_have_all_of_them(store: &impl Store) {
    let examples = prop::collection::vec(a_document(), 1..5);
    laws::long_property((documents(), examples), |(all, examples)| {
        let orders = stored(store, &all);
        let snapshot = store.snapshot().unwrap();
        let own = all.iter().take(2).cloned();
        for example in examples.into_iter().chain(own).chain([json!({}), json!(3)]) {
            let found = orders.find_like(&snapshot, &example).unwrap();
            let mut found: Vec<u32> = found.map(|found| found.unwrap().0).collect();
            found.sort_unstable();
            let wanted = all.iter().zip(0..).filter(|(document, _)| has(document, &example));
            let wanted: Vec<u32> = wanted.map(|(_, key)| key).collect();
            assert_eq!(found, wanted, "{example} by {:?}", orders.index_for(&example));
        }
    });
    let orders = stored(store, &[]);
    let index = |example: Value| orders.index_for(&example);
    assert_eq!(index(json!({ "city": "a" })).as_deref(), Some("city, total"));
    let item = json!({ "items": [{ "sku": "a", "count": 1 }] });
    assert_eq!(index(item.clone()).as_deref(), Some("items[].sku"));
    let mut both = item;
    both["city"] = json!("a");
    both["total"] = json!(1);
    assert_eq!(index(both).as_deref(), Some("city, total"));
    assert_eq!(index(json!({ "total": 1 })), None);
}

pub fn indexes_that_are_not_built_are_not_used(store: &impl Store) {
    let orders = stored(store, &[json!({ "city": "a", "total": 1, "note": 5 })]);
    let schema = keyloom_tables::Schema::open(store, "shop").unwrap();
    let orders = orders.with_index(&schema, ["city", "total", "note"]).unwrap();
    for example in [json!({ "note": 5 }), json!({ "city": "a", "total": 1, "note": 5 })] {
        let snapshot = store.snapshot().unwrap();
        let found = orders.find_like(&snapshot, &example).unwrap();
        assert_eq!(found.map(|found| found.unwrap().0).collect::<Vec<_>>(), [0]);
    }
}

pub fn a_repair_writes_lost_entries_again(store: &impl Store) {
    let orders = stored(store, &[json!({ "city": "a" }), json!({ "city": "b" })]);
    let found = || {
        let snapshot = store.snapshot().unwrap();
        let query = orders.find(["city"]).unwrap().range(..);
        query.page(&snapshot).unwrap().items.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    // A document without entries.
    let other = json!({ "city": "c" });
    let (key, bytes) = (orders.table().space().pack(&7), other.to_string());
    store.transact(|txn| txn.put(&key, bytes.as_bytes())).unwrap();
    assert_eq!(found(), [0, 1]);
    assert_ne!(orders.check(&store.snapshot().unwrap()).unwrap(), []);
    assert!(orders.repair(store).unwrap().finished);
    assert_eq!(orders.check(&store.snapshot().unwrap()).unwrap(), []);
    let query = orders.find(["city"]).unwrap().equal("c");
    assert_eq!(query.page(&store.snapshot().unwrap()).unwrap().items, [(7, other)]);
}

/// After random changes, the indexes match the documents.
pub fn indexes_follow_every_change(store: &impl Store) {
    let key = (0..12_u64).prop_map(|n| ids::number(n) as u32);
    let change = (key, prop::option::weighted(0.8, a_document()), any::<bool>());
    laws::very_long_property(prop::collection::vec(change, 1..30), |changes| {
        laws::clear(store);
        let orders = open(store);
        let mut model = std::collections::BTreeMap::new();
        for (key, document, is_merge) in changes {
            match document {
                Some(document) if is_merge && model.contains_key(&key) => {
                    let new = store.transact(|txn| orders.merge(txn, &key, &document)).unwrap();
                    model.insert(key, new);
                }
                Some(document) => {
                    store.transact(|txn| orders.put(txn, &key, &document)).unwrap();
                    model.insert(key, document);
                }
                None => {
                    let is_there = store.transact(|txn| orders.delete(txn, &key)).unwrap();
                    assert_eq!(is_there, model.remove(&key).is_some());
                }
            }
        }
        let snapshot = store.snapshot().unwrap();
        let stored: Vec<(u32, Value)> =
            orders.find_like(&snapshot, &json!({})).unwrap().map(Result::unwrap).collect();
        let is_object = |(_, document): &(u32, Value)| document.is_object();
        assert_eq!(stored, model.into_iter().filter(is_object).collect::<Vec<_>>());
        assert_eq!(orders.check(&snapshot).unwrap(), []);
    });
}
