//! The kinds of index: what they hold, what they find, and how they are mended.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use keyloom::{Desc, KeyBuf, Metered, Order, Reader, Store, Writer};
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::{Inconsistency, Index, IndexEntries, entry};
use proptest::collection::vec;

use crate::fixture::{
    Oracle, People, apply, change, dump_all, going_on, history, imitate, make, person, property,
    sample, samples,
};

pub fn rebuilt_equals_maintained_for_every_kind(store: &(impl Store + Clone)) {
    property(96, history(), |history| {
        let people = People::opened(store);
        let oracle = apply(&people, store, &history);
        people.is_clean(store);
        people.drain(store);
        people.is_clean(store);
        let maintained = people.entries(store);

        // All at once, into an empty store.
        let people = People::opened(store);
        store.transact(|txn| people.table.put_many(txn, oracle.clone())).unwrap();
        people.drain(store);
        assert_eq!(people.entries(store), maintained);

        // Built over records that are there, in small batches.
        crate::fixture::clear(store);
        store.transact(|txn| people.bare.put_many(txn, oracle.clone())).unwrap();
        for (name, _) in people.indexes() {
            assert!(people.build(store, name, 3).is_finished());
        }
        assert_eq!(people.entries(store), maintained);
        people.is_clean(store);
    });
}

pub fn queries_find_what_a_filter_over_all_records_finds(store: &(impl Store + Clone)) {
    property(64, history(), |history| {
        let people = People::opened(store);
        let oracle = apply(&people, store, &history);
        people.drain(store);
        let snapshot = store.snapshot().unwrap();
        let read = |name| people.catalog.readable(&snapshot, name).unwrap();

        // From the entries alone: nothing asks for a record.
        let mut wanted: Vec<_> = oracle
            .iter()
            .map(|(id, p)| (p.city.clone(), Reverse(p.age), *id, p.name.clone(), p.tags.len()))
            .collect();
        wanted.sort();
        let found: Vec<_> = read("by_city")
            .range(&snapshot, (), Order::Ascending)
            .unwrap()
            .map(|found| {
                let found = found.unwrap();
                let (city, Desc(age)) = found.parts::<(String, Desc<u8>)>().unwrap();
                let (name, tags) = found.covered::<(String, usize)>().unwrap();
                (city, Reverse(age), found.record_key().unwrap(), name, tags)
            })
            .collect();
        assert_eq!(found, wanted);
        is_found_by_email(&people, &snapshot, &oracle);
        for tag in ["x", "y", "z"] {
            let has_tag = |p: &crate::fixture::Person| p.tags.iter().any(|t| t == tag);
            let wanted: Vec<_> = oracle.iter().filter(|(_, p)| has_tag(p)).collect();
            let found =
                read("by_tag").records(&snapshot, &people.table, tag, Order::Ascending, 99, None);
            assert_eq!(
                found.unwrap().items.iter().map(|(i, p)| (i, p)).collect::<Vec<_>>(),
                wanted
            );
        }
        for age in 0..3u8 {
            let wanted = oracle.values().filter(|p| p.age == age && age > 0).count();
            assert_eq!(read("by_age").count(&snapshot, age).unwrap(), wanted as u64);
        }
    });
}

/// Whatever waits for a drain, what is found is so, and what did not change is found.
pub fn records_by_an_index_that_is_behind_are_right(store: &(impl Store + Clone)) {
    property(24, (history(), vec(change(), 0..8)), |(history, later)| {
        let people = People::opened(store);
        let drained = apply(&people, store, &history);
        people.drain(store);
        for change in later {
            drop(store.transact(|txn| make(&people.table, txn, std::slice::from_ref(&change))));
        }
        let snapshot = store.snapshot().unwrap();
        let now: BTreeMap<u16, crate::fixture::Person> = people
            .table
            .range(&snapshot, (), Order::Ascending)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for age in 0..3u8 {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let order = Order::Ascending;
                let page = people.catalog.records(
                    &snapshot,
                    &people.table,
                    "by_age",
                    age,
                    order,
                    2,
                    after.as_ref(),
                );
                let page = page.unwrap();
                found.extend(page.items);
                let Some(next) = page.next else { break };
                after = Some(next);
            }
            let has_age = |p: &crate::fixture::Person| age > 0 && p.age == age;
            let wanted =
                now.iter().filter(|(id, p)| has_age(p) && drained.get(id).is_some_and(has_age));
            assert!(found.iter().map(|(id, p)| (id, p)).eq(wanted), "{age}: {found:?}");
        }
        // One that is not behind: as the index itself.
        let records = people.catalog.records(
            &snapshot,
            &people.table,
            "by_tag",
            "x",
            Order::Descending,
            99,
            None,
        );
        let wanted = now.iter().rev().filter(|(_, p)| p.tags.iter().any(|tag| tag == "x"));
        assert!(records.unwrap().items.iter().map(|(id, p)| (id, p)).eq(wanted));
    });
}

