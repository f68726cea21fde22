//! Renamed tables and derived data.

use keyloom::{Error, Fault, Faulty, Store, Subspace};
use keyloom_patterns::schema::State;
use keyloom_patterns::{Attached, Index, Schema, SchemaError, Table, entry};
use keyloom_testing::laws::{clear, dump, dump_all, failing_operations};

use crate::misuse::schema_error;

type Numbers = Table<u32, u32>;

fn declared(
    store: &impl Store,
    table: &str,
    index: &str,
) -> (Numbers, Attached<Index<u32, u32, u32>>) {
    let schema = Schema::open(store, "app").unwrap();
    let numbers = schema.table(table).unwrap();
    let index = schema.index(&numbers, index, 1, |_, n: &u32| entry(n)).unwrap();
    (numbers, index)
}

fn filled(store: &impl Store) -> (Numbers, Attached<Index<u32, u32, u32>>) {
    let now = declared(store, "numbers", "by_number");
    store.transact(|txn| now.0.put_many(txn, (0..20).map(|n| (n, n % 7)))).unwrap();
    now
}

fn is_right(store: &impl Store, (numbers, index): &(Numbers, Attached<Index<u32, u32, u32>>)) {
    let snapshot = store.snapshot().unwrap();
    assert_eq!(numbers.count(&snapshot, ..).unwrap(), 20);
    assert_eq!(index.at(&snapshot).unwrap().count(&snapshot, 3).unwrap(), 3);
    assert_eq!(index.check(&snapshot).unwrap(), []);
}

fn error(error: Error) -> SchemaError {
    error.downcast_ref::<SchemaError>().unwrap().clone()
}

/// All keys except the entries of the schema.
fn records(store: &impl Store) -> impl PartialEq + std::fmt::Debug {
    let snapshot = store.snapshot().unwrap();
    let definitions = Subspace::new("keyloom");
    let mut all = dump(&snapshot, keyloom::KeyRange::all());
    all.retain(|key, _| !definitions.contains(key));
    all
}

pub fn a_rename_moves_no_record(store: &(impl Store + Clone)) {
    let old = filled(store);
    let before = records(store);
    let schema = Schema::open(store, "app").unwrap();
    assert!(schema.rename_table("numbers", "digits").unwrap());
    assert!(schema.rename_derived("digits", "by_number", "by_digit").unwrap());
    assert_eq!(records(store), before);
    // Another program that also runs these renames.
    assert!(!schema.rename_table("numbers", "digits").unwrap());
    assert!(!schema.rename_derived("digits", "by_number", "by_digit").unwrap());
    let new = declared(store, "digits", "by_digit");
    assert_eq!(schema.tables().unwrap()[0].derived[0].state, State::Readable);
    is_right(store, &new);
    store.transact(|txn| new.0.put(txn, &3, &3)).unwrap();
    is_right(store, &new);

    // Programs that still run with the old names.
    let refused = store.transact(|txn| old.0.put(txn, &4, &4)).unwrap_err();
    assert!(matches!(error(refused), SchemaError::Gone { .. }));
    assert_eq!(old.0.get(&store.snapshot().unwrap(), &3).unwrap(), Some(3));
    let snapshot = store.snapshot().unwrap();
    assert!(old.1.at(&snapshot).is_err());
    drop(snapshot);
    // Once the old name is free, a table of this name is a different table.
    schema.free_table_name("numbers").unwrap();
    let other = Schema::open(store, "app").unwrap().table::<u32, String>("numbers").unwrap();
    store.transact(|txn| other.put(txn, &3, &"three".into())).unwrap();
    is_right(store, &new);
}

pub fn a_program_with_the_old_name_of_an_index_cannot_write(store: &(impl Store + Clone)) {
    let old = filled(store);
    let schema = Schema::open(store, "app").unwrap();
    schema.rename_derived("numbers", "by_number", "by_digit").unwrap();
    let refused = store.transact(|txn| old.0.put(txn, &4, &4)).unwrap_err();
    assert!(matches!(error(refused), SchemaError::Undeclared { name, .. } if name == "by_digit"));
    is_right(store, &declared(store, "numbers", "by_digit"));
}

pub fn names_that_are_taken_are_refused(store: &(impl Store + Clone)) {
    filled(store);
    let schema = Schema::open(store, "app").unwrap();
    let other = schema.table::<u32, u32>("other").unwrap();
    let second = schema.index(&other, "a", 1, |_, n: &u32| entry(n)).unwrap();
    schema.index(&other, "b", 1, |_, n: &u32| entry(n)).unwrap();
    drop(second);
    let before = dump_all(store);
    for (old, new) in [("numbers", "other"), ("other", "numbers")] {
        let refused = schema.rename_table(old, new).unwrap_err();
        assert!(refused.to_string().contains(new), "{refused}");
        assert!(matches!(error(refused), SchemaError::Taken { .. }));
    }
    let refused = schema.rename_derived("other", "a", "b").unwrap_err();
    assert!(matches!(error(refused), SchemaError::Taken { new, .. } if new == "other.b"));
    for absent in [
        schema.rename_table("absent", "new"),
        schema.rename_derived("absent", "a", "b"),
        schema.rename_derived("other", "absent", "new"),
    ] {
        assert!(!absent.unwrap());
    }
    assert!(!schema.rename_table("numbers", "numbers").unwrap());
    assert!(!schema.rename_derived("other", "a", "a").unwrap());
    assert_eq!(dump_all(store).len(), before.len() + 2, "two names that must not come back");
    assert!(schema.free_table_name("absent").unwrap());
    assert!(schema.free_derived_name("other", "absent").unwrap());
    assert_eq!(dump_all(store), before);
}

