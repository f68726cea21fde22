//! `import` into stores that hold other entries, or the remains of an import.

use std::io::Write;
use std::time::{Duration, Instant};

use keyloom::{Lmdb, Store, Writer, pack};
use keyloom_tables::Schema;

use crate::exporting::{exported, refused};
use crate::support::{Directory, fine, orders, piped, run, run_with_input, town_hall};

/// Several schemas, one of them with more entries than a transaction of an import.
fn squares(store: &Lmdb) {
    town_hall(store);
    let schema = Schema::open(store, "numbers").unwrap();
    let squares = schema.table::<u32, u64>("squares").unwrap();
    let all = (0..3_000_u32).map(|n| (n, u64::from(n * n)));
    store.transact(|txn| squares.put_many(txn, all.clone())).unwrap();
}

#[test]
fn entries_with_other_values_stay_without_replace() {
    let directory = Directory::new();
    let from = directory.lmdb(orders);
    let (_, file) = exported(&directory, &from);
    let to = directory.address("redb", "to.redb");
    let import = ["import", &to, &file, "--write"];
    assert_eq!(run(&import).code, 2);
    fine(&[&import[..], &["--create"]].concat());
    let key = "(\"orders\", 7, 2026)";
    fine(&["put", &to, key, "other", "--write"]);
    fine(&["put", &to, "(\"mine\",)", "kept", "--write"]);
    fine(&["rm", &to, "0xfe726177", "--write"]);
    let ran = run(&import);
    assert!(ran.code == 2 && ran.err.contains(key) && ran.err.contains("--replace"), "{}", ran.err);
    assert_eq!(fine(&["get", &to, key]), "\"other\"\n");
    assert_eq!(run(&["get", &to, "0xfe726177"]).code, 1);
    let replaced = fine(&[&import[..], &["--replace"]].concat());
    assert!(replaced.contains("1 added, 1 replaced, 5 were there"), "{replaced}");
    assert_eq!(run(&["diff", &from, &to]).out, "+ (\"mine\",)\n");
}

