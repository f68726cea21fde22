//! Checks that a test names each variant of each public error. A test that only asserts the text of
//! an error, or that there is one, also passes if another error is returned.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;

use crate::tests_of_modules::files;

/// Variants that no test provokes, with the reason.
const WITHOUT_TEST: [&str; 2] = [
    // It takes 2^31 vertices.
    "GraphError::TooManyVertices",
    // It takes 30 seconds of waiting.
    "LmdbError::OpeningHeld",
];

/// The variants of the public enums in a source whose names end in `Error`, as `Enum::Variant`.
/// They are indented by four spaces, as rustfmt leaves them.
fn variants(source: &str) -> Vec<String> {
    let enums = source.split("\npub enum ").skip(1).filter_map(|rest| rest.split_once(" {\n"));
    let errors = enums.filter(|(name, _)| name.ends_with("Error"));
    let of_one = |(name, rest): (&str, &str)| {
        let body = rest.split("\n}").next().unwrap_or_default().to_owned();
        let name = name.to_owned();
        let variant = move |line: &str| {
            let line = line.strip_prefix("    ")?;
            let word = line.split(|c: char| !c.is_alphanumeric()).next()?;
            let is_variant = word.starts_with(|c: char| c.is_ascii_uppercase());
            is_variant.then(|| format!("{name}::{word}"))
        };
        body.lines().filter_map(variant).collect::<Vec<_>>()
    };
    errors.flat_map(of_one).collect()
}

fn is_test(file: &str) -> bool {
    file.contains("/tests/")
        || file.starts_with("tests/")
        || file.ends_with("tests.rs")
        || file.starts_with("backends/conformance/src/")
}

/// The variants that no test names.
fn unnamed(without: &str) -> Vec<String> {
    let root = crate::root().unwrap();
    let mut all = Vec::new();
    ["src", "patterns", "backends", "derive", "tests", "cli"]
        .iter()
        .for_each(|top| files(top, &mut all));
    let read = |file: &String| fs::read_to_string(root.join(file)).unwrap();
    let (tests, sources): (Vec<_>, Vec<_>) = all.iter().partition(|file| is_test(file));
    let tests: String = tests.into_iter().map(read).collect::<String>().replace(without, "");
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let named: BTreeSet<&str> = tests.split(|c| !is_word(c)).collect();
    let variants = sources.into_iter().map(read).flat_map(|source| variants(&source));
    variants
        .filter(|variant| !named.contains(variant.as_str()))
        .filter(|variant| !WITHOUT_TEST.contains(&variant.as_str()))
        .collect()
}

#[test]
fn a_test_names_each_variant_of_each_error() {
    assert_eq!(unnamed("no such text"), [""; 0]);
    // The control.
    assert_eq!(unnamed("GraphError::HasEdges"), ["GraphError::HasEdges"]);
}
