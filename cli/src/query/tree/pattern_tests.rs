//! Patterns of paths, compared with a search through all ways to match.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::{Pattern, literal};

const NAMES: [&str; 6] = ["a", "ab", "ba", "*", "/", "b\\"];
const PATTERNS: [&str; 8] = ["a", "*", "**", "a*", "*a", "a*b", "\\*", "b\\\\"];

fn matches(pattern: &Pattern, path: &[&str]) -> bool {
    let step = |states: Vec<usize>, name: &&str| pattern.step(&states, name);
    pattern.is_match(&path.iter().fold(pattern.start(), step))
}

/// Whether a name matches one name of a pattern, in which a backslash makes a star a character.
fn is_name(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], name) => name.is_empty(),
        (['*', rest @ ..], name) => (0..=name.len()).any(|at| is_name(rest, &name[at..])),
        (['\\', one, rest @ ..] | [one, rest @ ..], [first, name @ ..]) => {
            one == first && is_name(rest, name)
        }
        _ => false,
    }
}

fn is_path(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], path) => path.is_empty(),
        (["**", rest @ ..], path) => (0..=path.len()).any(|at| is_path(rest, &path[at..])),
        ([one, rest @ ..], [first, path @ ..]) => {
            let [one, first] = [one, first].map(|text| text.chars().collect::<Vec<_>>());
            is_name(&one, &first) && is_path(rest, path)
        }
        _ => false,
    }
}

/// All sequences of one to three of these texts.
fn sequences<'t>(texts: &[&'t str]) -> Vec<Vec<&'t str>> {
    let ones: Vec<Vec<&str>> = texts.iter().map(|text| vec![*text]).collect();
    let longer = |all: &Vec<Vec<&'t str>>| -> Vec<Vec<&'t str>> {
        all.iter().flat_map(|one| texts.iter().map(|text| [&one[..], &[*text]].concat())).collect()
    };
    let twos = longer(&ones);
    let threes = longer(&twos);
    [ones, twos, threes].concat()
}

#[test]
fn patterns_match_as_a_search_through_all_ways() {
    let paths = sequences(&NAMES);
    let (mut found, mut others) = (0, 0);
    for parts in sequences(&PATTERNS) {
        let pattern = Pattern::parse(&format!("/{}", parts.join("/"))).unwrap();
        for path in &paths {
            let expected = is_path(&parts, path);
            assert_eq!(matches(&pattern, path), expected, "{parts:?} {path:?}");
            if expected { found += 1 } else { others += 1 }
        }
    }
    assert!(found > 1_000 && others > 1_000, "{found} {others}");
}

#[test]
fn verdicts_on_longer_paths_hold_for_all_of_them() {
    let paths = sequences(&NAMES);
    for parts in sequences(&PATTERNS) {
        let pattern = Pattern::parse(&format!("/{}", parts.join("/"))).unwrap();
        for first in NAMES {
            let states = pattern.step(&pattern.start(), first);
            let longer = || paths.iter().map(|path| [&[first], &path[..]].concat());
            if !pattern.continues(&states) {
                assert!(longer().all(|path| !matches(&pattern, &path)), "{parts:?} {first}");
            }
            if pattern.is_whole(&states) {
                assert!(longer().all(|path| matches(&pattern, &path)), "{parts:?} {first}");
            }
            if let Some(only) = pattern.only_next(&states) {
                let is_other = |path: &Vec<&str>| path[1] != only;
                assert!(longer().filter(is_other).all(|path| !matches(&pattern, &path)));
            }
        }
    }
}

#[test]
fn the_literal_of_a_name_matches_only_this_name() {
    for name in NAMES {
        let pattern = Pattern::parse(&format!("/{}", literal(name))).unwrap();
        for other in NAMES {
            assert_eq!(matches(&pattern, &[other]), name == other, "{name} {other}");
        }
    }
    assert!(Pattern::parse("a").is_none());
    for children in ["/", "/a/"] {
        let pattern = Pattern::parse(children).unwrap();
        let above: &[&str] = if children == "/" { &[] } else { &["a"] };
        assert!(!matches(&pattern, above) && matches(&pattern, &[above, &["x"]].concat()));
    }
}
