//! Builds, disabling and dropping, with concurrent writers.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use keyloom::value::{Codec, Postcard};
use keyloom::{Memory, Store, Writer};
use keyloom_patterns::Progress;
use keyloom_patterns::schema::{State, dropped_tables};
use keyloom_patterns::{Attached, Links, Maintained, RepairOptions, Schema, SchemaError};
use proptest::prelude::*;

use crate::fixture::{
    Build, Bytes, Disable, Drain, KINDS, KindWork, Sale, Shop, StateOf, UNIQUE, bare, by_serial,
    sale,
};
use keyloom_testing::laws::{clear, dump, dump_all, long_property};

#[derive(Clone, Debug)]
enum Step {
    Put(u32, u32),
    Many(Vec<(u32, u32)>),
    Delete(u32),
    Disable(usize),
    Build { kind: usize, batches: usize },
    Drain { kind: usize, batches: usize },
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let record = || (0..20_u32, 0..40_u32);
    let step = prop_oneof![
        4 => record().prop_map(|(id, n)| Step::Put(id, n)),
        1 => prop::collection::vec(record(), 0..6).prop_map(Step::Many),
        3 => (0..20_u32).prop_map(Step::Delete),
        1 => (0..KINDS).prop_map(Step::Disable),
        3 => (0..KINDS, 1..4_usize).prop_map(|(kind, batches)| Step::Build { kind, batches }),
        2 => (0..KINDS, 1..4_usize).prop_map(|(kind, batches)| Step::Drain { kind, batches }),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 0..40)
}

/// A sale of record `id`. Serial numbers are unique across records.
fn of(id: u32, n: u32) -> Sale {
    Sale { serial: (!n.is_multiple_of(3)).then_some(id * 100 + n % 2), ..sale(n) }
}

pub fn rebuilt_equals_maintained_in_any_history(store: &(impl Store + Clone)) {
    long_property((any::<bool>(), steps()), |(is_deferred, steps)| {
        clear(store);
        let open = |store| Shop::try_open(store, is_deferred).unwrap();
        let (mut shop, mut model) = (open(store), BTreeMap::new());
        for step in steps {
            match step {
                Step::Put(id, n) => {
                    store.transact(|txn| shop.sales.put(txn, &id, &of(id, n))).unwrap();
                    model.insert(id, of(id, n));
                }
                Step::Many(records) => {
                    let records = records.into_iter().map(|(id, n)| (id, of(id, n)));
                    let records: Vec<_> = records.collect();
                    store.transact(|txn| shop.sales.put_many(txn, &records)).unwrap();
                    model.extend(records);
                }
                Step::Delete(id) => {
                    let was_there = store.transact(|txn| shop.sales.delete(txn, &id)).unwrap();
                    assert_eq!(was_there, model.remove(&id).is_some());
                }
                Step::Disable(kind) => shop.with_kind(kind, Disable(store)).unwrap(),
                Step::Build { kind, batches } => {
                    shop.with_kind(kind, Build(store, batches)).unwrap();
                }
                Step::Drain { kind, batches } => {
                    let drained = shop.with_kind(kind, Drain(store, batches));
                    let state = shop.with_kind(kind, StateOf(store)).unwrap();
                    let is_refused = state == State::Disabled && is_deferred && kind != UNIQUE;
                    assert_eq!(drained.is_err(), is_refused, "{drained:?}");
                }
                Step::Reopen => shop = open(store),
            }
        }
        // The expected data is that of an uninterrupted build in another store.
        let fresh = Memory::new();
        let wanted = Shop::open(&fresh);
        fresh.transact(|txn| wanted.sales.put_many(txn, model.clone())).unwrap();
        for kind in 0..KINDS {
            assert!(shop.with_kind(kind, Build(store, usize::MAX)).unwrap());
            let bytes = shop.with_kind(kind, Bytes(store));
            assert_eq!(bytes, wanted.with_kind(kind, Bytes(&fresh)), "kind {kind}");
        }
    });
}

