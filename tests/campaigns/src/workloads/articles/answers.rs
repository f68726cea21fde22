//! Searches, and the results of a naive evaluation of the articles.

use std::collections::BTreeMap;

use keyloom::{DynWriter, Result};
use keyloom_patterns::text::{BooleanQuery, Near, Query};

use super::{Article, ByText, Model, long_word};

/// The results of the searches.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// The keys that match each of the searches.
    keys: Vec<Vec<u16>>,
    /// The keys of the best matches with their scores in millionths; ties are in key order. The
    /// index orders by unrounded scores, whose last bits depend on the order of additions.
    best: Vec<(u16, i64)>,
}

/// The number of the best matches.
const BEST: usize = 10;
const BEST_TERMS: [&str; 2] = ["the", "rabbit"];

fn queries() -> Vec<Query> {
    let body = |word: &str| Query::term("body", word);
    let near = |near: Near| Query::near("body", near);
    vec![
        body("rabbit"),
        Query::all_of([body("The"), Query::term("title", "CAFÉ")]),
        BooleanQuery::new().must(body("the")).must_not(body("hole")).into(),
        Query::phrase("body", "the rabbit"),
        near(Near::unordered(["hole", "the"]).slop(1)),
        near(Near::ordered(["hole", "the"]).slop(1)),
        Query::prefix("title", "ca"),
        Query::fuzzy("title", "rabit", 1),
        Query::term("title", long_word()),
    ]
}

/// The results from an index.
pub fn found(index: &ByText, txn: &DynWriter<'_>) -> Result<Answers> {
    let keys = queries().into_iter().map(|query| {
        let ids = index.search(query).ids(txn)?;
        let mut keys: Vec<u16> = index.records().keys(txn, ids)?.into_iter().flatten().collect();
        keys.sort_unstable();
        Ok(keys)
    });
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let any = Query::any_of(BEST_TERMS.map(|term| Query::term("body", term)));
    let best = index.search(any).limit(BEST).hits(txn)?.items.into_iter();
    let best = best.map(|hit| (hit.key, millionths(hit.score)));
    Ok(Answers { keys, best: by_score(best.collect()) })
}

fn by_score(mut best: Vec<(u16, i64)>) -> Vec<(u16, i64)> {
    best.sort_by_key(|(key, score)| (-score, *key));
    best
}

fn millionths(score: f64) -> i64 {
    (score * 1e6).round() as i64
}

/// The results from loops over all articles. `id` returns the id of a key.
pub fn wanted(model: &Model, id: impl Fn(u16) -> u64) -> Answers {
    let has = |article: &Article, field: &str, term: &str| article.terms(field).contains(&term);
    let body = |article: &Article, term: &str| has(article, "body", term);
    // Whether two terms in one text of the body are at this distance, with the first term before
    // the other.
    let apart = |article: &Article, one: &str, other: &str, is_near: &dyn Fn(i64) -> bool| {
        article.body.iter().any(|text| {
            let terms: Vec<&str> = super::terms_of(text).collect();
            let places = |term: &str| {
                let all = (0..).zip(&terms).filter(|(_, other)| **other == term);
                all.map(|(place, _)| place).collect::<Vec<i64>>()
            };
            let others = places(other);
            places(one).iter().any(|place| others.iter().any(|other| is_near(other - place)))
        })
    };
    let long = long_word();
    let tests: [&dyn Fn(&Article) -> bool; 9] = [
        &|article| body(article, "rabbit"),
        &|article| body(article, "the") && has(article, "title", "cafe"),
        &|article| body(article, "the") && !body(article, "hole"),
        &|article| apart(article, "the", "rabbit", &|distance| distance == 1),
        &|article| apart(article, "hole", "the", &|distance| distance != 0 && distance.abs() <= 2),
        &|article| apart(article, "hole", "the", &|distance| (1..=2).contains(&distance)),
        &|article| has(article, "title", "cafe"),
        &|article| has(article, "title", "rabbit"),
        &|article| has(article, "title", &long),
    ];
    let matching = |test: &&dyn Fn(&Article) -> bool| {
        model.records.iter().filter(|(_, one)| test(one)).map(|(key, _)| *key).collect()
    };
    Answers { keys: tests.iter().map(matching).collect(), best: best(model, id) }
}

/// The formula of BM25, for each article.
fn best(model: &Model, id: impl Fn(u16) -> u64) -> Vec<(u16, i64)> {
    let all: BTreeMap<u16, Vec<&str>> =
        model.records.iter().map(|(key, article)| (*key, article.terms("body"))).collect();
    let documents = all.values().filter(|terms| !terms.is_empty()).count() as f64;
    let average = all.values().map(Vec::len).sum::<usize>() as f64 / documents.max(1.0);
    let score = |terms: &[&str]| {
        let of_term = |term: &str| {
            let with_term = all.values().filter(|terms| terms.contains(&term)).count() as f64;
            let idf = (1.0 + (documents - with_term + 0.5) / (with_term + 0.5)).ln();
            let frequency = terms.iter().filter(|other| **other == term).count() as f64;
            let length = 0.25 + 0.75 * terms.len() as f64 / average;
            idf * frequency * 2.2 / (frequency + 1.2 * length)
        };
        BEST_TERMS.map(of_term).iter().sum::<f64>()
    };
    let scores = all.iter().map(|(key, terms)| (*key, millionths(score(terms))));
    let mut best: Vec<(u16, i64)> = scores.filter(|(_, score)| *score > 0).collect();
    best.sort_by_key(|(key, score)| (-score, id(*key)));
    best.truncate(BEST);
    by_score(best)
}
