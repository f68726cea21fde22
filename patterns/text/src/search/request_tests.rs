//! Compares results of query trees with their definition on plain texts.

use std::collections::BTreeMap;

use keyloom::{KeyBuf, Memory, Result, Store, Subspace, Writer};
use keyloom_bitmaps::{Bitmap, BitmapExpr};
use proptest::prelude::*;

use super::request::{Filter, Request};
use super::tests::{Texts, keys, naive, postings, stored, texts};
use super::{tests, top_k::ScoredDoc};
use crate::index::{Catalog, FieldInfo, ListKeys, PlacedTerm};
use crate::postings::Detail;
use crate::terms::TermMatcher;
use crate::{Analyzer, BooleanQuery, Near, Query, QueryError, TextError};

/// An index with the fields `body` and `bare`, whose terms are digits. `x` is a stop word.
struct Digits;

fn digit(term: &str) -> u8 {
    term.bytes().next().map_or(tests::LENGTHS, |byte| byte.wrapping_sub(b'0'))
}

impl Catalog for Digits {
    fn field(&self, name: &str) -> Result<FieldInfo> {
        match name {
            "body" => Ok(FieldInfo { number: 0, detail: Detail::Positions }),
            "bare" => Ok(FieldInfo { number: 0, detail: Detail::Frequencies }),
            _ => Err(keyloom::Error::other(format!("no field {name}"))),
        }
    }
    fn field_name(&self, _: u32) -> &str {
        "body"
    }
    fn analyze(&self, _: u32, text: &str) -> Vec<PlacedTerm> {
        let words = (0..).zip(text.split_whitespace()).filter(|(_, word)| *word != "x");
        words.map(|(position, word)| (position, word.to_owned())).collect()
    }
    fn matcher(&self, _: u32, pattern: &Query) -> Result<Option<TermMatcher>> {
        Ok(TermMatcher::of(pattern, &Analyzer::simple())?)
    }
    fn list(&self, _: FieldInfo, term: &str) -> ListKeys {
        keys(digit(term))
    }
    fn term_counter(&self, field: u32, term: &str) -> KeyBuf {
        dictionary().pack(&(field, term))
    }
    fn field_counters(&self, field: u32) -> [KeyBuf; 2] {
        [Subspace::new("totals").pack(&(field, 0)), Subspace::new("totals").pack(&(field, 1))]
    }
    fn dictionary(&self) -> &Subspace {
        static DICTIONARY: std::sync::OnceLock<Subspace> = std::sync::OnceLock::new();
        DICTIONARY.get_or_init(dictionary)
    }
    fn space(&self) -> &Subspace {
        self.dictionary()
    }
    fn description(&self) -> String {
        String::new()
    }
    fn all(&self) -> Result<BitmapExpr> {
        Ok(BitmapExpr::from(&Bitmap::new(&Subspace::new("all"))))
    }
}

fn dictionary() -> Subspace {
    Subspace::new("dictionary")
}

fn filled(texts: &Texts) -> Memory {
    let store = stored(texts);
    let tokens: usize = texts.values().map(Vec::len).sum();
    store
        .transact(|txn| {
            for term in 0..tests::TERMS {
                let with_term = postings(texts, term).len() as i64;
                txn.add(&dictionary().pack(&(0, term.to_string())), with_term)?;
            }
            let [documents, lengths] = Digits.field_counters(0);
            txn.add(&documents, texts.len() as i64)?;
            txn.add(&lengths, tokens as i64)?;
            let all = Bitmap::new(&Subspace::new("all"));
            texts.keys().try_for_each(|id| all.insert(txn, u64::from(*id)).map(drop))
        })
        .unwrap();
    store
}

