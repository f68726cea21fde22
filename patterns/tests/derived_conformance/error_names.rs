//! Errors and reports name tables and derived data by the names in the program, not by their
//! numbers.

use std::collections::BTreeSet;

use keyloom::key::{KeyName, pack};
use keyloom::{Store, Writer};
use keyloom_patterns::conformance::Subject;
use keyloom_patterns::{Attached, Schema, Table};
use keyloom_testing::errors::{alone, assert_names, reported, texts};

use super::kinds::{self, Sale, sale};

/// The ids of the records. Their cents, which are parts of keys, are greater than 0.
const RECORDS: std::ops::Range<u32> = 10..15;

#[test]
fn errors_of_each_damaged_kind_show_names() {
    alone("error_names::errors_of_each_damaged_kind_show_names", || {
        let mut texts = BTreeSet::new();
        macro_rules! walk {
        ($($subject:ident)+) => {
            $(walk(stringify!($subject), &kinds::$subject, &mut texts);)+
        };
    }
        walk! {
            Composite Unique Covering ManyValued Sums Ranks RolledUp Distinct Bitmaps BitmapsOfKeys
            Points Extents Events Curve Paths
        }
        assert!(texts.len() > 100, "{}", texts.len());
    });
}

/// The control: while a number has two names, the number is printed.
#[test]
fn a_number_with_two_names_is_found() {
    alone("error_names::a_number_with_two_names_is_found", || {
        let _other = (1..9).map(|id| KeyName::new(&pack(&-id), "another")).collect::<Vec<_>>();
        let walked =
            std::panic::catch_unwind(|| walk("by", &kinds::Composite, &mut BTreeSet::new()));
        let panicked = walked.unwrap_err();
        let text = panicked.downcast_ref::<String>().unwrap();
        assert!(text.contains("(-"), "{text}");
    });
}

/// Collects the texts of all errors of reads, writes, checks and repairs, for each kind of damage.
fn walk<T: Subject<Key = u32, Value = Sale>>(
    name: &str,
    subject: &T,
    texts: &mut BTreeSet<String>,
) {
    let store = keyloom_testing::memory();
    let schema = Schema::open(&store, "shop").unwrap();
    let sales: Table<u32, Sale> = schema.table("sales").unwrap();
    let kind = schema.derive(&sales, name, 1, |space| subject.make(space)).unwrap();
    let all: Vec<_> = RECORDS.map(|n| sale(n, 0)).collect();
    store.transact(|txn| sales.put_many(txn, &all)).unwrap();
    texts.extend(assert_names(&store, |store| texts_of(store, subject, &sales, &kind)));
}

#[test]
fn errors_of_deferred_data_show_names() {
    alone("error_names::errors_of_deferred_data_show_names", || {
        let store = keyloom_testing::memory();
        let schema = Schema::open(&store, "shop").unwrap();
        let sales: Table<u32, Sale> = schema.table("sales").unwrap();
        let make = |space: &_| kinds::Sums.make(space);
        let sums = schema.derive_deferred(&sales, "sums", 1, make).unwrap();
        let all: Vec<_> = RECORDS.map(|n| sale(n, 0)).collect();
        store.transact(|txn| sales.put_many(txn, &all)).unwrap();
        let found = assert_names(&store, |store| {
            let mut all = texts([sums.drain(store).map(drop)]);
            all.extend(texts_of(store, &kinds::Sums, &sales, &sums));
            all
        });
        assert!(found.iter().any(|text| text.contains("the queue of sales.sums")), "{found:?}");
    });
}

fn texts_of<T: Subject<Key = u32, Value = Sale>>(
    store: &keyloom_testing::AnyStore,
    subject: &T,
    sales: &Table<u32, Sale>,
    kind: &Attached<T::Kind>,
) -> Vec<String> {
    let snapshot = store.snapshot().unwrap();
    let mut all = reported(kind.check(&snapshot));
    let answers = kind.at(&snapshot).and_then(|kind| subject.answers(kind, &snapshot));
    all.extend(texts([answers]));
    all.extend(texts(RECORDS.map(|n| sales.get(&snapshot, &n))));
    all.extend(texts(sales.range(&snapshot, ..).unwrap()));
    all.extend(texts([sales.page(&snapshot, .., 2, None)]));
    drop(snapshot);
    all.extend(texts(RECORDS.map(|n| store.transact(|txn| sales.put(txn, &n, &sale(n, 2).1)))));
    all.extend(texts(RECORDS.map(|n| store.transact(|txn| sales.delete(txn, &n)))));
    // A record with the serial number of another record.
    let twice = store.transact(|txn| {
        sales.put(txn, &10, &sale(10, 0).1)?;
        sales.put(txn, &11, &sale(10, 0).1)
    });
    let added = store.transact(|txn| txn.add(&sales.space().pack(&10), 1));
    all.extend(texts([twice, added, kind.repair(store).map(drop)]));
    all
}
