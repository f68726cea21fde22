//! Costs, faults, conflicts, damage and bad input.

use std::collections::BTreeMap;

use keyloom::{DynWriter, Error, KeyBuf, Metered, Result, Store, Subspace, Writer};
use keyloom_tables::Aggregates;
use keyloom_tables::entity::ListPlace;
use keyloom_tables::{Inconsistency, Rule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::entity::shapes::{faults, things};
use keyloom_testing::laws::{
    clear, conflicts_are_retried_to_the_same_end, counts, faults_leave_nothing_half_done, refused,
    waits, writing,
};

#[derive(Serialize, Deserialize)]
struct Named {
    name: String,
}

fn record() -> Value {
    let tracks = json!([{"title": "So What", "seconds": 562}, {"title": "Blue in Green"}]);
    json!({"name": "Kind of Blue", "label": null, "tracks": tracks})
}

fn prepare(store: &impl Store) {
    store.transact(|txn| things().put(txn, &1, &record())).unwrap();
}

fn rename(named: &mut Named) -> Result<()> {
    named.name.push('!');
    Ok(())
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let things = things();
    let store = Metered::new(store.clone());
    // Gets, ranges, keys read, keys written. The record has 9 parts.
    assert_eq!(writing(&store, |txn| things.put(txn, &1, &record())), [0, 1, 0, 9]);
    assert_eq!(writing(&store, |txn| things.put(txn, &1, &record())), [0, 1, 9, 0]);
    assert_eq!(writing(&store, |txn| things.set(txn, &1, "label", "CBS")), [1, 1, 2, 1]);
    assert_eq!(writing(&store, |txn| things.set(txn, &1, "year", &1959)), [1, 1, 1, 1]);
    let update = |txn: &mut DynWriter<'_>| things.update(txn, &1, rename).map(drop);
    assert_eq!(writing(&store, update), [0, 1, 10, 1]);
    // Reads two steps of the path, and the replaced value: a list and its items.
    let tracks = things.items::<Value>(&store.snapshot().unwrap(), &1, "tracks").unwrap();
    let (first, second) = (&tracks[0].0, &tracks[1].0);
    let retitle = |txn: &mut DynWriter<'_>| things.set(txn, &1, ("tracks", first, "title"), "Blue");
    assert_eq!(writing(&store, retitle), [3, 1, 4, 1]);
    let undivided = |txn: &mut DynWriter<'_>| things.set_undivided(txn, &1, "year", &[1959, 3]);
    assert_eq!(writing(&store, undivided), [1, 1, 2, 1]);
    let track = json!({"title": "All Blues"});
    let push = |txn: &mut DynWriter<'_>| things.push(txn, &1, "tracks", &track).map(drop);
    assert_eq!(writing(&store, push), [2, 1, 3, 2]);
    let insert = |txn: &mut DynWriter<'_>| {
        things.insert(txn, &1, "tracks", ListPlace::After(first), &track).map(drop)
    };
    assert_eq!(writing(&store, insert), [2, 1, 3, 2]);
    let insert = |txn: &mut DynWriter<'_>| {
        things.insert(txn, &1, "tracks", ListPlace::Before(second), &track).map(drop)
    };
    assert_eq!(writing(&store, insert), [2, 1, 3, 2]);
    // A missing list is created.
    let push = |txn: &mut DynWriter<'_>| things.push(txn, &1, "tags", "jazz").map(drop);
    assert_eq!(writing(&store, push), [2, 1, 1, 2]);
    let remove = |txn: &mut DynWriter<'_>| things.remove(txn, &1, ("tracks", first)).map(drop);
    assert_eq!(writing(&store, remove), [0, 1, 1, 1]);
    assert_eq!(writing(&store, remove), [0, 1, 0, 0]);

    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| counts(store.measure(|_| work()).1);
    // The list has four items of 2 parts each; the second item already has its final number.
    let get = || drop(things.get::<Value>(&snapshot, &1).unwrap().unwrap());
    assert_eq!(reading(&get), [0, 1, 15, 0]);
    let name = || drop(things.field::<String>(&snapshot, &1, "name").unwrap().unwrap());
    assert_eq!(reading(&name), [1, 0, 1, 0]);
    let tags = || drop(things.field::<Vec<String>>(&snapshot, &1, "tags").unwrap().unwrap());
    assert_eq!(reading(&tags), [1, 1, 3, 0]);
    let absent = || assert!(things.field::<Value>(&snapshot, &1, "absent").unwrap().is_none());
    assert_eq!(reading(&absent), [1, 0, 0, 0]);
    let items = || drop(things.items::<String>(&snapshot, &1, "tags").unwrap());
    assert_eq!(reading(&items), [0, 1, 2, 0]);
    let range = || assert_eq!(things.range(&snapshot, ..).unwrap().count(), 1);
    assert_eq!(reading(&range), [0, 1, 15, 0]);
    drop(snapshot);
    // Four tracks of 2 parts at four positions: the second of them already has its number.
    let renumber = |txn: &mut DynWriter<'_>| things.renumber(txn, &1, "tags");
    assert_eq!(writing(&store, renumber), [0, 1, 2, 0]);
    assert_eq!(writing(&store, |txn| things.delete(txn, &1).map(drop)), [0, 1, 1, 1]);
}

