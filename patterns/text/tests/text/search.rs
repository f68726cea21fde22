//! Searches return the same results as loops over the plain texts.

use std::collections::BTreeMap;

use keyloom::{Error, Fault, Faulty, Memory, Reader, Store, Subspace, Writer};
use keyloom_bitmaps::BitmapExpr;
use keyloom_tables::{Continuation, Maintained, Table};
use keyloom_testing::laws;
use keyloom_text::suggest::Similarity;
use keyloom_text::{Analyzer, Bm25, Hit, Near, Query, QueryError, TextError, TextIndex};

use super::corpus::{FIELDS, Index, Model, Post, Posts, history, index, post, posts, tokens};
use super::naive::{Naive, query};

/// Asserts that the hits are the expected documents with their scores, best first.
fn assert_hits(hits: &[Hit<u32>], wanted: &BTreeMap<u32, f64>, query: &Query) {
    assert_eq!(hits.len(), wanted.len(), "{query}");
    for Hit { key, score } in hits {
        let wanted = wanted.get(key).copied().unwrap_or(f64::NAN);
        let near = (score - wanted).abs() <= 1e-6 * wanted.abs().max(1.0);
        assert!(near, "{query}: {key} has {score}, not {wanted}");
    }
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score), "{query}");
}

/// All pages of a search; continuations are converted to bytes and back.
fn pages(index: &Index, reader: &impl Reader, query: &Query, limit: usize) -> Vec<Hit<u32>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = index.search(query.clone()).limit(limit).after(after).hits(reader).unwrap();
        assert!(page.items.len() <= limit);
        all.extend(page.items);
        let Some(next) = page.next else { return all };
        after = Some(Continuation::from_bytes(next.as_bytes()));
    }
}

fn prepared(seed: u64, docs: u32, store: &impl Store) -> (Index, Posts, Model) {
    laws::clear(store);
    let mut random = fastrand::Rng::with_seed(seed);
    let index = index(seed.is_multiple_of(2));
    let table = posts(&index);
    let model = history(&mut random, store, &table, docs);
    (index, table, model)
}

pub fn queries_match_the_documents_of_their_definition(store: &impl Store) {
    for (seed, docs) in [(1, 60), (2, 250), (3, 400)] {
        let (index, table, model) = prepared(seed, docs, store);
        let snapshot = store.snapshot().unwrap();
        let mut random = fastrand::Rng::with_seed(seed + 100);
        for n in 0..60 {
            let (query, depth) = (query(&mut random, n % 3), n);
            let bm25 = if depth % 4 == 0 { Bm25 { k1: 0.9, b: 0.4 } } else { Bm25::default() };
            let wanted = Naive::new(&model, bm25).all(&query);
            let search = index.search(query.clone()).bm25(bm25).limit(1_000);
            let all = search.hits(&snapshot).unwrap();
            assert!(all.next.is_none());
            assert_hits(&all.items, &wanted, &query);
            assert_eq!(search.count(&snapshot).unwrap(), wanted.len() as u64, "{query}");
            let some = search.clone().limit(7).hits(&snapshot).unwrap();
            assert_eq!(some.items[..], all.items[..all.items.len().min(7)], "{query}");
            let records = search.clone().limit(7).records(&snapshot, &table).unwrap();
            for (record, hit) in records.items.iter().zip(&some.items) {
                assert_eq!((record.key, record.score), (hit.key, hit.score));
                assert_eq!(record.value, model[&hit.key]);
            }
            if bm25 == Bm25::default() && n % 5 == 1 {
                assert_eq!(pages(&index, &snapshot, &query, 7), all.items, "{query}");
            }
            let ids = search.ids(&snapshot).unwrap();
            assert!(ids.is_sorted() && ids.len() == wanted.len());
            for hit in some.items.iter().take(2) {
                let explained = search.explain_score(&snapshot, &hit.key).unwrap().unwrap();
                assert_eq!(explained.score, Some(hit.score), "{query}\n{explained}");
            }
            assert_eq!(search.explain(&snapshot).unwrap().hits, wanted.len() as u64);
        }
    }
}

