//! Checks CONTRIBUTING.md and ARCHITECTURE.md. CONTRIBUTING.md lists the few places that a new
//! pattern touches, and all of them exist. ARCHITECTURE.md names paths and functions that exist,
//! every package, and its dependencies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::fs;

/// A pattern that is present everywhere.
const FAMILY: &str = "tables";
const PATTERN: &str = "join";
const MOST_PLACES: usize = 6;

/// The paths in a section of CONTRIBUTING.md, in the lines with a given beginning.
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

/// The words in backticks of a text, without its diagrams. Such a word contains no spaces.
fn quoted(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let quoted = prose.flat_map(|prose| prose.split('`').skip(1).step_by(2));
    quoted.filter(|word| !word.contains(char::is_whitespace)).collect()
}

/// The paths in backticks that do not exist: words with a slash or a file extension. A file name
/// without a folder is that of a file at the top level, or of files in the tests of patterns.
fn missing_paths(text: &str) -> Vec<&str> {
    let root = crate::root().unwrap();
    let has_extension =
        |word: &str| [".rs", ".md", ".toml", ".sh"].iter().any(|e| word.ends_with(e));
    let is_path = |word: &&str| word.contains('/') || has_extension(word);
    let is_there = |path: &str| root.join(path).exists() || test_files().contains(path);
    quoted(text).into_iter().filter(is_path).filter(|path| !is_there(path)).collect()
}

/// The names of the files in tests of patterns.
fn test_files() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![crate::root().unwrap().join("patterns")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.components().any(|part| part.as_os_str() == "tests") {
                names.insert(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    names
}

#[test]
fn the_map_names_paths_that_exist() {
    let map = fs::read_to_string(crate::root().unwrap().join("ARCHITECTURE.md")).unwrap();
    assert!(quoted(&map).iter().filter(|word| word.contains('/')).count() > 40);
    assert_eq!(missing_paths(&map), [""; 0]);
    // The control.
    let wrong =
        "`src/store.rs`, `src/nothing.rs`, `sorces/store.rs`, `faluts.rs`, `faults.rs`, `a / b`";
    assert_eq!(missing_paths(wrong), ["src/nothing.rs", "sorces/store.rs", "faluts.rs"]);
}

/// The functions of the map that the file or folder before them does not define, as
/// ``` `FILE`: `function`, `function` ```.
fn missing_tests(text: &str) -> Vec<&str> {
    let root = crate::root().unwrap();
    let mut missing = Vec::new();
    for (n, _) in text.match_indices("`: `") {
        let path = text[..n].rsplit('`').next().unwrap();
        let source = fs::read_to_string(root.join(path)).unwrap_or_default();
        let list = text[n + 3..].split([';', '|']).next().unwrap();
        missing.extend(quoted(list).into_iter().filter(|name| {
            ![format!("fn {name}("), format!("fn {name}<")].iter().any(|f| source.contains(f))
        }));
    }
    missing
}

#[test]
fn the_map_names_tests_that_exist() {
    let map = fs::read_to_string(crate::root().unwrap().join("ARCHITECTURE.md")).unwrap();
    assert!(map.matches("`: `").count() > 10);
    assert_eq!(missing_tests(&map), [""; 0]);
    // The control.
    let wrong =
        "| a | `tests/ranges.rs`: `bounds`, `no_such`; `src/range.rs` |\n`src/none.rs`: `gone` |";
    assert_eq!(missing_tests(wrong), ["no_such", "gone"]);
}

/// The folder and the name of each package of the workspace.
fn packages() -> Vec<(String, String)> {
    let root = crate::root().unwrap();
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = workspace.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let named = members.split('"').skip(1).step_by(2).map(|member| {
        let manifest = fs::read_to_string(root.join(member).join("Cargo.toml")).unwrap();
        let name = manifest.split("\nname = \"").nth(1).unwrap().split('"').next().unwrap();
        (member.to_owned(), name.to_owned())
    });
    named.collect()
}

/// The packages whose names are not in backticks.
fn missing_packages(text: &str) -> Vec<String> {
    let quoted = quoted(text);
    let names = packages().into_iter().map(|(_, name)| name);
    names.filter(|name| !quoted.contains(&name.as_str())).collect()
}

#[test]
fn the_map_names_every_package() {
    let map = fs::read_to_string(crate::root().unwrap().join("ARCHITECTURE.md")).unwrap();
    assert!(packages().len() > 20);
    assert_eq!(missing_packages(&map), [""; 0]);
    // The control.
    assert_eq!(missing_packages(&map.replace("`keyloom-fuzz`", "the fuzzer")), ["keyloom-fuzz"]);
}

/// The rows of the table of crates whose second column differs from the dependencies of the crate.
fn wrong_rows(map: &str) -> Vec<&str> {
    let root = crate::root().unwrap();
    let packages = packages();
    let rows = map.lines().filter(|line| line.starts_with("| `keyloom"));
    let is_wrong = |row: &&str| {
        let columns: Vec<&str> = row.split('|').collect();
        let name = quoted(columns[1])[0];
        let (folder, _) = packages.iter().find(|(_, package)| package == name).unwrap();
        let manifest = fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        let section = manifest.split("\n[dependencies]").nth(1).unwrap_or_default();
        let section = section.split("\n[").next().unwrap();
        let name_of = |line: &str| line.split(['.', ' ']).next().unwrap().to_owned();
        let found = section.lines().filter(|line| line.starts_with("keyloom-")).map(name_of);
        let given = quoted(columns[2]).into_iter().map(str::to_owned);
        found.collect::<BTreeSet<_>>() != given.collect()
    };
    rows.filter(is_wrong).collect()
}

#[test]
fn the_map_names_what_a_crate_depends_on() {
    let map = fs::read_to_string(crate::root().unwrap().join("ARCHITECTURE.md")).unwrap();
    assert!(map.lines().filter(|line| line.starts_with("| `keyloom")).count() > 10);
    assert_eq!(wrong_rows(&map), [""; 0]);
    // The control.
    let row = "| `keyloom-text` (`patterns/text`) | `keyloom-tables` | full-text search |";
    assert_eq!(wrong_rows(row), [row]);
}

/// The functions `Type::name` in backticks that neither the core nor a pattern defines.
fn missing_functions(text: &str) -> Vec<&str> {
    let root = crate::root().unwrap();
    let (mut sources, mut folders) = (String::new(), vec![root.join("src"), root.join("patterns")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources += &fs::read_to_string(path).unwrap();
            }
        }
    }
    let is_there = |name: &str| {
        [format!("fn {name}("), format!("fn {name}<")].iter().any(|found| sources.contains(found))
    };
    let functions = quoted(text).into_iter().filter(|word| word.contains("::"));
    functions.filter(|word| !is_there(word.rsplit("::").next().unwrap())).collect()
}

#[test]
fn the_map_names_functions_that_exist() {
    let map = fs::read_to_string(crate::root().unwrap().join("ARCHITECTURE.md")).unwrap();
    assert!(quoted(&map).iter().filter(|word| word.contains("::")).count() > 10);
    assert_eq!(missing_functions(&map), [""; 0]);
    // The control.
    assert_eq!(missing_functions("`Table::put`, `Table::putt`"), ["Table::putt"]);
}
