//! Records that do not decode can be deleted and replaced, and do not stop a scan, check or repair.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::ops::ControlFlow;

use keyloom::value::{Codec, Postcard, Versioned};
use keyloom::{Error, KeyBuf, Memory, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::aggregate::{Event, RollUp, Seen, Sketches, contribution};
use keyloom_patterns::{
    AppendLog, Continuation, Index, Maintained, Page, RankedIndex, RepairOptions, Schema, Table,
    Totals, UnreadableEntry, entry, in_order,
};
use keyloom_patterns::{Inconsistency, Rule};

type Word = (String, u64);

fn word(text: &str, weight: u64) -> Word {
    (text.to_owned(), weight)
}

fn table() -> Table<u32, Word> {
    Table::new(&Subspace::new("words"))
}

fn by_text() -> Index<u32, Word, String> {
    Index::new(&Subspace::new("by text"), |_, (text, _): &Word| entry(text))
}

/// A store with some words in `table`; the second one is then damaged.
fn damaged(table: &Table<u32, Word>) -> Memory {
    let store = Memory::new();
    let words = [(1, word("one", 1)), (2, word("two", 2)), (3, word("three", 3))];
    store.transact(|txn| table.put_many(txn, &words)).unwrap();
    store.transact(|txn| txn.put(&table.space().pack(&2), b"\xFF\xFF")).unwrap();
    assert!(table.get(&store.snapshot().unwrap(), &2).is_err());
    store
}

fn check<V: 'static, C: Codec<V>>(
    store: &Memory,
    index: &Index<u32, V, String>,
    table: &Table<u32, V, C>,
) -> Vec<Inconsistency> {
    index.check(&store.snapshot().unwrap(), table).unwrap()
}

fn second() -> KeyBuf {
    table().space().pack(&2)
}

#[test]
fn a_table_alone_deletes_a_record_that_does_not_decode() {
    let table = table();
    for many in [false, true] {
        let store = damaged(&table);
        let there = store.transact(|txn| match many {
            false => Ok(usize::from(table.delete(txn, &2)?)),
            true => table.delete_many(txn, &[2, 7]),
        });
        assert_eq!(there.unwrap(), 1);
        assert_eq!(table.get(&store.snapshot().unwrap(), &2).unwrap(), None);
        assert!(!store.transact(|txn| table.delete(txn, &2)).unwrap());
    }
}