/// The same query in the form that the tests of operators use.
fn operators(query: &Query) -> Option<tests::Query> {
    use super::proximity::Arrangement;
    use tests::Query as Q;
    let all = |queries: &[Query]| queries.iter().filter_map(operators).collect::<Vec<_>>();
    Some(match query {
        Query::All => Q::Below(u32::MAX, 1.0),
        Query::Term { text, .. } if text == "x" => return None,
        Query::Term { text, .. } => Q::Term(digit(text)),
        Query::Phrase { text, slop, .. } => {
            let arrangement = if *slop == 0 { Arrangement::Ordered } else { Arrangement::Shifted };
            near(text.split(' '), *slop, arrangement)
        }
        Query::Near { near: spans, .. } => {
            let terms = spans.spans.iter().map(|spans| match spans {
                crate::Spans::Term(term) => &**term,
                _ => "",
            });
            let arrangement =
                if spans.is_ordered { Arrangement::Ordered } else { Arrangement::Unordered };
            near(terms, spans.slop, arrangement)
        }
        Query::Prefix { prefix, .. } => {
            let any = Q::AtLeast(1, (0..tests::TERMS).map(Q::Term).collect());
            let any = if prefix.is_empty() { any } else { Q::Term(digit(prefix)) };
            Q::Constant(Box::new(any), 1.0)
        }
        Query::Boolean(boolean) => {
            let filter = all(&boolean.filter).into_iter();
            let mut required = all(&boolean.must);
            required.extend(filter.map(|query| Q::Constant(Box::new(query), 0.0)));
            let should = all(&boolean.should);
            let excluded = all(&boolean.must_not);
            let had_positive = boolean.clauses().count() > boolean.must_not.len();
            if required.is_empty() && should.is_empty() && had_positive {
                // The remaining clauses cannot match, or no clause remains.
                return (!excluded.is_empty()).then_some(Q::Below(0, 0.0));
            }
            if excluded.is_empty() && !boolean.must_not.is_empty() && !had_positive {
                return None;
            }
            let default = u32::from(required.is_empty() && !should.is_empty());
            let least = boolean.minimum_should_match.unwrap_or(default) as usize;
            let has_all = should.len() == boolean.should.len();
            let least = if has_all { least } else { least.min(should.len()) };
            combined(boolean, required, should, least, excluded)
        }
        Query::ConstantScore { query, score } => {
            Q::Constant(Box::new(operators(query)?), f64::from(*score))
        }
        Query::Boost { query, factor } => Q::Boost(Box::new(operators(query)?), f64::from(*factor)),
        _ => return None,
    })
}

fn combined(
    boolean: &BooleanQuery,
    mut required: Vec<tests::Query>,
    should: Vec<tests::Query>,
    least: usize,
    excluded: Vec<tests::Query>,
) -> tests::Query {
    use tests::Query as Q;
    let has_positive = boolean.clauses().count() > boolean.must_not.len();
    let mut optional = Vec::new();
    if !has_positive && excluded.is_empty() {
        return Q::Below(0, 0.0);
    }
    if least > 0 {
        required.push(Q::AtLeast(least, should));
    } else {
        optional = should;
    }
    if required.is_empty() {
        required.push(Q::Below(u32::MAX, 0.0));
    }
    Q::Boolean { required, optional, excluded }
}

fn near<'t>(
    terms: impl Iterator<Item = &'t str>,
    slop: u32,
    arrangement: super::proximity::Arrangement,
) -> tests::Query {
    let terms: Vec<Vec<u8>> = terms.map(|term| vec![digit(term)]).collect();
    match &terms[..] {
        [only] => tests::Query::Term(only[0]),
        _ => tests::Query::Near { terms, slop, arrangement },
    }
}

