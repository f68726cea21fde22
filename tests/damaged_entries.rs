//! A damaged entry of derived data is one fault: it is named, and repaired from its record.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use keyloom::key::display;
use keyloom::{Error, KeyRange, Memory, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::general::aggregation::{Event, contribution};
use keyloom_patterns::general::inverted_index::one;
use keyloom_patterns::{
    Inconsistency, Index, InvertedIndex, Links, Maintained, PointIndex, Position, RankedIndex,
    RollUp, Table, Totals, entry,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

type Place = (String, i64, f64);
type Dump = BTreeMap<Vec<u8>, Vec<u8>>;

fn place(id: u32) -> Place {
    (format!("place {}", id % 7), i64::from(id * id % 50), f64::from(id))
}

type Check = Rc<dyn Fn(&Memory) -> Result<Vec<Inconsistency>>>;
type Repair = Rc<dyn Fn(&Memory) -> Result<()>>;

/// One kind of derived data.
struct Kind {
    name: &'static str,
    space: Subspace,
    check: Check,
    repair: Repair,
}

fn space(name: &str) -> Subspace {
    Subspace::new("damage").child(name)
}

/// A kind that has its table's checks and repairs, attached to the table.
macro_rules! kind {
    ($kinds:ident, $table:ident, $name:literal, $make:expr) => {
        let space = space($name);
        let derived = $make(&space);
        $table = $table.with(&derived);
        let table = Table::<u32, Place>::new(&self::space("places")).with(&derived);
        let (checked, of) = (derived.clone(), table.clone());
        $kinds.push(Kind {
            name: $name,
            space,
            check: Rc::new(move |store| checked.check(&store.snapshot()?, &of)),
            repair: Rc::new(move |store| {
                let options = RepairOptions { batch: 7, resume: None };
                derived
                    .repair_with(store, &table, &options, |_| ControlFlow::Continue(()))
                    .map(drop)
            }),
        });
    };
}

/// A store with records and every kind of derived data.
fn kinds() -> (Memory, Vec<Kind>) {
    let mut table = Table::<u32, Place>::new(&space("places"));
    let mut kinds = Vec::new();
    kind!(kinds, table, "index", |space| Index::new(space, |_, (name, n, _): &Place| entry((
        name, n
    ))));
    kind!(kinds, table, "covering", |space| Index::new(space, |_, (name, n, _): &Place| entry(
        name
    )
    .covering(n)));
    kind!(kinds, table, "unique", |space| Index::new(space, |id, (name, ..): &Place| entry((
        name, id
    )))
    .unique());
    kind!(kinds, table, "points", |space| PointIndex::new(space, |_, (.., degrees): &Place| {
        Position::new(*degrees, *degrees).map(Some)
    }));
    kind!(kinds, table, "totals", |space| Totals::new(space, |_, (name, n, _): &Place| {
        contribution(name, *n + 1)
    }));
    kind!(kinds, table, "ranked", |space| RankedIndex::new(space, |_, (_, n, _): &Place| entry(n)));
    kind!(kinds, table, "roll-up", |space| RollUp::new(
        space,
        &[10, 100],
        |_, (name, n, _): &Place| { Some(Event::new(name, *n, 1)) }
    )
    .unwrap());
    kind!(kinds, table, "inverted", |space| InvertedIndex::with_keys_as_ids(space)
        .field("name", |_: &u32, (name, ..): &Place| one(name))
        .integers("n", |_, (_, n, _)| Some(*n)));
    let store = Memory::new();
    store.transact(|txn| table.put_many(txn, (0..40).map(|id| (id, place(id))))).unwrap();

    let links = Links::<u32, String>::new(&space("links"));
    for id in 0..20 {
        store.transact(|txn| links.link(txn, &id, &format!("group {}", id % 3))).unwrap();
    }
    let (checked, all) = (links.clone(), space("links"));
    kinds.push(Kind {
        name: "links",
        // The links themselves are records; behind them lie those by their other ends.
        space: all.child(&1),
        check: Rc::new(move |store| checked.check(&store.snapshot()?)),
        repair: Rc::new(move |store| {
            let options = RepairOptions { batch: 7, resume: None };
            links.repair_with(store, &options, |_| ControlFlow::Continue(())).map(drop)
        }),
    });
    (store, kinds)
}

fn dump(store: &Memory, range: KeyRange<'_>) -> Dump {
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(range, Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

/// What happens to the value of one entry.
#[derive(Clone, Debug)]
enum Damage {
    Flip { at: usize, mask: u8 },
    Cut { to: usize },
    Grow { by: Vec<u8> },
    Replace { with: Vec<u8> },
}

impl Damage {
    fn of(&self, value: &[u8]) -> Vec<u8> {
        let mut value = value.to_vec();
        match self {
            Self::Flip { at, mask } => {
                let at = at % value.len().max(1);
                value.get_mut(at).into_iter().for_each(|byte| *byte ^= mask);
            }
            Self::Cut { to } => value.truncate(to % value.len().max(1)),
            Self::Grow { by } => value.extend(by),
            Self::Replace { with } => value.clone_from(with),
        }
        value
    }
}

fn damages() -> impl Strategy<Value = Vec<(usize, Damage)>> {
    let bytes = || prop::collection::vec(any::<u8>(), 1..12);
    let damage = prop_oneof![
        4 => (0..2_usize, 1..=255_u8).prop_map(|(at, mask)| Damage::Flip { at, mask }),
        2 => (0..500_usize, 1..=255_u8).prop_map(|(at, mask)| Damage::Flip { at, mask }),
        1 => (0..500_usize).prop_map(|to| Damage::Cut { to }),
        1 => bytes().prop_map(|by| Damage::Grow { by }),
        1 => bytes().prop_map(|with| Damage::Replace { with }),
    ];
    prop::collection::vec((any::<usize>(), damage), 1..5)
}

/// Damages some entries of a kind. What is wrong then, if anything is, with its check and its repair.
fn law(store: &Memory, kind: &Kind, damages: &[(usize, Damage)]) -> Result<(), String> {
    let clean = dump(store, KeyRange::all());
    let entries = dump(store, kind.space.self_and_children());
    let entries: Vec<_> = entries.into_iter().collect();
    let mut damaged = Dump::new();
    for (which, damage) in damages {
        let (key, value) = &entries[which % entries.len()];
        let bent = damage.of(value);
        if bent != *value {
            damaged.insert(key.clone(), bent);
        }
    }
    let put = |entries: &Dump| {
        store.transact(|txn| entries.iter().try_for_each(|(k, v)| txn.put(k, v))).unwrap();
    };
    put(&damaged);
    let judged = judge(store, kind, &damaged, &clean);
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    put(&clean);
    judged
}

fn judge(store: &Memory, kind: &Kind, damaged: &Dump, clean: &Dump) -> Result<(), String> {
    let found = (kind.check)(store).map_err(|error| format!("the check stops: {error}"))?;
    for (key, value) in damaged {
        if !found.iter().any(|fault| fault.key[..] == key[..]) {
            return Err(format!("{} with {value:02x?} is not named: {found:?}", display(key)));
        }
    }
    (kind.repair)(store).map_err(|error| format!("the repair stops: {error}"))?;
    let left = (kind.check)(store).map_err(|error| format!("the second check stops: {error}"))?;
    if !left.is_empty() {
        return Err(format!("the repair leaves {left:?}"));
    }
    let repaired = dump(store, KeyRange::all());
    match repaired == *clean {
        true => Ok(()),
        false => Err("the store is not what it was before the damage".into()),
    }
}

fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })
}

#[test]
fn every_damaged_entry_is_named_and_repaired() {
    let (store, kinds) = kinds();
    for kind in &kinds {
        let outcome = runner()
            .run(&damages(), |damages| law(&store, kind, &damages).map_err(TestCaseError::fail));
        outcome.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    }
}

/// The controls: a check and repairs that are wrong in one way.
#[test]
fn a_wrong_check_and_a_wrong_repair_are_caught() {
    let (store, mut kinds) = kinds();
    let index = kinds.swap_remove(0);
    let damages = [(3, Damage::Flip { at: 0, mask: 0xF0 }), (8, Damage::Flip { at: 1, mask: 1 })];
    assert_eq!(law(&store, &index, &damages), Ok(()));
    let caught = |kind: &Kind, with: &str| {
        let seen = law(&store, kind, &damages).unwrap_err();
        assert!(seen.contains(with), "{seen}");
    };
    let Kind { check, repair, space, .. } = index;
    let with = |check: &Check, repair: Repair| {
        let (check, space) = (check.clone(), space.clone());
        Kind { name: "control", space, check, repair }
    };
    let all = check.clone();
    let first: Check = Rc::new(move |store| Ok(all(store)?.into_iter().take(1).collect()));
    caught(&with(&first, repair.clone()), "is not named");
    let newer = || Error::NewerFormat { what: "the index".into(), found: 15, supported: 1 };
    let stops: Check = Rc::new(move |_| Err(newer()));
    caught(&with(&stops, repair.clone()), "the check stops");
    caught(&with(&check, Rc::new(|_| Ok(()))), "the repair leaves");
    let beside = space.child("behind").pack("more");
    let wide = move |store: &Memory| {
        repair(store)?;
        store.transact(|txn| txn.put(&beside, b""))
    };
    caught(&with(&check, Rc::new(wide)), "the repair leaves");
}

#[test]
fn a_query_names_the_damaged_entry_and_the_remedy() {
    let store = Memory::new();
    let by_name = Index::new(&space("by name"), |_, name: &String| entry(name)).unique();
    let names = Table::<u32, String>::new(&space("names")).with(&by_name);
    store.transact(|txn| names.put(txn, &1, &"a".into())).unwrap();
    let (key, _) = dump(&store, by_name.space().self_and_children()).pop_first().unwrap();
    store.transact(|txn| txn.put(&key, &[0xF0, 0])).unwrap();
    let says = |error: &Error| {
        let text = error.to_string();
        assert!(text.contains(r#"("damage", "by name", "a")"#), "{text}");
        assert!(text.contains("repair the index"), "{text}");
    };
    let snapshot = store.snapshot().unwrap();
    let found = by_name.range(&snapshot, (), Order::Ascending).unwrap().next().unwrap();
    says(&found.unwrap_err());
    // Whose place it is cannot be known, so no record gets it.
    says(&store.transact(|txn| names.put(txn, &2, &"a".into())).unwrap_err());
    says(&store.transact(|txn| names.delete(txn, &1)).unwrap_err());
    store.transact(|txn| names.put(txn, &2, &"b".into())).unwrap();
    let options = RepairOptions::default();
    by_name.repair_with(&store, &names, &options, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(by_name.check(&store.snapshot().unwrap(), &names).unwrap(), []);
    store.transact(|txn| names.delete(txn, &1)).unwrap();
}
