//! Import of stores that were written without a schema.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use keyloom::lmdb::Durability;
use keyloom::value::Json;
use keyloom::{
    Error, Fault, Faulty, Lmdb, Memory, Metered, Result, Store, Subspace, Transaction, Writer,
};
use keyloom_patterns::schema::State;
use keyloom_patterns::{Progress, Schema, SchemaError, Table};

use crate::fixture::{Build, Bytes, KINDS, Sale, Shop, StateOf, sale};
use keyloom_testing::laws::{Dump, clear, counts, dump, dump_all};

/// The data in the store other than the records.
const DERIVED: [&str; 5] = ["by_town", "by_serial", "by_cents", "totals", "indexes"];

fn space() -> Subspace {
    Subspace::new("shop")
}

fn sales() -> Subspace {
    space().child("sales")
}

/// The keys and values of a store written by commit c673f21, before schemas existed, one per line
/// in hex. The store has a table with an index, a unique index, a deferred index and totals, and an
/// `IndexCatalog`.
///
/// The records are those of [`records`].
const WRITTEN: &str = include_str!("before_schema.hex");

pub fn records() -> Vec<(u32, Sale)> {
    let ids = (0..20).filter(|id| *id != 5);
    ids.map(|id| (id, sale(if id == 3 { 40 } else { id }))).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn prepare(store: &impl Store) {
    write(store, WRITTEN);
}

/// Fills a store with the lines of a file.
pub fn write(store: &impl Store, written: &str) {
    clear(store);
    let written = written.lines().map(|line| line.split_once(' ').unwrap());
    let mut txn = store.begin().unwrap();
    written.for_each(|(key, value)| txn.put(&bytes(key), &bytes(value)).unwrap());
    txn.commit().unwrap();
}

/// The complete import. Calls `committed` after each known commit.
fn take_over(store: &impl Store, committed: impl Fn()) -> Result<Shop> {
    let schema = Schema::open(store, "shop")?;
    schema.import_table::<u32, Sale>("sales", &sales())?;
    committed();
    let shop = Shop::try_open(store, false)?;
    committed();
    for kind in 0..KINDS {
        while !shop.with_kind(kind, Build(store, 1))? {
            committed();
        }
        committed();
    }
    for name in DERIVED {
        let on = |_: &Progress| {
            committed();
            ControlFlow::Continue(())
        };
        schema.clear_explicit_with(&space().child(name), 7, on)?;
    }
    Ok(shop)
}

/// The records are unchanged, and all derived data is equal to that of a shop with a schema from
/// the start.
fn is_taken_over(store: &impl Store, written: &Dump) {
    let snapshot = store.snapshot().unwrap();
    let left = dump(&snapshot, space().self_and_children());
    let in_table = |key: &&Vec<u8>| sales().contains(key);
    let wanted = written.iter().filter(|(key, _)| in_table(key));
    assert_eq!(left, wanted.map(|(key, value)| (key.clone(), value.clone())).collect());
    drop(snapshot);
    let shop = Shop::open(store);
    let fresh = Memory::new();
    let wanted = Shop::open(&fresh);
    fresh.transact(|txn| wanted.sales.put_many(txn, records())).unwrap();
    for kind in 0..KINDS {
        assert_eq!(
            shop.with_kind(kind, Bytes(store)),
            wanted.with_kind(kind, Bytes(&fresh)),
            "kind {kind}"
        );
    }
}

/// After any part of the work, all readable data is correct.
fn nothing_is_read_wrongly(store: &impl Store) {
    let tables = Schema::open(store, "shop").unwrap().tables().unwrap();
    let Some(table) = tables.first() else { return };
    assert_eq!(table.imported, Some(sales()));
    let shop = Shop::open(store);
    for kind in 0..KINDS {
        if shop.with_kind(kind, StateOf(store)).unwrap() == State::Readable {
            shop.with_kind(kind, Bytes(store));
        }
    }
}

fn schema_error<T>(outcome: Result<T>) -> SchemaError {
    let error = outcome.map(drop).unwrap_err();
    error.downcast_ref::<SchemaError>().unwrap_or_else(|| panic!("{error}")).clone()
}

pub fn a_store_without_a_schema_is_taken_over(store: &(impl Store + Clone)) {
    prepare(store);
    let written = dump_all(store);
    take_over(store, || ()).unwrap();
    is_taken_over(store, &written);
    // A repeated import changes nothing, and reads as much as opening a schema.
    let after = dump_all(store);
    take_over(store, || ()).unwrap();
    assert_eq!(dump_all(store), after);
    let metered = Metered::new(store.clone());
    let (_, cost) = metered.measure(|store| {
        let schema = Schema::open(store, "shop").unwrap();
        schema.import_table::<u32, Sale>("sales", &sales()).unwrap();
    });
    assert_eq!(counts(cost), [0, 1, 1, 0]);
    // Another program writes through the schema.
    let shop = Shop::open(store);
    store.transact(|txn| shop.sales.put(txn, &100, &sale(40))).unwrap();
    store.transact(|txn| shop.sales.delete(txn, &1).map(drop)).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(dump(&snapshot, sales().self_and_children()).contains_key(&*sales().pack(&100)));
    assert_eq!(shop.totals.check(&snapshot).unwrap(), []);
    assert_eq!(shop.by_town.query().records(&snapshot).unwrap().items.len(), records().len());
    drop(snapshot);
    // A dropped table leaves only the id counter.
    Schema::open(store, "shop").unwrap().drop_table("sales").unwrap();
    assert_eq!(dump_all(store).len(), 1);
}

pub fn an_import_costs_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let plain = Table::<u32, u32>::new(&Subspace::new("numbers"));
    store.transact(|txn| plain.put_many(txn, (0..2_500).map(|n| (n, n)))).unwrap();
    let store = Metered::new(store.clone());
    let schema = Schema::open(&store, "numbers").unwrap();
    let space = plain.space();
    let (_, cost) = store.measure(|_| schema.import_table::<u32, u32>("numbers", space).unwrap());
    let pages = 3;
    assert_eq!(counts(cost), [1 + 3, 2 + pages + 1 + 2, 2_500, 2]);
    if store.inner().round_trips().is_none() {
        assert_eq!(cost.round_trips, 9 + pages);
    }
    schema.drop_table("numbers").unwrap();
    store.transact(|txn| plain.put_many(txn, (0..2_500).map(|n| (n, n)))).unwrap();
    let (cleared, cost) = store.measure(|_| schema.clear_explicit(space).unwrap().removed);
    assert_eq!((cleared, counts(cost)), (2_500, [0, 3 * pages, 2_500, 2_500]));
    if store.inner().round_trips().is_none() {
        assert_eq!(cost.round_trips, 4 * pages);
    }
}