fn queries() -> impl Strategy<Value = Query> {
    let term = || (0..tests::TERMS).prop_map(|term| term.to_string());
    let terms = || prop::collection::vec(term(), 2..4);
    let phrase = (terms(), 0..3_u32)
        .prop_map(|(terms, slop)| Query::phrase("body", terms.join(" ")).slop(slop));
    let near = (terms(), 0..3_u32, any::<bool>()).prop_map(|(terms, slop, is_ordered)| {
        let terms = terms.iter().map(String::as_str);
        let near = if is_ordered { Near::ordered(terms) } else { Near::unordered(terms) };
        Query::near("body", near.slop(slop))
    });
    let leaf = prop_oneof![
        6 => term().prop_map(|term| Query::term("body", term)),
        2 => phrase,
        2 => near,
        1 => term().prop_map(|term| Query::prefix("body", term)),
        1 => Just(Query::prefix("body", "")),
        1 => Just(Query::term("body", "x")),
        1 => Just(Query::All),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..3);
        let least = prop::option::of(0..3_u32);
        let boolean = (some(), some(), some(), some(), least);
        prop_oneof![
            3 => boolean.prop_map(|(must, filter, should, must_not, minimum_should_match)| {
                BooleanQuery { must, filter, should, must_not, minimum_should_match }.into()
            }),
            1 => inner.clone().prop_map(|query| query.constant_score(0.5)),
            1 => inner.clone().prop_map(|query| query.boost(2.5)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 32))]

    #[test]
    fn queries_have_the_matches_of_their_definition(
        texts in texts(), query in queries(), k in 1..20_usize, filter in 0..1_500_u64
    ) {
        let store = filled(&texts);
        let snapshot = store.snapshot().unwrap();
        let score = |id: u32, text: &[u8]| {
            operators(&query).and_then(|query| naive(&texts, id, text, &query))
        };
        let wanted: BTreeMap<u32, f64> =
            texts.iter().filter_map(|(id, text)| Some((*id, score(*id, text)?))).collect();
        let mut request = Request::new(query.clone());
        request.limit = wanted.len() + 1;
        let (all, next) = request.top(&Digits, &snapshot).unwrap();
        prop_assert!(next.is_none());
        prop_assert_eq!(all.len(), wanted.len());
        for ScoredDoc { doc, score } in &all {
            let wanted = wanted.get(doc).copied().unwrap_or(f64::NAN);
            prop_assert!((score - wanted).abs() < 1e-9, "{doc}: {score} instead of {wanted}");
        }
        prop_assert_eq!(request.count(&Digits, &snapshot).unwrap(), wanted.len() as u64);
        let ids = request.ids(&Digits, &snapshot).unwrap();
        prop_assert_eq!(ids, Vec::from_iter(wanted.keys().copied()));
        for ScoredDoc { doc, score } in all.iter().take(3) {
            let explained = request.explain(&Digits, &snapshot, *doc).unwrap();
            prop_assert_eq!(explained.score, Some(*score));
        }
        // Consecutive pages leave no gaps.
        request.limit = k;
        let mut paged = Vec::new();
        loop {
            let (hits, next) = request.top(&Digits, &snapshot).unwrap();
            paged.extend(hits);
            request.after = next;
            if request.after.is_none() || paged.len() > all.len() {
                break;
            }
        }
        prop_assert_eq!(&paged, &all);
        // A filter does not change scores.
        let mut filtered = Request::new(query);
        filtered.limit = all.len() + 1;
        filtered.filters = vec![Filter { ids: BitmapExpr::range(..filter), name: None }];
        let kept: Vec<ScoredDoc> = all.into_iter().filter(|hit| u64::from(hit.doc) < filter).collect();
        prop_assert_eq!(filtered.top(&Digits, &snapshot).unwrap().0, kept);
    }
}

