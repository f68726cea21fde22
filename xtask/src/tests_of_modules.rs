//! Checks the table of ARCHITECTURE.md that leads from a source file to its tests: it has a row for
//! each file, and names each test.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;

/// The paths in backticks in one column of the table.
fn paths(map: &str, column: usize) -> Vec<&str> {
    let section = map.split("\n## ").find(|part| part.starts_with("Tests of each module")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').nth(column).unwrap());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// The files below `folder`, relative to the repository.
pub(crate) fn files(folder: &str, all: &mut Vec<String>) {
    for entry in fs::read_dir(crate::root().unwrap().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let path_here = format!("{folder}/{name}");
        match path.is_dir() {
            true if name == "target" || name.starts_with('.') => {}
            true => files(&path_here, all),
            false if name.ends_with(".rs") => all.push(path_here),
            false => {}
        }
    }
}

fn is_under(file: &str, paths: &[&str]) -> bool {
    paths.iter().any(|path| Path::new(file).starts_with(path))
}

/// The sources without a row, and the tests of families that no row names.
fn missing(map: &str) -> Vec<String> {
    let (sources, tests) = (paths(map, 1), paths(map, 2));
    let mut all = Vec::new();
    ["src", "patterns", "backends", "derive", "cli"].iter().for_each(|top| files(top, &mut all));
    let is_part_of_program = |file: &str| ["main.rs", "mod.rs"].iter().any(|n| file.ends_with(n));
    let is_missing = |file: &String| match file.split_once("/tests/") {
        Some((top, _)) if top.starts_with("patterns") && !top.ends_with("/src") => {
            !is_under(file, &tests) && !is_part_of_program(file)
        }
        None if file.starts_with("src/") || file.contains("/src/") => !is_under(file, &sources),
        _ => false,
    };
    all.into_iter().filter(is_missing).collect()
}

#[test]
fn each_source_has_a_row_and_each_test_is_in_one() {
    let map = fs::read_to_string(crate::root().unwrap().join("ARCHITECTURE.md")).unwrap();
    assert!(paths(&map, 1).len() > 90);
    assert_eq!(missing(&map), [""; 0]);
    // The controls.
    let without = map.replace("`src/range.rs`", "").replace("`patterns/tests/budget.rs`", "");
    assert_eq!(missing(&without), ["src/range.rs", "patterns/tests/budget.rs"]);
}
