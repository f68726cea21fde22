//! `repair`: removes what `check` calls dangling, and nothing else.

use keyloom::{KeyRange, Lmdb, Order, Reader, Store, Writer};
use keyloom_tables::schema::TableInfo;
use keyloom_tables::{Index, Schema, Table, entry};

use crate::engines::entries;
use crate::support::{Directory, Ran, run, run_into_head};

const SOME: u32 = 500;

type Orders = Table<(String, u32), String>;

fn orders_of(store: &impl Store) -> Orders {
    let schema = Schema::open(store, "shop").unwrap();
    let orders = schema.table::<(String, u32), String>("orders").unwrap();
    schema.index(&orders, "by_note", 1, |_, note: &String| entry(note)).unwrap();
    schema.unique_index(&orders, "unique", 1, |key, _| entry((key.1, &key.0))).unwrap();
    orders
}

fn shop(store: &impl Store) -> Orders {
    let orders = orders_of(store);
    let put = store.transact(|txn| {
        (0..SOME).try_for_each(|id| orders.put(txn, &("a".into(), id), &format!("note\u{1b}{id}")))
    });
    put.unwrap();
    orders
}

/// Removes every third record without its entries.
fn damage(store: &impl Store, orders: &Orders) {
    let damaged = store.transact(|txn| {
        (0..SOME).step_by(3).try_for_each(|id| txn.delete(&orders.space().pack(&("a", id))))
    });
    damaged.unwrap();
}

fn sound(store: &impl Store) {
    shop(store);
}

fn damaged(store: &impl Store) {
    damage(store, &shop(store));
}

/// The expected store is one whose program has deleted the same records.
fn repaired(store: &impl Store) {
    let orders = shop(store);
    let deleted = store.transact(|txn| {
        (0..SOME).step_by(3).try_for_each(|id| orders.delete(txn, &("a".into(), id)).map(drop))
    });
    deleted.unwrap();
}

#[test]
fn repair_removes_exactly_the_dangling_entries() {
    let (directory, expected) = (Directory::new(), Directory::new());
    let pairs = [
        (directory.lmdb(damaged), expected.lmdb(repaired)),
        (directory.redb(damaged), expected.redb(repaired)),
    ];
    for (address, expected) in pairs {
        assert_ne!(entries(&address), entries(&expected));
        assert_eq!(run(&["check", &address]).code, 1);
        let before = entries(&address);
        let arguments = ["repair", &address, "orders.by_note", "orders.unique"];
        let refused = run(&arguments);
        assert!(refused.code == 2 && refused.err.contains("--write"), "{}", refused.err);
        assert_eq!(entries(&address), before);
        let Ran { code, out, err } = run(&[&arguments[..], &["--write"]].concat());
        assert_eq!(code, 0, "{err}");
        let removed = SOME.div_ceil(3) as usize;
        assert_eq!(out.lines().count(), 2 * removed, "{out}");
        assert!(err.contains("1,000 entries read, 334 removed"), "{err}");
        assert!(!out.contains('\u{1b}') && out.contains("\\u{1b}"), "{out}");
        assert_eq!(entries(&address), entries(&expected));
        assert_eq!(run(&["check", &address]).code, 0);
        let again = run(&[&arguments[..], &["--write", "--json"]].concat());
        assert_eq!((again.code, &again.out[..]), (0, ""), "{}", again.err);
    }
}

#[test]
fn repair_of_a_sound_store_changes_nothing() {
    let directory = Directory::new();
    for address in [directory.lmdb(sound), directory.redb(sound)] {
        let before = entries(&address);
        let ran = run(&["repair", &address, "orders.by_note", "orders.unique", "--write"]);
        assert_eq!((ran.code, &ran.out[..]), (0, ""), "{}", ran.err);
        assert_eq!(entries(&address), before);
    }
}

fn index_space(store: &impl Store, name: &str) -> keyloom::Subspace {
    let tables = Schema::open(store, "shop").unwrap().tables().unwrap();
    let TableInfo { derived, .. } = tables.into_iter().find(|one| one.name == "orders").unwrap();
    derived.into_iter().find(|one| one.name == name).unwrap().space
}

#[test]
fn bytes_that_are_not_an_entry_stay() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        damaged(store);
        let space = index_space(store, "by_note");
        store.transact(|txn| txn.put(&space.pack(&("beside",)), &[0xFF, 0xFF])).unwrap();
    });
    let ran = run(&["repair", &address, "orders.by_note", "--write", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("so they stay: 1; the program"), "{}", ran.err);
    let first: serde_json::Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["name"], "orders.by_note");
    // The other index was not named, so its entries stay.
    let checked = run(&["check", &address]);
    assert_eq!(checked.code, 1);
    assert!(checked.err.contains("168 faults"), "{}", checked.err);
}