#[test]
fn operations_wait_as_often_as_the_documentation_says() {
    let store = Metered::new(keyloom::Memory::new());
    prepare(&store);
    let things = things();
    let tracks = things.items::<Value>(&store.snapshot().unwrap(), &1, "tracks").unwrap();
    let first = &tracks[0].0;
    // One round trip for the reads, and one for the commit.
    assert_eq!(waits(&store, |txn| things.put(txn, &1, &record())), 2);
    assert_eq!(waits(&store, |txn| things.update(txn, &1, rename).map(drop)), 2);
    assert_eq!(waits(&store, |txn| things.set(txn, &1, ("tracks", first, "title"), "x")), 3);
    assert_eq!(waits(&store, |txn| things.push(txn, &1, "tracks", &1).map(drop)), 3);
    assert_eq!(waits(&store, |txn| things.remove(txn, &1, ("tracks", first)).map(drop)), 2);
    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| store.measure(|_| work()).1.round_trips;
    assert_eq!(reading(&|| drop(things.get::<Value>(&snapshot, &1).unwrap())), 1);
    assert_eq!(reading(&|| drop(things.field::<String>(&snapshot, &1, "name").unwrap())), 1);
    assert_eq!(reading(&|| drop(things.field::<Value>(&snapshot, &1, "tracks").unwrap())), 2);
}

fn change(txn: &mut DynWriter<'_>) -> Result<()> {
    let things = things();
    things.update(txn, &1, rename)?;
    things.push(txn, &1, "tracks", &json!({"title": "All Blues", "seconds": 693}))?;
    let tracks = things.items::<Value>(txn, &1, "tracks")?;
    things.insert(txn, &1, "tracks", ListPlace::Before(&tracks[1].0), &json!({"x": []}))?;
    things.remove(txn, &1, ("tracks", &tracks[0].0))?;
    things.renumber(txn, &1, "tracks")?;
    things.set(txn, &1, ("made", "on", "the way"), &json!([1, 2]))?;
    things.put(txn, &2, &record())?;
    things.delete(txn, &2).map(drop)
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    faults_leave_nothing_half_done(store, prepare, change, faults);
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    conflicts_are_retried_to_the_same_end(store, prepare, change);
}

