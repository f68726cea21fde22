//! The naive reference implementation: it finds the results of a query by loops over the plain
//! texts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;

use keyloom_text::{Bm25, BooleanQuery, Near, Query, Spans};

use super::corpus::{Model, Post, tokens};

/// A span, with the number of its positions that none of its parts covers.
type Match = (i64, i64, i64);

pub struct Naive<'m> {
    model: &'m Model,
    bm25: Bm25,
    /// For each field, and for each term in it: the number of documents and the sum of their
    /// lengths.
    counts: RefCell<BTreeMap<(String, Option<String>), (f64, f64)>>,
}

fn places(tokens: &[(String, u32)], term: &str) -> Vec<i64> {
    let all = tokens.iter().filter(|(other, _)| other == term);
    all.map(|(_, position)| i64::from(*position)).collect()
}

/// All choices of one element from each list.
fn choices<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    lists.iter().fold(vec![Vec::new()], |choices, list| {
        let with = |choice: &Vec<T>| {
            let choice = choice.clone();
            list.iter().map(move |one| [&choice[..], std::slice::from_ref(one)].concat())
        };
        choices.iter().flat_map(with).collect()
    })
}

fn phrase(tokens: &[(String, u32)], text: &str, slop: u32) -> Vec<Match> {
    let terms: Vec<&str> = text.split(' ').collect();
    let lists: Vec<Vec<i64>> = terms.iter().map(|term| places(tokens, term)).collect();
    let mut found = Vec::new();
    for choice in choices(&lists) {
        let mut distinct = choice.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let shifted = || choice.iter().zip(0..).map(|(at, n)| at - n);
        let (start, end) = (shifted().min().unwrap(), shifted().max().unwrap());
        if distinct.len() == choice.len() && end - start <= i64::from(slop) {
            found.push((start, end, end - start));
        }
    }
    found
}

