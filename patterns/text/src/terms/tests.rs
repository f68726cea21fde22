//! A search with seeks finds the same terms as a comparison with every term, and reads few other
//! terms.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeSet;
use std::ops::Bound;

use proptest::prelude::*;

use super::{TermMatcher, TermStep};
use crate::analysis::{Analyzer, Language};
use crate::{Query, QueryError};

type Dictionary = BTreeSet<String>;

struct Found {
    terms: Vec<(String, u8)>,
    seeks: usize,
    read: usize,
}

/// Scans a dictionary in the same way as an index.
fn find(matcher: &TermMatcher, dictionary: &Dictionary) -> Found {
    let mut found = Found { terms: vec![], seeks: 0, read: 0 };
    let mut from = matcher.first();
    'seeks: while let Some(seek) = from.take() {
        found.seeks += 1;
        for term in dictionary.range(seek..) {
            found.read += 1;
            match matcher.step(term) {
                TermStep::Match { distance } => found.terms.push((term.clone(), distance)),
                TermStep::Next => {}
                TermStep::Seek(seek) => {
                    assert!(seek > *term, "{seek:?} is not after {term:?}");
                    from = Some(seek);
                    continue 'seeks;
                }
                TermStep::End => return found,
            }
        }
    }
    found
}

fn assert_found(
    matcher: &TermMatcher,
    dictionary: &Dictionary,
    naive: impl Fn(&str) -> Option<u8>,
) -> Result<(), TestCaseError> {
    let expected = dictionary.iter().filter_map(|term| Some((term.clone(), naive(term)?)));
    let expected: Vec<_> = expected.collect();
    let found = find(matcher, dictionary);
    prop_assert!(found.seeks <= found.read + 1);
    prop_assert_eq!(found.terms, expected);
    for term in dictionary {
        prop_assert_eq!(matcher.distance(term), naive(term));
    }
    Ok(())
}

/// The optimal string alignment distance, by its recurrence.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if i == 0 || j == 0 {
                rows[i][j] = i.max(j);
                continue;
            }
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            rows[i][j] = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[a.len()][b.len()]
}

/// Whether a pattern of characters, `*` and `?` matches, found by backtracking.
fn wildcard(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['*', rest @ ..], _) => {
            wildcard(rest, text) || !text.is_empty() && wildcard(pattern, &text[1..])
        }
        (['?', rest @ ..], [_, text @ ..]) => wildcard(rest, text),
        ([c, rest @ ..], [d, text @ ..]) => c == d && wildcard(rest, text),
        _ => false,
    }
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

/// Words of few letters, so that they are similar; some letters have more than one byte.
fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[abc]{0,6}", "[ab\u{0}\u{7F}é\u{80}中\u{D7FF}\u{E000}🦀\u{10FFFF}]{0,5}"]
}

const EXPRESSIONS: &[&str] =
    &["a", "b", "c", "é", "[ab]", "[^a]", ".", ".*", "(ab|c)*", "a{1,2}", "b?", "(?s:.)", r"\w"];

fn dictionaries() -> impl Strategy<Value = Dictionary> {
    prop::collection::btree_set(words(), 0..60)
}