fn is_found_by_email(people: &People, snapshot: &impl Reader, oracle: &Oracle) {
    let by_email = people.catalog.readable(snapshot, "by_email").unwrap();
    for email in ["", "a", "a\0", "b", "c", "d", "e", "f", "nobody"] {
        let wanted = oracle.iter().find(|(_, p)| p.email.as_deref() == Some(email));
        let found = by_email.get(snapshot, email).unwrap().map(|found| {
            assert_eq!(found.parts::<String>().unwrap(), email);
            (found.record_key().unwrap(), found.covered::<String>().unwrap())
        });
        assert_eq!(found, wanted.map(|(id, p)| (*id, p.name.clone())));
    }
    // A range of a unique index works like any other, and so do pages and records.
    let wanted: Vec<_> = oracle.values().filter_map(|p| p.email.clone()).collect();
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = by_email
            .records(snapshot, &people.table, (), Order::Ascending, 2, after.as_ref())
            .unwrap();
        found.extend(page.items.into_iter().map(|(_, p)| p.email.unwrap()));
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    assert!(found.is_sorted());
    assert_eq!(found.len(), wanted.len());
}

pub fn many_at_once_leave_what_one_by_one_leaves(store: &(impl Store + Clone)) {
    let puts = vec((0..10u16, person()), 0..10);
    property(96, (history(), puts, vec(change(), 0..6)), |(history, puts, before)| {
        let run = |at_once: bool| {
            let people = People::opened(store);
            apply(&people, store, &history);
            drop(store.transact(|txn| make(&people.table, txn, &before)));
            let outcome = store.transact(|txn| match at_once {
                true => people.table.put_many(txn, &puts),
                false => puts.iter().try_for_each(|(id, person)| people.table.put(txn, id, person)),
            });
            people.is_clean(store);
            people.drain(store);
            let snapshot = store.snapshot().unwrap();
            let records = people.table.range(&snapshot, (), Order::Ascending).unwrap();
            let records: BTreeMap<u16, _> = records.map(Result::unwrap).collect();
            (outcome.is_ok(), records, dump_all(store))
        };
        let (one_by_one, at_once) = (run(false), run(true));
        if one_by_one.0 || !at_once.0 {
            assert!(at_once == one_by_one, "{:?} is not {:?}", at_once.1, one_by_one.1);
        } else {
            // What one of them gives up another may take, whichever comes first: only the end counts.
            let mut wanted = one_by_one.1;
            wanted.extend(puts.iter().cloned());
            assert_eq!(at_once.1, wanted);
        }
    });
}

