//! An index cannot have the name of a method of `Table`: the list of these is complete.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const RESERVED: &str = include_str!("../src/record/reserved.rs");

/// The public methods in the blocks `impl<..> Table<..>` of a source file.
fn methods(source: &str) -> BTreeSet<&str> {
    let blocks = source.split("\nimpl<").skip(1).filter(|block| {
        let first = block.lines().next().unwrap_or_default();
        first.contains("> Table<") && !first.contains(" for ")
    });
    let blocks = blocks.filter_map(|block| block.split("\n}").next());
    let functions = blocks.flat_map(|block| block.split("\n    pub fn ").skip(1));
    functions.filter_map(|function| function.split(['(', '<']).next()).collect()
}

fn sources(folder: &Path, all: &mut Vec<String>) {
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        match file.is_dir() {
            true => sources(&file, all),
            false => all.push(fs::read_to_string(file).unwrap()),
        }
    }
}

#[test]
fn each_method_of_table_is_reserved() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../patterns/tables/src"), &mut files);
    let methods: BTreeSet<&str> = files.iter().flat_map(|file| methods(file)).collect();
    assert!(methods.len() > 20, "{methods:?}");
    let is_free = |name: &&&str| !RESERVED.contains(&format!("\"{name}\""));
    assert_eq!(methods.iter().filter(is_free).collect::<Vec<_>>(), [&""; 0]);
}
