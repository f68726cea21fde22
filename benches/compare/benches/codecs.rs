//! The cost of a codec that decodes what it has encoded as a check, compared with the same format
//! without the check.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench codecs
//! ```
//!
//! On LMDB, files are not synced: otherwise the syncs would dominate the time of a put.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;

use keyloom::lmdb::Durability;
use keyloom::value::shape::Shape;
use keyloom::value::{Codec, Postcard};
use keyloom::{Lmdb, Result, Store, Subspace, Writer};
use keyloom_compare::compare;
use keyloom_patterns::{Index, Table, entry};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Postcard without the check.
struct Bare;

impl<V: Serialize + DeserializeOwned> Codec<V> for Bare {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        *out = postcard::to_extend(value, std::mem::take(out)).unwrap();
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        <Postcard as Codec<V>>::decode(bytes)
    }

    fn shape() -> Result<Shape> {
        <Postcard as Codec<V>>::shape()
    }
}

/// A row of numbers with a note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Sale {
    customer: u32,
    state: u16,
    cents: u64,
    at: u64,
    note: String,
}

/// A document: text, options, a list, a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Person {
    name: String,
    mail: Option<String>,
    age: Option<u8>,
    tags: Vec<String>,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Place {
    Unknown,
    At { latitude: f64, longitude: f64 },
}

fn sale(n: u64) -> Sale {
    let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Sale {
        customer: (spread % 50_000) as u32,
        state: (spread >> 20) as u16 % 100,
        cents: spread >> 44,
        at: 1_700_000_000 + (spread >> 40),
        note: format!("{spread:032x}{n:032x}"),
    }
}

fn person(n: u64) -> Person {
    let number = |below: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % below;
    Person {
        name: format!("Person {n}"),
        mail: (!n.is_multiple_of(3)).then(|| format!("{n}@example.org")),
        age: Some(number(100) as u8),
        tags: (0..n % 4).map(|tag| format!("tag {tag}")).collect(),
        place: match n % 2 {
            0 => Place::Unknown,
            _ => Place::At { latitude: number(90) as f64, longitude: number(180) as f64 },
        },
    }
}

const RECORDS: u64 = 1_000;

fn main() {
    println!(
        "ratios are Postcard / bare Postcard: below 1 keyloom is faster; files are not synced"
    );
    all("sale", &(0..RECORDS).map(|n| (n, sale(n))).collect::<Vec<_>>(), |sale| sale.at);
    let people = (0..RECORDS).map(|n| (n, person(n))).collect::<Vec<_>>();
    all("person", &people, |person| person.age.unwrap_or_default().into());
    all("u64", &(0..RECORDS).map(|n| (n, n)).collect::<Vec<_>>(), |n| *n);
}

fn encode_all<V, C: Codec<V>>(records: &[(u64, V)], out: &mut Vec<u8>) {
    for (_, record) in records {
        out.clear();
        C::encode(black_box(record), out).unwrap();
    }
}

fn put_one_by_one<C: Codec<V>, V>(store: &Lmdb, table: &Table<u64, V, C>, records: &[(u64, V)]) {
    store
        .transact(|txn| records.iter().try_for_each(|(key, record)| table.put(txn, key, record)))
        .unwrap();
}

fn get_all<V, C: Codec<V>>(store: &Lmdb, table: &Table<u64, V, C>) {
    let snapshot = store.snapshot().unwrap();
    (0..RECORDS).for_each(|n| drop(black_box(table.get(&snapshot, &n).unwrap())));
}

fn scan<V, C: Codec<V>>(store: &Lmdb, table: &Table<u64, V, C>) {
    let snapshot = store.snapshot().unwrap();
    let records = table.range(&snapshot, ..).unwrap();
    assert_eq!(records.map(|record| drop(black_box(record.unwrap()))).count(), RECORDS as usize);
}

fn all<V>(name: &str, records: &[(u64, V)], number: fn(&V) -> u64)
where
    V: Clone + Serialize + DeserializeOwned + 'static,
{
    const ROUNDS: usize = 300;
    let count = records.len();
    let mut buffers = [Vec::new(), Vec::new()];
    let [ours, bare] = &mut buffers;
    compare(
        &format!("encode {name}"),
        count,
        ROUNDS,
        &mut [
            ("Postcard", &mut || encode_all::<V, Postcard>(records, ours)),
            ("bare Postcard", &mut || encode_all::<V, Bare>(records, bare)),
        ],
    );
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    let store = options.open(directory.path()).unwrap();
    let ours = Table::<u64, V>::new(&Subspace::new("ours"));
    let bare = Table::<u64, V, Bare>::with_codec(&Subspace::new("bare"));
    compare(
        &format!("put_many {name}"),
        count,
        ROUNDS,
        &mut [
            ("Postcard", &mut || store.transact(|txn| ours.put_many(txn, records)).unwrap()),
            ("bare Postcard", &mut || store.transact(|txn| bare.put_many(txn, records)).unwrap()),
        ],
    );
    compare(
        &format!("put {name}"),
        count,
        ROUNDS,
        &mut [
            ("Postcard", &mut || put_one_by_one(&store, &ours, records)),
            ("bare Postcard", &mut || put_one_by_one(&store, &bare, records)),
        ],
    );
    compare(
        &format!("get {name}"),
        count,
        ROUNDS,
        &mut [
            ("Postcard", &mut || get_all(&store, &ours)),
            ("bare Postcard", &mut || get_all(&store, &bare)),
        ],
    );
    compare(
        &format!("scan {name}"),
        count,
        ROUNDS,
        &mut [
            ("Postcard", &mut || scan(&store, &ours)),
            ("bare Postcard", &mut || scan(&store, &bare)),
        ],
    );
    let by_number =
        move |space| Index::new(&Subspace::new(space), move |_, v: &V| entry(number(v)));
    let ours = ours.with(&by_number("ours by number"));
    let bare = bare.with(&by_number("bare by number"));
    // The entries exist already, so the puts replace them.
    for space in ["ours", "bare"] {
        store.transact(|txn| txn.delete_range(Subspace::new(space).self_and_children())).unwrap();
    }
    compare(
        &format!("put_many {name}, indexed"),
        count,
        ROUNDS,
        &mut [
            ("Postcard", &mut || store.transact(|txn| ours.put_many(txn, records)).unwrap()),
            ("bare Postcard", &mut || store.transact(|txn| bare.put_many(txn, records)).unwrap()),
        ],
    );
}