/// All versions of a program, each with the renames of those before it, start twice: on a new
/// store, and on the store of each earlier version.
pub fn renames_run_at_each_start_of_each_version(store: &(impl Store + Clone)) {
    const NAMES: [(&str, &str); 4] = [("a", "i"), ("b", "j"), ("c", "k"), ("d", "l")];
    let start = |version: usize| {
        let schema = Schema::open(store, "app").unwrap();
        for pair in NAMES[..=version].windows(2) {
            schema.rename_table(pair[0].0, pair[1].0).unwrap();
            schema.rename_derived(pair[1].0, pair[0].1, pair[1].1).unwrap();
        }
        declared(store, NAMES[version].0, NAMES[version].1)
    };
    for first in 0..NAMES.len() {
        for (next, (table, _)) in NAMES.iter().enumerate().skip(first) {
            clear(store);
            let old = start(first);
            store.transact(|txn| old.0.put_many(txn, (0..20).map(|n| (n, n % 7)))).unwrap();
            for _ in 0..2 {
                is_right(store, &start(next));
                let tables = Schema::open(store, "app").unwrap().tables().unwrap();
                let [only] = &tables[..] else { panic!("{tables:?}") };
                assert_eq!((&*only.name, only.derived.len()), (*table, 1));
            }
            // No earlier version starts again, also on a store that never had its names.
            let before = dump_all(store);
            for (earlier, _) in NAMES.iter().take(next) {
                let refused = Schema::open(store, "app").unwrap().table::<u32, u32>(earlier);
                assert!(matches!(schema_error(refused), SchemaError::Renamed { .. }), "{earlier}");
            }
            start(next);
            assert_eq!(dump_all(store), before, "a start writes nothing");
        }
    }
}

pub fn a_rename_that_fails_anywhere_can_be_repeated(store: &(impl Store + Clone)) {
    let faulty = Faulty::new(store.clone());
    for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
        for n in failing_operations() {
            clear(store);
            filled(store);
            let schema = Schema::open(&faulty, "app").unwrap();
            faulty.fail_at(n, fault);
            let _ = schema.rename_table("numbers", "digits");
            let was_hit = faulty.operations() > n;
            faulty.clear_fault();
            schema.rename_table("numbers", "digits").unwrap();
            is_right(store, &declared(store, "digits", "by_number"));
            if !was_hit {
                break;
            }
        }
    }
}

/// Otherwise, an older program that restarts would create an empty table, and its writes would be
/// lost.
pub fn a_former_name_is_refused_until_it_is_free(store: &(impl Store + Clone)) {
    clear(store);
    let open = || Schema::open(store, "desk").unwrap();
    let declare = |schema: &Schema<'_, _>, table: &str, index: &str| {
        let tickets = schema.table::<u32, u32>(table)?;
        schema.index(&tickets, index, 1, |_, n: &u32| entry(n)).map(|index| (tickets, index))
    };
    let (tickets, _) = declare(&open(), "tickets", "by_number").unwrap();
    store.transact(|txn| tickets.put(txn, &1, &7)).unwrap();
    let newer = open();
    newer.rename_table("tickets", "requests").unwrap();
    newer.rename_derived("requests", "by_number", "by_size").unwrap();
    declare(&newer, "requests", "by_size").unwrap();
    let before = dump_all(store);
    for (table, index, old) in
        [("tickets", "by_number", "tickets"), ("requests", "by_number", "requests.by_number")]
    {
        let refused = schema_error(declare(&open(), table, index));
        assert!(
            matches!(&refused, SchemaError::Renamed { old: name, .. } if name == old),
            "{refused}"
        );
    }
    assert_eq!(dump_all(store), before);
    assert!(!newer.rename_table("tickets", "requests").unwrap(), "each start of the newer one");

    // Names that are prefixes of the former name are free. The former name itself is free once it
    // is released.
    open().table::<u32, u32>("ticket").unwrap();
    assert!(newer.free_table_name("tickets").unwrap());
    assert!(!newer.free_table_name("tickets").unwrap());
    assert!(newer.free_derived_name("requests", "by_number").unwrap());
    open().table::<u32, String>("tickets").unwrap();
    // Renames back and forth: the last name is valid.
    let schema = open();
    schema.rename_table("requests", "calls").unwrap();
    schema.rename_table("calls", "requests").unwrap();
    declare(&schema, "requests", "by_size").unwrap();
    let refused = open().table::<u32, u32>("calls");
    assert!(matches!(schema_error(refused), SchemaError::Renamed { new, .. } if new == "requests"));
}
