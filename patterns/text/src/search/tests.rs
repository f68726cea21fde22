//! Random queries on random texts must return the same best documents as plain loops over all
//! texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::{Memory, Reader, Store, Writer};
use proptest::prelude::*;

use super::bm25::{Bm25, Weight};
use super::cursor::Cursor;
use super::node::{AtLeast, Boolean, Ids, Near, Node};
use super::proximity::{Arrangement, Proximity};
use super::rank::{count, rank};
use super::slot::Slot;
use super::top_k::{ScoredDoc, TopK};
use crate::index::{FieldStatistics, ListKeys};
use crate::postings::{BLOCK_POSTINGS, Detail, IdRange, Posting, Postings, PostingsSlice, encode};

pub(super) const TERMS: u8 = 8;

/// The term number of the document lengths.
pub(super) const LENGTHS: u8 = TERMS;

/// Texts by id, each a list of terms.
pub(super) type Texts = BTreeMap<u32, Vec<u8>>;

#[derive(Clone, Debug)]
pub(super) enum Query {
    Term(u8),
    Near { terms: Vec<Vec<u8>>, slop: u32, arrangement: Arrangement },
    AtLeast(usize, Vec<Query>),
    Boolean { required: Vec<Query>, optional: Vec<Query>, excluded: Vec<Query> },
    Constant(Box<Query>, f64),
    Boost(Box<Query>, f64),
    Below(u32, f64),
}

pub(super) fn keys(term: u8) -> ListKeys {
    let of = |kind: &str| keyloom::pack(&(kind, u32::from(term)));
    let (blocks, occurrences) = (of("blocks"), of("occurrences"));
    ListKeys { blocks, occurrences, summaries: of("summaries") }
}

pub(super) fn postings(texts: &Texts, term: u8) -> Postings {
    let mut postings = Postings::default();
    for (id, text) in texts {
        let places = text.iter().enumerate().filter(|(_, other)| **other == term);
        let positions: Vec<u32> = places.map(|(at, _)| at as u32).collect();
        let (freq, len) = (positions.len() as u32, text.len() as u32);
        if freq > 0 {
            postings.push(Posting { doc: *id, freq, len, positions: &positions });
        }
    }
    postings
}

/// Writes the blocks of some postings. Splits a range with too many postings.
fn write(txn: &mut impl Writer, term: u8, range: IdRange, postings: PostingsSlice<'_>) {
    let detail = if term == LENGTHS { Detail::Frequencies } else { Detail::Positions };
    if postings.is_empty() {
        return;
    }
    match range.halves() {
        Some([low, high]) if postings.len() > BLOCK_POSTINGS => {
            let (before, after) = postings.split_after(low.last());
            write(txn, term, low, before);
            write(txn, term, high, after);
        }
        _ => {
            let (encoded, keys) = (encode(range, &postings, detail), keys(term));
            txn.put(&keys.block(range.last()), &encoded.block).unwrap();
            if !encoded.occurrences.is_empty() {
                let key = keys.of_occurrences(range.last());
                txn.put(&key, &encoded.occurrences).unwrap();
            }
        }
    }
}

pub(super) fn stored(texts: &Texts) -> Memory {
    let store = Memory::new();
    store
        .transact(|txn| {
            for term in 0..TERMS {
                write(txn, term, IdRange::ALL, postings(texts, term).as_slice());
            }
            let mut lengths = Postings::default();
            for (id, text) in texts {
                let len = text.len() as u32;
                lengths.push(Posting { doc: *id, freq: 1, len, positions: &[] });
            }
            write(txn, LENGTHS, IdRange::ALL, lengths.as_slice());
            Ok(())
        })
        .unwrap();
    store
}

fn statistics(texts: &Texts) -> FieldStatistics {
    let tokens = texts.values().map(|text| text.len() as u64).sum();
    FieldStatistics { documents: texts.len() as u64, tokens }
}

fn idf(texts: &Texts, term: u8) -> f64 {
    let with_term = texts.values().filter(|text| text.contains(&term)).count() as f64;
    let all = texts.len() as f64;
    (1.0 + (all - with_term + 0.5) / (with_term + 0.5)).ln()
}