pub fn fields_are_ranked_as_if_they_were_one(store: &impl Store) {
    let (index, _, model) = prepared(3, 300, store);
    let snapshot = store.snapshot().unwrap();
    let hits = |query: Query| index.search(query).limit(1_000).hits(&snapshot).unwrap().items;
    // One field is ranked like a term, and two fields with the same text like one of them.
    let naive = Naive::new(&model, Bm25::default());
    let words = |field: &str| Query::any_of([Query::term(field, "w0"), Query::term(field, "w2")]);
    let one = hits(Query::combined([("body", 1.0)], "w0 w2"));
    assert_hits(&one, &naive.all(&words("body")), &words("body"));
    let both = hits(Query::combined([("title", 0.25), ("tags", 0.75)], "w0 w2"));
    assert_hits(&both, &naive.all(&words("title")), &words("title"));
    // The word is in no title, but documents with longer titles still rank lower.
    let with_title = Query::combined([("title", 4.0), ("body", 1.0)], "w40");
    assert_hits(&hits(with_title.clone()), &naive.all(&with_title), &with_title);
    let key = hits(with_title.clone()).first().unwrap().key;
    let explained = index.search(with_title).explain_score(&snapshot, &key).unwrap().unwrap();
    let lengths = explained.details.iter().map(|part| part.description.clone());
    let [title, body]: [String; 2] = lengths.collect::<Vec<_>>().try_into().unwrap();
    let of = |field: &str| tokens(&model[&key], field).len();
    assert!(title.ends_with(&format!("length {}", of("title"))), "{explained}");
    assert!(body.ends_with(&format!("length {}", of("body"))), "{explained}");
}

pub fn documents_with_a_field_are_found_and_counted(store: &impl Store) {
    let (index, _, model) = prepared(5, 300, store);
    let snapshot = store.snapshot().unwrap();
    for field in FIELDS {
        let search = index.search(Query::exists(field)).max_terms(1).limit(1_000);
        let has = model.iter().filter(|(_, post)| !tokens(post, field).is_empty());
        let wanted: Vec<u32> = has.map(|(id, _)| *id).collect();
        let hits = search.hits(&snapshot).unwrap().items;
        let expected: Vec<_> = wanted.iter().map(|key| Hit { key: *key, score: 1.0 }).collect();
        assert_eq!(hits, expected, "{field}");
        assert_eq!(search.count(&snapshot).unwrap(), wanted.len() as u64);
        let without = index.search(Query::none_of([Query::exists(field)]));
        assert_eq!(without.count(&snapshot).unwrap(), (model.len() - wanted.len()) as u64);
        let explained = search.explain_score(&snapshot, &wanted[0]).unwrap().unwrap();
        assert!(explained.to_string().contains(&format!("any term of {field:?}")), "{explained}");
    }
}

pub fn filters_leave_scores_as_they_are(store: &impl Store) {
    let (index, _, model) = prepared(4, 300, store);
    let snapshot = store.snapshot().unwrap();
    let records = index.records();
    let since = records.integers_of("year").unwrap().ge(2_005);
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..30 {
        let query = query(&mut random, 1);
        let all = Naive::new(&model, Bm25::default()).all(&query);
        let wanted = |keep: &dyn Fn(&Post) -> bool| {
            let kept = all.iter().filter(|(id, _)| keep(&model[id]));
            kept.map(|(id, score)| (*id, *score)).collect::<BTreeMap<_, _>>()
        };
        let search = index.search(query.clone()).limit(1_000).filter(&since);
        let hits = search.hits(&snapshot).unwrap().items;
        assert_hits(&hits, &wanted(&|post| post.year >= 2_005), &query);
        // Both filters must match; the matches of another search also work as a filter.
        let other = Query::term("body", "w1");
        let matches = index.search(other.clone()).matches(&snapshot).unwrap();
        let hits = search.filter(matches).hits(&snapshot).unwrap().items;
        let naive = Naive::new(&model, Bm25::default());
        let both = wanted(&|post| post.year >= 2_005 && naive.score(post, &other).is_some());
        assert_hits(&hits, &both, &query);
    }
    let none = index.search(Query::All).filter(BitmapExpr::none());
    assert_eq!(none.count(&snapshot).unwrap(), 0);
}