pub fn disabling_counts_for_later_puts_of_its_transaction(store: &(impl Store + Clone)) {
    let shop = Shop::open(store);
    let entries = store.transact(|txn| {
        let by_town = shop.by_town.at(txn)?.space();
        shop.sales.put(txn, &1, &sale(1))?;
        shop.by_town.disable(txn)?;
        shop.sales.put(txn, &2, &sale(2))?;
        Ok(dump(txn, by_town.self_and_children()).len())
    });
    assert_eq!(entries.unwrap(), 1, "the entry of the first record");
}

pub fn a_build_continues_where_the_store_says(store: &(impl Store + Clone)) {
    for is_deferred in [false, true] {
        clear(store);
        build_in_turns(store, || Shop::try_open(store, is_deferred).unwrap());
    }
}

fn build_in_turns(store: &impl Store, open: impl Fn() -> Shop) {
    let shop = open();
    store.transact(|txn| shop.sales.put_many(txn, (0..10).map(|id| (id, of(id, id))))).unwrap();
    for kind in 0..KINDS {
        shop.with_kind(kind, Disable(store)).unwrap();
        // Clears the data, then visits two records.
        assert!(!shop.with_kind(kind, Build(store, 1)).unwrap());
        // Another program resumes the build, while a third program writes before and after the
        // position.
        let others = open();
        store.transact(|txn| others.sales.put(txn, &0, &of(0, 30))).unwrap();
        store.transact(|txn| others.sales.put(txn, &9, &of(9, 30))).unwrap();
        store.transact(|txn| others.sales.delete(txn, &5).map(drop)).unwrap();
        assert!(others.with_kind(kind, Build(store, usize::MAX)).unwrap());
        shop.with_kind(kind, Bytes(store));
    }
}

pub fn a_build_waits_for_a_record_that_is_refused(store: &(impl Store + Clone)) {
    let sales = bare(store);
    let twice = Sale { serial: Some(7), ..sale(1) };
    let records = [(1, twice.clone()), (2, sale(2)), (3, twice), (4, sale(6))];
    store.transact(|txn| sales.put_many(txn, &records)).unwrap();
    let schema = Schema::open(store, "shop").unwrap();
    let sales = schema.table::<u32, Sale>("sales").unwrap();
    let by_serial = schema.unique_index(&sales, "by_serial", 1, by_serial).unwrap();
    let error = Build(store, usize::MAX);
    let error = crate::fixture::KindWork::run(error, &by_serial).unwrap_err();
    for part in ["7", "unique"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let refused = by_serial.at(&store.snapshot().unwrap()).map(drop).unwrap_err();
    let Some(SchemaError::NotReadable { .. }) = refused.downcast_ref() else { panic!("{refused}") };
    store.transact(|txn| sales.put(txn, &3, &sale(3))).unwrap();
    assert!(by_serial.build(store).unwrap().finished);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(by_serial.check(&snapshot).unwrap(), []);
    assert_eq!(by_serial.at(&snapshot).unwrap().count(&snapshot, ..).unwrap(), 4);
}

pub fn a_dropped_table_leaves_no_key(store: &(impl Store + Clone)) {
    let counter = keyloom::pack(&("keyloom", "next id")).to_vec();
    let schema = Schema::open(store, "shop").unwrap();
    let gone = |outcome: keyloom::Result<()>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(SchemaError::Gone { .. })), "{error}");
    };
    gone(schema.drop_table("sales").map(drop));
    // The work is interrupted after each of its transactions in turn, and resumed by another
    // program.
    for stop in 1..20 {
        let shop = Shop::open(store);
        store.transact(|txn| shop.sales.put_many(txn, (0..9).map(|id| (id, of(id, id))))).unwrap();
        shop.totals.repair(store).unwrap();
        // The rename leaves a former name, which is removed with the table.
        let other = Schema::open(store, "shop").unwrap();
        other.rename_derived("sales", "by_town", "by_place").unwrap();
        other.rename_derived("sales", "by_place", "by_town").unwrap();
        let mut batches = 0;
        let some = |_: &_| {
            batches += 1;
            if batches == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done = schema.drop_table_with("sales", 5, some).unwrap();
        gone(store.transact(|txn| shop.sales.put(txn, &1, &sale(1))));
        gone(shop.by_town.at(&store.snapshot().unwrap()).map(drop));
        gone(shop.totals.build(store).map(drop));
        assert!(schema.tables().unwrap().is_empty());
        if !done.finished {
            let left = dropped_tables(&store.snapshot().unwrap()).unwrap();
            assert!(left.iter().map(|(of, table)| (&**of, &*table.name)).eq([("shop", "sales")]));
            let other = Schema::open(store, "shop").unwrap();
            let to_the_end = |_: &_| ControlFlow::Continue(());
            let finished = match stop % 2 {
                0 => other.drop_table_with("sales", 5, to_the_end),
                _ => other.finish_drops_with(5, to_the_end),
            };
            assert!(finished.unwrap().finished);
        }
        assert_eq!(dropped_tables(&store.snapshot().unwrap()).unwrap(), []);
        assert!(dump_all(store).into_keys().eq([counter.clone()]), "stopped after {stop}");
    }
}