proptest! {
    #[test]
    fn fuzzy_terms_are_those_within_the_distance(
        dictionary in dictionaries(),
        text in words(),
        distance in 0_u8..=2,
        equal in 0_usize..4,
    ) {
        let matcher = TermMatcher::fuzzy(&text, distance, equal).unwrap();
        let start: String = text.chars().take(equal).collect();
        assert_found(&matcher, &dictionary, |term| {
            let rest = term.strip_prefix(&start)?;
            let edits = edits(rest, &text[start.len()..]) as u8;
            (edits <= distance).then_some(edits)
        })?;
    }

    #[test]
    fn wildcards_match_like_backtracking(
        dictionary in dictionaries(),
        pattern in "[ab*?é🦀.+]{0,7}",
    ) {
        let matcher = TermMatcher::wildcard(&pattern).unwrap();
        assert_found(&matcher, &dictionary, |term| {
            wildcard(&chars(&pattern), &chars(term)).then_some(0)
        })?;
    }

    #[test]
    fn expressions_match_like_another_engine(
        dictionary in dictionaries(),
        parts in prop::collection::vec(prop::sample::select(EXPRESSIONS), 0..5),
    ) {
        let expression = parts.concat();
        let matcher = TermMatcher::regex(&expression).unwrap();
        let engine = regex::Regex::new(&format!("^(?:{expression})$")).unwrap();
        assert_found(&matcher, &dictionary, |term| engine.is_match(term).then_some(0))?;
    }

    #[test]
    fn prefixes_and_ranges_are_ranges_of_the_dictionary(
        dictionary in dictionaries(),
        a in words(),
        b in words(),
        kind in 0..9,
    ) {
        let prefix = TermMatcher::prefix(a.clone());
        assert_found(&prefix, &dictionary, |term| term.starts_with(&a).then_some(0))?;
        let bound = |text: String, kind| match kind {
            0 => Bound::Included(text),
            1 => Bound::Excluded(text),
            _ => Bound::Unbounded,
        };
        let (from, to) = (bound(a, kind % 3), bound(b, kind / 3));
        let range = TermMatcher::range(from.clone(), to.clone());
        assert_found(&range, &dictionary, |term| {
            use std::ops::RangeBounds;
            (from.clone(), to.clone()).contains(&term.to_owned()).then_some(0)
        })?;
    }

}

proptest! {
    // Automata of long texts take about 100 ms each in debug builds.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 16))]

    #[test]
    fn any_pattern_is_compiled_or_refused(pattern in any::<String>(), term in any::<String>()) {
        for matcher in [
            TermMatcher::wildcard(&pattern),
            TermMatcher::regex(&pattern),
            TermMatcher::fuzzy(&pattern, 2, 1),
        ].into_iter().flatten() {
            matcher.step(&term);
            matcher.first();
        }
    }
}

#[test]
fn famous_misspellings_have_their_distance() {
    let pairs = [
        ("kitten", "sitten", Some(1)),
        ("rabbit", "rabibt", Some(1)),
        ("flaw", "lawn", Some(2)),
        ("kitten", "sitting", None), // distance 3
        ("ca", "abc", None),         // distance 3; 2 if swapped letters may be edited
        ("Zürich", "Zurich", Some(1)),
    ];
    for (a, b, distance) in pairs {
        assert_eq!(TermMatcher::fuzzy(a, 2, 0).unwrap().distance(b), distance, "{a} {b}");
    }
}

/// All words of four letters from `letters`, and the words `wanted`.
fn dictionary_of(letters: &str, wanted: &[&str]) -> Dictionary {
    let mut words = vec![String::new()];
    for _ in 0..4 {
        let longer =
            |word: &String| letters.chars().map(|c| format!("{word}{c}")).collect::<Vec<_>>();
        words = words.iter().flat_map(longer).collect();
    }
    words
        .into_iter()
        .chain(["zzzz".to_owned()])
        .chain(wanted.iter().map(ToString::to_string))
        .collect()
}

#[test]
fn seeks_grow_with_the_matches_not_the_dictionary() {
    let wanted = ["kabcx", "kabdx", "kabbit", "krabbit", "krabibt"];
    let matchers = [
        (TermMatcher::prefix("krab"), 2),
        (TermMatcher::wildcard("krab*t").unwrap(), 2),
        (TermMatcher::wildcard("kab?x").unwrap(), 2),
        (TermMatcher::regex("kr(abb|abi)[a-z]+").unwrap(), 2),
        (TermMatcher::fuzzy("krabbit", 1, 2).unwrap(), 2),
    ];
    for (matcher, matches) in matchers {
        let costs = ["abcd", "abcdefgh", "abcdefghijlmnopq"].map(|letters| {
            let found = find(&matcher, &dictionary_of(letters, &wanted));
            assert_eq!(found.terms.len(), matches, "{:?}", found.terms);
            assert!(found.read <= 2 * matches + 2, "read {} for {matches}", found.read);
            (found.seeks, found.read)
        });
        // The cost is the same for 256 and for 65,536 words.
        assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
    }
}

