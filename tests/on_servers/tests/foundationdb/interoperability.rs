//! FoundationDB's own Python binding reads what keyloom wrote, and the reverse.
//!
//! If Python has no module `fdb` (PyPI: `foundationdb`), these tests are skipped.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use keyloom::key::{Element, Versionstamp};
use keyloom::value::Postcard;
use keyloom::{Desc, KeyRange, Reader, Store, Subspace, Writer, unpack};
use keyloom_foundationdb::FoundationDb;
use keyloom_tables::sequence::VersionstampedLog;
use keyloom_tables::{Index, Table, entry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use keyloom_testing::servers::stores::foundationdb::address;
use keyloom_testing::servers::stores::fresh_name;

/// The output lines of the script; `None` without a cluster or without the binding.
fn python(action: &str, name: &str) -> Option<Vec<String>> {
    let file = address()?.strip_prefix("fdb:")?.to_owned();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foundationdb/bindings.py");
    let output = Command::new("python3").arg(script).args([&file, action, name]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("No module named 'fdb'") {
        let _ = writeln!(std::io::stderr(), "skipped: Python has no module `fdb`");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// The keys and values that the binding reads.
fn seen_by_python(action: &str, name: &str) -> Option<Vec<(Value, Vec<u8>)>> {
    let entry = |line: &String| {
        let (key, value): (Value, String) = serde_json::from_str(line).unwrap();
        (key, bytes(&value))
    };
    Some(python(action, name)?.iter().map(entry).collect())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn clear(store: &FoundationDb) {
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct City {
    country: String,
    name: String,
    people: u32,
}

fn cities() -> [(u32, City); 3] {
    [
        (2_988_507, "FR", "Paris", 2_138_551),
        (2_950_159, "DE", "Berlin", 3_426_354),
        (2_867_714, "DE", "München", 1_260_391),
    ]
    .map(|(id, country, name, people)| {
        (id, City { country: country.into(), name: name.into(), people })
    })
}

#[test]
fn records_and_index_entries_are_tuples_for_every_binding() {
    let Some(address) = address() else { return };
    let name = fresh_name();
    let store = FoundationDb::options().name(&*name).open(&address).unwrap();
    let space = Subspace::new("geo");
    let by_place = Index::new(&space.child("by_place"), |_: &u32, city: &City| {
        entry((&city.country, &city.name))
    });
    let table = Table::<u32, City>::new(&space.child("cities")).with(&by_place);
    let cities = cities();
    store.transact(|txn| table.put_many(txn, &cities)).unwrap();
    store.transact(|txn| txn.add(&space.pack(&("count",)), 3)).unwrap();
    let log = VersionstampedLog::<String, u8>::new(&space.child("log"));
    store.transact(|txn| log.append(txn, &"paris".into(), &7)).unwrap();

    let Some(seen) = seen_by_python("read", &name) else { return clear(&store) };
    let value_of = |key: Value| {
        let found = seen.iter().find(|(seen, _)| *seen == key);
        &found.unwrap_or_else(|| panic!("{key} is not among {seen:?}")).1
    };
    for (id, city) in &cities {
        let mut encoded = Vec::new();
        <Postcard as keyloom::value::Codec<City>>::encode(city, &mut encoded).unwrap();
        assert_eq!(value_of(json!(["geo", "cities", id])), &encoded);
        value_of(json!(["geo", "by_place", city.country, city.name, id]));
    }
    assert_eq!(value_of(json!(["geo", "count"])), &3_i64.to_le_bytes().to_vec());
    let snapshot = store.snapshot().unwrap();
    let (stamp, _) = log.read_new(&snapshot, &"paris".into(), None, 1).unwrap()[0];
    let hex: String = stamp.0.iter().map(|byte| format!("{byte:02x}")).collect();
    value_of(json!(["geo", "log", "record", "paris", { "versionstamp": hex }]));
    // The binding reads exactly as many keys as keyloom, in the same order.
    assert_eq!(seen.len() as u64, snapshot.count(KeyRange::all()).unwrap());
    assert_eq!(seen.len(), 3 + 3 + 1 + 1);
    clear(&store);
}

/// A descending element is an extension of keyloom. Other bindings refuse such a key, and read all
/// others.
#[test]
fn a_descending_element_is_refused_by_other_bindings() {
    let Some(address) = address() else { return };
    let name = fresh_name();
    let store = FoundationDb::options().name(&*name).open(&address).unwrap();
    store.transact(|txn| txn.put(&keyloom::pack(&Desc(7)), b"")).unwrap();
    let outcome = std::panic::catch_unwind(|| python("read", &name));
    clear(&store);
    let Err(panic) = outcome else { return assert!(matches!(outcome, Ok(None)), "it was read") };
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("Unknown data type"), "{said}");
}

#[test]
fn what_another_binding_writes_is_read() {
    let Some(address) = address() else { return };
    let name = fresh_name();
    let store = FoundationDb::options().name(&*name).open(&address).unwrap();
    if python("write", &name).is_none() {
        return;
    }
    let snapshot = store.snapshot().unwrap();
    let number = |key: &[u8]| snapshot.get(key).unwrap().map(|value| value[0]);
    use keyloom::pack;
    assert_eq!(number(&pack(&("text \u{fc}\0",))), Some(1));
    assert_eq!(number(&pack(&(-(1_i64 << 40),))), Some(2));
    assert_eq!(number(&pack(&(&b"\0\xFF"[..],))), Some(3));
    assert_eq!(number(&pack(&(2.5_f64,))), Some(4));
    assert_eq!(number(&pack(&(true,))), Some(5));
    assert_eq!(number(&pack(&(None::<u8>,))), Some(6));
    let stamp = Versionstamp::new([0, 0, 0, 0, 0, 0, 0, 7, 0, 1], 2);
    assert_eq!(number(&pack(&(stamp,))), Some(9));
    assert_eq!(snapshot.counter(&pack(&("visits",))).unwrap(), 41);
    // All keys are also read without their types, in the order that the binding wrote them.
    let mut count = 0;
    for entry in snapshot.range(KeyRange::all(), keyloom::Order::Ascending).unwrap() {
        let (_,): (Element,) = unpack(&entry.unwrap().0).unwrap();
        count += 1;
    }
    assert_eq!(count, 11);
    clear(&store);
}

#[test]
fn a_directory_is_a_store() {
    let Some(address) = address() else { return };
    let path = format!("{}/cities", fresh_name());
    let Some(printed) = python("directory", &path) else { return };
    let prefix = bytes(&printed[0]);
    let store = FoundationDb::options().prefix(prefix).open(&address).unwrap();
    let table = Table::<u32, City>::new(&Subspace::new("cities"));
    let cities = cities();
    store.transact(|txn| table.put_many(txn, &cities)).unwrap();
    let seen = seen_by_python("list", &path).unwrap();
    let keys: Vec<&Value> = seen.iter().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        [
            &json!(["cities", 2_867_714]),
            &json!(["cities", 2_950_159]),
            &json!(["cities", 2_988_507])
        ]
    );
    python("remove", &path);
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 0);
}
