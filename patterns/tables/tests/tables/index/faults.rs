//! Faults, conflicts and bad input.

use keyloom::key::Subspace;
use keyloom::{DynWriter, Error, Fault, Faulty, KeyRange, Memory, Reader, Store, Writer};
use keyloom_mutant_stores::{Flaw, MutantStore};
use keyloom_tables::{Index, IndexError, Maintained, Table, entry, starting_with};

use crate::index::fixture::{Cities, City, fill, sample};
use keyloom_tables::{Inconsistency, Rule};
use keyloom_testing::laws::{clear, dump};

type Change = fn(&Cities, &mut DynWriter<'_>) -> keyloom::Result<()>;

/// Changes of all kinds: one record is inserted, one moves within the indexes, and one is deleted.
const CHANGES: [Change; 2] = [one_by_one, at_once];

fn moved() -> City {
    City { country: "IT".into(), tags: vec!["y".into(), "z".into()], ..sample(1) }
}

fn one_by_one(cities: &Cities, txn: &mut DynWriter<'_>) -> keyloom::Result<()> {
    cities.table.put(txn, &100, &sample(100))?;
    cities.table.put(txn, &1, &moved())?;
    cities.table.delete(txn, &2)?;
    Ok(())
}

fn at_once(cities: &Cities, txn: &mut DynWriter<'_>) -> keyloom::Result<()> {
    cities.table.put_many(txn, [(100, sample(100)), (1, sample(7)), (1, moved())])?;
    cities.table.delete_many(txn, &[2, 99, 2])?;
    Ok(())
}

pub fn bad_input_is_refused_and_nothing_is_lost(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    fill(&cities, store, 1..=5);
    let before = dump(&store.snapshot().unwrap(), KeyRange::all());

    // A name that is too long for the key of an entry; the message names the index and the part.
    let long = City { name: "n".repeat(600), ..sample(3) };
    let error = store.transact(|txn| cities.table.put(txn, &3, &long)).unwrap_err();
    let Some(IndexError::EntryTooLong { bytes: 623, limit: 511, .. }) = error.downcast_ref() else {
        panic!("{error:?}")
    };
    let text = error.to_string();
    let words = [r#"("test", "by_name")"#, "(3,)", "623 bytes", "602 of them in part 2 of 2"];
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), before);

    // A record that does not decode: reading it is an error, a check reports it, and it can be
    // replaced and deleted.
    let broken = cities.table.space().pack(&77u16);
    store.transact(|txn| txn.put(&broken, b"\xFF\xFF")).unwrap();
    let snapshot = store.snapshot().unwrap();
    let no_record = |error: Error| {
        let Error::At { key, source } = error else { panic!("{error:?} names no key") };
        assert_eq!(&*key, r#"("test", "cities", 77)"#);
        assert!(matches!(*source, Error::Value { action: "decode", .. }), "{source:?}");
    };
    no_record(cities.table.get(&snapshot, &77).unwrap_err());
    no_record(cities.table.get_many(&snapshot, &[1, 77]).unwrap_err());
    no_record(cities.table.range(&snapshot, 77).unwrap().next().unwrap().unwrap_err());
    let fault = Inconsistency::new(broken.clone(), Rule::Undecodable);
    assert_eq!(cities.by_name.check(&snapshot, &cities.table).unwrap(), [fault]);
    drop(snapshot);
    store.transact(|txn| cities.table.put(txn, &77, &sample(77))).unwrap();
    store.transact(|txn| txn.put(&broken, b"\xFF\xFF")).unwrap();
    assert!(store.transact(|txn| cities.table.delete(txn, &77)).unwrap());
    assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), before);

    // A key of the wrong type in the subspace of the records.
    let foreign = cities.table.space().pack("not a number");
    store.transact(|txn| txn.put(&foreign, b"")).unwrap();
    let snapshot = store.snapshot().unwrap();
    // Strings sort before numbers.
    let first = cities.table.range(&snapshot, ..).unwrap().next().unwrap();
    let Err(Error::At { key, source }) = first else { panic!("{first:?}") };
    assert!(key.contains("not a number") && matches!(*source, Error::Key(_)), "{key}: {source}");
    drop(snapshot);

    // An entry of an unknown format counts as damage, since no catalog declares this format.
    let newer = cities.space.child("by_name").pack(&("FR", "x", 3u16));
    store.transact(|txn| txn.put(&newer, &[0x20, 0x02])).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut found = cities.by_name.range(&snapshot, starting_with(("FR", "x"))).unwrap();
    let error = found.next().unwrap().map(drop).unwrap_err().to_string();
    assert!(error.contains(r#""by_name", "FR", "x", 3)"#), "{error}");
    assert!(error.contains("repair the index"), "{error}");
}

pub fn several_patterns_commit_or_roll_back_together(store: &(impl Store + Clone)) {
    clear(store);
    let (europe, asia) = (Cities::at(&Subspace::new("europe")), Cities::at(&Subspace::new("asia")));
    let counters = Subspace::new("moves");
    fill(&europe, store, 1..=3);
    let before = dump(&store.snapshot().unwrap(), KeyRange::all());
    let relocate = |txn: &mut DynWriter<'_>, id: u16| {
        let city =
            europe.table.get(txn, &id)?.ok_or_else(|| Error::other(format!("no city {id}")))?;
        europe.table.delete(txn, &id)?;
        asia.table.put(txn, &id, &city)?;
        txn.add(&counters.pack(&id), 1)
    };
    let both = |ids: [u16; 2]| {
        store.transact(|txn| ids.iter().try_for_each(|id| relocate(&mut DynWriter::new(txn), *id)))
    };
    // The second record does not exist, so the first must not have moved either.
    let error = both([1, 9]).unwrap_err();
    assert_eq!(error.to_string(), "no city 9");
    assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), before);
    both([1, 2]).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(europe.table.range(&snapshot, ..).unwrap().count(), 1);
    assert_eq!(asia.by_tag.count(&snapshot, "x").unwrap(), 2);
    assert_eq!(snapshot.counter(&counters.pack(&1u16)).unwrap(), 1);
}