#[test]
fn a_scan_continues_after_a_record_that_does_not_decode() {
    let table = table();
    let store = damaged(&table);
    let snapshot = store.snapshot().unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let records: Vec<Result<_>> =
            table.range(&snapshot, in_order(.., order)).unwrap().collect();
        let [Ok(_), Err(error), Ok(_)] = &records[..] else { unreachable!("{records:?}") };
        assert!(error.to_string().contains(r#"("words", 2)"#), "{error}");
    }
}

/// Changes of the damaged record; the flag says whether it exists afterwards.
fn changes(table: &Table<u32, Word>) -> [(&'static str, impl Fn(&Memory) -> Result<()>); 4] {
    let change = |n| {
        let table = table.clone();
        move |store: &Memory| {
            store.transact(|txn| match n {
                0 => table.delete(txn, &2).map(|there| assert!(there)),
                1 => table.delete_many(txn, &[1, 2]).map(|there| assert_eq!(there, 2)),
                2 => table.put(txn, &2, &word("other", 2)),
                _ => table.put_many(txn, [(2, word("other", 2)), (9, word("nine", 9))]),
            })
        }
    };
    [("delete", change(0)), ("delete_many", change(1)), ("put", change(2)), ("put_many", change(3))]
}

#[test]
fn changes_of_an_undecodable_record_leave_indexes_in_step() {
    let unique = Index::new(&Subspace::new("unique"), |_, (text, _): &Word| entry(text)).unique();
    let table = table().with(&by_text()).with(&unique);
    for (name, change) in changes(&table) {
        let store = damaged(&table);
        change(&store).unwrap();
        for index in [by_text(), unique.clone()] {
            assert_eq!(check(&store, &index, &table), [], "{name}");
        }
    }
}

#[test]
fn changes_of_an_undecodable_record_leave_a_schema_in_step() {
    for n in 0..4 {
        let store = Memory::new();
        let schema = Schema::open(&store, "words").unwrap();
        let table = schema.table::<u32, Word>("words").unwrap();
        let by_text = schema.index(&table, "by_text", 1, |_, (text, _)| entry(text)).unwrap();
        store
            .transact(|txn| table.put_many(txn, [(1, word("one", 1)), (2, word("two", 2))]))
            .unwrap();
        store.transact(|txn| txn.put(&table.space().pack(&2), b"\xFF\xFF")).unwrap();
        let (name, change) = changes(&table).into_iter().nth(n).unwrap();
        change(&store).unwrap();
        assert_eq!(by_text.check(&store.snapshot().unwrap()).unwrap(), [], "{name}");
    }
}

#[test]
fn changes_of_an_undecodable_record_leave_ranks_in_step() {
    let ranked = RankedIndex::new(&Subspace::new("ranked"), |_, (_, n): &Word| entry(n));
    let table = table().with(&ranked);
    for (name, change) in changes(&table) {
        let store = damaged(&table);
        change(&store).unwrap();
        assert_eq!(ranked.check(&store.snapshot().unwrap(), &table).unwrap(), [], "{name}");
    }
}

#[test]
fn totals_refuse_changes_of_an_undecodable_record() {
    let totals =
        Totals::new(&Subspace::new("totals"), |_, (_, n): &Word| contribution((), *n as i64));
    let table = table().with(&totals);
    for (name, change) in changes(&table) {
        let store = damaged(&table);
        let error = change(&store).unwrap_err().to_string();
        assert!(
            error.contains("delete_without_derived") && error.contains("2)"),
            "{name}: {error}"
        );
        store.transact(|txn| table.delete_without_derived(txn, &2)).unwrap();
        assert_eq!(table.get(&store.snapshot().unwrap(), &2).unwrap(), None);
    }
}

#[test]
fn a_check_reports_an_undecodable_record_once_and_continues() {
    let table = table().with(&by_text());
    let store = damaged(&table);
    let expected = [Inconsistency::new(second(), Rule::Undecodable)];
    assert_eq!(check(&store, &by_text(), &table), expected);
    assert!(expected[0].to_string().contains(r#"("words", 2)"#), "{}", expected[0]);
    // A fault after the damaged record is also found.
    store.transact(|txn| txn.delete(&by_text().space().pack(&("one", 1)))).unwrap();
    assert_eq!(check(&store, &by_text(), &table).len(), 2);
}

#[test]
fn checks_of_aggregates_report_an_undecodable_record_once() {
    let totals = Totals::new(&Subspace::new("totals"), |_, (text, _): &Word| contribution(text, 1));
    let seen = |_: &u32, (text, _): &Word| Seen::one("texts", text);
    let sketches = Sketches::new(&Subspace::new("sketches"), 11, seen).unwrap();
    let table = table().with(&totals).with(&sketches);
    let store = damaged(&table);
    let snapshot = store.snapshot().unwrap();
    let undecodable = Inconsistency::new(second(), Rule::Undecodable);
    // Totals treat the damaged record as one without amounts, so the total of its group is too
    // large.
    let dangling = Inconsistency::new(totals.space().pack("two"), Rule::Dangling);
    assert_eq!(totals.check(&snapshot, &table).unwrap(), [undecodable.clone(), dangling]);
    assert_eq!(sketches.check(&snapshot, &table).unwrap(), std::slice::from_ref(&undecodable));
    drop(snapshot);
    let options = RepairOptions::default();
    let repair = || totals.repair_with(&store, &table, &options, |_| ControlFlow::Continue(()));
    assert_eq!(repair().unwrap().undecodable, 1);
    assert_eq!(sketches.repair(&store, &table).unwrap().undecodable, 1);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(totals.check(&snapshot, &table).unwrap(), std::slice::from_ref(&undecodable));
    assert_eq!(sketches.check(&snapshot, &table).unwrap(), [undecodable]);
    assert_eq!(sketches.estimate(&snapshot, "texts").unwrap().round(), 2.0);
    drop(snapshot);
    store.transact(|txn| table.delete_without_derived(txn, &2)).unwrap();
    assert_eq!(totals.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    assert_eq!(sketches.check(&store.snapshot().unwrap(), &table).unwrap(), []);
}

/// The events of such a record remain, and its buckets are removed. The record is reported until it
/// is removed.
#[test]
fn a_roll_up_is_repaired_beside_an_undecodable_record() {
    let of = |_: &u32, (text, n): &Word| Some(Event::new(text, *n as i64, 1));
    let visits = RollUp::new(&Subspace::new("visits"), &[10, 100], of).unwrap();
    let table = table().with(&visits);
    let store = damaged(&table);
    let bucket = store.snapshot().unwrap();
    let before = visits.check(&bucket, &table).unwrap();
    assert!(before.iter().any(|found| found.rule == Rule::Undecodable), "{before:?}");
    drop(bucket);
    let done = visits.repair(&store, &table).unwrap();
    assert!(done.finished);
    assert_eq!(done.undecodable, 1);
    let left = visits.check(&store.snapshot().unwrap(), &table).unwrap();
    assert!(left.iter().all(|found| found.rule == Rule::Undecodable), "{left:?}");
}

#[test]
fn a_repair_continues_after_an_undecodable_record_and_counts_it() {
    let table = table().with(&by_text());
    let store = damaged(&table);
    let entry = by_text().space().pack(&("three", 3));
    store.transact(|txn| txn.delete(&entry)).unwrap();
    let done = by_text().repair(&store, &table).unwrap();
    assert_eq!((done.undecodable, done.written, done.removed), (1, 1, 0));
    assert!(store.snapshot().unwrap().get(&entry).unwrap().is_some());
}

#[test]
fn a_record_of_a_newer_format_is_not_replaced_with_an_index() {
    type Newer = Table<u32, u64, Versioned<Postcard, 2>>;
    type Older = Table<u32, u64, Versioned<Postcard, 1>>;
    let index = Index::new(&Subspace::new("index"), |_, n: &u64| entry(n));
    let store = Memory::new();
    let newer = Newer::with_codec(&Subspace::new("numbers"));
    store.transact(|txn| newer.put(txn, &1, &7)).unwrap();
    let older = Older::with_codec(&Subspace::new("numbers")).with(&index);
    for outcome in [
        store.transact(|txn| older.put(txn, &1, &8)),
        store.transact(|txn| older.delete(txn, &1).map(drop)),
    ] {
        assert!(outcome.unwrap_err().to_string().contains("format 2"), "not the newer format");
    }
}

/// The records of all pages, and the errors between them.
fn all_pages(
    mut page: impl FnMut(Option<&Continuation>) -> Result<Page<(u32, Word)>>,
) -> (Vec<u32>, Vec<String>) {
    let (mut keys, mut errors, mut next) = (Vec::new(), Vec::new(), None);
    for _ in 0..50 {
        next = match page(next.as_ref()) {
            Ok(page) => {
                keys.extend(page.items.into_iter().map(|(key, _)| key));
                page.next
            }
            Err(error) => {
                assert!(matches!(error, Error::At { .. }), "{error}");
                errors.push(error.to_string());
                Some(error.downcast_ref::<UnreadableEntry>().unwrap().next.clone())
            }
        };
        if next.is_none() {
            return (keys, errors);
        }
    }
    unreachable!("{keys:?} {errors:?}")
}

#[test]
fn pages_continue_after_records_that_do_not_decode() {
    let by_text = by_text();
    let table = table().with(&by_text);
    let store = Memory::new();
    let words: Vec<_> = (0..9).map(|n| (n, word(&n.to_string(), n.into()))).collect();
    store.transact(|txn| table.put_many(txn, &words)).unwrap();
    for damaged in [0, 3, 4, 8] {
        store.transact(|txn| txn.put(&table.space().pack(&damaged), b"\xFF\xFF")).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    for (order, limit) in
        [1, 2, 3, 4, 20].into_iter().flat_map(|n| [(Order::Ascending, n), (Order::Descending, n)])
    {
        let of_table = all_pages(|after| table.page(&snapshot, in_order(.., order), limit, after));
        let of_index = all_pages(|after| {
            by_text.query().order(order).limit(limit).after(after).records(&snapshot, &table)
        });
        for (keys, errors) in [of_table, of_index] {
            let (mut expected, mut damaged) = (vec![1, 2, 5, 6, 7], vec![0, 3, 4, 8]);
            if order == Order::Descending {
                expected.reverse();
                damaged.reverse();
            }
            assert_eq!(keys, expected, "{limit}");
            assert_eq!(errors.len(), damaged.len());
            for (error, key) in errors.iter().zip(damaged) {
                assert!(error.contains(&format!(r#"("words", {key})"#)), "{error}");
            }
        }
    }
}

#[test]
fn pages_of_an_index_continue_after_what_is_no_entry() {
    let by_text = by_text();
    let table = table().with(&by_text);
    let store = Memory::new();
    let words: Vec<_> = (0..5).map(|n| (n, word(&n.to_string(), n.into()))).collect();
    store.transact(|txn| table.put_many(txn, &words)).unwrap();
    let alien = by_text.space().pack(&"2a");
    store.transact(|txn| txn.put(&alien, b"\xFF\xFF")).unwrap();
    // An entry without a record.
    store.transact(|txn| txn.delete(&table.space().pack(&4))).unwrap();
    let snapshot = store.snapshot().unwrap();
    for limit in [1, 2, 10] {
        let (keys, errors) =
            all_pages(|after| by_text.query().limit(limit).after(after).records(&snapshot, &table));
        assert_eq!(keys, [0, 1, 2, 3]);
        let [of_alien, of_dangling] = &errors[..] else { panic!("{errors:?}") };
        assert!(of_alien.contains("2a") && of_dangling.contains("dangles"), "{errors:?}");
    }
}

#[test]
fn a_trim_deletes_records_that_do_not_decode() {
    let log = AppendLog::<u32, String>::new(&Subspace::new("log"));
    let store = Memory::new();
    store
        .transact(|txn| (0..5).try_for_each(|_| log.append(txn, &1, &"x".into()).map(drop)))
        .unwrap();
    let (key, _) = log.range(&store.snapshot().unwrap(), &1, ..).unwrap().nth(1).unwrap().unwrap();
    store.transact(|txn| txn.put(&log.records().space().pack(&key), b"\xFF")).unwrap();
    assert_eq!(log.sweep(&store, &1, 1).unwrap().removed, 4);
}