pub fn wrong_searches_are_errors_with_a_remedy(store: &impl Store) {
    let (index, _, _) = prepared(7, 100, store);
    let snapshot = store.snapshot().unwrap();
    let error = index.search(Query::term("boddy", "w1")).hits(&snapshot).unwrap_err();
    let Some(TextError::UnknownField { field, known, .. }) = error.downcast_ref() else {
        panic!("{error}");
    };
    assert_eq!((field.as_str(), known.as_str()), ("boddy", r#""title", "body", "tags""#));
    let error = index.search(Query::prefix("body", "w")).max_terms(3).count(&snapshot).unwrap_err();
    let limit = TextError::TooManyTerms { query: "body:w*".to_owned(), limit: 3 };
    assert_eq!(error.downcast_ref(), Some(&limit), "{error}");
    let combined = Query::combined([("body", 1.0), ("titel", 2.0)], "w1");
    let error = index.search(combined).hits(&snapshot).unwrap_err();
    assert!(error.to_string().contains("titel"), "{error}");
    let combined = Query::combined([("body", 1.0), ("title", 0.0)], "w1");
    let error = index.search(combined).hits(&snapshot).unwrap_err();
    let weight = QueryError::FieldWeight { field: "title".to_owned(), weight: 0.0 };
    assert_eq!(error.downcast_ref(), Some(&weight), "{error}");
    let error = index.search(Query::phrase("tags", "w1 w2")).hits(&snapshot).unwrap_err();
    assert!(error.to_string().contains("frequencies only"), "{error}");
    let error = index.search(Query::regex("body", "(")).hits(&snapshot).unwrap_err();
    assert!(error.to_string().contains("cannot be used"), "{error}");
    let page = index.search(Query::term("body", "w1")).limit(1).hits(&snapshot).unwrap();
    let other = index.search(Query::term("body", "w2")).after(page.next.clone());
    assert!(matches!(other.hits(&snapshot), Err(Error::InvalidArgument { .. })));
    for bytes in [&b""[..], b"\0", b"\x01abc"] {
        let after = Continuation::from_bytes(bytes);
        let search = index.search(Query::term("body", "w1")).after(after);
        assert!(matches!(search.hits(&snapshot), Err(Error::InvalidArgument { .. })));
    }
    let newer = Continuation::from_bytes(b"\x09");
    let error = index.search(Query::All).after(newer).hits(&snapshot).unwrap_err();
    assert!(matches!(error, Error::NewerFormat { found: 9, .. }), "{error}");
}

pub fn pages_are_stable_while_others_write(store: &impl Store) {
    let (index, table, model) = prepared(7, 300, store);
    let search =
        index.search(Query::any_of([Query::term("body", "w0"), Query::term("body", "w1")]));
    let all = search.clone().limit(1_000).hits(&store.snapshot().unwrap()).unwrap().items;
    let (mut paged, mut after, mut next_id) = (Vec::new(), None, 10_000);
    loop {
        let page = search.clone().limit(5).after(after).hits(&store.snapshot().unwrap()).unwrap();
        paged.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
        // New documents change the statistics, so their scores are unpredictable.
        let new = Post { title: String::new(), body: vec!["w0 w1 w0".to_owned()], year: 1 };
        store.transact(|txn| table.put(txn, &next_id, &new)).unwrap();
        next_id += 1;
    }
    let old: Vec<Hit<u32>> =
        paged.into_iter().filter(|hit| !(10_000..next_id).contains(&hit.key)).collect();
    assert_eq!(old, all);
    assert!(next_id > 10_000 && !model.is_empty());
}

pub fn damage_is_an_error_with_the_key(store: &impl Store) {
    let (index, _, _) = prepared(11, 200, store);
    let search = |query: &Query| index.search(query.clone()).hits(&store.snapshot().unwrap());
    let queries = [
        Query::term("body", "w0"),
        Query::phrase("body", "w0 w1"),
        Query::prefix("body", "w1"),
        Query::phrase("title", "w0 w1").slop(2),
    ];
    let (mut refused, own) = (0, keyloom::pack("text"));
    let whole = laws::dump_all(store).into_iter().filter(|(key, _)| key.starts_with(&own));
    for (key, value) in whole {
        let cut = &value[..value.len() / 2];
        let flipped: Vec<u8> = value.iter().map(|byte| byte ^ 0x55).collect();
        for damaged in [cut, &flipped, b""] {
            store.transact(|txn| txn.put(&key, damaged)).unwrap();
            for query in &queries {
                if let Err(error) = search(query) {
                    refused += 1;
                    let names =
                        error.to_string().contains(&keyloom::key::display(&key).to_string());
                    assert!(names, "{query}: {error}");
                }
            }
        }
        store.transact(|txn| txn.put(&key, &value)).unwrap();
    }
    assert!(refused > 20, "{refused}");
    assert!(queries.iter().all(|query| search(query).is_ok()));
}

#[test]
fn a_document_without_a_key_is_an_error() {
    let (store, index) = (Memory::new(), index(true));
    let post = Post { title: String::new(), body: vec!["w1 w2".to_owned()], year: 1 };
    store.transact(|txn| posts(&index).put_many(txn, [(1, post.clone())])).unwrap();
    let hits = || index.search(Query::term("body", "w1")).hits(&store.snapshot().unwrap());
    assert_eq!(hits().unwrap().items.len(), 1);
    let mut lost = 0;
    for (key, value) in laws::dump_all(&store) {
        store.transact(|txn| txn.delete(&key)).unwrap();
        let error = hits().err();
        let error = error.as_ref().and_then(Error::downcast_ref);
        lost += u32::from(matches!(error, Some(TextError::NoRecord { .. })));
        store.transact(|txn| txn.put(&key, &value)).unwrap();
    }
    assert_eq!(lost, 1, "the key of the document");
}

#[test]
fn spans_that_take_too_many_steps_are_an_error() {
    let (store, index) = (Memory::new(), index(false));
    let post = |words| Post { title: String::new(), body: vec!["w1 ".repeat(words)], year: 1 };
    let inner = || Near::unordered(["w1"; 6]).slop(5_000);
    let query = Query::near("body", Near::unordered([inner(), inner()]).slop(5_000));
    let count = |words| {
        store.transact(|txn| posts(&index).put(txn, &1, &post(words))).unwrap();
        index.search(query.clone()).count(&store.snapshot().unwrap())
    };
    assert_eq!(count(12).unwrap(), 1);
    let error = count(300).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(TextError::TooManySpans { .. })), "{error}");
}