#[test]
fn a_swallowed_error_is_not_committed() {
    let halves = |change: &Change| halves_of_swallowed_errors(Memory::new(), *change);
    assert_eq!(CHANGES.iter().map(halves).sum::<usize>(), 0);
}

/// The negative control: a store that commits despite a failed write.
#[test]
fn check_finds_the_half_of_a_change_that_is_committed() {
    for change in CHANGES {
        let found = halves_of_swallowed_errors(MutantStore::new(Flaw::ForgottenRefusal), change);
        assert!(found > 5, "{found} of its halves are inconsistent");
    }
}

/// The number of failed changes that leave an inconsistency when they are committed anyway.
fn halves_of_swallowed_errors(store: impl Store, change: Change) -> usize {
    let faulty = Faulty::new(store);
    let store = faulty.inner();
    let cities = Cities::new();
    let mut found = 0;
    for n in 0.. {
        clear(store);
        fill(&cities, store, 1..=5);
        faulty.fail_at(n, Fault::Error);
        let outcome = faulty.transact(|txn| {
            let _ = change(&cities, &mut DynWriter::new(txn));
            Ok(())
        });
        let was_hit = faulty.operations() > n;
        faulty.clear_fault();
        found += usize::from(outcome.is_ok() && !cities.faults(store).is_empty());
        if !was_hit {
            assert!(outcome.is_ok() && n > 5, "the change has only {n} operations");
            return found;
        }
    }
    unreachable!("some operation is the last one")
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("no town is called {0}")]
struct NoTown(String);