/// Builds the operators of a query.
fn node<'r, R: Reader>(reader: &'r R, texts: &Texts, query: &Query) -> Node<'r, R> {
    let weight = |factor: f64| Weight::new(Bm25::default(), statistics(texts), factor);
    let each = |queries: &[Query]| -> Vec<Node<'r, R>> {
        queries.iter().map(|query| node(reader, texts, query)).collect()
    };
    match query {
        Query::Term(term) => {
            let cursor = Cursor::new(reader, keys(*term), weight(idf(texts, *term)));
            Node::Term(Box::new(cursor))
        }
        Query::Near { terms, slop, arrangement } => {
            let weight = weight(terms.iter().flatten().map(|term| idf(texts, *term)).sum());
            let proximity = Proximity {
                offsets: (0..terms.len() as u32).collect(),
                slop: *slop,
                arrangement: *arrangement,
            };
            let cursor = |term: &u8| Cursor::new(reader, keys(*term), weight);
            let slot = |terms: &Vec<u8>| Slot::new(terms.iter().map(cursor).collect());
            Node::Near(Box::new(Near::new(terms.iter().map(slot).collect(), proximity, weight)))
        }
        Query::AtLeast(least, queries) => {
            Node::AtLeast(Box::new(AtLeast::new(each(queries), *least)))
        }
        Query::Boolean { required, optional, excluded } => {
            let boolean = Boolean::new(each(required), each(optional), each(excluded));
            Node::Boolean(Box::new(boolean))
        }
        Query::Constant(query, score) => {
            Node::Constant(Box::new(node(reader, texts, query)), *score)
        }
        Query::Boost(query, _) => node(reader, texts, query),
        Query::Below(end, score) => {
            let ids: Arc<[u32]> = texts.keys().copied().take_while(|id| id < end).collect();
            Node::Ids(Ids::new(ids, *score))
        }
    }
}

/// The score of a text by the definition; `None` if the text does not match.
pub(super) fn naive(texts: &Texts, id: u32, text: &[u8], query: &Query) -> Option<f64> {
    let average = statistics(texts).tokens as f64 / texts.len() as f64;
    let bm25 = |idf: f64, frequency: f64| {
        let norm = 1.2 * (1.0 - 0.75 + 0.75 * text.len() as f64 / average);
        (frequency > 0.0).then(|| idf * frequency * 2.2 / (frequency + norm))
    };
    let score = |query: &Query| naive(texts, id, text, query);
    let sum = |scores: &[Option<f64>]| scores.iter().flatten().sum::<f64>();
    match query {
        Query::Term(term) => {
            let frequency = text.iter().filter(|other| *other == term).count();
            bm25(idf(texts, *term), frequency as f64)
        }
        Query::Near { terms, slop, arrangement } => {
            let idf = terms.iter().flatten().map(|term| idf(texts, *term)).sum();
            bm25(idf, near(text, terms, *slop, *arrangement))
        }
        Query::AtLeast(least, queries) => {
            let scores: Vec<_> = queries.iter().map(score).collect();
            (scores.iter().flatten().count() >= *least).then(|| sum(&scores))
        }
        Query::Boolean { required, optional, excluded } => {
            let scores: Vec<_> = required.iter().map(score).collect();
            let optional: Vec<_> = optional.iter().map(score).collect();
            let is_excluded = excluded.iter().any(|query| score(query).is_some());
            let matches = scores.iter().all(Option::is_some) && !is_excluded;
            matches.then(|| sum(&scores) + sum(&optional))
        }
        Query::Constant(query, constant) => score(query).map(|_| *constant),
        Query::Boost(query, factor) => score(query).map(|score| score * factor),
        Query::Below(end, score) => (id < *end).then_some(*score),
    }
}

/// All choices of a distinct position for each term.
fn places(text: &[u8], terms: &[Vec<u8>]) -> Vec<Vec<usize>> {
    terms.iter().fold(vec![Vec::new()], |choices, term| {
        let with = |choice: Vec<usize>| {
            let free = (0..text.len()).filter(|at| term.contains(&text[*at])).collect::<Vec<_>>();
            let free = free.into_iter().filter(|at| !choice.contains(at)).collect::<Vec<_>>();
            free.into_iter().map(move |at| [&choice[..], &[at]].concat())
        };
        choices.into_iter().flat_map(with).collect()
    })
}

/// Visits all choices of positions in order of their ends, and the shortest first.
fn near(text: &[u8], terms: &[Vec<u8>], slop: u32, arrangement: Arrangement) -> f64 {
    let mut found = Vec::new();
    for choice in places(text, terms) {
        let shift = |n: usize| if arrangement == Arrangement::Shifted { n } else { 0 };
        let at = || (0..choice.len()).map(|n| choice[n] as i64 - shift(n) as i64);
        let (start, end) = (at().min().unwrap(), at().max().unwrap());
        let width = if arrangement == Arrangement::Shifted { 0 } else { terms.len() as i64 - 1 };
        let fits = arrangement != Arrangement::Ordered || choice.is_sorted();
        if fits && end - start - width <= i64::from(slop) {
            found.push((end, -start, end - start - width));
        }
    }
    found.sort_unstable();
    let (mut from, mut sum) = (i64::MIN, 0.0);
    for (end, start, distance) in found {
        if -start >= from {
            sum += 1.0 / (1.0 + distance as f64);
            from = end + 1;
        }
    }
    sum
}

