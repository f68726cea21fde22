//! Random changes, compared with the same changes to a JSON value.

use std::collections::BTreeMap;

use keyloom::key::{Element, List};
use keyloom::{KeyRange, Reader, Result, Store, Subspace, Writer};
use keyloom_tables::entity::{ListPlace, ListPosition};
use keyloom_tables::{Aggregates, within};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::entity::shapes::{faults, object, things, value};
use keyloom_testing::laws::{clear, dump, dump_all, long_property, property};

/// A step of a path in a test; an item is given by its number.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Name(&'static str),
    Item(usize),
}

#[derive(Clone, Debug)]
enum Change {
    Put(Value),
    Set(Vec<Step>, Value),
    Remove(Vec<Step>),
    Push(Vec<Step>, Value),
    Insert(Vec<Step>, usize, Value),
    Renumber(Vec<Step>),
}

fn path() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => prop::sample::select(vec!["a", "a\0", "l"]).prop_map(Step::Name),
        1 => (0..3usize).prop_map(Step::Item),
    ];
    let first = prop::sample::select(vec!["a", "a\0", "l"]).prop_map(Step::Name);
    (first, vec(step, 0..3)).prop_map(|(first, rest)| [vec![first], rest].concat())
}

fn changes() -> impl Strategy<Value = Vec<(u8, Change)>> {
    let list = || prop_oneof![2 => Just(vec![Step::Name("l")]), 1 => path()];
    let change = prop_oneof![
        1 => object().prop_map(Change::Put),
        6 => (path(), value()).prop_map(|(path, value)| Change::Set(path, value)),
        2 => path().prop_map(Change::Remove),
        4 => (list(), value()).prop_map(|(list, value)| Change::Push(list, value)),
        4 => (list(), 0..4usize, value())
            .prop_map(|(list, at, value)| Change::Insert(list, at, value)),
        1 => list().prop_map(Change::Renumber),
    ];
    vec((0..2u8, change), 1..12)
}

/// The value at the end of the path, if every step exists.
fn find<'v>(root: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(root, |here, step| match step {
        Step::Name(name) => here.as_object_mut()?.get_mut(*name),
        Step::Item(at) => here.as_array_mut()?.get_mut(*at),
    })
}

/// The slot at the end of the path. Missing objects on the path are created. Returns `None` if the
/// path is refused.
fn slot<'v>(root: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(root, |here, step| match step {
        Step::Name(name) => {
            if *here == Value::String("missing".into()) {
                *here = Value::Object(Map::new());
            }
            let missing = || Value::String("missing".into());
            Some(here.as_object_mut()?.entry(*name).or_insert_with(missing))
        }
        Step::Item(at) => here.as_array_mut()?.get_mut(*at),
    })
}

/// Applies a change to a copy of the model. Returns `None` if the change must be refused, otherwise
/// `Some` with the expected return value.
fn imitate(entity: &mut Option<Value>, change: &Change) -> Option<bool> {
    let there = entity.is_some();
    let mut copy = entity.clone().unwrap_or_else(|| Value::String("missing".into()));
    let told = match change {
        Change::Put(new) => {
            copy = new.clone();
            true
        }
        Change::Set(path, value) => {
            *slot(&mut copy, path)? = value.clone();
            true
        }
        Change::Remove(path) => {
            let (last, before) = path.split_last()?;
            let parent = if there { find(&mut copy, before) } else { None };
            match (parent, last) {
                (Some(Value::Object(map)), Step::Name(name)) => map.remove(*name).is_some(),
                (Some(Value::Array(items)), Step::Item(at)) if *at < items.len() => {
                    items.remove(*at);
                    true
                }
                _ => false,
            }
        }
        Change::Push(path, value) | Change::Insert(path, _, value) => {
            let list = slot(&mut copy, path)?;
            if *list == Value::String("missing".into()) {
                *list = json!([]);
            }
            let items = list.as_array_mut()?;
            let at = match change {
                Change::Insert(_, at, _) => (*at).min(items.len()),
                _ => items.len(),
            };
            items.insert(at, value.clone());
            true
        }
        Change::Renumber(_) => true,
    };
    if there || !matches!(change, Change::Remove(_) | Change::Renumber(_)) {
        *entity = Some(copy);
    }
    Some(told)
}