#[test]
fn a_fuzzy_term_reads_a_small_part_of_the_dictionary() {
    let dictionary = dictionary_of("abcdefghijklmnop", &["rabbit"]);
    let read = |distance| {
        let matcher = TermMatcher::fuzzy("rabbit", distance, 0).unwrap();
        find(&matcher, &dictionary).read
    };
    // Keys read from 65,537 words. Any first letter is possible, and with distance 2 any first two
    // letters.
    assert!(read(1) < 200, "{}", read(1));
    assert!(read(2) < 2_000, "{}", read(2));
}

#[test]
fn patterns_that_are_too_large_are_refused() {
    let why = |result: Result<TermMatcher, QueryError>| match result {
        Err(QueryError::Pattern { pattern, why }) => {
            assert!(pattern.chars().count() <= 80);
            why
        }
        other => panic!("{other:?}"),
    };
    assert!(why(TermMatcher::regex("(")).contains("unclosed group"));
    assert!(why(TermMatcher::regex("[ab]*a[ab]{20}")).contains("match fewer characters"));
    assert!(why(TermMatcher::regex(&"a".repeat(65_537))).contains("the limit is 65536"));
    assert!(why(TermMatcher::regex(&"a".repeat(60_000))).contains("match fewer characters"));
    assert!(why(TermMatcher::regex(r"\ba")).contains(r"(?-u:\b)"));
    let many = format!("*a{}", "?".repeat(20));
    assert!(why(TermMatcher::wildcard(&many)).contains("match fewer characters"));
    assert!(why(TermMatcher::fuzzy(&"é".repeat(65), 1, 0)).contains("65 characters"));
    let long = "é".repeat(200);
    let exact = TermMatcher::fuzzy(&long, 0, 3).unwrap();
    assert_eq!(exact.distance(&long), Some(0));
    assert_eq!((exact.distance("é"), exact.distance(&format!("{long}é"))), (None, None));
    assert!(why(TermMatcher::fuzzy("a", 3, 0)).contains("greater than 2"));
    assert!(TermMatcher::fuzzy(&"中".repeat(64), 2, 0).is_ok());
}

#[test]
fn texts_of_queries_are_normalized() {
    let matches = |query: &Query, term: &str| {
        let matcher = TermMatcher::of(query, &Analyzer::names()).unwrap().unwrap();
        matcher.distance(term).is_some()
    };
    assert!(matches(&Query::prefix("f", "ZÜR"), "zurich"));
    assert!(matches(&Query::wildcard("f", "Z?r*H"), "zurich"));
    assert!(matches(&Query::fuzzy("f", "Zürisch", 1), "zurich"));
    assert!(matches(&Query::range("f", "Z".to_owned()..), "zurich"));
    assert!(!matches(&Query::regex("f", "Z.*"), "zurich"));
    // A full-width question mark is folded to an ASCII one, but is not a wildcard.
    assert!(matches(&Query::wildcard("f", "a*b？"), "ab?"));
    assert!(!matches(&Query::wildcard("f", "a*b？"), "abc"));
    assert!(TermMatcher::of(&Query::All, &Analyzer::names()).unwrap().is_none());
}

#[test]
fn patterns_are_compared_without_articles() {
    let french = Analyzer::language(Language::French);
    let dictionary: BTreeSet<String> =
        french.terms("l’arbre l'ombre arbuste").into_iter().collect();
    let found = |query: Query| {
        let matcher = TermMatcher::of(&query, &french).unwrap().unwrap();
        let terms = dictionary.iter().filter(|term| matcher.distance(term).is_some());
        terms.cloned().collect::<Vec<_>>()
    };
    assert_eq!(found(Query::prefix("b", "l’arbr")), ["arbre"]);
    assert_eq!(found(Query::wildcard("b", "L'o?bre")), ["ombre"]);
    assert_eq!(found(Query::wildcard("b", "?l'ombre")), [""; 0]);
    assert_eq!(found(Query::fuzzy("b", "l’arbrr", 1)), ["arbre"]);
    assert_eq!(Analyzer::language(Language::Turkish).normalize("İzmir’d"), "izmir");
}