/// A program that starts again during a drop declares the table again, and writes to it.
pub fn a_table_that_is_declared_during_its_drop_stays(store: &(impl Store + Clone)) {
    for again in 1..8 {
        clear(store);
        let shop = Shop::open(store);
        store.transact(|txn| shop.sales.put_many(txn, (0..9).map(|id| (id, of(id, id))))).unwrap();
        let (mut batches, mut new) = (0, None);
        let schema = Schema::open(store, "shop").unwrap();
        let dropped = schema.drop_table_with("sales", 5, |_| {
            batches += 1;
            if batches == again {
                let shop = Shop::open(store);
                store.transact(|txn| shop.sales.put(txn, &7, &sale(7))).unwrap();
                new = Some(shop);
            }
            ControlFlow::Continue(())
        });
        assert!(dropped.unwrap().finished && batches >= again);
        let new = new.unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(new.sales.get(&snapshot, &7).unwrap(), Some(sale(7)), "declared after {again}");
        assert_eq!(new.sales.count(&snapshot, ..).unwrap(), 1);
        assert_eq!(new.by_town.check(&snapshot).unwrap(), []);
        assert_eq!(dropped_tables(&snapshot).unwrap(), []);
    }
}

pub fn a_dropped_index_leaves_no_key(store: &(impl Store + Clone)) {
    let bare = bare(store);
    store.transact(|txn| bare.put_many(txn, (0..9).map(|id| (id, of(id, id))))).unwrap();
    let before = dump_all(store);
    let schema = Schema::open(store, "shop").unwrap();
    let sales = schema.table::<u32, Sale>("sales").unwrap();
    let by_serial = schema.unique_index(&sales, "by_serial", 1, by_serial).unwrap();
    by_serial.build(store).unwrap();
    by_serial.repair(store).unwrap();
    let mut batches = 0;
    let going_on = |_: &_| {
        batches += 1;
        std::ops::ControlFlow::Continue(())
    };
    assert!(by_serial.drop_with(store, 2, going_on).unwrap().finished);
    assert!(batches > 2, "{batches}");
    let mut after = dump_all(store);
    let counter = keyloom::pack(&("keyloom", "next id")).to_vec();
    assert_ne!(after.insert(counter.clone(), before[&counter].clone()).unwrap(), before[&counter]);
    assert_eq!(after, before);
    // A program without the declaration can write again.
    store.transact(|txn| bare.put(txn, &1, &sale(1))).unwrap();
    let gone = by_serial.at(&store.snapshot().unwrap()).map(drop).unwrap_err();
    assert!(matches!(gone.downcast_ref(), Some(SchemaError::Gone { .. })), "{gone}");

    // The name is reused: the handle of the dropped data does not change the new data.
    let schema = Schema::open(store, "shop").unwrap();
    let sales = schema.table::<u32, Sale>("sales").unwrap();
    let again = schema.unique_index(&sales, "by_serial", 1, crate::fixture::by_serial).unwrap();
    again.build(store).unwrap();
    let before = dump_all(store);
    assert_eq!(by_serial.drop_data(store).unwrap().removed, 0);
    for refused in [
        store.transact(|txn| by_serial.disable(txn)),
        by_serial.build(store).map(drop),
        by_serial.at(&store.snapshot().unwrap()).map(drop),
    ] {
        let gone = refused.unwrap_err();
        assert!(matches!(gone.downcast_ref(), Some(SchemaError::Gone { .. })), "{gone}");
    }
    assert_eq!(dump_all(store), before);
}