#[test]
fn an_error_of_the_function_comes_back_and_names_the_record() {
    let space = Subspace::new("atlas");
    let index = |name: &str| {
        Index::try_new(&space.child(name), |_: &u16, town: &String| match town.len() {
            0 => Err(Error::other(NoTown(town.clone()))),
            _ => Ok(entry(town)),
        })
    };
    for by_name in [index("by_name"), index("by_unique_name").unique()] {
        let towns = Table::<u16, String>::new(&space.child("towns")).with(&by_name);
        let store = Memory::new();
        let put_one = store.transact(|txn| towns.put(txn, &7, &String::new())).unwrap_err();
        let many = [(6, "Bern".to_owned()), (7, String::new())];
        let put_many = store.transact(|txn| towns.put_many(txn, &many)).unwrap_err();
        let swallowed = store.transact(|txn| {
            let _swallowed = towns.put(txn, &7, &String::new());
            Ok(())
        });
        for error in [put_one, put_many, swallowed.unwrap_err()] {
            assert_eq!(error.downcast_ref(), Some(&NoTown(String::new())), "{error:?}");
            assert!(matches!(error.downcast_ref(), Some(IndexError::Refused { .. })), "{error:?}");
            let text = error.to_string();
            assert!(text.contains(r#"the record ("atlas", "towns", 7)"#), "{text}");
            assert!(text.contains(&format!("the index {}", by_name.space())), "{text}");
            assert!(text.contains("no town is called"), "{text}");
        }
    }
}

#[test]
fn a_query_names_the_damaged_entry_and_the_remedy() {
    let store = Memory::new();
    let by_name =
        Index::new(&Subspace::new("damage").child("by name"), |_, name: &String| entry(name))
            .unique();
    let names = Table::<u32, String>::new(&Subspace::new("damage").child("names")).with(&by_name);
    store.transact(|txn| names.put(txn, &1, &"a".into())).unwrap();
    let (key, _) =
        dump(&store.snapshot().unwrap(), by_name.space().self_and_children()).pop_first().unwrap();
    store.transact(|txn| txn.put(&key, &[0xF0, 0])).unwrap();
    let says = |error: &Error| {
        let text = error.to_string();
        assert!(text.contains(r#"("damage", "by name", "a")"#), "{text}");
        assert!(text.contains("repair the index"), "{text}");
    };
    let snapshot = store.snapshot().unwrap();
    let found = by_name.range(&snapshot, ..).unwrap().next().unwrap();
    says(&found.unwrap_err());
    // The owner of the entry is unknown, so every record with this name is refused.
    says(&store.transact(|txn| names.put(txn, &2, &"a".into())).unwrap_err());
    says(&store.transact(|txn| names.delete(txn, &1)).unwrap_err());
    store.transact(|txn| names.put(txn, &2, &"b".into())).unwrap();
    by_name.repair(&store, &names).unwrap();
    assert_eq!(by_name.check(&store.snapshot().unwrap(), &names).unwrap(), []);
    store.transact(|txn| names.delete(txn, &1)).unwrap();
}

/// Two records with one unique value, thousands of records apart, and no entry: as with two records
/// in one page of the check, the second one is contested.
#[test]
fn a_second_claim_far_from_the_first_is_contested() {
    let store = Memory::new();
    let space = Subspace::new("towns");
    let by_name =
        Index::new(&space.child("by_name"), |_: &u32, name: &String| entry(name)).unique();
    let bare = Table::<u32, String>::new(&space.child("towns"));
    let towns = bare.clone().with(&by_name);
    store
        .transact(|txn| {
            towns.put_many(txn, (1..5_000).map(|id| (id, format!("town {id}"))))?;
            bare.put_many(txn, [(0, "Springfield".to_owned()), (5_000, "Springfield".to_owned())])
        })
        .unwrap();
    let found = by_name.check(&store.snapshot().unwrap(), &towns).unwrap();
    assert_eq!(
        found.iter().map(|fault| fault.rule).collect::<Vec<_>>(),
        [Rule::Missing, Rule::Contested]
    );
}
