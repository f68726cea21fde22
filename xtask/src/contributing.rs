//! CONTRIBUTING.md names the places that a new pattern touches: they are there, and few.
//! ARCHITECTURE.md names paths that exist, and every package.

#![allow(clippy::unwrap_used)]

use std::fs;

/// A pattern that has been added everywhere.
const FAMILY: &str = "tables";
const PATTERN: &str = "join";
const MOST_PLACES: usize = 6;

/// The paths of a section of CONTRIBUTING.md, in the lines that begin so.
fn paths(section: &str, beginning: impl Fn(&str) -> bool) -> Vec<String> {
    let root = crate::root().unwrap();
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let section = text.split("\n## ").find(|part| part.starts_with(section)).unwrap();
    let lines = section.lines().filter(|line| beginning(line));
    let path = |line: &str| line.split('`').nth(1).unwrap().to_owned();
    lines.map(|line| path(line).replace("FAMILY", FAMILY).replace("PATTERN", PATTERN)).collect()
}

#[test]
fn a_pattern_touches_few_places_and_each_names_it() {
    let root = crate::root().unwrap();
    let touched = paths("Add a pattern", |line| line.starts_with(|c: char| c.is_ascii_digit()));
    assert!((1..=MOST_PLACES).contains(&touched.len()), "{touched:?}");
    for path in touched {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        assert!(text.contains(PATTERN), "{path} does not name {PATTERN}");
    }
}

#[test]
fn a_family_touches_places_that_name_it() {
    let root = crate::root().unwrap();
    let numbered = |line: &str| line.starts_with(|c: char| c.is_ascii_digit());
    let touched = paths("Add a family of patterns", numbered);
    assert!(touched.len() > 3, "{touched:?}");
    for path in touched {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        assert!(text.contains("trees"), "{path} does not name the family of trees");
    }
}

#[test]
fn the_files_of_a_pattern_are_where_they_should_be() {
    let root = crate::root().unwrap();
    let files = paths("Add a pattern", |line| line.starts_with("* "));
    assert!(files.len() > 3, "{files:?}");
    for path in files {
        assert!(root.join(&path).exists(), "{path} is missing");
    }
}

/// The paths in backticks: what begins like a file or folder at the top level.
fn named_paths(text: &str) -> Vec<&str> {
    let root = crate::root().unwrap();
    let quoted =
        text.split('`').skip(1).step_by(2).filter(|word| !word.contains(char::is_whitespace));
    let at_top = |path: &&str| root.join(path.split('/').next().unwrap()).exists();
    quoted.filter(|word| word.contains('/') || word.ends_with(".md")).filter(at_top).collect()
}

#[test]
fn the_map_names_what_is_there() {
    let root = crate::root().unwrap();
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let paths = named_paths(&map);
    assert!(paths.len() > 40, "{paths:?}");
    let missing: Vec<_> = paths.into_iter().filter(|path| !root.join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // The control.
    assert_eq!(named_paths("see `src/nothing.rs` and `a / b`"), ["src/nothing.rs"]);
}

#[test]
fn the_map_names_every_package() {
    let root = crate::root().unwrap();
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = workspace.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    assert!(members.len() > 20, "{members:?}");
    for member in members {
        let manifest = fs::read_to_string(root.join(member).join("Cargo.toml")).unwrap();
        let name = manifest.split("name = \"").nth(1).unwrap().split('"').next().unwrap();
        assert!(map.contains(&format!("`{name}`")), "{name} is not on the map");
    }
}