/// Each kind is built while two writers change records before and after the position.
pub fn builds_beside_writers_leave_what_a_build_alone_leaves(store: &(impl Store + Clone)) {
    for is_deferred in [false, true] {
        clear(store);
        let shop = Shop::try_open(store, is_deferred).unwrap();
        let sales = (0..120).map(|id| (id, of(id, id)));
        store.transact(|txn| shop.sales.put_many(txn, sales.clone())).unwrap();
        let is_over = AtomicBool::new(false);
        let written = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for seed in 0..2 {
                let (shop, is_over, written) = (&shop, &is_over, &written);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(seed);
                    while !is_over.load(Relaxed) {
                        let (id, n) = (rng.u32(..120), rng.u32(..50));
                        store
                            .transact(|txn| match n % 5 {
                                0 => shop.sales.delete(txn, &id).map(drop),
                                _ => shop.sales.put(txn, &id, &of(id, n)),
                            })
                            .unwrap();
                        written.fetch_add(1, Relaxed);
                    }
                });
            }
            for kind in 0..KINDS {
                shop.with_kind(kind, Disable(store)).unwrap();
                let before = written.load(Relaxed);
                while !shop.with_kind(kind, Build(store, 3)).unwrap() {
                    std::thread::yield_now();
                }
                while written.load(Relaxed) == before {
                    std::thread::yield_now();
                }
            }
            is_over.store(true, Relaxed);
        });
        let snapshot = store.snapshot().unwrap();
        let records = shop.sales.range(&snapshot, ..).unwrap();
        let records: Vec<_> = records.collect::<Result<_, _>>().unwrap();
        drop(snapshot);
        let fresh = Memory::new();
        let wanted = Shop::try_open(&fresh, is_deferred).unwrap();
        fresh.transact(|txn| wanted.sales.put_many(txn, &records)).unwrap();
        for kind in 0..KINDS {
            let bytes = wanted.with_kind(kind, Bytes(&fresh));
            assert_eq!(shop.with_kind(kind, Bytes(store)), bytes, "kind {kind}");
        }
    }
}

pub fn links_have_the_life_cycle_of_a_schema(store: &(impl Store + Clone)) {
    let groups = ["chess", "go", "tennis"];
    let pairs = || (0..30).map(|n| ((groups[n as usize % 3].to_owned(), n / 2), ()));
    let bare = Schema::open(store, "club").unwrap().table::<(String, u32), ()>("members").unwrap();
    store.transact(|txn| bare.put_many(txn, pairs())).unwrap();

    let schema = Schema::open(store, "club").unwrap();
    let members = Links::<String, u32>::in_schema(&schema, "members").unwrap();
    let reversed = members.reversed().unwrap();
    let groups_of = |user: u32| -> keyloom::Result<Vec<String>> {
        let snapshot = store.snapshot()?;
        members.lefts_of(&snapshot, &user)?.collect()
    };
    let is_refused = || {
        let error = groups_of(1).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(SchemaError::NotReadable { .. })), "{error}");
    };
    is_refused();
    let mut batches = 0;
    let some = |_: &_| {
        batches += 1;
        if batches < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    assert_eq!(reversed.build_with(store, 5, some).unwrap().records, 10);
    is_refused();
    store.transact(|txn| members.unlink(txn, &"chess".into(), &1)).unwrap();
    store.transact(|txn| members.link(txn, &"go".into(), &1)).unwrap();
    assert!(reversed.build(store).unwrap().finished);
    assert_eq!(groups_of(1).unwrap(), ["go", "tennis"]);
    assert_eq!(members.check(&store.snapshot().unwrap()).unwrap(), []);

    let damaged = dump_all(store).into_keys().find(|key| reversed.space().contains(key)).unwrap();
    store.transact(|txn| txn.delete(&damaged)).unwrap();
    assert_eq!(members.check(&store.snapshot().unwrap()).unwrap().len(), 1);
    assert_eq!(reversed.repair(store).unwrap().written, 1);
    store.transact(|txn| reversed.disable(txn)).unwrap();
    is_refused();
    // A program that declares only the table writes while the reversed links are disabled.
    store.transact(|txn| bare.delete(txn, &("go".into(), 1)).map(drop)).unwrap();
    reversed.build(store).unwrap();
    assert_eq!(groups_of(1).unwrap(), ["tennis"]);
    assert!(store.transact(|txn| bare.put(txn, &("go".into(), 1), &())).is_err());
}