#[test]
fn other_kinds_and_unknown_names_are_refused_before_a_change() {
    let directory = Directory::new();
    let address = directory.lmdb(damaged);
    let before = entries(&address);
    let by_program = "the program that writes them has a repair";
    for (name, reason) in [("orders", by_program), ("nothing", "no schema has")] {
        let refused = run(&["repair", &address, "orders.by_note", name, "--write"]);
        assert!(refused.code == 2 && refused.err.contains(reason), "{name}: {}", refused.err);
        assert_eq!(entries(&address), before);
    }
    assert_eq!(run(&["repair", &address, "--write"]).code, 2);
}

#[test]
fn a_deferred_index_with_pending_changes_is_left_alone() {
    let directory = Directory::new();
    let path = directory.path().join("lmdb");
    let address = format!("lmdb:{}", path.display());
    let store = Lmdb::open(&path).unwrap();
    let schema = Schema::open(&store, "shop").unwrap();
    let orders = schema.table::<(String, u32), String>("orders").unwrap();
    let deferred = schema.derive_deferred(&orders, "by_note", 1, |space| {
        Ok(Index::new(space, |_, note: &String| entry(note)))
    });
    let deferred = deferred.unwrap();
    let key = |id: u32| ("a".to_owned(), id);
    store.transact(|txn| (0..9).try_for_each(|id| orders.put(txn, &key(id), &"x".into()))).unwrap();
    deferred.drain(&store).unwrap();
    store.transact(|txn| orders.delete(txn, &key(1)).map(drop)).unwrap();
    store.transact(|txn| txn.delete(&orders.space().pack(&("a", 2)))).unwrap();
    let before = all_of(&store);
    let arguments = ["repair", &address, "orders.by_note", "--write"];
    let ran = run(&arguments);
    assert!(ran.code == 1 && ran.err.contains("pending changes"), "{}{}", ran.out, ran.err);
    assert_eq!((ran.out, all_of(&store)), (String::new(), before));
    // Without pending changes, the entry of the lost record is removed.
    deferred.drain(&store).unwrap();
    let ran = run(&arguments);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1), "{}{}", ran.out, ran.err);
}

fn all_of(store: &impl Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

/// A key that is one element as it is, and a key of several elements, look alike in an entry.
#[test]
fn records_with_optional_tuples_as_keys_are_found() {
    let directory = Directory::new();
    let store = Lmdb::open(directory.path()).unwrap();
    let schema = Schema::open(&store, "shop").unwrap();
    let table = schema.table::<Option<(u32, u32)>, String>("orders").unwrap();
    schema.index(&table, "by_note", 1, |_, note: &String| entry(note)).unwrap();
    let put = store.transact(|txn| {
        let keys = [None, Some((1, 2)), Some((1, 3))];
        keys.iter().try_for_each(|key| table.put(txn, key, &"a".into()))
    });
    put.unwrap();
    let gone = table.space().pack(&Some((1, 3)));
    store.transact(|txn| txn.delete(&gone)).unwrap();
    drop(store);
    let address = format!("lmdb:{}", directory.path().display());
    let ran = run(&["repair", &address, "orders.by_note", "--write"]);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    assert!(ran.out.contains("(1, 3)"), "{}", ran.out);
    assert_eq!(run(&["check", &address, "orders.by_note"]).code, 0);
}

/// A reader that stops after a line, such as `head`, hides neither the faults nor that a repair
/// ended early.
#[test]
fn a_closed_pipe_hides_no_fault() {
    const MANY: u32 = 5_000;
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        let orders = orders_of(store);
        let note = |id| (("a".to_owned(), id), format!("note {id}"));
        store.transact(|txn| orders.put_many(txn, (0..MANY).map(note))).unwrap();
        store.transact(|txn| txn.delete_range(orders.space().range())).unwrap();
    });
    let limit = (2 * MANY).to_string();
    let checked = run_into_head(&["check", &address, "--limit", &limit]);
    assert_eq!(checked.code, 1, "{}", checked.err);
    let repaired = run_into_head(&["repair", &address, "orders.by_note", "--write"]);
    assert_eq!(repaired.code, 2, "{}", repaired.err);
    assert!(repaired.err.contains("the repair is incomplete"), "{}", repaired.err);
    let rest = run(&["repair", &address, "orders.by_note", "orders.unique", "--write"]);
    assert_eq!((rest.code, run(&["check", &address]).code), (0, 0), "{}", rest.err);
}