/// Another index has other ids, and another analyzer has other terms.
#[test]
fn a_continuation_of_another_index_is_refused() {
    let store = Memory::new();
    let new = |name: &str, analyzer: Analyzer| {
        let index = TextIndex::<u32, String>::with_keys_as_ids(&Subspace::new(name));
        index.field("body", analyzer, |_, body, add| add(body))
    };
    let [a, b] = ["a", "b"].map(|name| new(name, Analyzer::simple()));
    let table = Table::new(&Subspace::new("texts")).with(&a).with(&b);
    let two = [(1, "w1".to_owned()), (2, "w1".to_owned())];
    store.transact(|txn| table.put_many(txn, two.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let search = |index: &TextIndex<u32, String>, after: Option<Continuation>| {
        let search = index.search(Query::term("body", "w1")).limit(1).after(after);
        search.hits(&snapshot).map(|page| (page.items[0].key, page.next))
    };
    let (first, next) = search(&a, None).unwrap();
    assert_eq!((first, search(&a, next.clone()).unwrap().0), (1, 2));
    for other in [b, new("a", Analyzer::english())] {
        let error = search(&other, next.clone()).unwrap_err();
        assert!(error.to_string().contains("belongs to another query"), "{error}");
    }
}

/// Between its transactions, a repair of an index in use may leave counters below 0.
#[test]
fn counters_below_0_count_as_0() {
    let (store, index) = (Memory::new(), index(false));
    let post = Post { title: String::new(), body: vec!["w1 w2".to_owned()], year: 1 };
    store.transact(|txn| posts(&index).put_many(txn, [(1, post.clone())])).unwrap();
    let space = index.space();
    let counters = [space.pack(&(1, 1, "w1")), space.pack(&(4, 1, 0)), space.pack(&(4, 1, 1))];
    store.transact(|txn| counters.iter().try_for_each(|key| txn.add(key, -9))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let search = index.search(Query::term("body", "w1"));
    assert_eq!(search.hits(&snapshot).unwrap().items.len(), 1);
    assert_eq!(search.count(&snapshot).unwrap(), 0);
    let completed = index.complete(&snapshot, "body", "w", 5).unwrap();
    assert_eq!(completed.iter().map(|one| &*one.term).collect::<Vec<_>>(), ["w2"]);
    let corrected = index.correct(&snapshot, "body", "w1", &Similarity::default()).unwrap();
    assert_eq!(corrected.text, "w2");
}

#[test]
fn a_long_pattern_without_wildcards_is_one_term() {
    let (store, index) = (Memory::new(), index(false));
    let long = "w".repeat(100);
    let bodies = [&long, &format!("{long}w"), "w"].map(|body| vec![body.to_string()]);
    let post = |body| Post { title: String::new(), body, year: 1 };
    let all: Model = (1..).zip(bodies.map(post)).collect();
    store.transact(|txn| posts(&index).put_many(txn, all.clone())).unwrap();
    let search = index.search(Query::wildcard("body", &*long));
    assert_eq!(search.ids(&store.snapshot().unwrap()).unwrap(), [1]);
}

/// A search whose n-th operation fails returns the error, for each n.
#[test]
fn a_fault_in_a_search_is_an_error() {
    let store = Faulty::new(Memory::new());
    let (index, table, _) = prepared(13, 200, &store);
    let queries = [
        Query::any_of([Query::term("body", "w0"), Query::term("title", "w1")]),
        Query::phrase("body", "w0 w1"),
        Query::fuzzy("body", "w1", 1),
    ];
    for query in queries {
        let search = index.search(query.clone()).filter(index.records().all());
        let work = || search.records(&store.snapshot()?, &table);
        store.clear_fault();
        let whole = work().unwrap();
        let operations = store.operations();
        assert!(operations > 5);
        for n in 0..operations {
            store.fail_at(n, Fault::Error);
            let error = work().unwrap_err();
            assert!(error.to_string().contains("made to fail"), "{query} at {n}: {error}");
        }
        store.clear_fault();
        assert_eq!(work().unwrap(), whole);
    }
}

#[test]
fn a_fault_in_a_put_leaves_nothing_half_done() {
    let index = index(true);
    let table = posts(&index);
    let mut random = fastrand::Rng::with_seed(17);
    let before: Model = (0..40).map(|id| (id, post(&mut random))).collect();
    let changed: Model = (30..45).map(|id| (id, post(&mut random))).collect();
    laws::faults_leave_nothing_half_done(
        &Memory::new(),
        |store| store.transact(|txn| table.put_many(txn, before.clone())).unwrap(),
        |txn| {
            table.put_many(txn, changed.clone())?;
            table.delete(txn, &3).map(drop)
        },
        |store| {
            use keyloom_tables::Maintained;
            let faults = index.check(&store.snapshot().unwrap(), &table).unwrap();
            faults.iter().map(ToString::to_string).collect()
        },
    );
}

/// Terms that continue with a NUL: their lists come after those of the shorter term, with a common
/// prefix.
pub fn terms_that_continue_after_a_nul_are_other_terms(store: &impl Store) {
    const TERMS: [&str; 6] = ["", "a", "a\0", "a\0x", "a\u{1}", "\0"];
    let texts = TextIndex::with_keys_as_ids(&Subspace::new("text")).field(
        "word",
        Analyzer::keyword(),
        |_: &u32, word: &String, add| add(word),
    );
    let words = Table::<u32, String>::new(&Subspace::new("words")).with(&texts);
    laws::clear(store);
    // Enough documents that a list has several blocks and summaries.
    let of = |id: u32| TERMS[id as usize % TERMS.len()].to_owned();
    for part in 0..12 {
        let some: Vec<_> = (part * 700..(part + 1) * 700).map(|id| (id, of(id))).collect();
        store.transact(|txn| words.put_many(txn, &some)).unwrap();
    }
    let gone: Vec<u32> = (0..8_400).step_by(17).collect();
    store.transact(|txn| words.delete_many(txn, &gone).map(drop)).unwrap();
    let wanted = |is_wanted: &dyn Fn(&str) -> bool| -> Vec<u64> {
        let all = (0..8_400_u32).filter(|id| !id.is_multiple_of(17) && is_wanted(&of(*id)));
        all.map(u64::from).collect()
    };
    let snapshot = store.snapshot().unwrap();
    assert_eq!(texts.check(&snapshot, &words).unwrap(), []);
    let found = |query: Query| texts.search(query).ids(&snapshot).unwrap();
    for term in TERMS.iter().filter(|term| !term.is_empty()) {
        assert_eq!(found(Query::term("word", *term)), wanted(&|word| word == *term), "{term:?}");
        let begins = wanted(&|word| word.starts_with(term));
        assert_eq!(found(Query::prefix("word", *term)), begins, "{term:?}");
        let best = texts.search(Query::term("word", *term)).limit(3).hits(&snapshot).unwrap();
        assert_eq!(best.items.len(), 3);
    }
    drop(snapshot);
    assert!(texts.repair(store, &words).unwrap().finished);
    assert_eq!(texts.check(&store.snapshot().unwrap(), &words).unwrap(), []);
}
