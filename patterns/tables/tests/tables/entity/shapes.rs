//! All data types of serde, stored in parts and read back.

use std::collections::BTreeMap;

use keyloom::key::display;
use keyloom::{Metered, Store, Subspace};
use keyloom_tables::Aggregates;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use keyloom_testing::laws::{clear, counts, dump_all, property};

pub fn things() -> Aggregates<u8> {
    Aggregates::new(&Subspace::new("things"))
}

pub fn faults(store: &impl Store) -> Vec<String> {
    let found = things().check(&store.snapshot().unwrap()).unwrap();
    found.iter().map(ToString::to_string).collect()
}

/// Values of every kind, many of them empty.
pub fn value() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["", "a", "a\0", "b", "\u{10FFFF}"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let map = btree_map(text.clone().prop_map(String::from), inner.clone(), 0..3);
        prop_oneof![
            vec(inner, 0..3).prop_map(Value::from),
            map.prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

pub fn object() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec!["", "a", "a\0", "l"]).prop_map(String::from);
    btree_map(names, value(), 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// The number of keys of a value: one for each scalar, list and map.
fn parts(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(parts).sum(),
        Value::Object(map) => map.values().map(parts).sum(),
        _ => 0,
    }
}

pub fn entities_come_back_as_they_were_put(store: &(impl Store + Clone)) {
    let things = things();
    property((vec(object(), 1..4), object()), |(entities, neighbour)| {
        clear(store);
        store.transact(|txn| things.put(txn, &2, &neighbour)).unwrap();
        for entity in &entities {
            store.transact(|txn| things.put(txn, &1, entity)).unwrap();
            let snapshot = store.snapshot().unwrap();
            assert_eq!(things.get::<Value>(&snapshot, &1).unwrap().as_ref(), Some(entity));
            for (name, field) in entity.as_object().unwrap() {
                let found = things.field::<Value>(&snapshot, &1, name).unwrap();
                assert_eq!(found.as_ref(), Some(field));
            }
            assert_eq!(things.field::<Value>(&snapshot, &1, "absent").unwrap(), None);
            assert_eq!(things.get::<Value>(&snapshot, &2).unwrap().as_ref(), Some(&neighbour));
        }
        assert_eq!(faults(store), [""; 0]);
        let last = entities.last().unwrap();
        assert_eq!(dump_all(store).len(), parts(last) + parts(&neighbour));
        // Unchanged parts are not written again.
        let metered = Metered::new(store.clone());
        let (_, cost) = metered.measure(|s| s.transact(|txn| things.put(txn, &1, last)).unwrap());
        assert_eq!(counts(cost)[3], 0);
        assert!(store.transact(|txn| things.delete(txn, &1)).unwrap());
        assert!(!store.transact(|txn| things.delete(txn, &1)).unwrap());
        assert_eq!(dump_all(store).len(), parts(&neighbour));
    });
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Product {
    Book { title: String, pages: Option<u32> },
    Record { title: String, tracks: Vec<Track>, released: Date },
    Jeans { length: u8, colors: BTreeMap<String, Stock> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Track {
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Stock {
    Gone,
    Pieces(u64),
    Ordered { day: i32, of: (char, bool) },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Date(i16, u8, u8);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Numbers {
    least: i64,
    most: u64,
    wide: BTreeMap<i64, f64>,
    by_number: BTreeMap<u64, Vec<()>>,
    unit: (),
}

/// Entities of different shapes in one collection.
pub fn types_of_every_shape_come_back(store: &(impl Store + Clone)) {
    clear(store);
    let things = things();
    let track = |title: &str, seconds| Track { title: title.into(), seconds };
    let products = [
        Product::Book { title: "Momo".into(), pages: None },
        Product::Record {
            title: "Kind of Blue".into(),
            tracks: vec![track("So What", Some(562.5)), track("", None)],
            released: Date(1959, 8, 17),
        },
        Product::Jeans {
            length: 32,
            colors: BTreeMap::from([
                ("black".into(), Stock::Gone),
                ("blue".into(), Stock::Pieces(u64::MAX)),
                (String::new(), Stock::Ordered { day: -1, of: ('ü', true) }),
            ]),
        },
    ];
    let numbers = Numbers {
        least: i64::MIN,
        most: u64::MAX,
        wide: BTreeMap::from([(i64::MIN, f64::MAX), (0, -0.0), (7, f64::INFINITY)]),
        by_number: BTreeMap::from([(u64::MAX, vec![]), (1, vec![(), ()])]),
        unit: (),
    };
    store
        .transact(|txn| {
            (0..).zip(&products).try_for_each(|(id, product)| things.put(txn, &id, product))?;
            things.put(txn, &9, &numbers)
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    for (id, product) in (0..).zip(&products) {
        assert_eq!(things.get::<Product>(&snapshot, &id).unwrap().as_ref(), Some(product));
    }
    assert_eq!(things.get::<Numbers>(&snapshot, &9).unwrap(), Some(numbers));
    let infinite = things.field::<f64>(&snapshot, &9, ("wide", 7)).unwrap();
    assert_eq!(infinite, Some(f64::INFINITY));
    let kind = things.field::<String>(&snapshot, &1, "kind").unwrap();
    assert_eq!(kind.as_deref(), Some("record"));
    let stock = things.field::<Stock>(&snapshot, &2, ("colors", "blue")).unwrap();
    assert_eq!(stock, Some(Stock::Pieces(u64::MAX)));
    // Reading a product as another type is an error that names the position.
    let error = things.get::<Numbers>(&snapshot, &1).unwrap_err();
    assert!(error.to_string().starts_with(r#"at key ("things", 1): a value does not decode"#));
    assert_eq!(faults(store), [""; 0]);
}

/// The table of the documentation, compared byte by byte.
pub fn what_is_empty_has_a_form_of_its_own(store: &(impl Store + Clone)) {
    let things = things();
    let stored = |value: Value| {
        clear(store);
        store.transact(|txn| things.put(txn, &1, &json!({ "x": value }))).unwrap();
        let all = dump_all(store).into_iter();
        let shown = all.map(|(key, value)| {
            let hex: String = value.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("{} {hex}", display(&key).to_string().replace(r#"("things", 1"#, ""))
        });
        shown.skip(1).collect::<Vec<_>>()
    };
    assert_eq!(stored(Value::Null), [r#", "x") F6"#]);
    assert_eq!(stored(json!([])), [r#", "x") 80"#]);
    assert_eq!(stored(json!([""])), [r#", "x") 80"#, r#", "x", (1,)) 60"#]);
    assert_eq!(stored(json!([[]])), [r#", "x") 80"#, r#", "x", (1,)) 80"#]);
    assert_eq!(stored(json!([null])), [r#", "x") 80"#, r#", "x", (1,)) F6"#]);
    assert_eq!(stored(json!({})), [r#", "x") A0"#]);
    assert_eq!(stored(json!({"": {}})), [r#", "x") A0"#, r#", "x", "") A0"#]);
    assert_eq!(stored(json!("")), [r#", "x") 60"#]);
    assert_eq!(stored(json!(false)), [r#", "x") F4"#]);
    // An absent field has no key, but the entity still exists.
    clear(store);
    store.transact(|txn| things.put(txn, &1, &json!({}))).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(things.get::<Value>(&snapshot, &1).unwrap(), Some(json!({})));
    assert_eq!(things.get::<Value>(&snapshot, &2).unwrap(), None);
}

pub fn what_is_undivided_is_one_key(store: &(impl Store + Clone)) {
    clear(store);
    let things = things();
    let pairs = BTreeMap::from([((1, 2), "a"), ((3, 4), "b")]);
    store
        .transact(|txn| {
            things.set_undivided(txn, &1, "bytes", &vec![7u8; 2_000])?;
            things.set_undivided(txn, &1, "pairs", &pairs)?;
            things.set(txn, &1, "list", &[1, 2])
        })
        .unwrap();
    assert_eq!(dump_all(store).len(), 6, "the entity, two in one piece, and a list of two");
    let snapshot = store.snapshot().unwrap();
    let bytes = things.field::<Vec<u8>>(&snapshot, &1, "bytes").unwrap();
    assert_eq!(bytes, Some(vec![7; 2_000]));
    type Pairs = BTreeMap<(u8, u8), String>;
    assert_eq!(things.field::<Pairs>(&snapshot, &1, "pairs").unwrap().unwrap()[&(3, 4)], "b");
    drop(snapshot);
    // The value cannot be used as a list for a push, and stays one value when the entity is
    // updated.
    let pushed = store.transact(|txn| things.push(txn, &1, "bytes", &1));
    assert!(pushed.unwrap_err().to_string().contains("not a list that is stored in parts"));
    #[derive(Serialize, Deserialize)]
    struct Bytes {
        bytes: Vec<u8>,
    }
    let append = |all: &mut Bytes| {
        all.bytes.push(1);
        Ok(())
    };
    assert!(store.transact(|txn| things.update(txn, &1, append)).unwrap());
    assert_eq!(dump_all(store).len(), 6);
    // When it is set again, it is stored in parts; also in the reverse direction.
    store.transact(|txn| things.set(txn, &1, "bytes", &[1, 2, 3])).unwrap();
    assert_eq!(dump_all(store).len(), 9);
    store.transact(|txn| things.set_undivided(txn, &1, "bytes", &[1, 2, 3])).unwrap();
    assert_eq!(dump_all(store).len(), 6);
    store.transact(|txn| things.set(txn, &1, "bytes", &[1, 2, 3])).unwrap();
    assert_eq!(dump_all(store).len(), 9);
    assert_eq!(faults(store), [""; 0]);
}
