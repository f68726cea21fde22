//! Suggestions come from all terms of the records.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Memory, Metered, Store, Subspace};
use keyloom_tables::Table;
use keyloom_testing::laws;
use keyloom_text::suggest::{Similarity, Suggestion};
use keyloom_text::{Analyzer, Detail, TextError, TextIndex};

use super::corpus::{FIELDS, Model, history, index, posts, tokens};

/// The number of documents with each term.
fn counts(model: &Model, field: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for post in model.values() {
        let terms: BTreeSet<String> =
            tokens(post, field).into_iter().map(|(term, _)| term).collect();
        terms.into_iter().for_each(|term| *counts.entry(term).or_default() += 1);
    }
    counts
}

/// The number of edits, by the recursive definition of optimal string alignment.
fn edits(a: &[char], b: &[char]) -> usize {
    let ([.., x], [.., y]) = (a, b) else { return a.len().max(b.len()) };
    let (shorter_a, shorter_b) = (&a[..a.len() - 1], &b[..b.len() - 1]);
    let replaced = edits(shorter_a, shorter_b) + usize::from(x != y);
    let swapped = match (a, b) {
        ([a @ .., p, q], [b @ .., r, s]) if p == s && q == r => edits(a, b) + 1,
        _ => replaced,
    };
    replaced.min(swapped).min(edits(shorter_a, b) + 1).min(edits(a, shorter_b) + 1)
}

fn similar(counts: &BTreeMap<String, u64>, word: &str, most: usize, equal: usize) -> Vec<Found> {
    let chars = |word: &str| word.chars().collect::<Vec<char>>();
    let (word, mut found) = (chars(word), Vec::new());
    for (term, documents) in counts {
        let term_chars = chars(term);
        let equal = equal.min(word.len());
        if term_chars.len().abs_diff(word.len()) > most
            || term_chars.len() < equal
            || term_chars[..equal] != word[..equal]
        {
            continue;
        }
        let distance = edits(&word[equal..], &term_chars[equal..]);
        if distance <= most {
            found.push((term.clone(), *documents, distance as u8));
        }
    }
    found.sort_by_key(|(term, documents, distance)| (*distance, Reverse(*documents), term.clone()));
    found
}

/// A term, its number of documents and its distance.
type Found = (String, u64, u8);

fn parts(found: Vec<Suggestion>) -> Vec<Found> {
    found.into_iter().map(|one| (one.term, one.documents, one.distance)).collect()
}

pub fn completions_are_the_most_frequent_terms(store: &impl Store) {
    for seed in 0..4 {
        laws::clear(store);
        let mut random = fastrand::Rng::with_seed(seed);
        let index = index(seed % 2 == 0);
        let model = history(&mut random, store, &posts(&index), 60);
        let snapshot = store.snapshot().unwrap();
        for field in FIELDS {
            for (prefix, limit) in [("", 3), ("W", 100), ("w1", 4), ("w1", 0), ("w12", 9), ("x", 9)]
            {
                let lower = prefix.to_lowercase();
                let mut expected: Vec<Found> = counts(&model, field)
                    .into_iter()
                    .filter(|(term, _)| term.starts_with(&lower))
                    .map(|(term, documents)| (term, documents, 0))
                    .collect();
                expected.sort_by_key(|(term, documents, _)| (Reverse(*documents), term.clone()));
                expected.truncate(limit);
                let found = index.complete(&snapshot, field, prefix, limit).unwrap();
                assert_eq!(parts(found), expected, "{field} {prefix}");
            }
        }
    }
}

pub fn similar_terms_are_those_of_the_definition(store: &impl Store) {
    for seed in 10..13 {
        laws::clear(store);
        let mut random = fastrand::Rng::with_seed(seed);
        let index = index(false);
        let model = history(&mut random, store, &posts(&index), 60);
        let counts = counts(&model, "body");
        let snapshot = store.snapshot().unwrap();
        for word in ["w1", "W12", "1w", "w", "2w1", "x", "w444"] {
            for (distance, equal, least) in [(2, 1, 1), (2, 0, 1), (1, 0, 2), (0, 0, 1), (2, 5, 1)]
            {
                let similarity = Similarity::default().distance(distance).prefix_chars(equal);
                let similarity = similarity.min_documents(least).limit(7);
                let found = index.did_you_mean(&snapshot, "body", word, &similarity).unwrap();
                let mut expected = similar(&counts, &word.to_lowercase(), distance.into(), equal);
                expected.retain(|(_, documents, _)| *documents >= least);
                expected.truncate(7);
                assert_eq!(parts(found), expected, "{word} {similarity:?}");
            }
        }
    }
}