pub fn check_finds_and_repair_mends_what_is_wrong_with_any_kind(store: &(impl Store + Clone)) {
    let people = People::opened(store);
    store.transact(|txn| people.table.put_many(txn, samples(1..=40))).unwrap();
    people.drain(store);
    let whole = dump_all(store);
    // Some records change and wait for the next drain; repairs must not be led astray by that.
    let older = |id: u16| crate::fixture::Person { age: 99, ..sample(id) };
    for (name, index) in people.indexes() {
        let space = people.space.child(name);
        let keys: Vec<Vec<u8>> =
            people.entries(store).into_keys().filter(|k| space.contains(k)).collect();
        store
            .transact(|txn| {
                txn.delete(&keys[3])?;
                txn.put(&keys[5], b"\x10\x01")?;
                txn.put(&space.pack(&("nothing", "of", "the kind")), b"?")
            })
            .unwrap();
        if name == "by_age" {
            store
                .transact(|txn| {
                    [7, 8].iter().try_for_each(|id| people.table.put(txn, id, &older(*id)))
                })
                .unwrap();
        }
        let found = people.catalog.check(&store.snapshot().unwrap(), &people.table, name).unwrap();
        assert!(found.len() >= 3, "{name}: {found:?}");
        assert!(
            found
                .iter()
                .any(|f| matches!(f, Inconsistency::Missing { entry } if entry[..] == keys[3]))
        );
        assert!(found.iter().any(|f| f.entry() == keys[5]));
        let options = RepairOptions { batch: 7, resume: None };
        let done = people.catalog.repair(store, &people.table, name, &options, going_on).unwrap();
        assert!(done.finished && done.records == 40 && done.removed >= 1);
        assert!((2..=4).contains(&done.written), "{name}: {}", done.written);
        assert_eq!(index.check(&store.snapshot().unwrap(), &people.table).unwrap(), [], "{name}");
        // What is right is left alone, and nothing is written for it.
        let metered = Metered::new(store.clone());
        let (again, cost) = metered.measure(|store| {
            people.catalog.repair(store, &people.table, name, &options, going_on).unwrap()
        });
        assert_eq!((again.written, again.removed, cost.keys_written), (0, 0, 0), "{name}");
    }
    let back = [(7, Some(sample(7))), (8, Some(sample(8)))];
    store.transact(|txn| make(&people.table, txn, &back)).unwrap();
    people.drain(store);
    people.is_clean(store);
    assert_eq!(dump_all(store), whole);
}

#[test]
fn two_records_with_one_value_are_contested_and_a_repair_leaves_them_to_their_owner() {
    let store = keyloom::Memory::new();
    let people = People::opened(&store);
    let twin = crate::fixture::Person { email: sample(1).email, ..sample(2) };
    store
        .transact(|txn| {
            people.table.put(txn, &1, &sample(1))?;
            people.bare.put(txn, &2, &twin)
        })
        .unwrap();
    let check = || people.by_email.check(&store.snapshot().unwrap(), &people.table).unwrap();
    let found = check();
    assert!(matches!(&found[..], [Inconsistency::Contested { .. }]), "{found:?}");
    let text = found[0].to_string();
    assert!(text.contains("1@example.org") && text.contains("(2,)"), "{text}");
    let done =
        people.by_email.repair(&store, &people.table, &RepairOptions::default(), going_on).unwrap();
    assert_eq!((done.contested, done.written, done.removed), (1, 0, 0));
    // Whoever goes takes only what is his.
    store.transact(|txn| people.table.delete(txn, &2)).unwrap();
    assert_eq!(check(), []);
    assert_eq!(imitate(&Oracle::new(), &[(1, Some(sample(1)))]).unwrap().len(), 1);
}

#[test]
fn of_two_records_with_one_value_that_nobody_holds_the_first_gets_the_entry() {
    let store = keyloom::Memory::new();
    let people = People::opened(&store);
    let twin = |id| crate::fixture::Person { email: sample(1).email, ..sample(id) };
    let fill = || {
        crate::fixture::clear(&store);
        store
            .transact(|txn| people.bare.put_many(txn, [(1, twin(1)), (2, twin(2)), (3, twin(3))]))
            .unwrap();
    };
    let check = || people.by_email.check(&store.snapshot().unwrap(), &people.table).unwrap();
    let contested = |found: &Inconsistency, id: u16| {
        assert!(
            matches!(found, Inconsistency::Contested { record, .. } if *record == keyloom::pack(&id)),
            "{found:?}"
        );
    };
    // Together, and apart from each other.
    for batch in [1_000, 2, 1] {
        fill();
        let found = check();
        assert!(
            matches!(&found[0], Inconsistency::Missing { .. }) && found.len() == 3,
            "{found:?}"
        );
        contested(&found[1], 2);
        contested(&found[2], 3);
        let options = RepairOptions { batch, resume: None };
        let metered = keyloom::Metered::new(store.clone());
        let (done, cost) = metered
            .measure(|store| people.by_email.repair(store, &people.table, &options, going_on));
        let done = done.unwrap();
        assert_eq!((done.contested, done.written, done.removed), (2, 1, 0), "{batch} at once");
        assert_eq!(cost.keys_written, 1, "{batch} at once");
        let found = check();
        assert_eq!(found.len(), 2, "{found:?}");
        contested(&found[0], 2);
        contested(&found[1], 3);
        let email = sample(1).email.unwrap();
        let snapshot = store.snapshot().unwrap();
        let holder = people.by_email.get(&snapshot, &*email).unwrap().unwrap();
        assert_eq!(holder.record_key().unwrap(), 1);
    }
    // An entry that is there and wrong is the same to them.
    fill();
    let entry = KeyBuf::from_slice(check()[0].entry());
    store.transact(|txn| txn.put(&entry, b"\x10\x01")).unwrap();
    let found = check();
    assert!(found.contains(&Inconsistency::Wrong { entry }), "{found:?}");
    let options = RepairOptions::default();
    let done = people.by_email.repair(&store, &people.table, &options, going_on).unwrap();
    assert_eq!((done.contested, done.written, done.removed), (2, 1, 0));
}

