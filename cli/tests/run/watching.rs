//! `watch`, while other processes write.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};

use keyloom::{Lmdb, Store, Writer, pack};
use keyloom_tables::Schema;
use serde_json::Value;

use crate::support::{Directory, fine, orders, piped, run, town_hall};

/// A running `keyloom watch`, which is stopped at the end of the test.
pub struct Watch {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Watch {
    /// Starts the command, and waits until it watches. Returns its first message, too.
    pub fn begin(arguments: &[&str]) -> (Self, String) {
        let mut child = piped(&[&["watch"], arguments].concat());
        let mut message = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut message).unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (Self { child, out }, message)
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    fn object(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    pub fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watch_prints_each_change_of_a_key() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let key = "(\"new\", 1)";
    let (mut watch, message) = Watch::begin(&[&address, key, "--count=3", "--for=60"]);
    assert_eq!(message, "keyloom: watches (\"new\", 1)\n");
    fine(&["put", &address, "(\"other\",)", "unseen", "--write"]);
    fine(&["put", &address, key, "{\"a\": \u{1b}}", "--write"]);
    assert_eq!(watch.line(), "+ (\"new\", 1) = \"{\\\"a\\\": \\u{1b}}\"\n");
    fine(&["put", &address, key, "[2]", "--write"]);
    assert_eq!(watch.line(), "~ (\"new\", 1) = [2], was \"{\\\"a\\\": \\u{1b}}\"\n");
    fine(&["rm", &address, key, "--write"]);
    assert_eq!(watch.line(), "- (\"new\", 1) = [2]\n");
    assert_eq!((watch.line(), watch.code()), (String::new(), Some(0)));
}

#[test]
fn watch_prints_each_change_of_a_prefix() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let prefix = ["--prefix", "(\"orders\", _, 2026..)", "--every=0.02", "--json", "--for=60"];
    let (mut watch, message) = Watch::begin(&[&[&*address], &prefix[..]].concat());
    assert_eq!(message, "keyloom: watches 3 keys\n");
    for key in ["(\"orders\", 7, 2025)", "(\"orders\", 7)", "(\"others\", 7, 2026)"] {
        fine(&["put", &address, key, "unseen", "--write"]);
    }
    let mut next = |arguments: &[&str], change: &str| {
        let (command, rest) = arguments.split_first().unwrap();
        fine(&[&[*command, &address], rest, &["--write"]].concat());
        let object = watch.object();
        assert_eq!((&object["change"], &object["key"]), (&change.into(), &rest[0].into()));
        (object["old"]["value"].clone(), object["new"]["value"].clone())
    };
    let total = Value::from("{\"total\": 3}");
    let new = next(&["put", "(\"orders\", 0, 2027)", "1"], "added");
    assert_eq!(new, (Value::Null, "1".into()));
    let new = next(&["put", "(\"orders\", 7, 2027)", "2"], "changed");
    assert_eq!(new, (total.clone(), "2".into()));
    let new = next(&["rm", "(\"orders\", 8, 2026)"], "removed");
    assert_eq!(new, (total, Value::Null));
}

/// More keys than a page has, all changed in one transaction.
#[test]
fn watch_of_a_prefix_finds_changes_on_all_pages() {
    let directory = Directory::new();
    let put = |store: &Lmdb, value: &[u8]| {
        store.transact(|txn| (0..2_500).try_for_each(|id| txn.put(&pack(&id), value))).unwrap();
    };
    let address = directory.lmdb(|store: &Lmdb| put(store, b"1"));
    let count = ["--prefix=()", "--every=0.01", "--for=60", "--count=2501"];
    let (mut watch, _) = Watch::begin(&[&[&*address], &count[..]].concat());
    let store = Lmdb::open(directory.path().join("lmdb")).unwrap();
    put(&store, b"2");
    store.transact(|txn| txn.put(&pack(&2_500), b"3")).unwrap();
    // A round that overlaps with the commit reports the other pages first.
    let found: BTreeSet<String> = (0..2_501).map(|_| watch.line()).collect();
    let changed = (0..2_500).map(|id| format!("~ ({id},) = 2, was 1\n"));
    assert_eq!(found, changed.chain(["+ (2500,) = 3\n".into()]).collect());
    assert_eq!(watch.code(), Some(0));
}

#[test]
fn watch_decodes_the_records_of_a_table() {
    let directory = Directory::new();
    let address = directory.lmdb(town_hall);
    let (mut watch, message) =
        Watch::begin(&[&address, "--prefix=people", "--every=0.02", "--for=60", "-n1"]);
    assert_eq!(message, "keyloom: watches 3 keys\n");
    fine(&["rm", &address, "(-1, 1)", "--write", "--bypass-schema"]);
    assert_eq!(watch.line(), "- (-1, 1) = {\"name\":\"Ada\",\"town\":\"London\",\"age\":36}\n");
    assert_eq!(watch.code(), Some(0));
}

/// The table is added after the start of the command.
#[test]
fn watch_decodes_the_records_of_a_new_table() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let (mut watch, _) =
        Watch::begin(&[&address, "--prefix=()", "--every=0.02", "--for=60", "--full"]);
    let store = Lmdb::open(directory.path().join("lmdb")).unwrap();
    let notes = Schema::open(&store, "desk").unwrap().table::<u32, (u8, bool)>("notes").unwrap();
    let mut line = String::new();
    while !line.starts_with("+ (\"keyloom\", \"schema\"") {
        line = watch.line();
        assert_ne!(line, "", "the command ended");
    }
    store.transact(|txn| notes.put(txn, &1, &(7, true))).unwrap();
    while !line.starts_with("+ (-1, 1)") {
        line = watch.line();
        assert_ne!(line, "", "the command ended");
    }
    assert_eq!(line, "+ (-1, 1) = [7,true]\n");
}

#[test]
fn watch_ends_after_its_time() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    for what in [&["(1,)"][..], &["--prefix=(1,)", "--every=10"]] {
        let watch = |more: &[&str]| run(&[&["watch", &address], what, more].concat());
        assert_eq!(watch(&["--for=0.05"]).code, 0);
        assert_eq!(watch(&["--for=0.05", "--count=1"]).code, 1);
        assert_eq!(watch(&["--for=-1"]).code, 2);
        assert_eq!(watch(&["--count=0"]).code, 2);
    }
    let ran = run(&["watch", &address, "--prefix=(1,)", "--every=0", "--for=0.05"]);
    assert!(ran.code == 2 && ran.err.contains("the shortest pause is 0.01"), "{}", ran.err);
    assert_eq!(run(&["watch", &address]).code, 2);
    assert_eq!(run(&["watch", &address, "(1,)", "--prefix=(1,)"]).code, 2);
    let redb = run(&["watch", &directory.redb(orders), "(1,)"]);
    assert!(redb.code == 2 && redb.err.contains("no other program"), "{}", redb.err);
}