pub fn unknown_words_of_a_text_are_replaced(store: &impl Store) {
    laws::clear(store);
    let mut random = fastrand::Rng::with_seed(5);
    let index = index(true);
    let model = history(&mut random, store, &posts(&index), 60);
    let counts = counts(&model, "body");
    let snapshot = store.snapshot().unwrap();
    let similarity = Similarity::default();
    for _ in 0..20 {
        let words: Vec<String> = (0..random.usize(0..6))
            .map(|_| match random.u8(0..4) {
                0 => format!("w{}x", random.u8(0..40)),
                1 => "unknown".to_owned(),
                2 => "w".repeat(65),
                _ => format!("W{}", random.u8(0..80)),
            })
            .collect();
        let (mut expected, mut replaced) = (Vec::new(), 0);
        for word in &words {
            let lower = word.to_lowercase();
            let best = similar(&counts, &lower, 2, 1).into_iter().next();
            match best.filter(|_| !counts.contains_key(&lower) && word.len() <= 64) {
                Some((term, ..)) => {
                    replaced += 1;
                    expected.push(term);
                }
                None => expected.push(word.clone()),
            }
        }
        let corrected = index.correct(&snapshot, "body", &words.join(", "), &similarity).unwrap();
        assert_eq!(corrected.text, expected.join(", "));
        assert_eq!(corrected.words.len(), replaced);
        for word in corrected.words {
            assert!(words.join(", ")[word.range].starts_with(['w', 'W']));
        }
    }
}

type Names = TextIndex<u32, String>;

fn names() -> (Names, Table<u32, String>) {
    let index = TextIndex::with_keys_as_ids(&Subspace::new("index"));
    let index = index.field_with(
        "name",
        Detail::Frequencies,
        Analyzer::names(),
        |_, name: &String, add| add(name),
    );
    let table = Table::new(&Subspace::new("names")).with(&index);
    (index, table)
}

#[test]
fn names_are_found_by_a_misspelt_one_without_accents() {
    let (store, (index, table)) = (Memory::new(), names());
    let all = ["Zürich", "Zurzach", "München", "Mönchengladbach", "São Paulo", "Saint-Paul"];
    let records = (0..).zip(all.map(str::to_owned));
    store.transact(|txn| table.put_many(txn, records.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let similarity = Similarity::default();
    let first = |word: &str| {
        let found = index.did_you_mean(&snapshot, "name", word, &similarity).unwrap();
        found.into_iter().next().map(|one| one.term)
    };
    assert_eq!(first("Zurihc").as_deref(), Some("zurich"));
    assert_eq!(first("Munchne").as_deref(), Some("munchen"));
    assert_eq!(first("Bern"), None);
    let corrected = index.correct(&snapshot, "name", "Sao Pualo (Züric)", &similarity).unwrap();
    assert_eq!(corrected.text, "Sao paulo (zurich)");
    assert_eq!(corrected.words[0].range, 4..9);
    let unknown = index.complete(&snapshot, "title", "a", 1).unwrap_err();
    assert!(matches!(unknown.downcast_ref(), Some(TextError::UnknownField { .. })), "{unknown}");
    let long = index.did_you_mean(&snapshot, "name", &"a".repeat(65), &similarity).unwrap_err();
    assert!(long.to_string().contains("65 characters"), "{long}");
}

#[test]
fn suggestions_read_a_part_of_the_dictionary() {
    let (store, (index, table)) = (Metered::new(Memory::new()), names());
    // All 4,096 words of three letters from an alphabet of sixteen.
    let letter = |n: u32| char::from_u32(u32::from('a') + n % 16).unwrap();
    let word = |n: u32| [n / 256, n / 16, n].map(letter).iter().collect::<String>();
    store.transact(|txn| table.put_many(txn, (0..4_096).map(|n| (n, word(n))))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let read = |run: &dyn Fn()| store.measure(|_| run()).1.keys_read;
    let completed = read(&|| {
        let found = index.complete(&snapshot, "name", "ab", 20).unwrap();
        assert_eq!(found.len(), 16);
    });
    assert!(completed <= 17, "{completed}");
    let similar = read(&|| {
        let similarity = Similarity::default().distance(1).prefix_chars(2).limit(100);
        let found = index.did_you_mean(&snapshot, "name", "abz", &similarity).unwrap();
        assert_eq!(found.len(), 16);
    });
    assert!(similar <= 40, "{similar}");
}

#[test]
fn prefixes_of_too_many_terms_are_refused() {
    let (store, (index, table)) = (Memory::new(), names());
    for chunk in 0..11 {
        let names = (0..1).map(|_| {
            let words = (0..10_000).map(|n| format!("x{chunk}y{n}")).collect::<Vec<_>>();
            (chunk, words.join(" "))
        });
        store.transact(|txn| table.put_many(txn, names.clone())).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let error = index.complete(&snapshot, "name", "x", 1).unwrap_err();
    let expected =
        TextError::TooManySuggestedTerms { field: "name".into(), text: "x".into(), limit: 100_000 };
    assert_eq!(error.downcast_ref(), Some(&expected));
    assert_eq!(index.complete(&snapshot, "name", "x1y", 1).unwrap().len(), 1);
}
