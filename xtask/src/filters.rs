//! The names by which CI steps select tests. libtest accepts a name that matches nothing: a step
//! that runs only this name would run no test, and a step that skips it would not skip the test.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::ci::commands;

/// The selection of a command: the programs, and the names of tests that it runs or skips.
fn selected(command: &str) -> (Vec<&str>, Vec<&str>) {
    let Some((_, arguments)) = command.split_once("cargo test") else { return Default::default() };
    let (options, names) = arguments.split_once(" -- ").unwrap_or((arguments, ""));
    let mut options = options.split_whitespace();
    let mut programs = Vec::new();
    while let Some(option) = options.next() {
        if option == "--test" {
            programs.extend(options.next().filter(|name| !name.contains(['*', '['])));
        }
    }
    let names = names.split_whitespace().filter(|name| !name.starts_with('-'));
    (programs, names.collect())
}

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name.starts_with('.') || name == "target" || name == "xtask" => {}
            true => sources(&path, all),
            false if name.ends_with(".rs") => all.push(path),
            false => {}
        }
    }
}

/// The words of the sources, and the names of the test programs.
fn known() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut files, mut words) = (Vec::new(), BTreeSet::new());
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut files);
    let mut programs = BTreeSet::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let of_file = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.extend(of_file.filter(|word| word.len() > 3).map(str::to_owned));
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
        let is_main = name == "main";
        programs.insert(if is_main { folder.to_string_lossy().into_owned() } else { name.clone() });
        words.insert(name);
    }
    (words, programs)
}

/// The names in `commands` that belong to no test and no program.
fn unknown<'c>(commands: impl IntoIterator<Item = &'c str>) -> Vec<&'c str> {
    let (words, programs) = known();
    let mut unknown = Vec::new();
    for (of_programs, names) in commands.into_iter().map(selected) {
        unknown.extend(of_programs.into_iter().filter(|program| !programs.contains(*program)));
        let is_word = |part: &str| words.iter().any(|word| word.contains(part));
        unknown.extend(names.into_iter().filter(|name| !name.split("::").all(is_word)));
    }
    unknown
}

#[test]
fn each_name_by_which_a_step_selects_tests_is_in_the_tests() {
    assert_eq!(unknown(commands()), [""; 0]);
}

#[test]
fn a_name_that_no_test_has_is_found() {
    let commands = [
        "cargo test --test tables --test no_such_program -- index::on_ --skip on_memory",
        "cargo test -p a --lib -- queries_of_a_wrong_type --skip queries_of_no_kind index::of_never",
    ];
    assert_eq!(unknown(commands), ["no_such_program", "queries_of_no_kind", "index::of_never"]);
}

/// The crates whose examples alone a command runs, and that are not in the workspace:
/// `tests/rustdoc.sh` would skip all examples.
fn unknown_crates<'c>(commands: impl IntoIterator<Item = &'c str>) -> Vec<&'c str> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let is_known = |name: &str| {
        let (package, entry) = (format!("name = {name:?}"), format!("{name} = {{ path = "));
        manifest.lines().any(|line| line == package || line.starts_with(&entry))
    };
    let named = commands.into_iter().filter_map(|command| {
        let (_, rest) = command.split_once("KEYLOOM_DOCUMENTED=")?;
        rest.split_whitespace().next()
    });
    named.filter(|name| !is_known(&name.replace('_', "-"))).collect()
}

#[test]
fn each_crate_whose_examples_a_step_runs_is_in_the_workspace() {
    assert!(commands().into_iter().any(|command| command.contains("KEYLOOM_DOCUMENTED=")));
    assert_eq!(unknown_crates(commands()), [""; 0]);
    let others = ["KEYLOOM_DOCUMENTED=keyloom_tables cargo test", "KEYLOOM_DOCUMENTED=key x"];
    assert_eq!(unknown_crates(others), ["key"]);
}
