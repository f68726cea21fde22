//! The best paragraphs of a book, compared with tantivy and the formula.

#![cfg(feature = "tantivy")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeSet;

use keyloom_compare::text::{
    Asked, Hits, Kind, Lengths, Own, Tantivy, naive, paragraphs, same_hits,
};

/// tantivy computes scores in 32 bits.
const SINGLE_PRECISION: f64 = 1e-5;

struct Indexes {
    paragraphs: Vec<String>,
    own: Own,
    tantivy: Tantivy,
    _directory: tempfile::TempDir,
}

fn indexes() -> Indexes {
    let paragraphs = paragraphs().unwrap();
    assert!(paragraphs.len() > 700, "{} paragraphs", paragraphs.len());
    let directory = tempfile::tempdir().unwrap();
    let own = Own::create(&directory.path().join("own")).unwrap();
    let mut tantivy = Tantivy::create(&directory.path().join("tantivy")).unwrap();
    own.put_all(&paragraphs).unwrap();
    tantivy.put_all(&paragraphs).unwrap();
    Indexes { paragraphs, own, tantivy, _directory: directory }
}

fn words_of(paragraphs: &[String]) -> Vec<String> {
    let words = paragraphs.iter().flat_map(|text| text.split(' ')).map(str::to_lowercase);
    words.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Single words, and pairs of them.
fn queries(words: &[String]) -> Vec<Vec<&str>> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut one = || words[random.usize(0..words.len())].as_str();
    let alone = ["alice", "the", "rabbit", "queen", "said", "i"].map(|word| vec![word]);
    let known =
        [vec!["mock", "turtle"], vec!["white", "rabbit"], vec!["the", "queen", "of", "hearts"]];
    let random = (0..300).map(|n| (0..=n % 3).map(|_| one()).collect::<Vec<_>>());
    let mut all: Vec<_> = random.chain(alone).chain(known).collect();
    // tantivy counts a repeated word of a query twice; the formula here does not.
    all.iter_mut().for_each(|words| {
        words.sort_unstable();
        words.dedup();
    });
    all
}

fn top(hits: Hits) -> Hits {
    hits.into_iter().take(10).collect()
}

#[test]
fn best_paragraphs_are_those_of_tantivy_up_to_its_lengths() {
    let all = indexes();
    let words = words_of(&all.paragraphs);
    let (mut other_hits, mut queries_with_hits) = (0, 0);
    for words in queries(&words) {
        let asked =
            Asked { kind: Kind::Any, words: words.iter().map(|w| (*w).to_owned()).collect() };
        let ours = all.own.top(&asked, 10).unwrap();
        let theirs = all.tantivy.top(&asked, 10).unwrap();
        let expect = |hits: &Hits, lengths, tolerance, whose| {
            let formula = top(naive(&all.paragraphs, &words, lengths));
            same_hits(hits, &formula, tolerance)
                .unwrap_or_else(|why| panic!("{whose}, {words:?}: {why}"));
        };
        expect(&ours, Lengths::Exact, 1e-9, "keyloom");
        expect(&theirs, Lengths::Byte, SINGLE_PRECISION, "tantivy");
        let docs = |hits: &Hits| hits.iter().map(|(doc, _)| *doc).collect::<BTreeSet<u32>>();
        other_hits += docs(&ours).difference(&docs(&theirs)).count();
        queries_with_hits += usize::from(!ours.is_empty());
        // Equal lengths give equal lists: the rounding is the only difference.
        if formulas_agree(&all.paragraphs, &words) {
            same_hits(&ours, &theirs, 0.1).unwrap_or_else(|why| panic!("{words:?}: {why}"));
        }
    }
    assert!(queries_with_hits > 300);
    println!("{other_hits} of the hits of {queries_with_hits} queries differ by rounded lengths");
}

/// Whether the rounding of lengths leaves the ten best hits unchanged.
fn formulas_agree(paragraphs: &[String], words: &[&str]) -> bool {
    let docs = |lengths| {
        let hits = top(naive(paragraphs, words, lengths));
        hits.into_iter().map(|(doc, _)| doc).collect::<Vec<_>>()
    };
    docs(Lengths::Exact) == docs(Lengths::Byte)
}

#[test]
fn combined_queries_match_the_paragraphs_of_tantivy() {
    let all = indexes();
    let words = words_of(&all.paragraphs);
    let mut matches = 0;
    for text in &all.paragraphs {
        let text: Vec<String> = text.split(' ').map(str::to_lowercase).collect();
        for (kind, words) in [
            (Kind::All, [&text[0], &text[text.len() / 2]]),
            (
                Kind::Phrase,
                [&text[text.len() / 2], &text[(text.len() / 2 + 1).min(text.len() - 1)]],
            ),
        ] {
            let asked = Asked { kind, words: words.map(Clone::clone).to_vec() };
            if asked.words[0] == asked.words[1] {
                continue;
            }
            let docs = |hits: Hits| hits.into_iter().map(|(doc, _)| doc).collect::<BTreeSet<u32>>();
            let ours = docs(all.own.top(&asked, 1_000).unwrap());
            assert_eq!(ours, docs(all.tantivy.top(&asked, 1_000).unwrap()), "{asked:?}");
            matches += ours.len();
        }
    }
    assert!(matches > words.len(), "{matches} matches");
}