/// The path with positions instead of item numbers; `None` if an item does not exist.
fn resolve(txn: &impl Reader, id: u8, path: &[Step]) -> Option<List<Vec<Element>>> {
    let things = things();
    let mut resolved: Vec<Element> = Vec::new();
    for step in path {
        let element = match step {
            Step::Name(name) => Element::from(*name),
            Step::Item(at) => {
                let items = positions(&things, txn, id, &List(resolved.clone()));
                element_of(items.get(*at)?)
            }
        };
        resolved.push(element);
    }
    Some(List(resolved))
}

fn positions(
    things: &Aggregates<u8>,
    txn: &impl Reader,
    id: u8,
    list: &List<Vec<Element>>,
) -> Vec<ListPosition> {
    let items = things.items::<IgnoredAny>(txn, &id, list).unwrap();
    items.into_iter().map(|(position, _)| position).collect()
}

fn element_of(position: &ListPosition) -> Element {
    keyloom::key::elements(&keyloom::key::pack(&(position,))).unwrap().remove(0)
}

fn apply(txn: &mut impl Writer, id: u8, change: &Change) -> Option<Result<bool>> {
    let things = things();
    Some(match change {
        Change::Put(entity) => things.put(txn, &id, entity).map(|()| true),
        Change::Set(path, value) => {
            let path = resolve(txn, id, path)?;
            things.set(txn, &id, path, value).map(|()| true)
        }
        Change::Remove(path) => {
            let Some(path) = resolve(txn, id, path) else { return Some(Ok(false)) };
            things.remove(txn, &id, path)
        }
        Change::Push(path, value) => {
            let path = resolve(txn, id, path)?;
            things.push(txn, &id, path, value).map(|_| true)
        }
        Change::Insert(path, at, value) => {
            let path = resolve(txn, id, path)?;
            let items = positions(&things, txn, id, &path);
            // The same position, in one of its possible forms.
            let place = match (items.get(*at), at.checked_sub(1).and_then(|at| items.get(at))) {
                (Some(_), None) => ListPlace::First,
                (Some(next), Some(_)) if at % 2 == 0 => ListPlace::Before(next),
                (_, Some(before)) => ListPlace::After(before),
                (None, None) => ListPlace::Last,
            };
            things.insert(txn, &id, path, place, value).map(|_| true)
        }
        Change::Renumber(path) => {
            let path = resolve(txn, id, path)?;
            things.renumber(txn, &id, path).map(|()| true)
        }
    })
}

pub fn every_change_does_what_it_does_to_a_json_value(store: &(impl Store + Clone)) {
    long_property(changes(), |changes| {
        clear(store);
        let mut model: BTreeMap<u8, Option<Value>> = BTreeMap::new();
        for (id, change) in changes {
            let entity = model.entry(id).or_default();
            let before = (entity.clone(), dump_all(store));
            let wanted = imitate(entity, &change);
            let mut done = None;
            let committed = store.transact(|txn| {
                done = apply(txn, id, &change);
                if let Some(Err(error)) = &done {
                    let now = dump(txn, KeyRange::all());
                    assert_eq!(now, before.1, "something was written before: {error}");
                }
                Ok(())
            });
            assert_eq!(committed.is_err(), matches!(done, Some(Err(_))), "{committed:?}");
            match (done, wanted) {
                (Some(Ok(told)), Some(wanted)) => assert_eq!(told, wanted, "{change:?}"),
                (None | Some(Err(_)), None) => {
                    *entity = before.0;
                    assert_eq!(dump_all(store), before.1, "{change:?} was refused");
                }
                // A path through an absent item cannot be expressed.
                (None, Some(_)) => *entity = before.0,
                (done, wanted) => panic!("{change:?} gave {done:?} instead of {wanted:?}"),
            }
        }
        let snapshot = store.snapshot().unwrap();
        for (id, entity) in &model {
            let found = things().get::<Value>(&snapshot, id).unwrap();
            assert_eq!(&found, entity);
        }
        drop(snapshot);
        assert_eq!(faults(store), [""; 0]);
    });
}

