//! A check in many passes over the records finds the same faults as a check in one pass.

use keyloom::{KeyRange, Memory, Order, Reader, Store, Subspace, Writer};
use keyloom_kit::parts::Group;
use keyloom_tables::Table;

use super::TextIndex;
use super::check::{KEPT, faults};
use crate::Analyzer;

type Text = (String, String);

#[test]
fn small_passes_over_groups_find_all_faults() {
    let of = |_: &u32, text: &Text| Group::of(&text.0);
    let index = TextIndex::grouped_with_keys_as_ids(&Subspace::new("text"), of)
        .field("first", Analyzer::simple(), |_, text: &Text, add| add(&text.1))
        .field("last", Analyzer::simple(), |_, text: &Text, add| add(&text.1));
    let table = Table::<u32, Text>::new(&Subspace::new("texts")).with(&index);
    let store = Memory::new();
    let group = |n: u32| ["", "\0", "a", "a\0", "a\u{1}", "ab"][n as usize % 6];
    let texts = (0..200).map(|n| (n, (group(n).to_owned(), format!("w{} w{}", n % 3, n % 10))));
    store.transact(|txn| table.put_many(txn, texts.clone())).unwrap();
    let found = |most: usize| {
        let found = faults(&index, &store.snapshot().unwrap(), &table, most).unwrap();
        let mut found: Vec<String> =
            found.all.iter().map(|fault| format!("{:?}", fault.what)).collect();
        found.sort();
        found
    };
    assert!([KEPT, 1, 90].iter().all(|most| found(*most).is_empty()));
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(KeyRange::prefix(index.space().prefix()), Order::Ascending);
    let keys: Vec<Vec<u8>> = entries.unwrap().map(|entry| entry.unwrap().0.to_vec()).collect();
    let lists = keys.iter().filter(|key| !index.records().space().contains(key));
    let gone: Vec<&Vec<u8>> = lists.step_by(7).collect();
    store.transact(|txn| gone.iter().try_for_each(|key| txn.delete(key))).unwrap();
    assert!(gone.len() > 20, "{}", gone.len());
    assert_eq!(found(KEPT).len(), gone.len());
    assert!([1, 90].iter().all(|most| found(*most) == found(KEPT)));
}