#[test]
fn an_import_that_was_killed_can_be_repeated() {
    let directory = Directory::new();
    let from = directory.lmdb(squares);
    let (text, file) = exported(&directory, &from);
    let to = directory.address("lmdb", "to");
    // A key that sorts after the tables, before the import.
    drop(Lmdb::open(directory.path().join("to")).unwrap());
    fine(&["put", &to, "(1,)", "mine", "--write"]);
    let mut child = piped(&["import", &to, "--write"]);
    let half: Vec<&str> = text.split_inclusive('\n').take(2_500).collect();
    child.stdin.as_ref().unwrap().write_all(half.concat().as_bytes()).unwrap();
    let written = || run(&["stats", &to, "--json"]).out.contains("\"entries\":2001,");
    let began = Instant::now();
    while !written() {
        assert!(began.elapsed() < Duration::from_secs(60), "the import does not write");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let repeated = fine(&["import", &to, &file, "--write"]);
    assert!(repeated.contains("0 replaced, 2,000 were there"), "{repeated}");
    assert_eq!(run(&["diff", &from, &to]).out, "+ (1,)\n");
    assert_eq!(run(&["check", &to]).code, 0);
}

/// The definitions are the same, but a record that the store has is missing in the second file.
#[test]
fn the_remains_of_another_import_are_refused() {
    let directory = Directory::new();
    let from = directory.lmdb(squares);
    let to = directory.address("lmdb", "to");
    let text = fine(&["export", &from]);
    refused(&to, &text[..text.rfind('{').unwrap()]);
    fine(&["rm", &from, "(-6, 7)", "--write", "--bypass-schema"]);
    let before = fine(&["export", &to]);
    let err = refused(&to, &fine(&["export", &from]));
    assert!(err.contains("entries of its schemas that the file lacks (1)"), "{err}");
    assert!(err.contains("import into an empty store"), "{err}");
    assert_eq!(fine(&["export", &to]), before);
}

#[test]
fn data_of_another_schema_is_not_mixed_in() {
    let directory = Directory::new();
    let from = directory.lmdb(town_hall);
    let to = directory.redb(|store| {
        let schema = Schema::open(store, "shop").unwrap();
        schema.table::<u32, String>("prices").unwrap();
    });
    let import = |prefix: &str, more: &[&str]| {
        let text = fine(&["export", &from, prefix]);
        run_with_input(&[&["import", &to, "--write"], more].concat(), text.as_bytes())
    };
    for prefix in ["()", "people", "\"keyloom\""] {
        let ran = import(prefix, &["--replace"]);
        assert!(ran.code == 2 && ran.err.contains("--bypass-schema"), "{prefix}: {}", ran.err);
    }
    assert_eq!(import("\"orders\"", &[]).code, 0);
    assert_eq!(import("people", &["--bypass-schema"]).code, 0);

    // A store takes its own records, as long as they are the same.
    let text = fine(&["export", &from, "people"]);
    let import = ["import", &from, "--write"];
    let ran = run_with_input(&import, text.as_bytes());
    assert!(ran.out.contains("3 were there"), "{}", ran.err);
    fine(&["rm", &from, "(-1, 1)", "--write", "--bypass-schema"]);
    let ran = run_with_input(&import, text.as_bytes());
    assert!(ran.code == 2 && ran.err.contains("\"people\""), "{}", ran.err);
}

#[test]
fn a_file_of_another_kind_creates_no_store() {
    let directory = Directory::new();
    let to = directory.address("lmdb", "to");
    let ran = run(&["import", &to, "no such \u{1b} file", "--write", "--create"]);
    assert!(ran.code == 2 && ran.err.contains("no such \\u{1b} file cannot be opened"));
    refused(&to, "{\"key\":\"(1,)\"}\n");
    // A first line without an end is not read to the end.
    assert!(refused(&to, &"[".repeat(2 << 20)).contains("line 1: this is not an export"));
    let ran = run(&["import", &to, "--create"]);
    assert!(ran.code == 2 && ran.err.contains("--write"), "{}", ran.err);
    assert!(!directory.path().join("to").exists());
}

/// A schema that a newer version of the library has written: its keys are unknown.
#[test]
fn nothing_is_written_beside_an_unreadable_schema() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        let prices = Schema::open(store, "shop").unwrap().table::<u32, String>("prices").unwrap();
        store.transact(|txn| prices.put(txn, &1, &"cheap".into())).unwrap();
        let entry = pack(&("keyloom", "schema", "shop", "prices"));
        store.transact(|txn| txn.put(&entry, &[200])).unwrap();
    });
    let other = Directory::new();
    let line = fine(&["export", &other.lmdb(|store| put_one(store, 2))]);
    let before = fine(&["export", &address]);
    let import = |more: &[&str]| {
        run_with_input(&[&["import", &address, "--write"], more].concat(), line.as_bytes())
    };
    let put = ["put", &address, "(-1, 1)", "x", "--write"];
    let rm = ["rm", &address, "--prefix=(-1,)", "--write", "--yes"];
    for ran in [run(&put), run(&rm), import(&[])] {
        let why = ran.err.contains("format 200") && ran.err.contains("--bypass-schema");
        assert!(ran.code == 2 && why, "{}", ran.err);
    }
    assert_eq!(fine(&["export", &address]), before);
    let ran = import(&["--bypass-schema"]);
    assert!(ran.code == 0 && ran.out.contains("1 added"), "{}", ran.err);
    assert_eq!(run(&[&put[..], &["--bypass-schema"]].concat()).code, 0);
}

fn put_one(store: &Lmdb, id: i32) {
    store.transact(|txn| txn.put(&pack(&(-1, id)), b"value")).unwrap();
}
