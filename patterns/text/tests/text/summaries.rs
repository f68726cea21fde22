//! Long lists: their summaries are a function of the records, and searches use them to skip blocks.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::{Memory, Metered, Order, Reader, Store, Writer};
use keyloom_tables::{Maintained, RepairOptions};
use keyloom_testing::laws;
use keyloom_text::{Bm25, Query};

use super::corpus::{Index, Model, Post, Posts, index, posts};
use super::naive::Naive;

/// The number of summary entries.
fn summaries(index: &Index, reader: &impl Reader) -> u64 {
    reader.count(index.space().child(&5).range()).unwrap()
}

/// Few words per text, so that many texts are generated quickly.
fn short_post(random: &mut fastrand::Rng) -> Post {
    let long = if random.u8(0..20) == 0 { 9 } else { 3 };
    let words = |random: &mut fastrand::Rng, many: usize| {
        let words = (0..many).map(|_| format!("w{}", random.u32(0..4).min(random.u32(0..4))));
        words.collect::<Vec<_>>().join(" ")
    };
    let many = random.usize(1..=long);
    Post { title: String::new(), body: vec![words(random, many)], year: 2_000 }
}

fn loaded(store: &impl Store, docs: u32, seed: u64) -> (Index, Posts, Model) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (index, model): (_, Model) =
        (index(false), (0..docs).map(|id| (id, short_post(&mut random))).collect());
    let table = posts(&index);
    for some in Vec::from_iter(model.clone()).chunks(1_500) {
        store.transact(|txn| table.put_many(txn, some.to_vec())).unwrap();
    }
    (index, table, model)
}

fn dump(store: &impl Store) -> laws::Dump {
    let prefix = keyloom::pack("text");
    let all = laws::dump_all(store).into_iter();
    all.filter(|(key, value)| key.starts_with(&prefix) && value[..] != [0; 8]).collect()
}

pub fn summaries_of_any_history_are_those_of_the_records(store: &impl Store) {
    laws::clear(store);
    let (index, table, mut model) = loaded(store, 16_000, 1);
    assert!(summaries(&index, &store.snapshot().unwrap()) > 6);
    let mut random = fastrand::Rng::with_seed(2);
    let none = || index.check(&store.snapshot().unwrap(), &table).unwrap();
    assert_eq!(none(), []);
    // Single changes, distant ids, and deletes until no list is long.
    for round in 0..5 {
        for _ in 0..40 {
            let id = if random.bool() { random.u32(0..16_000) } else { random.u32(0..u32::MAX) };
            let post = short_post(&mut random);
            store.transact(|txn| table.put(txn, &id, &post)).unwrap();
            model.insert(id, post);
        }
        let gone: Vec<u32> = model.keys().copied().filter(|_| random.u8(0..5) < 3).collect();
        for some in gone.chunks(700) {
            store.transact(|txn| table.delete_many(txn, some).map(drop)).unwrap();
        }
        gone.iter().for_each(|id| drop(model.remove(id)));
        assert_eq!(none(), [], "round {round}");
    }
    assert_eq!(summaries(&index, &store.snapshot().unwrap()), 0);
    let maintained = dump(store);
    laws::clear(store);
    store.transact(|txn| table.put_many(txn, model.clone())).unwrap();
    assert!(dump(store) == maintained);
}

pub fn damaged_summaries_are_found_and_repaired(store: &impl Store) {
    laws::clear(store);
    let (index, table, _) = loaded(store, 5_000, 3);
    let whole = dump(store);
    let mut own = whole.clone();
    let prefix = index.space().child(&5);
    own.retain(|key, _| prefix.contains(key));
    assert!(own.len() > 2);
    let search = index.search(Query::term("body", "w0")).limit(3);
    let mut refused = 0;
    for (n, (key, value)) in own.iter().enumerate().take(5) {
        store
            .transact(|txn| match n % 3 {
                0 => txn.put(key, &value[..value.len() - 1]),
                1 => txn.delete(key),
                _ => txn.put(&[&key[..], b"\x15\x07"].concat(), value),
            })
            .unwrap();
        if let Err(error) = search.hits(&store.snapshot().unwrap()) {
            assert!(error.to_string().contains("at key (\"text\", 5"), "{error}");
            refused += 1;
        }
        assert_ne!(index.check(&store.snapshot().unwrap(), &table).unwrap(), [], "{n}");
        index.repair(store, &table).unwrap();
        assert!(dump(store) == whole, "{n} at {key:?}");
    }
    assert!(refused > 0);
}