pub fn an_import_that_fails_anywhere_can_be_repeated<S: Store + Clone>(store: &S) {
    prepare(store);
    let written = dump_all(store);
    let faulty = Faulty::new(store.clone());
    take_over(&faulty, || ()).unwrap();
    let operations = faulty.operations();
    assert!(operations > 500, "{operations} operations");
    let faults = [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted];
    // Testing every step would take minutes.
    for (n, fault) in (0..operations).step_by(29).zip(faults.into_iter().cycle()) {
        prepare(store);
        faulty.fail_at(n, fault);
        let outcome = take_over(&faulty, || ());
        faulty.clear_fault();
        assert!(outcome.is_err(), "{fault:?} at operation {n}");
        nothing_is_read_wrongly(store);
        take_over(store, || ()).unwrap();
        is_taken_over(store, &written);
    }
}

pub fn an_import_of_other_records_is_refused(store: &(impl Store + Clone)) {
    prepare(store);
    let before = dump_all(store);
    let schema = Schema::open(store, "shop").unwrap();
    let all = space();
    let refused = [
        schema.import_table::<u32, f64>("sales", &sales()).map(drop),
        schema.import_table::<String, Sale>("sales", &sales()).map(drop),
        schema.import_table::<(u32, u32), Sale>("sales", &sales()).map(drop),
        schema.import_table_with::<u32, Sale, Json>("sales", 1, &sales()).map(drop),
        // The table with its derived data, and the table with a part of its data.
        schema.import_table::<u32, Sale>("sales", &all).map(drop),
        schema.import_table::<u32, Sale>("sales", &all.child("by_town")).map(drop),
    ];
    for outcome in refused {
        let error = schema_error(outcome);
        let SchemaError::NotARecord { name, declared, source } = &error else { panic!("{error}") };
        assert_eq!(name, "sales");
        assert!(declared.starts_with("a table of version 1 from"), "{declared}");
        assert!(source.to_string().contains(r#"("shop", "#), "{source}");
    }
    let refused = schema.import_table::<u32, Sale>("sales", &all.child("salse")).map(drop);
    assert!(matches!(refused, Err(Error::InvalidArgument { what: "the subspace to import", .. })));
    assert_eq!(dump_all(store), before);
    // One damaged record among many is reported. Nothing is registered until this record is
    // deleted.
    let plain = Table::<u32, Sale>::new(&sales());
    store.transact(|txn| plain.put_many(txn, (100..1_300).map(|n| (n, sale(n))))).unwrap();
    store.transact(|txn| txn.put(&sales().pack(&1_234), b"\xFF")).unwrap();
    let import = || schema.import_table::<u32, Sale>("sales", &sales());
    let error = schema_error(import());
    assert!(error.to_string().contains(r#"("shop", "sales", 1234)"#), "{error}");
    assert!(schema.tables().unwrap().is_empty());
    store.transact(|txn| plain.delete_without_derived(txn, &1_234)).unwrap();
    import().unwrap();
}

pub fn an_import_that_overlaps_is_refused(store: &(impl Store + Clone)) {
    prepare(store);
    let plain = Table::<(u32, u32), u32>::new(&Subspace::new("pairs"));
    store.transact(|txn| plain.put_many(txn, [((1, 1), 1), ((2, 1), 2)])).unwrap();
    let schema = Schema::open(store, "numbers").unwrap();
    schema.import_table::<(u32, u32), u32>("pairs", &Subspace::new("pairs")).unwrap();
    let ids = schema.table::<u32, u32>("ids").unwrap();
    store.transact(|txn| ids.put(txn, &1, &1)).unwrap();
    let before = dump_all(store);
    let refuses_all = |owner: &str| {
        let other = Schema::open(store, "other").unwrap();
        let inside = Subspace::new("pairs").child(&1);
        for space in [Subspace::new("pairs"), inside, Subspace::from_bytes(b"\x02pai")] {
            let refused = [
                schema_error(other.import_table::<u32, u32>("numbers", &space)),
                schema_error(other.clear_explicit(&space)),
            ];
            for error in refused {
                let SchemaError::Overlap { owner: found, owned, .. } = &error else {
                    panic!("{error}")
                };
                assert_eq!((&**found, &**owned), (owner, r#"("pairs",)"#));
            }
        }
    };
    refuses_all(r#"the table "pairs" of the schema "numbers""#);
    for space in [Subspace::root(), Subspace::new("keyloom"), ids.space().clone()] {
        let import = schema.import_table::<u32, u32>("other", &space);
        let clear = schema.clear_explicit(&space);
        for error in [schema_error(import), schema_error(clear)] {
            assert!(matches!(error, SchemaError::Overlap { .. }), "{error}");
        }
    }
    assert_eq!(dump_all(store), before);
    // The import is also refused during a drop of the table.
    schema.drop_table_with("pairs", 1, |_| ControlFlow::Break(())).unwrap();
    refuses_all(r#"the table "pairs" of the schema "numbers""#);
    schema.drop_table("pairs").unwrap();
    store.transact(|txn| plain.put(txn, &(1, 1), &1)).unwrap();
    assert_eq!(schema.clear_explicit(&Subspace::new("pairs")).unwrap().removed, 1);
}

pub fn an_import_contradicts_another_table_of_its_name(store: &(impl Store + Clone)) {
    prepare(store);
    let open = || Schema::open(store, "shop").unwrap();
    let import = |schema: &Schema<'_, _>| schema.import_table::<u32, Sale>("sales", &sales());
    let late = open();
    // A program that declared the table has created an empty table.
    open().table::<u32, Sale>("sales").unwrap();
    for schema in [open(), late] {
        let error = schema_error(import(&schema));
        let SchemaError::Contradiction { stored, declared, .. } = &error else { panic!("{error}") };
        assert!(stored.ends_with("in the subspace (-1,)"), "{stored}");
        assert!(declared.ends_with(r#"in the subspace ("shop", "sales")"#), "{declared}");
    }
    open().drop_table("sales").unwrap();
    let late = open();
    import(&open()).unwrap();
    import(&late).unwrap();
    assert!(matches!(schema_error(import(&late)), SchemaError::DeclaredTwice { .. }));
    let elsewhere = open().import_table::<u32, Sale>("sales", &Subspace::new("elsewhere"));
    assert!(matches!(schema_error(elsewhere), SchemaError::Contradiction { .. }));
    let other = open().import_table::<u32, String>("sales", &sales());
    assert!(matches!(schema_error(other), SchemaError::ChangedRecord { .. }));
    assert_eq!(open().table::<u32, Sale>("sales").unwrap().space(), &sales());
}

/// Writes to a table outside of the schema do not maintain its derived data: a check finds them,
/// and a repair fixes them.
pub fn plain_writes_after_an_import_are_found(store: &(impl Store + Clone)) {
    prepare(store);
    let shop = take_over(store, || ()).unwrap();
    let plain = Table::<u32, Sale>::new(&sales());
    store.transact(|txn| plain.put(txn, &50, &sale(50))).unwrap();
    store.transact(|txn| plain.delete(txn, &2).map(drop)).unwrap();
    assert!(!shop.by_town.check(&store.snapshot().unwrap()).unwrap().is_empty());
    assert!(shop.by_town.repair(store).unwrap().finished);
    assert!(shop.totals.repair(store).unwrap().finished);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(shop.by_town.check(&snapshot).unwrap(), []);
    assert_eq!(shop.totals.check(&snapshot).unwrap(), []);
}

const PATH: &str = "KEYLOOM_IMPORT_PATH";
const STOP: &str = "KEYLOOM_IMPORT_STOP";

fn open(path: &Path) -> Lmdb {
    Lmdb::options().durability(Durability::MayLoseStore).open(path).unwrap()
}

/// Not a test of its own: a child process that aborts after a commit, started by the test below.
#[test]
fn until_a_commit_in_a_process_of_its_own() {
    let (Ok(path), Ok(stop)) = (std::env::var(PATH), std::env::var(STOP)) else { return };
    let (stop, commits): (u32, _) = (stop.parse().unwrap(), Cell::new(0));
    let committed = || {
        commits.set(commits.get() + 1);
        if commits.get() == stop {
            std::process::abort();
        }
    };
    take_over(&open(Path::new(&path)), committed).unwrap();
}

#[test]
fn an_import_that_dies_after_any_commit_can_be_repeated() {
    for stop in 1.. {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        prepare(&store);
        let written = dump_all(&store);
        drop(store);
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "import::until_a_commit_in_a_process_of_its_own"])
            .env(PATH, directory.path())
            .env(STOP, stop.to_string())
            .output()
            .unwrap()
            .status;
        let store = open(directory.path());
        nothing_is_read_wrongly(&store);
        take_over(&store, || ()).unwrap();
        is_taken_over(&store, &written);
        if status.success() {
            assert!(stop > 90, "{stop} commits");
            break;
        }
    }
}
