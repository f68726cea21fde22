//! Orders, facets and similar records, compared with loops over the records.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use keyloom::{Budget, Budgeted, Desc, Error, Memory, Metered, Order, Reader, Store, Subspace};
use keyloom_tables::Table;
use keyloom_testing::laws;
use keyloom_text::{
    Analyzer, Bm25, BooleanQuery, Decay, Hit, MoreLikeThis, Query, Ranked, Search, TextIndex,
};

use super::corpus::{FIELDS, Index, Model, Post, Posts, history, index, post, posts, tokens};
use super::naive::{Naive, query};

fn prepared(seed: u64, store: &impl Store) -> (Index, Posts, Model) {
    laws::clear(store);
    // Ids are keys, so the order of equal values is known.
    let (mut random, index) = (fastrand::Rng::with_seed(seed), index(false));
    let table = posts(&index);
    let model = history(&mut random, store, &table, 300);
    (index, table, model)
}

/// The keys of all results, page by page.
fn paged<V>(search: &Search<'_, u32, V>, reader: &impl Reader, limit: usize) -> Vec<Hit<u32>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = search.clone().limit(limit).after(after).hits(reader).unwrap();
        all.extend(page.items);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

fn keys(hits: &[Hit<u32>]) -> Vec<u32> {
    hits.iter().map(|hit| hit.key).collect()
}

pub fn results_come_in_the_order_of_an_integer_field(store: &impl Store) {
    let (index, _, model) = prepared(21, store);
    let snapshot = store.snapshot().unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..12 {
        let query = query(&mut random, 1);
        let scores = Naive::new(&model, Bm25::default()).all(&query);
        for order in [Order::Ascending, Order::Descending] {
            let search = index.search(query.clone()).sort_by("year", order);
            let hits = paged(&search, &snapshot, 1_000);
            let mut wanted: Vec<u32> = scores.keys().copied().collect();
            match order {
                Order::Ascending => wanted.sort_by_key(|id| (model[id].year, *id)),
                Order::Descending => wanted.sort_by_key(|id| (Reverse(model[id].year), *id)),
            }
            assert_eq!(keys(&hits), wanted, "{query}");
            for hit in &hits {
                assert!((hit.score - scores[&hit.key]).abs() < 1e-6, "{query}: {hit:?}");
            }
            assert_eq!(paged(&search, &snapshot, 9), hits, "{query}");
        }
    }
    let unknown = index.search(Query::All).sort_by("yaer", Order::Ascending);
    let error = unknown.hits(&snapshot).unwrap_err().to_string();
    assert!(error.contains("yaer") && error.contains("year"), "{error}");
}

/// Sort keys of several fields, with strings that are prefixes of each other, many equal keys and
/// absent values.
pub fn records_come_in_the_order_of_a_sort_key(store: &impl Store) {
    let (index, table, model) = prepared(22, store);
    let snapshot = store.snapshot().unwrap();
    let mut random = fastrand::Rng::with_seed(6);
    // The control: the years have another order.
    let mut differs = false;
    for _ in 0..8 {
        let query = query(&mut random, 1);
        let scores = Naive::new(&model, Bm25::default()).all(&query);
        let search = index.search(query.clone()).sort_by("year", Order::Ascending);
        let mut wanted: Vec<u32> = scores.keys().copied().collect();
        let place = |id: &u32| {
            let (post, score) = (&model[id], scores[id]);
            let word = post.title.split(' ').next().filter(|word| word.len() != 3);
            (word.map(str::to_owned), Reverse(post.year), score > 1.0, *id)
        };
        wanted.sort_by_key(place);
        for limit in [1_000, 7, 1] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let some = search.clone().limit(limit).after(after);
                let page = some.records_sorted_by(&snapshot, &table, |_, post: &Post, score| {
                    let word = post.title.split(' ').next().filter(|word| word.len() != 3);
                    (word.map(str::to_owned), Desc(post.year), score > 1.0)
                });
                let page = page.unwrap();
                for hit in page.items {
                    assert!(hit.value == model[&hit.key]);
                    assert!((hit.score - scores[&hit.key]).abs() < 1e-6, "{query}");
                    found.push(hit.key);
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(found, wanted, "{query}");
        }
        // Besides the search, one get for each match: keys are ids.
        let counting = [(); 2].map(|()| Budgeted::new(&snapshot, Budget::new()));
        search.scores(&counting[0]).unwrap();
        search.clone().records_sorted_by(&counting[1], &table, |id, _, _| *id).unwrap();
        let [of_search, of_both] = counting.map(|one| one.spent().gets);
        assert_eq!(of_both - of_search, wanted.len() as u64, "{query}");
        differs |= keys(&paged(&search, &snapshot, 1_000)) != wanted;
        // A continuation of another order is refused, in both directions.
        let by_key = |after| {
            let some = search.clone().limit(1).after(after);
            some.records_sorted_by(&snapshot, &table, |id, _, _| *id)
        };
        if let Some(next) = search.clone().limit(1).hits(&snapshot).unwrap().next {
            assert!(matches!(by_key(Some(next)), Err(Error::InvalidArgument { .. })));
        }
        if let Some(next) = by_key(None).unwrap().next {
            let other = search.clone().limit(1).after(next).hits(&snapshot);
            assert!(matches!(other, Err(Error::InvalidArgument { .. })));
        }
        assert!(
            search
                .clone()
                .limit(0)
                .records_sorted_by(&snapshot, &table, |id, _, _| *id)
                .unwrap()
                .items
                .is_empty()
        );
    }
    assert!(differs);
}

/// The extreme integers are ordinary values: only records without a value come after them.
#[test]
fn records_without_a_value_come_after_the_extreme_integers() {
    let index = TextIndex::with_keys_as_ids(&Subspace::new("text"))
        .field("body", Analyzer::simple(), |_: &u32, _: &Option<i64>, add| add("a"))
        .integers("n", |_, n| *n);
    let table = Table::<u32, Option<i64>>::new(&Subspace::new("numbers")).with(&index);
    let values = [None, Some(i64::MIN), Some(i64::MAX), Some(0), None, Some(i64::MIN), Some(-1)];
    let all: Vec<(u32, Option<i64>)> = (0..).zip([values, values].concat()).collect();
    let store = Memory::new();
    store.transact(|txn| table.put_many(txn, all.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let mut wanted = all.clone();
        match order {
            Order::Ascending => wanted.sort_by_key(|(id, n)| (n.is_none(), *n, *id)),
            Order::Descending => wanted.sort_by_key(|(id, n)| (n.is_none(), Reverse(*n), *id)),
        }
        let wanted: Vec<u32> = wanted.into_iter().map(|(id, _)| id).collect();
        let search = index.search(Query::term("body", "a")).sort_by("n", order);
        for limit in [1, 3, 10, 14, 100] {
            assert_eq!(keys(&paged(&search, &snapshot, limit)), wanted, "{order:?}, {limit}");
        }
    }
}

#[test]
fn scores_that_are_not_numbers_are_refused() {
    let (store, index) = (Memory::new(), index(false));
    let post = Post { title: String::new(), body: vec!["a".to_owned()], year: 2_020 };
    store.transact(|txn| posts(&index).put(txn, &1, &post)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let with = |decay: Decay| {
        let search = index.search(Query::term("body", "a"));
        search.score_by("year", move |_, year| decay.factor(year.unwrap())).hits(&snapshot)
    };
    let good = Decay { origin: 2_020, scale: 1.0, decay: 0.5 };
    assert_eq!(with(good).unwrap().items.len(), 1);
    for scale in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let error = with(Decay { scale, origin: 2_000, ..good }).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{scale}: {error}");
    }
    assert!(with(Decay { decay: -0.5, ..good }).is_err());
    let by_key = index.search(Query::All).rescore(|_, _| f64::NAN).hits(&snapshot);
    assert!(by_key.unwrap_err().to_string().contains("must return numbers"));
    for (k1, b) in [(-0.1, 0.5), (f64::NAN, 0.5), (f64::INFINITY, 0.5), (1.0, 1.1), (1.0, -0.1)] {
        let bm25 = Bm25 { k1, b };
        let error = index.search(Query::term("body", "a")).bm25(bm25).hits(&snapshot).unwrap_err();
        assert!(error.to_string().contains("k1 must be finite"), "{k1}, {b}: {error}");
    }
    for (k1, b) in [(0.0, 0.0), (0.0, 1.0), (f64::from(f32::MAX), 1.0)] {
        let bm25 = Bm25 { k1, b };
        let query = Query::term("body", "a").boost(f32::MAX);
        let page = index.search(query).bm25(bm25).hits(&snapshot).unwrap();
        assert!(page.items[0].score.is_finite(), "{k1}, {b}");
    }
}

pub fn functions_replace_the_score(store: &impl Store) {
    let (index, _, model) = prepared(22, store);
    let snapshot = store.snapshot().unwrap();
    let mut random = fastrand::Rng::with_seed(6);
    let recent = Decay { origin: 2_020, scale: 5.0, decay: 0.5 };
    for _ in 0..12 {
        let query = query(&mut random, 1);
        let naive = Naive::new(&model, Bm25::default()).all(&query);
        let by_year = index
            .search(query.clone())
            .score_by("year", move |score, year| score * recent.factor(year.unwrap()));
        let by_key = index.search(query.clone()).rescore(|key, score| f64::from(*key) - score);
        let decayed = |id: &u32, score: &f64| {
            score * 0.5_f64.powf((model[id].year - 2_020).abs() as f64 / 5.0)
        };
        let keyed = |id: &u32, score: &f64| f64::from(*id) - score;
        let functions: [(_, &dyn Fn(&u32, &f64) -> f64); 2] =
            [(by_year, &decayed), (by_key, &keyed)];
        for (search, function) in functions {
            let wanted: BTreeMap<u32, f64> =
                naive.iter().map(|(id, score)| (*id, function(id, score))).collect();
            let hits = paged(&search, &snapshot, 1_000);
            assert_eq!(hits.len(), wanted.len());
            for hit in &hits {
                assert!((hit.score - wanted[&hit.key]).abs() < 1e-6, "{query}: {hit:?}");
            }
            assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
            assert_eq!(paged(&search, &snapshot, 9), hits, "{query}");
        }
    }
    // A continuation of one order is refused by another.
    let page = index.search(Query::All).limit(1).rescore(|_, score| score).hits(&snapshot).unwrap();
    assert!(index.search(Query::All).after(page.next).hits(&snapshot).is_err());
}

/// A ranking returns any subset of the results with the scores of the complete search.
pub fn rankings_are_parts_of_the_results(store: &impl Store) {
    let (index, table, model) = prepared(26, store);
    let snapshot = store.snapshot().unwrap();
    let mut random = fastrand::Rng::with_seed(9);
    for n in 0..16 {
        let query = query(&mut random, 1);
        let search = index.search(query.clone());
        let search = match n % 4 {
            0 => search,
            1 => search.sort_by("year", Order::Descending),
            2 => search.sort_by("year", Order::Ascending),
            _ => search.rescore(|key, score| f64::from(key % 5) + score),
        };
        let all = paged(&search, &snapshot, 1_000);
        let ranking = search.ranking(&snapshot).unwrap();
        let hits = |found: &[Ranked]| -> Vec<(u64, f64)> {
            found.iter().map(|found| (found.id, found.score)).collect()
        };
        let wanted = |hits: &[Hit<u32>]| -> Vec<(u64, f64)> {
            hits.iter().map(|hit| (hit.key.into(), hit.score)).collect()
        };
        let found = ranking.best(&snapshot, 1_000, None, None).unwrap();
        assert_eq!(hits(&found), wanted(&all), "{query}");
        assert!(found.is_sorted_by(|a, b| a.compare(b).is_lt()));
        assert_eq!(ranking.count(&snapshot, None).unwrap(), all.len() as u64);
        // The second half of the records, whose titles are of one kind.
        let half = all.len() / 2;
        let Some(middle) = found.get(half) else { continue };
        let title = &model[&all[half].key].title;
        let among = index.records().term("title", title).unwrap();
        let has_title = |hit: &&Hit<u32>| model[&hit.key].title == *title;
        let few: Vec<Hit<u32>> = all[half + 1..].iter().filter(has_title).copied().collect();
        let rest = ranking.best(&snapshot, 3, Some(middle), Some(&among)).unwrap();
        assert_eq!(hits(&rest), wanted(&few[..few.len().min(3)]), "{query}");
        let next = ranking.continue_after(middle).unwrap();
        let after = search.clone().after(next);
        assert_eq!(after.clone().limit(1_000).hits(&snapshot).unwrap().items, all[half + 1..]);

        // A continued ranking keeps the scores of the first page, regardless of later writes.
        let ranking = after.ranking(&snapshot).unwrap();
        assert!(ranking.is_continued());
        let is_after = |found: &Ranked| ranking.is_on_this_page(found);
        assert_eq!(found.iter().filter(|found| is_after(found)).count(), all.len() - half - 1);
        let mut others = fastrand::Rng::with_seed(n);
        let new = (10_000..10_020).map(|id| (id, post(&mut others)));
        let new: Vec<(u32, Post)> = new.collect();
        let mut txn = store.begin().unwrap();
        table.put_many(&mut txn, new).unwrap();
        let is_old = |found: &&Ranked| found.id < 10_000;
        let now = ranking.best_of_all(&txn, 1_000, None).unwrap();
        let now: Vec<Ranked> = now.iter().filter(is_old).copied().collect();
        assert_eq!(hits(&now), wanted(&all), "{query}");
    }
}

pub fn facets_count_the_values_of_all_matches(store: &impl Store) {
    let (index, _, model) = prepared(23, store);
    let snapshot = store.snapshot().unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..12 {
        let query = query(&mut random, 1);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for id in Naive::new(&model, Bm25::default()).all(&query).keys() {
            *counts.entry(model[id].title.clone()).or_default() += 1;
        }
        let mut wanted: Vec<(String, u64)> = counts.into_iter().collect();
        wanted.sort_by_key(|(_, count)| Reverse(*count));
        wanted.truncate(6);
        let facets = index.search(query.clone()).facets::<String>(&snapshot, "title", 6).unwrap();
        assert_eq!(facets, wanted, "{query}");
    }
}

pub fn similar_records_have_the_most_typical_words(store: &impl Store) {
    let (index, table, _) = prepared(24, store);
    let mut random = fastrand::Rng::with_seed(8);
    let model: Model = (0..150).map(|id| (id, post(&mut random))).collect();
    laws::clear(store);
    store.transact(|txn| table.put_many(txn, model.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let options = MoreLikeThis { max_terms: 4, ..MoreLikeThis::default() };
    let mut many = 0;
    for (id, post) in &model {
        let mut wanted: Vec<(f64, usize, String)> = Vec::new();
        for (number, field) in FIELDS.into_iter().enumerate() {
            let documents =
                model.values().filter(|post| !tokens(post, field).is_empty()).count() as f64;
            let mut own: Vec<String> =
                tokens(post, field).into_iter().map(|(term, _)| term).collect();
            own.sort();
            for same in own.chunk_by(|a, b| a == b).filter(|same| same.len() >= 2) {
                let has =
                    |post: &&Post| tokens(post, field).iter().any(|(term, _)| *term == same[0]);
                let with_term = model.values().filter(has).count() as f64;
                let idf = (1.0 + (documents - with_term + 0.5) / (with_term + 0.5)).ln();
                if with_term >= 5.0 {
                    wanted.push((same.len() as f64 * idf, number, same[0].clone()));
                }
            }
        }
        wanted.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, &a.2).cmp(&(b.1, &b.2))));
        wanted.truncate(4);
        let terms = wanted.iter().map(|(_, field, term)| Query::term(FIELDS[*field], term.clone()));
        let wanted = (!wanted.is_empty()).then(|| Query::any_of(terms));
        let query = index.more_like_this(&snapshot, &table, id, &options).unwrap();
        assert_eq!(query, wanted, "{id}");
        if let Some(query) = query {
            many += 1;
            let found = index.search(BooleanQuery::new().must(query)).limit(1_000);
            assert!(found.ids(&snapshot).unwrap().contains(&u64::from(*id)));
        }
    }
    assert!(many > 20);
    assert_eq!(index.more_like_this(&snapshot, &table, &999_999, &options).unwrap(), None);
}

/// What `explain` counts is what the search reads, in each order and on each page.
#[test]
fn explain_counts_the_reads_of_the_order() {
    let store = Metered::new(Memory::new());
    let (index, ..) = prepared(22, &store);
    let snapshot = store.snapshot().unwrap();
    let word = || Query::exists("body");
    let search = || index.search(word()).limit(7);
    let searches = [
        search(),
        search().sort_by("year", Order::Ascending),
        search().sort_by("year", Order::Descending),
        search().score_by("year", |score, year| score + year.unwrap_or(0) as f64),
        search().rescore(|id, score| score + f64::from(*id)),
    ];
    let mut pages = 0;
    for search in searches {
        let mut after = None;
        for _ in 0..2 {
            let page = search.clone().after(after.take());
            let (hits, cost) = store.measure(|_| page.hits(&snapshot).unwrap());
            let explain = page.explain(&snapshot).unwrap();
            assert_eq!(explain.hits, hits.items.len() as u64);
            assert_eq!((explain.gets, explain.ranges), (cost.gets, cost.ranges));
            assert_eq!(explain.keys_read, cost.keys_read);
            after = hits.next;
            pages += usize::from(after.is_some());
        }
    }
    assert!(pages >= 5, "{pages}");
}
