//! Searches, compared with BM25 over all texts.

use super::contents::{TENANTS, letters};
use super::{filled, objects, text};
use crate::support::Directory;

/// The numbers of the documents that match, with their scores, the best first.
type Ranked = Vec<(usize, f64)>;

/// A search by the formula of BM25, with k1 = 1.2 and b = 0.75. `documents` are the numbers and the
/// words of all documents.
fn ranked(documents: &[(usize, Vec<String>)], terms: &[&str]) -> Ranked {
    let all = documents.len() as f64;
    let average = documents.iter().map(|(_, words)| words.len()).sum::<usize>() as f64 / all;
    let frequency =
        |words: &[String], term: &str| words.iter().filter(|word| *word == term).count() as f64;
    let score = |words: &[String], term: &str| {
        let with =
            documents.iter().filter(|(_, words)| frequency(words, term) > 0.0).count() as f64;
        let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        let often = frequency(words, term);
        let length = words.len() as f64 / average;
        idf * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length))
    };
    let has_all = |words: &[String]| terms.iter().all(|term| frequency(words, term) > 0.0);
    let matching = documents.iter().filter(|(_, words)| has_all(words));
    let mut found: Ranked = matching
        .map(|(n, words)| (*n, terms.iter().map(|term| score(words, term)).sum()))
        .collect();
    found.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap());
    found
}

fn found(address: &str, arguments: &[&str]) -> Ranked {
    let all = objects(&[&[address], arguments, &["-n", "1000"]].concat());
    let number = |key: String| key.trim_end_matches([')', ',']).rsplit(' ').next().unwrap().parse();
    all.iter()
        .map(|one| (number(text(one, "key")).unwrap(), one["score"].as_f64().unwrap()))
        .collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn same(found: &Ranked, expected: &Ranked) -> bool {
    // Documents of equal scores have no order in the formula.
    let sorted = |all: &Ranked| {
        let mut all = all.clone();
        all.sort_by_key(|(n, _)| *n);
        all
    };
    let near = |((a, score), (b, other)): (&(usize, f64), &(usize, f64))| {
        a == b && (score - other).abs() < 1e-9
    };
    let is_sorted = found.is_sorted_by(|a, b| a.1 >= b.1);
    let (found, expected) = (sorted(found), sorted(expected));
    is_sorted && found.len() == expected.len() && found.iter().zip(&expected).all(near)
}

#[test]
fn terms_find_the_records_with_all_of_them_ranked() {
    let directory = Directory::new();
    let address = filled(&directory);
    let titles: Vec<_> = letters().iter().map(|one| words(&one.0)).enumerate().collect();
    let texts: Vec<_> = letters().iter().map(|one| words(&one.1)).enumerate().collect();
    for query in
        ["sea", "storm", "the sea", "the the sea ship", "story salt", "nothing", "sea nothing"]
    {
        let terms: Vec<&str> = query.split(' ').collect();
        let in_texts = ranked(&texts, &terms);
        for arguments in [&["letters.words", query, "--field", "1"][..], &["copies.words", query]] {
            let found = found(&address, arguments);
            assert!(same(&found, &in_texts), "{arguments:?}: {found:?} {in_texts:?}");
        }
        let in_titles = ranked(&titles, &terms);
        assert!(same(&found(&address, &["letters.words", query]), &in_titles), "{query}");
        for (n, tenant) in TENANTS.iter().enumerate() {
            let own: Vec<_> =
                texts.iter().filter(|(id, _)| id % TENANTS.len() == n).cloned().collect();
            let group = format!("({tenant:?},)");
            let found = found(&address, &["shelves.words", query, "--group", &group]);
            assert!(same(&found, &ranked(&own, &terms)), "{tenant:?} {query}");
        }
    }
    // The control: another field ranks otherwise.
    let sea = ranked(&texts, &["sea"]);
    assert!(sea.len() > 10 && !same(&sea, &ranked(&titles, &["sea"])));
    let quoted = found(&address, &["letters.words", "\"sea\" storm"]);
    assert_eq!(quoted, found(&address, &["letters.words", "sea storm"]));
}

#[test]
fn prefixes_find_the_records_with_a_term_that_begins_so() {
    let directory = Directory::new();
    let address = filled(&directory);
    for (query, prefixes) in [
        ("sto*", &["sto"][..]),
        ("stor*", &["stor"]),
        ("\"sto\"*", &["sto"]),
        ("sto* sa*", &["sto", "sa"]),
        ("x*", &["x"]),
    ] {
        let begins =
            |words: &[String], prefix: &str| words.iter().any(|word| word.starts_with(prefix));
        let expected: Vec<usize> = letters()
            .iter()
            .map(|one| words(&one.1))
            .enumerate()
            .filter(|(_, words)| prefixes.iter().all(|prefix| begins(words, prefix)))
            .map(|(n, _)| n)
            .collect();
        let mut found: Vec<usize> = found(&address, &["letters.words", query, "--field", "1"])
            .into_iter()
            .map(|(n, _)| n)
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
}