/// A repair of malformed summaries respects the batch size.
#[test]
fn malformed_summaries_are_removed_batch_by_batch() {
    let (store, index) = (Memory::new(), index(false));
    let table = posts(&index);
    let key = |n: u32| index.space().pack(&(5, 0, format!("t{n:02}"), 8, u32::MAX));
    store.transact(|txn| (0..50).try_for_each(|n| txn.put(&key(n), &[0xFF]))).unwrap();
    let options = RepairOptions { batch: 7, ..RepairOptions::default() };
    let (mut removed, mut steps) = (0, Vec::new());
    let done = index.repair_with(&store, &table, &options, |done| {
        steps.push(done.removed - removed);
        removed = done.removed;
        ControlFlow::Continue(())
    });
    assert!(done.unwrap().finished);
    assert_eq!(removed, 50);
    assert!(steps.iter().all(|step| *step <= 7), "{steps:?}");
    assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
}

/// Searches of long lists return the results of the definition, and read few keys.
#[test]
fn searches_of_long_lists_read_a_small_part_of_them() {
    let store = Metered::new(Memory::new());
    let (index, _, model) = loaded(&store, 20_000, 5);
    let naive = Naive::new(&model, Bm25::default());
    let snapshot = store.snapshot().unwrap();
    let blocks = snapshot.count(index.space().child(&2).range()).unwrap();
    let term = |n: u32| Query::term("body", format!("w{n}"));
    let queries = [
        (term(0), 90),
        (Query::any_of([term(0), term(3)]), 300),
        (Query::all_of([term(1), term(2)]), 300),
        (Query::phrase("body", "w1 w2"), 700),
    ];
    for (query, most) in queries {
        let (hits, cost) =
            store.measure(|store| index.search(query.clone()).hits(&store.snapshot()?));
        println!("{query}: {cost}, {blocks} blocks");
        assert!(cost.keys_read < most, "{query}: {cost}");
        let mut wanted: Vec<(u32, f64)> = naive_top(&naive, &model, &query);
        wanted.truncate(10);
        let hits = hits.unwrap().items;
        assert_eq!(hits.len(), wanted.len());
        for (hit, (key, score)) in hits.iter().zip(wanted) {
            assert!((hit.score - score).abs() < 1e-6, "{query}: {hit:?}, not {key} with {score}");
        }
    }
}