/// The actions of another program after the first transaction of a repair.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Repairs,
    /// Disables the data, and builds it up to some record.
    BuildsSome,
}

struct RepairBeside<'s, S>(&'s S, Meanwhile);

impl<S: Store> KindWork<Result<(), keyloom::Error>> for RepairBeside<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(
        self,
        attached: &Attached<D>,
    ) -> Result<(), keyloom::Error> {
        let Self(store, meanwhile) = self;
        let mut is_first = true;
        let options = RepairOptions { batch: 2, resume: None };
        let repaired = attached.repair_with(store, &options, |_| {
            if std::mem::take(&mut is_first) {
                match meanwhile {
                    Meanwhile::Repairs => drop(attached.repair(store).unwrap()),
                    Meanwhile::BuildsSome => {
                        store.transact(|txn| attached.disable(txn)).unwrap();
                        let mut visited = 0;
                        let some = |done: &Progress| {
                            visited = done.records;
                            if visited > 4 {
                                ControlFlow::Break(())
                            } else {
                                ControlFlow::Continue(())
                            }
                        };
                        attached.build_with(store, 2, some).unwrap();
                    }
                }
            }
            ControlFlow::Continue(())
        });
        repaired.map(drop)
    }
}

/// After another repair or a build has begun, the first repair makes no further changes.
pub fn a_repair_that_was_overtaken_changes_nothing<S: Store + Clone>(store: &S) {
    for meanwhile in [Meanwhile::Repairs, Meanwhile::BuildsSome] {
        let mut refused = 0;
        for kind in 0..KINDS {
            clear(store);
            let shop = Shop::open(store);
            store
                .transact(|txn| shop.sales.put_many(txn, (0..6).map(|id| (id, of(id, id)))))
                .unwrap();
            // Writes records that bypass the schema.
            let bypass = |txn: &mut S::Transaction<'_>, id| {
                let mut bytes = Vec::new();
                Postcard::encode(&of(id, id), &mut bytes)?;
                txn.put(&shop.sales.space().pack(&id), &bytes)
            };
            store.transact(|txn| (6..20).try_for_each(|id| bypass(txn, id))).unwrap();
            match shop.with_kind(kind, RepairBeside(store, meanwhile)) {
                Ok(()) => {}
                Err(error) => {
                    let error = error.downcast_ref::<SchemaError>().unwrap().clone();
                    let is_named = match meanwhile {
                        Meanwhile::Repairs => matches!(error, SchemaError::RepairTakenOver { .. }),
                        Meanwhile::BuildsSome => matches!(error, SchemaError::NotReadable { .. }),
                    };
                    assert!(is_named, "{error}");
                    refused += 1;
                }
            }
            assert!(shop.with_kind(kind, Build(store, usize::MAX)).unwrap());
            let fresh = Memory::new();
            let wanted = Shop::open(&fresh);
            let all = (0..20).map(|id| (id, of(id, id)));
            fresh.transact(|txn| wanted.sales.put_many(txn, all.clone())).unwrap();
            let bytes = wanted.with_kind(kind, Bytes(&fresh));
            assert_eq!(shop.with_kind(kind, Bytes(store)), bytes, "kind {kind}, {meanwhile:?}");
        }
        // The repair of a sketch is one transaction, so it cannot be overtaken.
        assert!(refused >= KINDS - 2, "{refused} of {KINDS}, {meanwhile:?}");
    }
}
