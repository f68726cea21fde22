//! Ids of two indexes stand for different records. An expression of both is refused in every read.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use keyloom::{Error, Memory, Reader, Result, Store, Subspace};
use keyloom_patterns::bitmaps::{InvertedIndexError, one};
use keyloom_patterns::text::Query;
use keyloom_patterns::{
    Analyzer, Bitmap, BitmapExpr, InvertedIndex, Schema, TextIndex, starting_with,
};

type Record = (String, i64);

fn facets(index: InvertedIndex<u32, Record>) -> InvertedIndex<u32, Record> {
    index
        .field("tag", |_, record: &Record| one(&record.0))
        .integers("size", |_, record| Some(record.1))
}

fn is_mixed<T>(result: Result<T>) -> bool {
    let error: Error = match result {
        Ok(_) => return false,
        Err(error) => error,
    };
    matches!(error.downcast_ref(), Some(InvertedIndexError::MixedIds { .. }))
}

/// Every read of an expression.
fn reads(ids: &BitmapExpr, reader: &impl Reader) -> Vec<bool> {
    vec![
        is_mixed(ids.count(reader)),
        is_mixed(ids.first(reader)),
        is_mixed(ids.last(reader)),
        is_mixed(ids.contains(reader, 1)),
        is_mixed(ids.rank(reader, 1)),
        is_mixed(ids.select(reader, 0)),
        is_mixed(ids.ids(reader, ..).map(drop)),
        is_mixed(ids.page(reader, .., 1, None)),
        is_mixed(ids.cursor(reader).map(drop)),
        is_mixed(ids.to_vec::<u64>(reader, 9)),
        is_mixed(ids.to_roaring(reader)),
        is_mixed(ids.to_treemap(reader)),
        is_mixed(ids.hold(reader)),
        is_mixed(ids.explain(reader)),
    ]
}

#[test]
fn ids_of_two_indexes_do_not_mix() {
    let store = Memory::new();
    let schema = Schema::open(&store, "city").unwrap();
    let events = schema.table::<u32, Record>("events").unwrap();
    // The first index gets the records in the order of their keys, the second in another.
    let first = schema.derive(&events, "first", 1, |s| Ok(facets(InvertedIndex::new(s)))).unwrap();
    store
        .transact(|txn| (0..9).try_for_each(|n| events.put(txn, &(9 - n), &("jazz".into(), 1))))
        .unwrap();
    let second =
        schema.derive(&events, "second", 1, |s| Ok(facets(InvertedIndex::new(s)))).unwrap();
    let keys = schema
        .derive(&events, "keys", 1, |s| Ok(facets(InvertedIndex::with_keys_as_ids(s))))
        .unwrap();
    let texts = schema
        .derive(&events, "texts", 1, |space| {
            let text = |_: &u32, record: &Record, add: &mut dyn FnMut(&str)| add(&record.0);
            Ok(TextIndex::new(space).field("tag", Analyzer::simple(), text))
        })
        .unwrap();
    schema.apply().unwrap();
    let snapshot = store.snapshot().unwrap();
    let [first, second, keys] = [&first, &second, &keys].map(|one| one.at(&snapshot).unwrap());
    let jazz = |index: &InvertedIndex<u32, Record>| index.term("tag", "jazz").unwrap();
    // The same ids are different records, so an intersection would be wrong in silence.
    assert_ne!(first.id_of(&snapshot, &1).unwrap(), second.id_of(&snapshot, &1).unwrap());

    let stored = Bitmap::new(&Subspace::new("mine"));
    let allowed = [
        jazz(first) & jazz(first),
        jazz(first) & BitmapExpr::range(..5),
        jazz(first) - &stored,
        jazz(keys) & BitmapExpr::from(&stored),
        first.own(&stored),
    ];
    for ids in &allowed {
        assert!(reads(ids, &snapshot).iter().all(|mixed| !mixed), "{ids:?}");
    }
    let held = second.any_term(&snapshot, "tag", starting_with("ja")).unwrap();
    let mixed = [
        jazz(first) & jazz(second),
        jazz(first) | jazz(keys),
        jazz(second) ^ jazz(first),
        jazz(first) - jazz(second),
        (jazz(first) & BitmapExpr::range(..5)) - (jazz(keys) | jazz(keys)),
        jazz(first) & &held,
        jazz(first) & second.integers_of("size").unwrap().between(0..9),
        first.own(jazz(keys)),
        first.own(second.all()),
        first.own(second.of_sorted_ids([1])),
    ];
    for ids in &mixed {
        assert!(reads(ids, &snapshot).iter().all(|mixed| *mixed), "{ids:?}");
    }

    // Reports, batches and integers.
    let report = first.report(jazz(second));
    assert!(is_mixed(report.breakdown::<String>(&snapshot, "tag")));
    assert!(is_mixed(first.report(&held).breakdown::<String>(&snapshot, "tag")));
    assert!(is_mixed(first.batch([held.clone()]).map(drop)));
    let sizes = first.integers_of("size").unwrap();
    assert!(is_mixed(sizes.sum(&snapshot, Some(&held))));
    assert!(is_mixed(sizes.max(&snapshot, Some(&jazz(second)))));
    assert_eq!(sizes.sum(&snapshot, Some(&jazz(first))).unwrap(), 9);

    // A filter of a search.
    let texts = texts.at(&snapshot).unwrap();
    let search = |filter: &BitmapExpr| {
        texts.search(Query::term("tag", "jazz")).filter(filter).hits(&snapshot)
    };
    assert!(is_mixed(search(&jazz(first))) && is_mixed(search(&jazz(keys))));
    assert_eq!(search(&texts.records().all()).unwrap().items.len(), 9);
    assert_eq!(search(&BitmapExpr::range(..4)).unwrap().items.len(), 4);
}

/// With keys as ids, an id is the same record in every index of the table.
#[test]
fn keys_as_ids_mix() {
    let store = Memory::new();
    let schema = Schema::open(&store, "city").unwrap();
    let events = schema.table::<u32, Record>("events").unwrap();
    let keys = schema
        .derive(&events, "keys", 1, |s| Ok(facets(InvertedIndex::with_keys_as_ids(s))))
        .unwrap();
    let texts = schema
        .derive(&events, "texts", 1, |space| {
            let text = |_: &u32, record: &Record, add: &mut dyn FnMut(&str)| add(&record.0);
            Ok(TextIndex::with_keys_as_ids(space).field("tag", Analyzer::simple(), text))
        })
        .unwrap();
    let put =
        |n: u32| (n * 7, (if n.is_multiple_of(3) { "jazz" } else { "rock" }.to_owned(), n.into()));
    store.transact(|txn| events.put_many(txn, (0..30).map(put))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let filter = keys.at(&snapshot).unwrap().integers_of("size").unwrap().between(..15);
    let texts = texts.at(&snapshot).unwrap();
    let found = texts.search(Query::term("tag", "jazz")).filter(filter).limit(99).hits(&snapshot);
    let mut found: Vec<u32> = found.unwrap().items.iter().map(|hit| hit.key).collect();
    found.sort_unstable();
    assert_eq!(found, [0, 21, 42, 63, 84]);
}
