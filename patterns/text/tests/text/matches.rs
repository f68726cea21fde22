//! Single matches, and the best match of each group, compared with whole pages of the search.

use keyloom::{Memory, Metered, Order, Store, Subspace};
use keyloom_bitmaps::{BitmapExpr, one};
use keyloom_tables::Table;
use keyloom_testing::laws;
use keyloom_text::{Analyzer, Hit, Query, Ranked, Search, TextIndex};

type Index = TextIndex<u32, String>;

/// Enough posts that the list of `a` has two layers of summaries.
const POSTS: u32 = 24_000;

fn index(store: &impl Store, body: impl Fn(u32) -> String) -> Index {
    laws::clear(store);
    let index = TextIndex::with_keys_as_ids(&Subspace::new("text"))
        .field("body", Analyzer::simple(), |_: &u32, body: &String, add| add(body))
        .integers("length", |_, body| Some(body.len() as i64))
        .values("large", |id, _| one(id % 3))
        .values("small", |id, _| one(id / 50));
    let table = Table::<u32, String>::new(&Subspace::new("posts")).with(&index);
    let all: Vec<(u32, String)> = (0..POSTS).map(|n| (n, body(n))).collect();
    for some in all.chunks(8_000) {
        store.transact(|txn| table.put_many(txn, some.iter().cloned())).unwrap();
    }
    index
}

fn hash(n: u32) -> usize {
    (n.wrapping_mul(2_654_435_761) >> 16) as usize
}

/// Few distinct scores, so that many are equal.
fn few_scores(n: u32) -> String {
    let rare = if n.is_multiple_of(301) { " b" } else { "" };
    vec!["a"; 1 + hash(n) % 12].join(" ") + &" c".repeat(hash(n) % 4) + rare
}

fn searches(index: &Index) -> [Search<'_, u32, String>; 5] {
    let term = |word| Query::term("body", word);
    let a = || index.search(term("a"));
    [
        a(),
        index.search(term("b")),
        index.search(Query::any_of([term("a"), term("c")])),
        a().filter(index.records().term("small", 7).unwrap()),
        a().sort_by("length", Order::Descending),
    ]
}

fn pairs(found: &[Ranked]) -> Vec<(u64, f64)> {
    found.iter().map(|found| (found.id, found.score)).collect()
}

fn wanted(hits: &[Hit<u32>]) -> Vec<(u64, f64)> {
    hits.iter().map(|hit| (hit.key.into(), hit.score)).collect()
}

#[test]
fn matches_one_by_one_are_those_of_a_page() {
    let store = Memory::new();
    let index = index(&store, few_scores);
    let snapshot = store.snapshot().unwrap();
    for search in searches(&index) {
        let page = search.clone().limit(3_000).hits(&snapshot).unwrap().items;
        let ranking = search.ranking(&snapshot).unwrap();
        let mut matches = ranking.matches(&snapshot, None).unwrap();
        let mut found = Vec::new();
        for many in [1, 0, 9, 100, 2_890] {
            found.extend(pairs(&matches.next(many).unwrap()));
        }
        assert_eq!(found, wanted(&page), "{search:?}");
        // Starting from a continuation.
        let first = search.clone().limit(40).hits(&snapshot).unwrap();
        let ranking = search.after(first.next).ranking(&snapshot).unwrap();
        let mut matches = ranking.matches(&snapshot, None).unwrap();
        let rest = wanted(&page).into_iter().skip(40).take(500).collect::<Vec<_>>();
        assert_eq!(pairs(&matches.next(500).unwrap()), rest);
    }
}

#[test]
fn the_best_of_each_group_are_those_of_a_filter() {
    let store = Memory::new();
    let index = index(&store, few_scores);
    let snapshot = store.snapshot().unwrap();
    let records = index.records();
    let of = |field: &str, value: u32| records.term(field, value).unwrap();
    // The list is read completely, with its bounds, and at single ids.
    let groups: [Vec<BitmapExpr>; 5] = [
        vec![of("small", 3), of("small", 470), of("small", 999)],
        vec![of("large", 0), of("large", 1), of("large", 2)],
        vec![of("large", 1), of("small", 8)],
        (0..40).map(|n| of("small", n)).collect(),
        vec![of("large", 2), of("small", 9) & of("large", 1)],
    ];
    for search in searches(&index) {
        for (groups, limit) in groups.iter().zip([3, 2, 300, 5, 2]) {
            let ranking = search.ranking(&snapshot).unwrap();
            let mut matches = ranking.matches(&snapshot, None).unwrap();
            matches.next(10).unwrap();
            let best = matches.best_of_each(limit, groups).unwrap();
            assert_eq!(best.len(), groups.len());
            for (best, group) in best.iter().zip(groups) {
                let hits = search.clone().filter(group.clone()).limit(limit).hits(&snapshot);
                assert_eq!(pairs(best), wanted(&hits.unwrap().items), "{search:?}");
            }
        }
    }
}

/// The blocks with the best scores are read, without the blocks before them.
#[test]
fn matches_of_one_term_read_few_blocks() {
    let store = Metered::new(Memory::new());
    let index = index(&store, |n| format!("a{}", " c".repeat(hash(n) % 997)));
    let search = index.search(Query::term("body", "a")).limit(50);
    let (page, of_page) = store.measure(|store| search.hits(&store.snapshot().unwrap()));
    let (found, one_by_one) = store.measure(|store| {
        let snapshot = store.snapshot().unwrap();
        let ranking = search.ranking(&snapshot).unwrap();
        ranking.matches(&snapshot, None).unwrap().next(50).unwrap()
    });
    assert_eq!(pairs(&found), wanted(&page.unwrap().items));
    let (few, many) = (one_by_one.keys_read, of_page.keys_read);
    assert!(3 * few < 2 * many, "{few} keys one by one, {many} keys of a page");
}