#[test]
fn left_out_stop_words_do_not_match_all_documents() {
    let store = filled(&[(1, vec![0]), (2, vec![1]), (3, vec![0, 1])].into());
    let [x, zero, one] = ["x", "0", "1"].map(|text| Query::term("body", text));
    let both = || Query::any_of([x.clone(), x.clone()]);
    let new = BooleanQuery::new;
    let cases: [(Query, &[u32]); 11] = [
        (x.clone(), &[]),
        (both(), &[]),
        (Query::all_of([x.clone(), x.clone()]), &[]),
        (new().filter(x.clone()).into(), &[]),
        (new().must(x.clone()).must_not(zero.clone()).into(), &[]),
        (new().must(x.clone()).minimum_should_match(0).into(), &[]),
        (Query::none_of([zero.clone()]), &[2]),
        (new().must(x.clone()).should(zero.clone()).into(), &[1, 3]),
        (new().must(one.clone()).filter(x.clone()).into(), &[2, 3]),
        // A stop word in two fields is ignored like a stop word in one field.
        (Query::all_of([both(), zero.clone()]), &[1, 3]),
        (new().must(one).must_not(both()).into(), &[2, 3]),
    ];
    for (query, wanted) in cases {
        let found = Request::new(query.clone()).ids(&Digits, &store.snapshot().unwrap()).unwrap();
        assert_eq!(found, wanted, "{query}");
    }
}

#[test]
fn a_pattern_with_too_many_terms_is_an_error() {
    let store = filled(&[(1, vec![0, 1, 2])].into());
    let mut request = Request::new(Query::wildcard("body", "?"));
    request.expansion.max_terms = 2;
    let error = request.count(&Digits, &store.snapshot().unwrap()).unwrap_err();
    assert!(error.to_string().contains("more than 2 terms"), "{error}");
}

#[test]
fn all_clauses_and_patterns_count_for_the_limit_of_terms() {
    let store = filled(&[(1, vec![0, 1, 2])].into());
    let snapshot = store.snapshot().unwrap();
    let count = |query: &Query, max_terms: usize| {
        let mut request = Request::new(query.clone());
        request.expansion.max_terms = max_terms;
        request.count(&Digits, &snapshot).map_err(|error| error.to_string())
    };
    let term = |text: &str| Query::term("body", text);
    let cases = [
        // Three terms of the dictionary match the range; the query has two more terms.
        (Query::all_of([Query::range("body", ..), term("0"), term("1")]), 5),
        (Query::all_of([Query::prefix("body", "0"), Query::prefix("body", "1")]), 2),
        (Query::any_of([Query::phrase("body", "0 1"), term("x"), term("2").boost(2.0)]), 3),
        (BooleanQuery::new().filter(Query::All).must_not(term("7")).must(Query::All).into(), 3),
    ];
    for (query, terms) in cases {
        assert!(count(&query, terms).is_ok(), "{query}");
        let error = count(&query, terms - 1).unwrap_err();
        let shown = format!("the query {query} stands for more than {} terms", terms - 1);
        assert!(error.contains(&shown), "{error}");
    }
    // A text with too many clauses is rejected before a cursor is opened for each clause.
    let text = "*:* ".repeat(100_000);
    let query = crate::QueryParser::new(["body"]).parse(&text).unwrap();
    let error = count(&query, 1_024).unwrap_err();
    assert!(error.contains("more than 1024 terms") && error.len() < 300, "{error}");
}

#[test]
fn a_phrase_in_a_field_without_positions_is_an_error() {
    let store = filled(&[(1, vec![0, 1, 2])].into());
    let request = Request::new(Query::phrase("bare", "0 1"));
    let error = request.count(&Digits, &store.snapshot().unwrap()).unwrap_err();
    assert!(error.to_string().contains("frequencies only"), "{error}");
}

/// A search with its own limits.
fn limited(query: &Query, max_states: usize, max_scanned_terms: usize) -> Request {
    let mut request = Request::new(query.clone());
    request.expansion.max_states = max_states;
    request.expansion.max_scanned_terms = max_scanned_terms;
    request
}

