//! Older code changes entities that newer code has written.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Metered, Result, Store};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::entity::shapes::{faults, object, things};
use keyloom_testing::ids::text;
use keyloom_testing::laws::{clear, counts, dump_all, long_property};

/// The fields of the older program.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Town {
    name: String,
    #[serde(default)]
    rating: Option<u8>,
    streets: Vec<Street>,
    rivers: BTreeMap<String, River>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Street {
    label: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct River {
    length: u32,
    #[serde(default)]
    navigable: bool,
}

#[derive(Clone, Debug)]
enum Edit {
    Rename(u8),
    Rate(u8),
    RelabelStreet(usize),
    RelabelAll,
    RemoveStreet(usize),
    InsertStreet(usize),
    MoveStreet(usize, usize),
    Reverse,
    Lengthen(u8),
    RemoveRiver(u8),
    Nothing,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        any::<u8>().prop_map(Edit::Rename),
        any::<u8>().prop_map(Edit::Rate),
        (0..5usize).prop_map(Edit::RelabelStreet),
        Just(Edit::RelabelAll),
        (0..5usize).prop_map(Edit::RemoveStreet),
        (0..5usize).prop_map(Edit::InsertStreet),
        (0..5usize, 0..5usize).prop_map(|(from, to)| Edit::MoveStreet(from, to)),
        Just(Edit::Reverse),
        (0..3u8).prop_map(Edit::Lengthen),
        (0..3u8).prop_map(Edit::RemoveRiver),
        Just(Edit::Nothing),
    ]
}

/// The edit by the older program. `n` makes new labels unique.
fn perform(town: &mut Town, edit: &Edit, n: usize) {
    let streets = &mut town.streets;
    match *edit {
        Edit::Rename(to) => town.name = format!("town {to}"),
        Edit::Rate(to) => town.rating = Some(to),
        Edit::RelabelStreet(at) if at < streets.len() => streets[at].label = format!("edited {n}"),
        Edit::RelabelAll => {
            let all = streets.iter_mut().enumerate();
            all.for_each(|(at, street)| street.label = format!("all {n} {at}"));
        }
        Edit::RemoveStreet(at) if at < streets.len() => drop(streets.remove(at)),
        Edit::InsertStreet(at) => {
            streets.insert(at.min(streets.len()), Street { label: format!("new {n}") });
        }
        Edit::MoveStreet(from, to) if from < streets.len() => {
            let street = streets.remove(from);
            streets.insert(to.min(streets.len()), street);
        }
        Edit::Reverse => streets.reverse(),
        Edit::Lengthen(river) => {
            town.rivers.values_mut().skip(river.into()).take(1).for_each(|river| river.length += 1);
        }
        Edit::RemoveRiver(river) => drop(town.rivers.remove(&text(river.into()))),
        _ => {}
    }
}

/// The same edit of the complete data.
fn imitate(town: &mut Value, edit: &Edit, n: usize) {
    let name = |n: u8| json!(format!("town {n}"));
    let streets = town["streets"].as_array_mut().unwrap();
    match *edit {
        Edit::Rename(to) => town["name"] = name(to),
        Edit::Rate(to) => town["rating"] = json!(to),
        Edit::RelabelStreet(at) if at < streets.len() => {
            streets[at]["label"] = json!(format!("edited {n}"));
        }
        Edit::RelabelAll => {
            let all = streets.iter_mut().enumerate();
            all.for_each(|(at, street)| street["label"] = json!(format!("all {n} {at}")));
        }
        Edit::RemoveStreet(at) if at < streets.len() => drop(streets.remove(at)),
        Edit::InsertStreet(at) => {
            streets.insert(at.min(streets.len()), json!({ "label": format!("new {n}") }));
        }
        Edit::MoveStreet(from, to) if from < streets.len() => {
            let street = streets.remove(from);
            streets.insert(to.min(streets.len()), street);
        }
        Edit::Reverse => streets.reverse(),
        Edit::Lengthen(river) => {
            let rivers = town["rivers"].as_object_mut().unwrap().values_mut();
            rivers.skip(river.into()).take(1).for_each(|river| {
                river["length"] = json!(river["length"].as_u64().unwrap() + 1);
            });
        }
        Edit::RemoveRiver(river) => {
            drop(town["rivers"].as_object_mut().unwrap().remove(&text(river.into())));
        }
        _ => {}
    }
}

/// An object with extra fields, and the fields of the older program.
fn with(extra: &Value, known: Value) -> Value {
    let unknown = extra.as_object().unwrap().iter();
    let mut all: Map<String, Value> = unknown.map(|(k, v)| (format!("x{k}"), v.clone())).collect();
    all.extend(known.as_object().unwrap().clone());
    Value::Object(all)
}