/// The control: what goes past the catalog is not maintained, and found.
#[test]
fn writes_that_bypass_the_catalog_are_caught_in_every_index() {
    let store = keyloom::Memory::new();
    let people = People::opened(&store);
    store.transact(|txn| people.table.put_many(txn, samples(1..=3))).unwrap();
    people.drain(&store);
    people.is_clean(&store);
    let damage: [(&str, Vec<crate::fixture::Change>); 3] = [
        ("new", vec![(4, Some(sample(4)))]),
        ("moved", vec![(1, Some(sample(7)))]),
        ("gone", vec![(1, None)]),
    ];
    for (what, changes) in damage {
        let mut txn = store.begin().unwrap();
        make(&people.bare, &mut txn, &changes).unwrap();
        for (name, _) in people.indexes() {
            let found = people.catalog.check(&txn, &people.table, name).unwrap();
            assert!(!found.is_empty(), "{what} in {name}");
        }
    }
}

#[test]
fn of_entries_with_equal_parts_the_smallest_covered_fields_stay() {
    let store = keyloom::Memory::new();
    let space = keyloom::Subspace::new("t");
    let index = Index::new(&space.child("i"), |_: &u8, fields: &Vec<u8>| {
        fields.iter().map(|field| entry("same").covering(field)).collect::<IndexEntries>()
    });
    let table = keyloom_patterns::Table::<u8, Vec<u8>>::new(&space.child("r")).with(&index);
    for fields in [vec![3, 1, 2], vec![2, 1], vec![5]] {
        store.transact(|txn| table.put(txn, &1, &fields)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let found: Vec<_> = index.range(&snapshot, (), Order::Ascending).unwrap().collect();
        assert_eq!(found.len(), 1);
        let covered = found[0].as_ref().unwrap().covered::<u8>().unwrap();
        assert_eq!(Some(covered), fields.iter().copied().min());
        assert_eq!(index.check(&snapshot, &table).unwrap(), []);
    }
}

#[test]
fn an_entry_of_the_other_kind_is_recognized() {
    let store = keyloom::Memory::new();
    let space = keyloom::Subspace::new("t");
    let plain = Index::new(&space.child("i"), |_: &u8, name: &String| entry(name));
    let unique = plain.clone().unique();
    let records = space.child("r");
    let table = keyloom_patterns::Table::<u8, String>::new(&records).with(&plain);
    store.transact(|txn| table.put(txn, &1, &"a".into())).unwrap();
    let found = unique.check(&store.snapshot().unwrap(), &table).unwrap();
    assert_eq!(found.len(), 2, "one is missing and one is too many: {found:?}");
    unique.repair(&store, &table, &RepairOptions::default(), going_on).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(unique.get(&snapshot, "a").unwrap().unwrap().record_key().unwrap(), 1);
    assert!(plain.get(&snapshot, "a").is_err(), "which of several?");
    // The kind of an entry is in the entry, so whoever reads it reads it right.
    let mut found = plain.range(&snapshot, "a", Order::Ascending).unwrap();
    assert_eq!(found.next().unwrap().unwrap().record_key().unwrap(), 1);
}
