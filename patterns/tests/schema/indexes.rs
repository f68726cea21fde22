//! The kinds of index: covering and descending, unique and partial, with several entries per
//! record.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use keyloom::value::{Codec, Postcard};
use keyloom::{Desc, KeyBuf, Memory, Metered, Result, Store, Subspace, Transaction, Writer};
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::{
    AnyParts, Attached, Index, IndexEntries, IndexError, Maintained, Schema, Table, entry,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use keyloom_patterns::{Inconsistency, Rule};
use keyloom_testing::laws::{Dump, clear, dump, dump_all, long_property};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Person {
    name: String,
    city: String,
    age: u8,
    email: Option<String>,
    tags: Vec<String>,
}

type People16 = BTreeMap<u16, Person>;
/// A put (`Some`) or a delete of one record.
type Change = (u16, Option<Person>);
type PersonIndex<P = AnyParts> = Attached<Index<u16, Person, P>>;

struct People {
    table: Table<u16, Person>,
    by_city: PersonIndex<(String, Desc<u8>)>,
    by_email: PersonIndex<String>,
    by_tag: PersonIndex<String>,
}

fn by_email(_: &u16, person: &Person) -> IndexEntries<String> {
    person.email.iter().map(|email| entry(email).covering(&person.name)).collect()
}

impl People {
    fn open(store: &impl Store) -> Self {
        let schema = Schema::open(store, "people").unwrap();
        let table = schema.table("people").unwrap();
        let by_city = schema.index(&table, "by_city", 1, |_, p: &Person| {
            entry((&p.city, Desc(p.age))).covering((&p.name, p.tags.len()))
        });
        let by_tag = schema.index(&table, "by_tag", 1, |_, p: &Person| {
            p.tags.iter().map(|tag| entry(tag).covering(tag.len() + usize::from(p.age))).collect()
        });
        let by_email = schema.unique_index(&table, "by_email", 1, by_email);
        Self {
            by_city: by_city.unwrap(),
            by_email: by_email.unwrap(),
            by_tag: by_tag.unwrap(),
            table,
        }
    }

    fn indexes(&self) -> [(&'static str, PersonIndex); 3] {
        [
            ("by_city", self.by_city.untyped()),
            ("by_email", self.by_email.untyped()),
            ("by_tag", self.by_tag.untyped()),
        ]
    }

    /// Sets or removes a record without maintaining its indexes, as a foreign program might.
    fn bypass(&self, txn: &mut impl Writer, id: u16, person: Option<&Person>) -> Result<()> {
        let key = self.table.space().pack(&id);
        let Some(person) = person else { return txn.delete(&key) };
        let mut bytes = Vec::new();
        Postcard::encode(person, &mut bytes)?;
        txn.put(&key, &bytes)
    }

    #[track_caller]
    fn is_clean(&self, store: &impl Store) {
        let snapshot = store.snapshot().unwrap();
        for (name, index) in self.indexes() {
            assert_eq!(index.check(&snapshot).unwrap(), [], "{name}");
        }
    }

    fn entries(&self, store: &impl Store, index: &PersonIndex) -> Dump {
        let snapshot = store.snapshot().unwrap();
        dump(&snapshot, index.at(&snapshot).unwrap().space().self_and_children())
    }
}

fn person() -> impl Strategy<Value = Person> {
    let some = |of: &'static [&'static str]| prop::sample::select(of).prop_map(String::from);
    let email = prop::option::of(some(&["", "a", "a\0", "b", "c", "d", "e", "f"]));
    let tags = prop::collection::vec(some(&["x", "y", "z"]), 0..4);
    (some(&["n", "m\0"]), some(&["Oslo", "Rome", ""]), 0..3u8, email, tags)
        .prop_map(|(name, city, age, email, tags)| Person { name, city, age, email, tags })
}

fn change() -> impl Strategy<Value = Change> {
    (0..10u16, prop::option::weighted(0.75, person()))
}

fn history() -> impl Strategy<Value = Vec<Vec<Change>>> {
    prop::collection::vec(prop::collection::vec(change(), 1..4), 1..16)
}

fn sample(id: u16) -> Person {
    Person {
        name: format!("person {id}"),
        city: if id.is_multiple_of(2) { "Oslo" } else { "Rome" }.into(),
        age: (id % 90) as u8 + 1,
        email: Some(format!("{id}@example.org")),
        tags: vec!["x".into(), format!("t{}", id % 3)],
    }
}

fn samples(ids: impl IntoIterator<Item = u16>) -> Vec<(u16, Person)> {
    ids.into_iter().map(|id| (id, sample(id))).collect()
}

/// A person with the address of another person.
fn twin(id: u16, of: u16) -> Person {
    Person { email: sample(of).email, ..sample(id) }
}

fn make(
    table: &Table<u16, Person>,
    txn: &mut impl Writer,
    change: &[Change],
) -> keyloom::Result<()> {
    change.iter().try_for_each(|(id, person)| match person {
        Some(person) => table.put(txn, id, person),
        None => table.delete(txn, id).map(drop),
    })
}

/// The records after some changes, or `None` if a change takes an address that another record has.
fn imitate(before: &People16, changes: &[Change]) -> Option<People16> {
    let mut after = before.clone();
    for (id, person) in changes {
        let is_taken = |person: &Person| {
            let other = |(other, p): (&u16, &Person)| other != id && p.email == person.email;
            person.email.is_some() && after.iter().any(other)
        };
        match person {
            Some(person) if is_taken(person) => return None,
            Some(person) => drop(after.insert(*id, person.clone())),
            None => drop(after.remove(id)),
        }
    }
    Some(after)
}

#[track_caller]
fn is_not_unique(error: &keyloom::Error) {
    assert!(matches!(error.downcast_ref(), Some(IndexError::NotUnique(_))), "{error:?}");
}

/// Applies the changes of a history; those that violate uniqueness must be refused.
fn apply(people: &People, store: &impl Store, history: &[Vec<Change>]) -> People16 {
    let mut model = People16::new();
    for changes in history {
        let outcome = store.transact(|txn| make(&people.table, txn, changes));
        match imitate(&model, changes) {
            Some(after) => {
                outcome.unwrap();
                model = after;
            }
            None => is_not_unique(&outcome.unwrap_err()),
        }
    }
    model
}

pub fn queries_of_any_index_find_what_a_filter_finds(store: &(impl Store + Clone)) {
    long_property(history(), |history| {
        clear(store);
        let people = People::open(store);
        let model = apply(&people, store, &history);
        people.is_clean(store);
        let snapshot = store.snapshot().unwrap();

        // The covered fields come from the entries alone, without the records.
        let wanted = model
            .iter()
            .map(|(id, p)| (p.city.clone(), Reverse(p.age), *id, p.name.clone(), p.tags.len()));
        let mut wanted: Vec<_> = wanted.collect();
        wanted.sort();
        let by_city = people.by_city.at(&snapshot).unwrap();
        let found = by_city.range(&snapshot, ..).unwrap().map(|found| {
            let found = found.unwrap();
            let (city, Desc(age)) = found.owned_parts().unwrap();
            let (name, tags) = found.covered::<(String, usize)>().unwrap();
            (city, Reverse(age), found.record_key().unwrap(), name, tags)
        });
        assert_eq!(found.collect::<Vec<_>>(), wanted);

        let by_email = people.by_email.at(&snapshot).unwrap();
        for email in ["", "a", "a\0", "b", "c", "d", "e", "f", "of no record"] {
            let wanted = model.iter().find(|(_, p)| p.email.as_deref() == Some(email));
            let found = by_email.get(&snapshot, email).unwrap().map(|found| {
                assert_eq!(found.owned_parts().unwrap(), email);
                (found.record_key().unwrap(), found.covered::<String>().unwrap())
            });
            assert_eq!(found, wanted.map(|(id, p)| (*id, p.name.clone())));
        }
        for tag in ["x", "y", "z"] {
            let wanted = model.iter().filter(|(_, p)| p.tags.iter().any(|t| t == tag));
            let found = people.by_tag.query().prefix(tag).limit(99).records(&snapshot);
            assert!(found.unwrap().items.iter().map(|(id, p)| (id, p)).eq(wanted));
        }
    });
}

pub fn many_at_once_leave_what_one_by_one_leaves(store: &(impl Store + Clone)) {
    let puts = prop::collection::vec((0..10u16, person()), 0..10);
    long_property((history(), puts), |(history, puts)| {
        let run = |at_once: bool| {
            clear(store);
            let people = People::open(store);
            apply(&people, store, &history);
            let outcome = store.transact(|txn| match at_once {
                true => people.table.put_many(txn, &puts),
                false => puts.iter().try_for_each(|(id, person)| people.table.put(txn, id, person)),
            });
            people.is_clean(store);
            let snapshot = store.snapshot().unwrap();
            let records = people.table.range(&snapshot, ..).unwrap();
            let records: People16 = records.map(Result::unwrap).collect();
            (outcome.is_ok(), records, dump_all(store))
        };
        let (one_by_one, at_once) = (run(false), run(true));
        if one_by_one.0 || !at_once.0 {
            assert!(at_once == one_by_one, "{:?} is not {:?}", at_once.1, one_by_one.1);
        } else {
            // A record may take a value that another record releases in the same batch, in any
            // order: only the final state counts.
            let mut wanted = one_by_one.1;
            wanted.extend(puts.iter().cloned());
            assert_eq!(at_once.1, wanted);
        }
    });
}

pub fn damage_of_any_index_is_found_and_repaired(store: &(impl Store + Clone)) {
    let people = People::open(store);
    store.transact(|txn| people.table.put_many(txn, samples(1..=40))).unwrap();
    let whole = dump_all(store);
    for (name, index) in people.indexes() {
        let keys: Vec<Vec<u8>> = people.entries(store, &index).into_keys().collect();
        let foreign = index.at(&store.snapshot().unwrap()).unwrap().space().pack(&("not", "of it"));
        store
            .transact(|txn| {
                txn.delete(&keys[3])?;
                txn.put(&keys[5], b"\x10\x01")?;
                txn.put(&foreign, b"?")
            })
            .unwrap();
        let found = index.check(&store.snapshot().unwrap()).unwrap();
        assert!(found.len() >= 3, "{name}: {found:?}");
        assert!(found.contains(&Inconsistency::new(KeyBuf::from_slice(&keys[3]), Rule::Missing)));
        assert!(found.iter().any(|fault| fault.key[..] == keys[5][..]));
        let options = RepairOptions { batch: 7, resume: None };
        let going_on = |_: &_| std::ops::ControlFlow::Continue(());
        let done = index.repair_with(store, &options, going_on).unwrap();
        assert!(done.finished && done.records == 40 && done.removed >= 1);
        let is_token = |key: &[u8]| Subspace::new(&("keyloom", "repair")).contains(key);
        let left = dump_all(store).into_iter().filter(|(key, _)| !is_token(key));
        assert!(left.eq(whole.clone()), "{name}");
        let metered = Metered::new(store.clone());
        let (_, cost) = metered.measure(|store| index.repair(store).unwrap());
        assert_eq!(cost.keys_written, 1, "{name}: the token");
    }
}

/// Each record that shares its address with another record, with the first such record.
pub fn violations_are_listed_until_a_build_can_finish(store: &(impl Store + Clone)) {
    let record = (0..20u16, prop::option::of(0..6u8));
    long_property(prop::collection::vec(record, 0..20), |records| {
        clear(store);
        let email = |email: u8| email.to_string();
        let records = records.into_iter();
        let mut model: People16 =
            records.map(|(id, of)| (id, Person { email: of.map(email), ..sample(id) })).collect();
        let schema = Schema::open(store, "people").unwrap();
        let bare = schema.table::<u16, Person>("people").unwrap();
        store.transact(|txn| bare.put_many(txn, model.clone())).unwrap();
        let people = People::open(store);
        let listed = |limit| -> Vec<(u16, u16)> {
            let found = people.by_email.violations(&store.snapshot().unwrap(), limit).unwrap();
            found.iter().map(|v| (v.record().unwrap(), v.holder().unwrap())).collect()
        };
        let mut holders = BTreeMap::new();
        let wanted = model.iter().filter_map(|(id, person)| {
            let holder = *holders.entry(person.email.clone()?).or_insert(*id);
            (holder != *id).then_some((*id, holder))
        });
        let wanted: Vec<_> = wanted.collect();
        assert_eq!(listed(99), wanted);
        assert_eq!(listed(2), wanted[..wanted.len().min(2)]);
        let built = people.by_email.build(store);
        assert_eq!(built.is_ok(), wanted.is_empty());
        built.err().iter().for_each(is_not_unique);
        // A failed build lists the same violations.
        assert_eq!(listed(99), wanted);
        // Resolve each violation: one record of each pair gets a new address.
        for (record, holder) in wanted {
            let id = if record % 2 == 0 { record } else { holder };
            let Some(person) = model.get_mut(&id) else { continue };
            person.email = Some(format!("{id}@example.org"));
            store.transact(|txn| people.table.put(txn, &id, person)).unwrap();
        }
        // Three records have one address: the first one changes it, and two are left.
        while let [(record, _), ..] = listed(1)[..] {
            store.transact(|txn| people.table.delete(txn, &record).map(drop)).unwrap();
        }
        for (_, index) in people.indexes() {
            assert!(index.build(store).unwrap().finished);
        }
        people.is_clean(store);
    });
}

pub fn two_transactions_cannot_take_one_unique_value(store: &(impl Store + Clone)) {
    let people = People::open(store);
    std::thread::scope(|scope| {
        let racers = (1..=4).map(|id| {
            let people = &people;
            scope.spawn(move || store.transact(|txn| people.table.put(txn, &id, &twin(id, 9))))
        });
        let racers: Vec<_> = racers.collect();
        let outcomes: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        outcomes.iter().flat_map(|outcome| outcome.as_ref().err()).for_each(is_not_unique);
    });
    people.is_clean(store);
}

pub fn an_entry_that_is_too_long_is_refused_and_named(store: &(impl Store + Clone)) {
    let people = People::open(store);
    store.transact(|txn| people.table.put_many(txn, samples(1..=3))).unwrap();
    let before = dump_all(store);
    let long = || "l".repeat(600);
    for (person, index, part) in [
        (
            Person { city: long(), ..sample(2) },
            people.by_city.untyped(),
            "602 of them in part 1 of 2",
        ),
        (Person { email: Some(long()), ..sample(2) }, people.by_email.untyped(), "in part 1 of 1"),
        (
            Person { tags: vec!["x".into(), long()], ..sample(2) },
            people.by_tag.untyped(),
            "in part 1 of 1",
        ),
    ] {
        let is_named = |error: keyloom::Error| {
            let Some(IndexError::EntryTooLong { bytes, limit: 511, .. }) = error.downcast_ref()
            else {
                panic!("{error:?}")
            };
            assert!(*bytes > 600);
            let text = error.to_string();
            assert!([part, "(2,)", "511"].iter().all(|word| text.contains(word)), "{text}");
        };
        is_named(store.transact(|txn| people.table.put(txn, &2, &person)).unwrap_err());
        is_named(
            store.transact(|txn| people.table.put_many(txn, [(2, person.clone())])).unwrap_err(),
        );
        assert_eq!(dump_all(store), before);
        // A build that reads such a record stops, and can resume after the record is changed.
        store.transact(|txn| people.bypass(txn, 2, Some(&person))).unwrap();
        store.transact(|txn| index.disable(txn)).unwrap();
        is_named(index.build(store).unwrap_err());
        store.transact(|txn| people.bypass(txn, 2, Some(&sample(2)))).unwrap();
        assert!(index.build(store).unwrap().finished);
        assert_eq!(dump_all(store), before);
    }
}

pub fn a_function_that_panics_leaves_nothing(store: &(impl Store + Clone)) {
    let schema = Schema::open(store, "words").unwrap();
    let words = schema.table::<u16, String>("words").unwrap();
    let by_length = schema.index(&words, "by_length", 1, |_, word| entry(word.len())).unwrap();
    let by_first = schema.index(&words, "by_first", 1, |_, word| {
        entry(word.chars().next().expect("a word has a letter").to_string())
    });
    let by_first = by_first.unwrap();
    store.transact(|txn| words.put(txn, &1, &"one".into())).unwrap();
    let before = dump_all(store);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcomes = [
        catch_unwind(AssertUnwindSafe(|| {
            store.transact(|txn| {
                words.put(txn, &2, &"two".into())?;
                words.put(txn, &1, &String::new())
            })
        })),
        catch_unwind(AssertUnwindSafe(|| {
            let some = [(2, "two".to_owned()), (1, String::new())];
            store.transact(|txn| words.put_many(txn, &some))
        })),
    ];
    std::panic::set_hook(hook);
    assert!(outcomes.iter().all(Result::is_err));
    assert_eq!(dump_all(store), before);
    store.transact(|txn| words.put(txn, &2, &"two".into())).unwrap();
    let snapshot = store.snapshot().unwrap();
    for index in [by_length.untyped(), by_first.untyped()] {
        assert_eq!(index.check(&snapshot).unwrap(), []);
    }
}

#[test]
fn a_repair_leaves_a_contested_value_to_its_holder() {
    let store = Memory::new();
    let people = People::open(&store);
    store
        .transact(|txn| {
            people.table.put(txn, &1, &sample(1))?;
            people.bypass(txn, 2, Some(&twin(2, 1)))
        })
        .unwrap();
    let check = || people.by_email.check(&store.snapshot().unwrap()).unwrap();
    let found = check();
    assert!(matches!(&found[..], [Inconsistency { rule: Rule::Contested, .. }]), "{found:?}");
    let text = found[0].to_string();
    assert!(text.contains("1@example.org") && text.contains("(2,)"), "{text}");
    let done = people.by_email.repair(&store).unwrap();
    assert_eq!((done.contested, done.written, done.removed), (1, 0, 0));
    // The holder's entry remains when the other record is deleted.
    store.transact(|txn| people.table.delete(txn, &2)).unwrap();
    assert_eq!(check(), []);
}

#[test]
fn a_contested_value_without_a_holder_goes_to_the_first() {
    let store = Memory::new();
    let people = People::open(&store);
    let fill = || {
        for id in 1..=3 {
            store.transact(|txn| people.bypass(txn, id, Some(&twin(id, 1)))).unwrap();
        }
        let space = people.by_email.at(&store.snapshot().unwrap()).unwrap().space().clone();
        store.transact(|txn| txn.delete_range(space.self_and_children())).unwrap();
    };
    let check = || people.by_email.check(&store.snapshot().unwrap()).unwrap();
    let contested = |found: &Inconsistency, id: u16| {
        assert_eq!(found.rule, Rule::Contested);
        assert_eq!(found.record, Some(keyloom::pack(&id)));
    };
    // In one batch, and in separate batches.
    for batch in [1_000, 2, 1] {
        fill();
        let found = check();
        assert!(matches!(&found[0], Inconsistency { rule: Rule::Missing, .. }) && found.len() == 3);
        contested(&found[1], 2);
        contested(&found[2], 3);
        let options = RepairOptions { batch, resume: None };
        let going_on = |_: &_| std::ops::ControlFlow::Continue(());
        let done = people.by_email.repair_with(&store, &options, going_on).unwrap();
        assert_eq!((done.contested, done.written, done.removed), (2, 1, 0), "{batch} at once");
        let found = check();
        assert_eq!(found.len(), 2, "{found:?}");
        contested(&found[0], 2);
        contested(&found[1], 3);
        let snapshot = store.snapshot().unwrap();
        let by_email = people.by_email.at(&snapshot).unwrap();
        let holder = by_email.get(&snapshot, "1@example.org").unwrap().unwrap();
        assert_eq!(holder.record_key().unwrap(), 1);
    }
    // The result is the same if the entry exists with a wrong value.
    fill();
    let entry = check()[0].key.clone();
    store.transact(|txn| txn.put(&entry, b"\x10\x01")).unwrap();
    assert!(check().contains(&Inconsistency::new(entry, Rule::Wrong)));
    let done = people.by_email.repair(&store).unwrap();
    assert_eq!((done.contested, done.written, done.removed), (2, 1, 0));
}

#[test]
fn of_entries_with_equal_parts_the_smallest_covered_stays() {
    let store = Memory::new();
    let schema = Schema::open(&store, "fields").unwrap();
    let table = schema.table::<u8, Vec<u8>>("fields").unwrap();
    let index = schema.index(&table, "same", 1, |_, fields: &Vec<u8>| {
        fields.iter().map(|field| entry("same").covering(field)).collect()
    });
    let index = index.unwrap();
    for fields in [vec![3, 1, 2], vec![2, 1], vec![5]] {
        store.transact(|txn| table.put(txn, &1, &fields)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let found = index.at(&snapshot).unwrap().range(&snapshot, ..).unwrap();
        let covered: Vec<u8> = found.map(|found| found.unwrap().covered().unwrap()).collect();
        assert_eq!(covered, [*fields.iter().min().unwrap()]);
        assert_eq!(index.check(&snapshot).unwrap(), []);
    }
}

#[test]
fn an_entry_of_the_other_kind_of_index_is_recognized() {
    let store = Memory::new();
    let space = Subspace::new("t");
    let plain = Index::new(&space.child("i"), |_: &u8, name: &String| entry(name));
    let unique = plain.clone().unique();
    let table = Table::<u8, String>::new(&space.child("r")).with(&plain);
    store.transact(|txn| table.put(txn, &1, &"a".into())).unwrap();
    let found = unique.check(&store.snapshot().unwrap(), &table).unwrap();
    assert_eq!(found.len(), 2, "one is missing and one is too many: {found:?}");
    unique.repair(&store, &table).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(unique.get(&snapshot, "a").unwrap().unwrap().record_key().unwrap(), 1);
    assert!(plain.get(&snapshot, "a").is_err());
    // The entry contains its kind, so each index decodes it correctly.
    let mut found = plain.range(&snapshot, "a").unwrap();
    assert_eq!(found.next().unwrap().unwrap().record_key().unwrap(), 1);
}

#[test]
fn an_error_names_an_index_whose_handle_is_dropped() {
    let store = Memory::new();
    let error = {
        let people = People::open(&store);
        store.transact(|txn| people.table.put(txn, &1, &sample(1))).unwrap();
        store.transact(|txn| people.table.put(txn, &2, &twin(2, 1))).unwrap_err()
    };
    is_not_unique(&error);
    assert!(error.to_string().contains("the unique index people.by_email"), "{error}");
}

/// The negative control: writes that bypass the schema are not maintained, and a check finds them.
#[test]
fn writes_that_bypass_the_schema_are_found_in_every_index() {
    let store = Memory::new();
    let people = People::open(&store);
    store.transact(|txn| people.table.put_many(txn, samples(1..=3))).unwrap();
    people.is_clean(&store);
    for change in [(4, Some(sample(4))), (1, Some(sample(7))), (1, None)] {
        let mut txn = store.begin().unwrap();
        people.bypass(&mut txn, change.0, change.1.as_ref()).unwrap();
        for (name, index) in people.indexes() {
            assert!(!index.check(&txn).unwrap().is_empty(), "{change:?} in {name}");
        }
    }
}

#[test]
fn a_writer_that_began_before_a_change_of_state_conflicts() {
    let store = keyloom_testing::optimistic_memory();
    let people = People::open(&store);
    store.transact(|txn| people.table.put_many(txn, samples(1..=5))).unwrap();
    store.transact(|txn| people.by_tag.disable(txn)).unwrap();
    let mut slow = store.begin().unwrap();
    people.table.put(&mut slow, &9, &sample(9)).unwrap();
    assert!(people.by_tag.build(&store).unwrap().finished);
    assert!(slow.commit().unwrap_err().is_retryable());
    people.is_clean(&store);
    // The same for a batch of a build if a record changes after the batch has read it.
    store.transact(|txn| people.by_tag.disable(txn)).unwrap();
    store.transact(|txn| people.by_tag.build_batch(txn, 100).map(drop)).unwrap();
    let mut batch = store.begin().unwrap();
    people.by_tag.build_batch(&mut batch, 2).unwrap();
    let changed = Person { tags: vec![], ..sample(1) };
    store.transact(|txn| people.table.put(txn, &1, &changed)).unwrap();
    assert!(batch.commit().unwrap_err().is_retryable());
    assert!(people.by_tag.build(&store).unwrap().finished);
    people.is_clean(&store);
}