pub(super) fn texts() -> impl Strategy<Value = Texts> {
    // Small term numbers are frequent.
    let term = (0..TERMS, 0..TERMS).prop_map(|(a, b)| a.min(b));
    let text = prop::collection::vec(term, 1..12);
    let id = prop_oneof![6 => 0..1_500_u32, 1 => (0..40_u32).prop_map(|n| n * 100_000_000)];
    prop::collection::btree_map(id, text, 1..700)
}

fn queries() -> impl Strategy<Value = Query> {
    let arrangements = [Arrangement::Ordered, Arrangement::Unordered, Arrangement::Shifted];
    let slot = prop_oneof![
        4 => (0..TERMS).prop_map(|term| vec![term]),
        1 => (0..TERMS - 1).prop_map(|term| vec![term, term + 1]),
    ];
    let terms = prop::collection::vec(slot, 1..4);
    let near = (terms, 0..4_u32, prop::sample::select(arrangements.to_vec()));
    let leaf = prop_oneof![
        4 => (0..TERMS).prop_map(Query::Term),
        2 => near.prop_map(|(terms, slop, arrangement)| {
            Query::Near { terms, slop, arrangement }
        }),
        1 => (0..2_000_u32).prop_map(|end| Query::Below(end, 0.25)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let some = |least: usize| prop::collection::vec(inner.clone(), least..4);
        let boolean = (some(1), some(0), some(0));
        prop_oneof![
            3 => (1..3_usize, some(1)).prop_map(|(least, all)| Query::AtLeast(least, all)),
            3 => boolean.prop_map(|(required, optional, excluded)| {
                Query::Boolean { required, optional, excluded }
            }),
            1 => inner.prop_map(|query| Query::Constant(Box::new(query), 0.5)),
        ]
    })
}

fn best<R: Reader>(
    reader: &R,
    texts: &Texts,
    query: &Query,
    k: usize,
    after: Option<ScoredDoc>,
) -> Vec<ScoredDoc> {
    let mut top = TopK::new(k, after);
    rank(&mut node(reader, texts, query), &mut top).unwrap();
    top.into_hits()
}

/// All matches, best first.
fn ranked(texts: &Texts, query: &Query) -> Vec<ScoredDoc> {
    let hit = |(id, text): (&u32, &Vec<u8>)| {
        naive(texts, *id, text, query).map(|score| ScoredDoc { doc: *id, score })
    };
    let mut all: Vec<ScoredDoc> = texts.iter().filter_map(hit).collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc)));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 6))]

    #[test]
    fn the_best_documents_are_those_of_plain_loops(
        texts in texts(), query in queries(), k in 1..30_usize
    ) {
        let (store, wanted) = (stored(&texts), ranked(&texts, &query));
        let snapshot = store.snapshot().unwrap();
        prop_assert_eq!(count(&mut node(&snapshot, &texts, &query)).unwrap(), wanted.len() as u64);
        // Each document occurs in the full ranking with its score.
        let all = best(&snapshot, &texts, &query, wanted.len() + 1, None);
        prop_assert_eq!(all.len(), wanted.len());
        let scores: BTreeMap<u32, f64> = wanted.iter().map(|hit| (hit.doc, hit.score)).collect();
        for hit in &all {
            prop_assert!((hit.score - scores[&hit.doc]).abs() < 1e-9, "{:?}", hit);
        }
        let is_before = |a: &ScoredDoc, b: &ScoredDoc| a.score > b.score || a.score == b.score && a.doc < b.doc;
        prop_assert!(all.is_sorted_by(is_before));
        // Early termination and paging do not change the results.
        let few = best(&snapshot, &texts, &query, k, None);
        prop_assert_eq!(&few[..], &all[..k.min(all.len())]);
        let second = best(&snapshot, &texts, &query, k, few.last().copied());
        prop_assert_eq!(&second[..], &all[few.len()..(2 * k).min(all.len()).max(few.len())]);
    }
}

#[test]
fn a_rare_term_skips_most_blocks_of_a_frequent_one() {
    let text = |id: u32| if id.is_multiple_of(5_000) { vec![0, 1] } else { vec![0] };
    let texts: Texts = (0..20_000).map(|id| (id, text(id))).collect();
    let store = keyloom::Metered::new(stored(&texts));
    let both = [Query::Term(1), Query::Term(0)].to_vec();
    let query = Query::Boolean { required: both, optional: vec![], excluded: vec![] };
    let (hits, cost) =
        store.measure(|store| best(&store.snapshot().unwrap(), &texts, &query, 10, None));
    assert_eq!(hits.iter().map(|hit| hit.doc).collect::<Vec<_>>(), [0, 5_000, 10_000, 15_000]);
    assert!(cost.keys_read < 60, "{cost:?}");
}