pub fn entities_are_found_in_one_range(store: &(impl Store + Clone)) {
    let orders = Aggregates::<(String, u8)>::new(&Subspace::new("orders"));
    // Customers whose names are prefixes of each other.
    let customer = prop::sample::select(vec!["a", "a\0", "ab", "b"]);
    let entities = prop::collection::btree_map((customer, 0..4u8), object(), 0..8);
    property(entities, |entities| {
        clear(store);
        store
            .transact(|txn| {
                entities.iter().try_for_each(|((customer, number), order)| {
                    orders.put(txn, &((*customer).to_owned(), *number), order)
                })
            })
            .unwrap();
        let snapshot = store.snapshot().unwrap();
        let all = orders.range(&snapshot, ..).unwrap().map(Result::unwrap);
        let all: Vec<((String, u8), Value)> =
            all.map(|(key, entity)| (key, entity.decode().unwrap())).collect();
        let wanted = |keep: &dyn Fn(&str, u8) -> bool| -> Vec<((String, u8), Value)> {
            let kept = entities.iter().filter(|((customer, number), _)| keep(customer, *number));
            kept.map(|((c, n), order)| (((*c).to_owned(), *n), order.clone())).collect()
        };
        assert_eq!(all, wanted(&|_, _| true));
        let keys = |found: Vec<((String, u8), Value)>| {
            found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        let of_a = orders.range(&snapshot, "a").unwrap().map(|entity| entity.unwrap().0);
        assert_eq!(of_a.collect::<Vec<_>>(), keys(wanted(&|customer, _| customer == "a")));
        let between = orders.range(&snapshot, within(("a", 2)..("ab", 2))).unwrap();
        let wanted_keys = keys(wanted(&|c, n| (c, n) >= ("a", 2) && (c, n) < ("ab", 2)));
        assert_eq!(between.map(|entity| entity.unwrap().0).collect::<Vec<_>>(), wanted_keys);
        // Fields of the result, without another read.
        for entity in orders.range(&snapshot, ..).unwrap() {
            let (key, entity) = entity.unwrap();
            let whole: Value = orders.get(&snapshot, &key).unwrap().unwrap();
            assert_eq!(entity.field::<Value>("a").unwrap().as_ref(), whole.get("a"));
            assert_eq!(entity.field::<Value>(("a", "x")).unwrap().as_ref(), whole["a"].get("x"));
        }
    });
}

/// 0.0 and -0.0 are equal numbers and different values.
#[test]
fn a_changed_sign_of_zero_is_written() {
    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    struct Reading {
        value: f64,
        list: Vec<f64>,
    }
    let store = keyloom::Memory::new();
    let readings = Aggregates::<u32>::new(&Subspace::new("readings"));
    let mut reading = Reading { value: 0.0, list: vec![1.0, 0.0] };
    store.transact(|txn| readings.put(txn, &1, &reading)).unwrap();
    for sign in [-1.0_f64, 1.0, -1.0] {
        reading.value = reading.value.copysign(sign);
        reading.list[1] = reading.list[1].copysign(sign);
        store.transact(|txn| readings.put(txn, &1, &reading)).unwrap();
        let stored: Reading = readings.get(&store.snapshot().unwrap(), &1).unwrap().unwrap();
        let bits = |reading: &Reading| (reading.value.to_bits(), reading.list[1].to_bits());
        assert_eq!(bits(&stored), bits(&reading));
    }
}