#[test]
fn the_automata_of_a_query_have_one_limit_in_every_use() {
    let store = filled(&[(1, vec![0, 1, 2])].into());
    let snapshot = store.snapshot().unwrap();
    let parts: Vec<Query> =
        (0..12).map(|n| Query::regex("body", format!("[0-2]*0[0-2]{{5}}{n}?"))).collect();
    // The cost of an automaton is its number of states plus 64.
    let states =
        |part: &Query| TermMatcher::of(part, &Analyzer::simple()).unwrap().unwrap().states() + 64;
    let all: usize = parts.iter().map(states).sum();
    let query = Query::all_of([Query::prefix("body", "0"), Query::any_of(parts.clone())]);
    let last = parts[11].to_string();
    for (limit, is_enough) in [(all, true), (all - 1, false), (states(&parts[0]), false)] {
        let request = limited(&query, limit, 100);
        let highlighter =
            crate::Highlighter::with_max_states(&query, "body", [&Analyzer::simple(); 2], limit);
        let errors = [
            request.top(&Digits, &snapshot).err().map(|error| error.to_string()),
            request.count(&Digits, &snapshot).err().map(|error| error.to_string()),
            request.ids(&Digits, &snapshot).err().map(|error| error.to_string()),
            request
                .reads(&Digits, &snapshot, |counting| {
                    request.top(&Digits, counting).map(|(hits, _)| hits.len())
                })
                .err()
                .map(|error| error.to_string()),
            request.explain(&Digits, &snapshot, 1).err().map(|error| error.to_string()),
            highlighter.err().map(|error| error.to_string()),
        ];
        for error in &errors {
            assert_eq!(error.is_none(), is_enough, "{limit} of {all}: {error:?}");
            let Some(error) = error else { continue };
            let exceeding = if limit == all - 1 { last.clone() } else { parts[1].to_string() };
            assert!(error.contains(&exceeding) && error.contains(&limit.to_string()), "{error}");
            assert!(error.contains("raise max_states"), "{error}");
        }
    }
    let error = limited(&query, all - 1, 100).count(&Digits, &snapshot).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(QueryError::TooManyStates { .. })), "{error}");
}

#[test]
fn a_short_query_of_many_expressions_is_refused() {
    let store = filled(&[(1, vec![0, 1, 2])].into());
    let snapshot = store.snapshot().unwrap();
    let refused = |parts: Vec<String>| {
        let query = crate::QueryParser::new(["body"]).parse(&parts.join(" ")).unwrap();
        let search = Request::new(query.clone()).count(&Digits, &snapshot).err();
        let search = search.map(|error| error.to_string());
        let highlighter = crate::Highlighter::new(&query, "body", &Analyzer::simple()).err();
        assert_eq!(search, highlighter.map(|error| error.to_string()));
        search.is_some_and(|error| error.contains("more than 32768 states"))
    };
    assert!(refused((0..1_000).map(|n| format!("/.*a.{{7}}{n}/")).collect()));
    assert!(refused((0..1_000).map(|n| format!("*a{n}")).collect()));
    assert!(!refused((0..100).map(|n| format!("*a{n}")).collect()));
    assert!(!refused((0..1_000).map(|n| format!("a{n}*")).collect()));
}

#[test]
fn patterns_of_a_query_read_a_limited_dictionary() {
    let store = filled(&[(1, vec![0, 1, 2])].into());
    let snapshot = store.snapshot().unwrap();
    let one = Query::wildcard("body", "*7");
    let keys = |query: &Query| {
        let request = limited(query, 10_000, 100);
        let cost = request.reads(&Digits, &snapshot, |counting| {
            request.top(&Digits, counting).map(|(hits, _)| hits.len())
        });
        cost.unwrap().keys_read as usize
    };
    // No document matches, so all keys read are those of the dictionary.
    let read = keys(&one);
    assert!(read > 0);
    let two = Query::any_of([one.clone(), Query::wildcard("body", "*8")]);
    assert!(limited(&two, 10_000, 2 * read).count(&Digits, &snapshot).is_ok());
    let error = limited(&two, 10_000, 2 * read - 1).count(&Digits, &snapshot).unwrap_err();
    let scanned = error.downcast_ref();
    assert!(matches!(scanned, Some(TextError::TooManyScannedTerms { .. })), "{error}");
    let error = error.to_string();
    assert!(error.contains("body:*8") && error.contains("raise max_scanned_terms"), "{error}");
}