pub fn check_finds_every_kind_of_damage(store: &(impl Store + Clone)) {
    clear(store);
    prepare(store);
    let things = things();
    let space = things.space().clone();
    let key = |path: &[&str]| path.iter().fold(space.child(&1), |here, step| here.child(step));
    let key = |path: &[&str]| KeyBuf::from_slice(key(path).prefix());
    assert_eq!(faults(store), [""; 0]);
    let damage = [
        (space.pack(&("no number", 1)), &b"\xA0"[..]),
        (space.pack(&(1, 1.5)), b"\xA0"),
        (key(&["broken"]), b"\xFF"),
        (key(&["longer"]), b"\xA0\xA0"),
        (key(&["a", "b"]), b"\xF6"),
        (key(&["name", "below a text"]), b"\xF6"),
        (key(&["tracks", "no position"]), b"\xF6"),
        (space.pack(&(3, "of nobody")), b"\xF6"),
        (space.pack(&7), b"\x01"),
    ];
    store.transact(|txn| damage.iter().try_for_each(|(key, value)| txn.put(key, value))).unwrap();
    let mut found = things.check(&store.snapshot().unwrap()).unwrap();
    found.sort_by_key(|fault| fault.key.clone());
    let [foreign, path, broken, longer, orphan, below, kind, nobody, scalar] =
        damage.map(|(key, _)| key);
    let mut wanted = vec![
        Inconsistency::new(foreign, Rule::Foreign),
        Inconsistency::new(path, Rule::Foreign),
        Inconsistency::new(broken.clone(), Rule::Undecodable),
        Inconsistency::new(longer, Rule::Undecodable),
        Inconsistency::new(orphan.clone(), Rule::NoParent),
        Inconsistency::new(below, Rule::NoParent),
        Inconsistency::new(kind, Rule::NoParent),
        Inconsistency::new(nobody, Rule::NoParent),
        Inconsistency::new(scalar, Rule::Wrong).with_text("is an entity and no map"),
    ];
    wanted.sort_by_key(|fault| fault.key.clone());
    assert_eq!(found, wanted);
    for fault in &found {
        assert!(fault.to_string().contains(r#"("things""#), "{fault} names the key");
    }
    // Reading such an entity returns an error that names the key, and deleting the entity repairs
    // it.
    let snapshot = store.snapshot().unwrap();
    let error = things.get::<Value>(&snapshot, &1).unwrap_err();
    assert!(error.to_string().contains("at key (\"things\", 1, "), "{error}");
    let error = things.get::<Value>(&snapshot, &3).unwrap_err();
    assert!(error.to_string().contains("list or map does not exist"), "{error}");
    drop(snapshot);
    store
        .transact(|txn| {
            txn.delete(&wanted_foreign())?;
            [1, 3, 7].iter().try_for_each(|id| things.delete(txn, id).map(drop))
        })
        .unwrap();
    assert_eq!(faults(store), [""; 0]);
}

fn wanted_foreign() -> KeyBuf {
    things().space().pack(&("no number", 1))
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    clear(store);
    prepare(store);
    let things = things();
    let long = "n".repeat(600);
    // Names that are too long together, also within the value.
    let error = refused(store, |txn| things.set(txn, &1, ("a", &*long), &1));
    assert!(matches!(&error, Error::KeyTooLong { limit: 511, .. }), "{error}");
    let error = refused(store, |txn| things.put(txn, &2, &json!({"a": {"b": {&*long: 1}}})));
    assert!(matches!(&error, Error::KeyTooLong { key, .. } if key.contains("things")), "{error}");
    let of_names = Aggregates::<String>::new(&Subspace::new("names"));
    let error = refused(store, |txn| of_names.push(txn, &long, "l", &1).map(drop));
    assert!(matches!(error, Error::KeyTooLong { .. }), "{error}");
    assert!(of_names.get::<Value>(&store.snapshot().unwrap(), &long).is_err());

    let says = |error: Error, words: &[&str]| {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    // Maps whose keys are neither text nor integers.
    let pairs = BTreeMap::from([((1, 2), 3)]);
    says(refused(store, |txn| things.set(txn, &1, "p", &pairs)), &["store it undivided", r#""p""#]);
    // An entity that is not a map.
    says(refused(store, |txn| things.put(txn, &2, &7)), &["neither a struct nor a map", "2"]);
    says(refused(store, |txn| things.set(txn, &2, (), &[1])), &["neither a struct nor a map"]);
    // A path with a step of another type.
    says(refused(store, |txn| things.set(txn, &1, 1.5, &1)), &["the path", "1.5"]);
    let snapshot = store.snapshot().unwrap();
    says(things.field::<Value>(&snapshot, &1, true).unwrap_err(), &["the path", "true"]);
    drop(snapshot);
    // A path through a text, a list, an absent item.
    says(refused(store, |txn| things.set(txn, &1, ("name", "x"), &1)), &[r#""name""#, "not a map"]);
    says(refused(store, |txn| things.set(txn, &1, ("tracks", "x"), &1)), &["not a map"]);
    says(refused(store, |txn| things.push(txn, &1, "name", &1).map(drop)), &["not a list"]);
    says(refused(store, |txn| things.push(txn, &1, (), &1).map(drop)), &["not a list"]);
    let tracks = things.items::<Value>(&store.snapshot().unwrap(), &1, "tracks").unwrap();
    let (position, _) = &tracks[0];
    store.transact(|txn| things.remove(txn, &1, ("tracks", position))).unwrap();
    says(refused(store, |txn| things.set(txn, &1, ("tracks", position), &1)), &["no such item"]);
    let below = |txn: &mut DynWriter<'_>| things.set(txn, &1, ("tracks", position, "title"), "x");
    says(refused(store, below), &["no such item", "tracks"]);
    let push = |txn: &mut DynWriter<'_>| things.push(txn, &1, ("tracks", position), &1).map(drop);
    says(refused(store, push), &["no such item"]);
    says(refused(store, |txn| things.push(txn, &9, (), &1).map(drop)), &["not a list"]);
    says(refused(store, |txn| things.set(txn, &1, ("none", position), &1)), &["no such item"]);
}

/// Many insertions at one position, in the worst order, until a key is too long; then the remedy.
#[test]
fn a_list_whose_positions_have_grown_is_renumbered() {
    let store = keyloom::Memory::new();
    let things = things();
    // A long name leaves a hundred bytes to the positions.
    let list = &*"l".repeat(400);
    store.transact(|txn| things.put(txn, &1, &json!({list: ["first", "last"]}))).unwrap();
    let items = || things.items::<String>(&store.snapshot().unwrap(), &1, list).unwrap();
    let (mut low, mut high) = (items()[0].0.clone(), items()[1].0.clone());
    let mut texts = vec!["first".to_owned(), "last".to_owned()];
    let mut at = 1;
    let error = loop {
        let text = format!("{}", texts.len());
        let place = ListPlace::After(&low);
        match store.transact(|txn| things.insert(txn, &1, list, place, &text)) {
            Ok(new) => {
                assert!(low < new && new < high);
                texts.insert(at, text);
                if texts.len() % 2 == 0 {
                    (low, at) = (new, at + 1);
                } else {
                    high = new;
                }
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::KeyTooLong { .. }), "{error}");
    assert!(texts.len() > 300, "{} insertions at one place", texts.len());
    let read = || items().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(read(), texts);
    store.transact(|txn| things.renumber(txn, &1, list)).unwrap();
    assert_eq!(read(), texts);
    assert!(store.transact(|txn| things.push(txn, &1, list, "more")).is_ok());
    assert_eq!(faults(&store), [""; 0]);
}
