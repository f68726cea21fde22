//! Random documents.

use std::ops::Bound;

use keyloom::{Reader, Store};
use keyloom_documents::json::Collection;
use keyloom_tables::Schema;
use keyloom_testing::laws;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub type Orders = Collection<u32>;

pub fn open(store: &impl Store) -> Orders {
    let schema = Schema::open(store, "shop").unwrap();
    Collection::open(&schema, "orders")
        .unwrap()
        .with_index(&schema, ["items[].sku"])
        .unwrap()
        .with_index(&schema, ["city", "total"])
        .unwrap()
        .with_index(&schema, ["items[0].count"])
        .unwrap()
        .with_nested(&schema, "items[]", ["sku", "count"])
        .unwrap()
}

pub fn stored(store: &impl Store, all: &[Value]) -> Orders {
    laws::clear(store);
    let orders = open(store);
    store.transact(|txn| orders.put_many(txn, (0..).zip(all.iter().cloned()))).unwrap();
    orders
}

/// A value of any kind, from a small set.
pub fn a_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => (0..4).prop_map(Value::from),
        1 => prop::sample::select(vec![json!(1.0), json!(1.5), json!(-2), json!(u64::MAX)]),
        3 => prop::sample::select(vec!["", "a", "a\0", "\0", "ab"]).prop_map(Value::from),
        1 => prop::sample::select(vec![json!(null), json!(true), json!(false), json!([]), json!([1])]),
    ]
}

/// An object with a random subset of these fields.
fn an_object<const N: usize>(
    fields: [(&'static str, BoxedStrategy<Value>); N],
) -> impl Strategy<Value = Value> {
    let fields = fields.map(|(name, value)| {
        prop::option::weighted(0.8, value).prop_map(move |value| Some((name.to_owned(), value?)))
    });
    Vec::from(fields).prop_map(|fields| {
        Value::Object(fields.into_iter().flatten().collect::<Map<String, Value>>())
    })
}

pub fn a_document() -> impl Strategy<Value = Value> {
    let item = an_object([("sku", a_value().boxed()), ("count", a_value().boxed())]);
    let items = prop_oneof![
        5 => prop::collection::vec(item, 0..4).prop_map(Value::from),
        1 => a_value(),
    ];
    an_object([("city", a_value().boxed()), ("total", a_value().boxed()), ("items", items.boxed())])
}

pub fn documents() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(a_document(), 0..40)
}

/// The keys of all pages of a query. Checks that the documents belong to the keys.
pub fn all_pages(
    query: &keyloom_documents::json::JsonQuery<'_, u32>,
    reader: &impl Reader,
    all: &[Value],
) -> Vec<u32> {
    let (mut keys, mut after, mut counts) = (Vec::new(), None, Vec::new());
    loop {
        let query = query.clone().after(after);
        counts.push((keys.len(), query.count(reader).unwrap()));
        let (of_page, page) = (query.keys(reader).unwrap(), query.page(reader).unwrap());
        assert!(page.items.iter().map(|(key, _)| key).eq(&of_page.items));
        for (key, document) in page.items {
            assert_eq!(document, all[key as usize]);
            keys.push(key);
        }
        after = page.next;
        if after.is_none() {
            // Each count covers the documents from its continuation on.
            assert!(counts.iter().all(|(before, count)| before + *count as usize == keys.len()));
            return keys;
        }
    }
}

/// The order of two values: first by the rank of their kinds, then by value.
pub fn compare(a: &Value, b: &Value) -> std::cmp::Ordering {
    let kind = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    let equal = std::cmp::Ordering::Equal;
    kind(a).cmp(&kind(b)).then_with(|| match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        // The numbers of the fixture are exact as floats, or are the only one at their end.
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(equal)
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
            pairs.chain([a.len().cmp(&b.len())]).find(|order| order.is_ne()).unwrap_or(equal)
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| a.0.cmp(b.0).then_with(|| compare(a.1, b.1)));
            pairs.chain([a.len().cmp(&b.len())]).find(|order| order.is_ne()).unwrap_or(equal)
        }
        _ => equal,
    })
}

pub fn is_same_kind(a: &Value, b: &Value) -> bool {
    matches!(
        (a, b),
        (Value::Null, Value::Null)
            | (Value::Bool(_), Value::Bool(_))
            | (Value::Number(_), Value::Number(_))
            | (Value::String(_), Value::String(_))
            | (Value::Array(_), Value::Array(_))
            | (Value::Object(_), Value::Object(_))
    )
}

/// Whether a value is in a range, by the definition.
pub fn is_within(value: &Value, (start, end): &(Bound<Value>, Bound<Value>)) -> bool {
    let starts = match start {
        Bound::Included(start) => compare(start, value).is_le(),
        Bound::Excluded(start) => compare(start, value).is_lt(),
        Bound::Unbounded => true,
    };
    let ends = match end {
        Bound::Included(end) => compare(value, end).is_le(),
        Bound::Excluded(end) => compare(value, end).is_lt(),
        Bound::Unbounded => true,
    };
    // A bound restricts the values to its own kind.
    let is_of_kind = match (start, end) {
        (Bound::Included(one) | Bound::Excluded(one), Bound::Unbounded)
        | (Bound::Unbounded, Bound::Included(one) | Bound::Excluded(one)) => {
            is_same_kind(one, value)
        }
        _ => true,
    };
    starts && ends && is_of_kind
}

pub fn a_bound() -> impl Strategy<Value = Bound<Value>> {
    prop_oneof![
        a_value().prop_map(Bound::Included),
        a_value().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}