fn town() -> impl Strategy<Value = Value> {
    let rating = option::of(option::of(any::<u8>()));
    (object(), rating, vec(object(), 0..4), vec(object(), 0..2)).prop_map(
        |(extra, rating, streets, rivers)| {
            let street =
                |(n, extra): (usize, &Value)| with(extra, json!({"label": format!("{n}")}));
            let streets: Vec<Value> = streets.iter().enumerate().map(street).collect();
            let river = |(n, extra): (usize, &Value)| (text(n), with(extra, json!({"length": n})));
            let rivers: Map<String, Value> = rivers.iter().enumerate().map(river).collect();
            let known = json!({"name": "town", "streets": streets, "rivers": rivers});
            let mut town = with(&extra, known);
            if let Some(rating) = rating {
                town["rating"] = json!(rating);
            }
            town
        },
    )
}

pub fn fields_that_older_code_does_not_know_survive(store: &(impl Store + Clone)) {
    let things = things();
    long_property((town(), vec(edit(), 1..4)), |(town, edits)| {
        clear(store);
        store.transact(|txn| things.put(txn, &1, &town)).unwrap();
        let mut model = town;
        for (n, edit) in edits.iter().enumerate() {
            imitate(&mut model, edit, n);
            let before = dump_all(store);
            let metered = Metered::new(store.clone());
            let (done, cost) = metered.measure(|store| {
                store.transact(|txn| {
                    things.update(txn, &1, |town: &mut Town| {
                        perform(town, edit, n);
                        Ok(())
                    })
                })
            });
            assert!(done.unwrap());
            let found: Value = things.get(&store.snapshot().unwrap(), &1).unwrap().unwrap();
            assert_eq!(found, model, "after {edit:?}");
            // Only the difference was written.
            let after = dump_all(store);
            let put = after.iter().filter(|(key, value)| before.get(*key) != Some(value)).count();
            let gone = before.keys().filter(|key| !after.contains_key(*key)).count();
            assert_eq!(counts(cost)[3], (put + gone) as u64);
            match edit {
                Edit::Nothing => assert_eq!((put, gone), (0, 0)),
                Edit::Rename(_) | Edit::Rate(_) | Edit::RelabelStreet(_) | Edit::Lengthen(_) => {
                    assert!(put <= 1 && gone == 0, "{edit:?} writes one key");
                }
                Edit::RemoveStreet(_) => assert_eq!(put, 0, "the others keep their positions"),
                Edit::InsertStreet(_) => assert_eq!((put, gone), (2, 0)),
                _ => {}
            }
        }
        assert_eq!(faults(store), [""; 0]);
    });
}

/// The negative control: older code that reads an entity and puts it back loses the newer fields.
#[test]
fn a_put_by_older_code_forgets_and_is_caught() {
    let (store, things) = (keyloom::Memory::new(), things());
    let town = json!({"name": "a", "streets": [], "rivers": {}, "elevation": 35});
    store.transact(|txn| things.put(txn, &1, &town)).unwrap();
    store
        .transact(|txn| {
            let known: Town = things.get(txn, &1)?.unwrap();
            things.put(txn, &1, &known)
        })
        .unwrap();
    let found: Value = things.get(&store.snapshot().unwrap(), &1).unwrap().unwrap();
    assert_eq!((found.get("elevation"), found.get("name")), (None, Some(&json!("a"))));
}

/// A set iterates in another order than the list that it was read from.
pub fn a_list_that_is_read_as_a_set_loses_no_item(store: &(impl Store + Clone)) {
    #[derive(Serialize, Deserialize)]
    struct Tagged {
        tags: BTreeSet<String>,
    }
    clear(store);
    let things = things();
    store.transact(|txn| things.put(txn, &1, &json!({"tags": ["c", "a", "b"], "x": 1}))).unwrap();
    let remove = |all: &mut Tagged| {
        all.tags.remove("a");
        Ok(())
    };
    assert!(store.transact(|txn| things.update(txn, &1, remove)).unwrap());
    let found: Value = things.get(&store.snapshot().unwrap(), &1).unwrap().unwrap();
    assert_eq!(found, json!({"tags": ["b", "c"], "x": 1}));
    assert_eq!(faults(store), [""; 0]);
    // An absent entity is not created. After an error of the closure, nothing is changed.
    let nothing = |_: &mut Tagged| -> Result<()> { Ok(()) };
    assert!(!store.transact(|txn| things.update(txn, &2, nothing)).unwrap());
    let before = dump_all(store);
    let failing = |all: &mut Tagged| {
        all.tags.clear();
        Err(keyloom::Error::other("no"))
    };
    assert!(store.transact(|txn| things.update(txn, &1, failing)).is_err());
    assert_eq!(dump_all(store), before);
}
