//! Sets of matches against sorted lists.

use std::collections::BTreeMap;

use keyloom::{Store, Subspace};
use keyloom_bitmaps::BitmapExpr;
use keyloom_documents::Matches;
use keyloom_tables::Table;
use keyloom_testing::laws::property;
use keyloom_text::TextIndex;
use proptest::prelude::*;

type Index = TextIndex<u32, u8>;

/// A table with the keys 0 to 19, which are the ids.
fn index() -> (keyloom_testing::AnyStore, Index) {
    let index = Index::with_keys_as_ids(&Subspace::new("index"));
    let table = Table::<u32, u8>::new(&Subspace::new("table")).with(&index);
    let store = keyloom_testing::memory();
    store.transact(|txn| table.put_many(txn, (0..20).map(|n| (n, 0)))).unwrap();
    (store, index)
}

fn scores() -> impl Strategy<Value = BTreeMap<u32, i8>> {
    prop::collection::btree_map(0..20u32, -2..3i8, 0..20)
}

/// Matches with these scores: the union of one set per id.
fn matches(
    store: &keyloom_testing::AnyStore,
    index: &Index,
    scores: &BTreeMap<u32, i8>,
) -> Matches<u32, u8> {
    let snapshot = store.snapshot().unwrap();
    let none = Matches::of_ids(index, &BitmapExpr::none(), 0.0, &snapshot).unwrap();
    scores.iter().fold(none, |all, (id, score)| {
        let id = u64::from(*id);
        let one = BitmapExpr::range(id..=id);
        let one = Matches::of_ids(index, &one, f64::from(*score), &snapshot).unwrap();
        all.or(&one).unwrap()
    })
}

#[test]
fn pages_of_matches_are_those_of_a_sorted_list() {
    let (store, index) = index();
    property((scores(), 0..6usize), |(scores, limit)| {
        let snapshot = store.snapshot().unwrap();
        let found = matches(&store, &index, &scores);
        let mut wanted: Vec<(u32, i8)> = scores.into_iter().collect();
        wanted.sort_by_key(|(id, score)| (-score, *id));
        let (mut pages, mut offset) = (Vec::new(), 0);
        loop {
            let page = found.top(&snapshot, offset, limit.max(1)).unwrap();
            if page.is_empty() {
                break;
            }
            offset += page.len();
            pages.extend(page.into_iter().map(|hit| (hit.key, hit.score as i8)));
        }
        assert_eq!(pages, wanted);
        assert_eq!(found.top(&snapshot, 0, limit).unwrap().len(), limit.min(wanted.len()));
    });
}

#[test]
fn matches_are_combined_as_sets() {
    let (store, index) = index();
    property((scores(), scores()), |(a, b)| {
        let [left, right] = [&a, &b].map(|scores| matches(&store, &index, scores));
        let of = |found: Matches<u32, u8>| -> BTreeMap<u32, i8> {
            found.scores().iter().map(|(id, score)| (*id as u32, *score as i8)).collect()
        };
        let both = a.iter().filter_map(|(id, x)| b.get(id).map(|y| (*id, x + y)));
        assert_eq!(of(left.and(&right).unwrap()), both.collect());
        let mut either = a.clone();
        b.iter().for_each(|(id, y)| *either.entry(*id).or_default() += y);
        assert_eq!(of(left.or(&right).unwrap()), either);
        let only = a.iter().filter(|(id, _)| !b.contains_key(id)).map(|(id, x)| (*id, *x));
        assert_eq!(of(left.without(&right).unwrap()), only.collect());
        let scored = a.keys().map(|id| (*id, b.get(id).copied().unwrap_or(9)));
        assert_eq!(of(left.scored_by(&right, 9.0).unwrap()), scored.collect());
        assert_eq!((left.len(), left.is_empty()), (a.len(), a.is_empty()));
    });
}

#[test]
fn ids_without_a_record_are_no_matches() {
    let (store, index) = index();
    let snapshot = store.snapshot().unwrap();
    let found = Matches::of_ids(&index, &BitmapExpr::range(15..40), 1.0, &snapshot).unwrap();
    assert_eq!(found.keys(&snapshot).unwrap(), [15, 16, 17, 18, 19]);
}