/// The bounds of combined fields are valid for each page, and skip blocks of one field.
#[test]
fn combined_fields_of_long_lists_have_the_best_documents() {
    let store = Metered::new(Memory::new());
    let (index, mut random) = (index(false), fastrand::Rng::with_seed(8));
    let model: Model = (0..12_000)
        .map(|id| {
            let title =
                if random.bool() { short_post(&mut random).body.concat() } else { String::new() };
            (id, Post { title, ..short_post(&mut random) })
        })
        .collect();
    let table = posts(&index);
    for some in Vec::from_iter(model.clone()).chunks(1_500) {
        store.transact(|txn| table.put_many(txn, some.to_vec())).unwrap();
    }
    let naive = Naive::new(&model, Bm25::default());
    let snapshot = store.snapshot().unwrap();
    for (fields, text) in [
        ([("title", 2.0), ("body", 1.0)], "w0"),
        ([("title", 0.5), ("body", 1.5)], "w0 w3"),
        ([("title", 1.0), ("body", 1.0)], "w2 w1 w3"),
    ] {
        let query = Query::combined(fields, text);
        let mut wanted: Vec<(u32, f64)> = naive.all(&query).into_iter().collect();
        wanted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let (mut after, mut found) = (None, Vec::new());
        for _ in 0..4 {
            let search = index.search(query.clone()).limit(25).after(after);
            let page = search.hits(&snapshot).unwrap();
            found.extend(page.items);
            after = page.next;
        }
        for (hit, (key, score)) in found.iter().zip(&wanted) {
            assert!((hit.score - score).abs() < 1e-6, "{query}: {hit:?}, not {key} with {score}");
        }
        assert_eq!(found.len(), 100);
    }
    let query = Query::combined([("body", 2.0)], "w0");
    let (page, cost) = store.measure(|store| index.search(query.clone()).hits(&store.snapshot()?));
    assert!(cost.keys_read < 90, "{query}: {cost}");
    let mut wanted: Vec<f64> = naive.all(&query).into_values().collect();
    wanted.sort_by(|a, b| b.total_cmp(a));
    assert!(
        page.unwrap().items.iter().zip(wanted).all(|(hit, score)| (hit.score - score).abs() < 1e-6)
    );
    // The length list of the bodies, which contains all documents.
    let lengths = snapshot.range(index.space().range_of(&(2, 1, "")), Order::Ascending).unwrap();
    let lengths = lengths.map(|entry| entry.map(|(key, value)| key.len() + value.len()).unwrap());
    let per_document = lengths.sum::<usize>() as f64 / model.len() as f64;
    assert!((0.3..1.5).contains(&per_document), "{per_document}");
    let (page, cost) =
        store.measure(|store| index.search(Query::exists("title")).hits(&store.snapshot()?));
    assert!(page.unwrap().items.len() == 10 && cost.keys_read < 10, "{cost}");
}

/// Pages of a pattern read only the beginnings of its lists, and have the best documents in order.
#[test]
fn pages_of_patterns_have_the_best_documents() {
    let store = Metered::new(Memory::new());
    let (index, _, model) = loaded(&store, 4_000, 10);
    let naive = Naive::new(&model, Bm25::default());
    let blocks = store.snapshot().unwrap();
    let blocks = blocks.count(index.space().child(&(2, 1)).range()).unwrap();
    assert!(blocks > 80);
    let near = Query::fuzzy("body", "w3", 1);
    let far = Query::fuzzy("body", "w", 2);
    for query in [Query::prefix("body", "w"), near.clone(), far, near.boost(0.0)] {
        let wanted: Vec<u32> =
            naive_top(&naive, &model, &query).into_iter().map(|(key, _)| key).collect();
        let (_, cost) = store.measure(|store| index.search(query.clone()).hits(&store.snapshot()?));
        assert!(cost.keys_read < 40, "{query}: {cost}");
        // A page of 2,000 hits is collected in another way.
        for limit in [7, 500, 2_000] {
            let (mut found, mut after) = (Vec::new(), None);
            while found.len() < wanted.len().min(40 * limit) {
                let search = index.search(query.clone()).limit(limit).after(after);
                let page = search.hits(&store.snapshot().unwrap()).unwrap();
                found.extend(page.items.iter().map(|hit| hit.key));
                after = page.next;
            }
            assert!(wanted.starts_with(&found), "{query}, {limit}");
        }
    }
}