fn near(tokens: &[(String, u32)], near: &Near) -> Vec<Match> {
    let of_part = |spans: &Spans| {
        let mut all: Vec<(i64, i64)> =
            spans_of(tokens, spans).into_iter().map(|(start, end, _)| (start, end)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let lists: Vec<Vec<(i64, i64)>> = near.spans.iter().map(of_part).collect();
    let mut found = Vec::new();
    for choice in choices(&lists) {
        let mut placed = choice.clone();
        placed.sort_unstable();
        let overlaps = placed.windows(2).any(|two| two[1].0 <= two[0].1);
        let (start, end) = (placed[0].0, placed[placed.len() - 1].1);
        let covered: i64 = placed.iter().map(|(start, end)| end - start + 1).sum();
        let gaps = end - start + 1 - covered;
        let in_order = !near.is_ordered || placed == choice;
        if !overlaps && in_order && gaps <= i64::from(near.slop) {
            found.push((start, end, gaps));
        }
    }
    found
}

fn spans_of(tokens: &[(String, u32)], spans: &Spans) -> Vec<Match> {
    match spans {
        Spans::Term(text) => places(tokens, text).into_iter().map(|at| (at, at, 0)).collect(),
        Spans::Phrase(text) => {
            let length = text.split(' ').count() as i64 - 1;
            let all = phrase(tokens, text, 0).into_iter();
            all.map(|(start, _, _)| (start, start + length, 0)).collect()
        }
        Spans::AnyOf(all) => all.iter().flat_map(|spans| spans_of(tokens, spans)).collect(),
        Spans::Near(inner) => near(tokens, inner),
        _ => unreachable!(),
    }
}

/// Counts non-overlapping occurrences: the one that ends first, and among these the shortest.
fn frequency(mut found: Vec<Match>) -> f64 {
    found.sort_unstable_by_key(|(start, end, gaps)| (*end, -start, *gaps));
    let (mut from, mut sum) = (i64::MIN, 0.0);
    for (start, end, gaps) in found {
        if start >= from {
            sum += 1.0 / (1.0 + gaps as f64);
            from = end + 1;
        }
    }
    sum
}

/// The optimal string alignment distance.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (i, 0) => i,
                (0, j) => j,
                _ => {
                    let change = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let mut least = change.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(table[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    table[a.len()][b.len()]
}

impl<'m> Naive<'m> {
    pub fn new(model: &'m Model, bm25: Bm25) -> Self {
        Self { model, bm25, counts: RefCell::default() }
    }

    /// The score of each document that matches.
    pub fn all(&self, query: &Query) -> BTreeMap<u32, f64> {
        let score = |(id, post): (&u32, &Post)| Some((*id, self.score(post, query)?));
        self.model.iter().filter_map(score).collect()
    }

    /// The number of documents that have the field, or the term in the field, and the sum of their
    /// lengths.
    fn count(&self, field: &str, term: Option<&str>) -> (f64, f64) {
        let key = (field.to_owned(), term.map(str::to_owned));
        if let Some(known) = self.counts.borrow().get(&key) {
            return *known;
        }
        let (mut documents, mut length) = (0.0, 0.0);
        for post in self.model.values() {
            let tokens = tokens(post, field);
            let mut all = tokens.iter();
            if all.any(|(other, _)| term.is_none_or(|term| other == term)) {
                documents += 1.0;
                length += tokens.len() as f64;
            }
        }
        self.counts.borrow_mut().insert(key, (documents, length));
        (documents, length)
    }

    fn idf(&self, field: &str, term: &str) -> f64 {
        let ((all, _), (with_term, _)) = (self.count(field, None), self.count(field, Some(term)));
        (1.0 + (all - with_term + 0.5) / (with_term + 0.5)).ln()
    }

    fn idf_of_spans(&self, field: &str, spans: &Spans) -> f64 {
        match spans {
            Spans::Term(text) => self.idf(field, text),
            Spans::Phrase(text) => text.split(' ').map(|term| self.idf(field, term)).sum(),
            Spans::AnyOf(all) => {
                all.iter().map(|spans| self.idf_of_spans(field, spans)).fold(0.0, f64::max)
            }
            Spans::Near(near) => near.spans.iter().map(|one| self.idf_of_spans(field, one)).sum(),
            _ => unreachable!(),
        }
    }

    fn formula(&self, post: &Post, field: &str, idf: f64, frequency: f64) -> Option<f64> {
        let (documents, tokens_of_all) = self.count(field, None);
        let average = tokens_of_all / documents;
        let (Bm25 { k1, b, .. }, length) = (self.bm25, tokens(post, field).len() as f64);
        let norm = k1 * (1.0 - b + b * length / average);
        (frequency > 0.0).then(|| idf * frequency * (k1 + 1.0) / (frequency + norm))
    }

    /// The BM25F score of a word.
    fn combined(&self, post: &Post, fields: &[(String, f32)], word: &str) -> Option<f64> {
        let (mut frequency, mut length, mut all_tokens) = (0.0, 0.0, 0.0);
        let (mut documents, mut with_word) = (0.0_f64, 0.0_f64);
        for (field, weight) in fields {
            let (weight, of_post) = (f64::from(*weight), tokens(post, field));
            frequency += weight * places(&of_post, word).len() as f64;
            length += weight * of_post.len() as f64;
            let (with_field, sum) = self.count(field, None);
            all_tokens += weight * sum;
            documents = documents.max(with_field);
            with_word = with_word.max(self.count(field, Some(word)).0);
        }
        let idf = (1.0 + (documents - with_word + 0.5) / (with_word + 0.5)).ln();
        let Bm25 { k1, b, .. } = self.bm25;
        let norm = k1 * (1.0 - b + b * length / (all_tokens / documents));
        (frequency > 0.0).then(|| idf * frequency * (k1 + 1.0) / (frequency + norm))
    }

    pub fn score(&self, post: &Post, query: &Query) -> Option<f64> {
        let any = |field: &str, matches: &dyn Fn(&str) -> bool| {
            tokens(post, field).iter().any(|(term, _)| matches(term)).then_some(1.0)
        };
        match query {
            Query::All => Some(1.0),
            Query::Term { field, text } => {
                let frequency = places(&tokens(post, field), text).len() as f64;
                self.formula(post, field, self.idf(field, text), frequency)
            }
            Query::Phrase { field, text, slop } => {
                let idf = text.split(' ').map(|term| self.idf(field, term)).sum();
                let found = phrase(&tokens(post, field), text, *slop);
                // Without slop a phrase occupies its positions; with slop, one position.
                let length = if *slop == 0 { text.split(' ').count() as i64 - 1 } else { 0 };
                let found = found.into_iter().map(|(start, end, gaps)| (start, end + length, gaps));
                self.formula(post, field, idf, frequency(found.collect()))
            }
            Query::Combined { fields, text } => {
                let of_each = text.split(' ').map(|word| self.combined(post, fields, word));
                let scores: Vec<f64> = of_each.flatten().collect();
                (!scores.is_empty()).then(|| scores.iter().sum())
            }
            Query::Near { field, near: spans } => {
                let idf = self.idf_of_spans(field, &Spans::Near(spans.clone()));
                self.formula(post, field, idf, frequency(near(&tokens(post, field), spans)))
            }
            Query::Prefix { field, prefix } => any(field, &|term| term.starts_with(prefix)),
            Query::Wildcard { field, pattern } => {
                let pattern = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
                let regex = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
                any(field, &|term| regex.is_match(term))
            }
            Query::Regex { field, pattern } => {
                let regex = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
                any(field, &|term| regex.is_match(term))
            }
            Query::Range { field, from, to } => any(field, &|term| {
                let after = match from {
                    Bound::Included(from) => term >= from.as_str(),
                    Bound::Excluded(from) => term > from.as_str(),
                    Bound::Unbounded => true,
                };
                let before = match to {
                    Bound::Included(to) => term <= to.as_str(),
                    Bound::Excluded(to) => term < to.as_str(),
                    Bound::Unbounded => true,
                };
                after && before
            }),
            Query::Fuzzy { field, text, distance: most, prefix_chars } => {
                let tokens = tokens(post, field);
                let prefix: String = text.chars().take(*prefix_chars).collect();
                let similar = tokens.iter().filter(|(term, _)| term.starts_with(&prefix));
                let least = similar.map(|(term, _)| distance(term, text)).min()?;
                (least <= usize::from(*most)).then(|| 1.0 / (1.0 + least as f64))
            }
            Query::Boolean(boolean) => self.boolean(post, boolean),
            Query::Boost { query, factor } => Some(self.score(post, query)? * f64::from(*factor)),
            Query::ConstantScore { query, score } => {
                self.score(post, query).map(|_| f64::from(*score))
            }
            _ => unreachable!(),
        }
    }

    fn boolean(&self, post: &Post, boolean: &BooleanQuery) -> Option<f64> {
        let BooleanQuery { must, filter, should, must_not, minimum_should_match } = boolean;
        let of = |queries: &[Query]| -> Vec<Option<f64>> {
            queries.iter().map(|query| self.score(post, query)).collect()
        };
        let [must, filter, should, must_not] = [of(must), of(filter), of(should), of(must_not)];
        if must.is_empty() && filter.is_empty() && should.is_empty() && must_not.is_empty() {
            return None;
        }
        let optional = !must.is_empty() || !filter.is_empty();
        let default = u32::from(!optional && !should.is_empty());
        let least = minimum_should_match.unwrap_or(default) as usize;
        let matches = must.iter().chain(&filter).all(Option::is_some)
            && must_not.iter().all(Option::is_none)
            && should.iter().flatten().count() >= least;
        matches.then(|| must.iter().chain(&should).flatten().sum())
    }
}

fn word(random: &mut fastrand::Rng, field: &str) -> String {
    let most = if field == "body" { 30 } else { 7 };
    format!("w{}", random.u32(0..most).min(random.u32(0..most)))
}

fn text(random: &mut fastrand::Rng, field: &str, words: usize) -> String {
    (0..words).map(|_| word(random, field)).collect::<Vec<_>>().join(" ")
}

fn spans(random: &mut fastrand::Rng, field: &str, depth: u32) -> Spans {
    match random.u32(0..if depth == 0 { 4 } else { 9 }) {
        4 => Spans::Phrase(text(random, field, 2)),
        5 | 6 => Spans::AnyOf((0..2).map(|_| spans(random, field, depth - 1)).collect()),
        7 | 8 => Spans::Near(a_near(random, field, depth - 1)),
        _ => Spans::Term(word(random, field)),
    }
}

fn a_near(random: &mut fastrand::Rng, field: &str, depth: u32) -> Near {
    let spans = (0..random.usize(2..=3)).map(|_| spans(random, field, depth)).collect();
    Near { spans, slop: random.u32(0..4), is_ordered: random.bool() }
}

/// A random query.
pub fn query(random: &mut fastrand::Rng, depth: u32) -> Query {
    let field = ["title", "body", "body"][random.usize(0..3)];
    let any_field = ["title", "body", "tags"][random.usize(0..3)];
    let some = |random: &mut fastrand::Rng| -> Vec<Query> {
        (0..random.usize(0..3)).map(|_| query(random, depth - 1)).collect()
    };
    match random.u32(0..if depth == 0 { 14 } else { 22 }) {
        0 => Query::All,
        1 | 2 => {
            let (words, slop) = (random.usize(2..=3), random.u32(0..4));
            Query::phrase(field, text(random, field, words)).slop(slop)
        }
        3..=5 => Query::near(field, a_near(random, field, 2)),
        6 => Query::prefix(any_field, ["w", "w1", "w2", ""][random.usize(0..4)]),
        7 => Query::wildcard(any_field, ["w?", "*1", "w*2", "?3?"][random.usize(0..4)]),
        8 => Query::regex(any_field, ["w[0-3]", "w(1|22).?", ".*9"][random.usize(0..3)]),
        9 => {
            let distance = random.u8(0..=2);
            Query::fuzzy(any_field, word(random, "body"), distance).fuzzy_prefix(random.usize(0..3))
        }
        10 => {
            let (a, b) = (word(random, "body"), word(random, "body"));
            match random.u32(0..3) {
                0 => Query::range(any_field, a..b),
                1 => Query::range(any_field, a..=b),
                _ => Query::range(any_field, ..b),
            }
        }
        11 | 12 => {
            let weighted = |random: &mut fastrand::Rng| {
                let field = ["title", "body", "tags"][random.usize(0..3)];
                (field, [1.0, 2.5, 0.3][random.usize(0..3)])
            };
            let fields: Vec<_> = (0..random.usize(1..=3)).map(|_| weighted(random)).collect();
            let words = random.usize(1..=3);
            Query::combined(fields, text(random, field, words))
        }
        14..=18 => {
            let least = if random.bool() { Some(random.u32(0..3)) } else { None };
            let [must, filter, should, must_not] =
                [some(random), some(random), some(random), some(random)];
            BooleanQuery { must, filter, should, must_not, minimum_should_match: least }.into()
        }
        19 => query(random, depth - 1).boost(2.5),
        20 => query(random, depth - 1).constant_score(0.5),
        21 => Query::any_of([query(random, depth - 1), query(random, depth - 1)]),
        _ => Query::term(any_field, word(random, any_field)),
    }
}