/// A rare term leads, and its documents are looked up in the long lists of the other terms.
#[test]
fn conjunctions_with_a_rare_term_read_few_blocks_of_others() {
    let store = Metered::new(Memory::new());
    let (index, mut random) = (index(false), fastrand::Rng::with_seed(9));
    let mut post = |_| {
        let mut post = short_post(&mut random);
        for (word, one_in) in [("rare", 60), ("rarest", 400)] {
            if random.u32(0..one_in) == 0 {
                post.body.extend(vec![word.to_owned(); random.usize(1..=2)]);
            }
        }
        post
    };
    let model: Model = (0..8_000).map(|id| (id, post(id))).collect();
    let table = posts(&index);
    for some in Vec::from_iter(model.clone()).chunks(1_500) {
        store.transact(|txn| table.put_many(txn, some.to_vec())).unwrap();
    }
    let naive = Naive::new(&model, Bm25::default());
    let snapshot = store.snapshot().unwrap();
    let long = index.space().child(&(2, 1, "w0"));
    assert!(snapshot.count(long.range()).unwrap() > 60);
    for (words, most) in [
        (&["w0", "rare"][..], 70),
        (&["rarest", "w0"], 35),
        (&["w1", "rare", "w0"], 100),
        (&["rarest", "w0", "rare"], 15),
    ] {
        let query = Query::all_of(words.iter().map(|word| Query::term("body", *word)));
        let search = index.search(query.clone());
        let wanted = naive_top(&naive, &model, &query);
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = search.clone().after(after);
            let (page, cost) = store.measure(|store| page.hits(&store.snapshot()?));
            let page = page.unwrap();
            assert!(cost.keys_read < most, "{query}: {cost}");
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found.len(), wanted.len(), "{query}");
        for (hit, (key, score)) in found.iter().zip(&wanted) {
            assert!((hit.score - score).abs() < 1e-6, "{query}: {hit:?}, not {key} with {score}");
        }
    }
}

/// Two terms with two layers of summaries each; one term has boost 0.
#[test]
fn terms_with_boost_0_match_in_lists_with_two_layers() {
    let (store, index) = (Memory::new(), index(false));
    let table = posts(&index);
    // 129 of 256 ids need two blocks, so relatively few texts give more than 256 blocks.
    let ids = (0..36_000_u32).filter(|id| id % 2 == 0 || id % 256 == 1);
    let text = |id: u32| if id.is_multiple_of(32) { "w0 w1 w1" } else { "w0" }.to_owned();
    let post = |id| Post { title: String::new(), body: vec![text(id)], year: 2_000 };
    let model: Model = ids.map(|id| (id, post(id))).collect();
    for some in Vec::from_iter(model.clone()).chunks(1_500) {
        store.transact(|txn| table.put_many(txn, some.to_vec())).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let second_layer = index.space().child(&(5, 1, "w0", 7));
    assert!(snapshot.count(second_layer.range()).unwrap() > 0);
    let naive = Naive::new(&model, Bm25::default());
    let (w0, w1) = (Query::term("body", "w0").boost(0.0), Query::term("body", "w1"));
    let queries = [
        w0.clone(),
        Query::all_of([w0.clone(), w1.clone()]),
        Query::all_of([w1.boost(0.0), w0.clone()]),
    ];
    for query in queries {
        let wanted = naive_top(&naive, &model, &query);
        let search = index.search(query.clone()).limit(400);
        assert_eq!(search.count(&snapshot).unwrap(), wanted.len() as u64, "{query}");
        let (mut found, mut after) = (Vec::new(), None);
        while found.len() < 1_200 {
            let page = search.clone().after(after).hits(&snapshot).unwrap();
            found.extend(page.items.iter().map(|hit| hit.key));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let wanted: Vec<u32> = wanted.iter().map(|(id, _)| *id).take(1_200).collect();
        assert_eq!(found, wanted, "{query}");
    }
}

/// All scores, best first. Statistics are computed once per term, not once per document.
fn naive_top(naive: &Naive<'_>, model: &Model, query: &Query) -> Vec<(u32, f64)> {
    // Equal texts have equal scores.
    let mut scores: BTreeMap<&Vec<String>, Option<f64>> = BTreeMap::new();
    let mut all: Vec<(u32, f64)> = Vec::new();
    for (id, post) in model {
        let score = *scores.entry(&post.body).or_insert_with(|| naive.score(post, query));
        all.extend(score.map(|score| (*id, score)));
    }
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all
}
