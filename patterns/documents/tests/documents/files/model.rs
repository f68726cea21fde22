//! Random changes and searches, against a map from paths to contents.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Reader, Store};
use keyloom_documents::files::{Files, FilesError};
use keyloom_testing::ids::TEXTS;
use keyloom_testing::laws;
use keyloom_text::Query;
use proptest::prelude::*;

use super::fresh;

/// The contents of a file, or `None` for a directory.
type Model = BTreeMap<String, Option<String>>;

#[derive(Clone, Debug)]
enum Change {
    CreateDirectory(String),
    Write(String, String),
    Rename(String, String),
    RenameOver(String, String),
    Remove(String),
    RemoveAll(String),
}

fn a_path() -> impl Strategy<Value = String> {
    let is_name = |text: &&str| !text.is_empty() && !text.contains('\0');
    let names: Vec<&str> = TEXTS.into_iter().filter(is_name).collect();
    let name = prop::sample::select(names);
    prop::collection::vec(name, 1..4).prop_map(|names| format!("/{}", names.join("/")))
}

fn a_change() -> impl Strategy<Value = Change> {
    let words = prop::collection::vec(prop::sample::select(vec!["x", "y", "z"]), 0..5);
    prop_oneof![
        4 => a_path().prop_map(Change::CreateDirectory),
        4 => (a_path(), words).prop_map(|(path, words)| Change::Write(path, words.join(" "))),
        4 => (a_path(), a_path()).prop_map(|(from, to)| Change::Rename(from, to)),
        2 => (a_path(), a_path()).prop_map(|(from, to)| Change::RenameOver(from, to)),
        1 => a_path().prop_map(Change::Remove),
        1 => a_path().prop_map(Change::RemoveAll),
    ]
}

fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').unwrap().0
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// The error for a path whose parent directory is missing or is a file.
fn refused_place(model: &Model, path: &str) -> Option<&'static str> {
    let directories = path.match_indices('/').map(|(at, _)| &path[..at]).skip(1);
    for directory in directories {
        match model.get(directory) {
            None => return Some("not found"),
            Some(Some(_)) => return Some("not a directory"),
            Some(None) => {}
        }
    }
    None
}

fn kind(error: &keyloom::Error) -> &'static str {
    match error.downcast_ref().unwrap_or_else(|| panic!("{error}")) {
        FilesError::NotFound { .. } => "not found",
        FilesError::NotADirectory { .. } => "not a directory",
        FilesError::IsADirectory { .. } => "a directory",
        FilesError::Exists { .. } => "exists",
        FilesError::NotEmpty { .. } => "not empty",
        FilesError::BelowItself { .. } => "below itself",
        _ => panic!("{error}"),
    }
}

fn place(model: &Model, path: &str) -> Result<(), &'static str> {
    refused_place(model, path).map_or(Ok(()), Err)
}

fn existing(model: &Model, path: &str) -> Result<(), &'static str> {
    place(model, path)?;
    if model.contains_key(path) { Ok(()) } else { Err("not found") }
}

fn movable(model: &Model, from: &str, to: &str) -> Result<(), &'static str> {
    existing(model, from)?;
    // The parent of the new path is checked before cycles are.
    place(model, to)?;
    let is_above = directory_of(to) == from || is_below(directory_of(to), from);
    if is_above { Err("below itself") } else { Ok(()) }
}

fn move_all(model: &mut Model, from: &str, to: &str) {
    let is_moved = |path: &String| path == from || is_below(path, from);
    let moved: Vec<String> = model.keys().filter(|path| is_moved(path)).cloned().collect();
    for path in moved {
        let entry = model.remove(&path).unwrap();
        model.insert(format!("{to}{}", &path[from.len()..]), entry);
    }
}

/// Applies the same change to the model, or returns the kind of its error.
fn change(model: &mut Model, change: &Change) -> Result<(), &'static str> {
    match change {
        Change::CreateDirectory(path) => {
            place(model, path)?;
            match model.contains_key(path) {
                true => return Err("exists"),
                false => model.insert(path.clone(), None),
            };
        }
        Change::Write(path, contents) => {
            place(model, path)?;
            if model.get(path).is_some_and(Option::is_none) {
                return Err("a directory");
            }
            model.insert(path.clone(), Some(contents.clone()));
        }
        Change::Rename(from, to) => {
            movable(model, from, to)?;
            if model.contains_key(to) {
                return Err("exists");
            }
            move_all(model, from, to);
        }
        Change::RenameOver(from, to) => {
            movable(model, from, to)?;
            let is_directory = |path: &String| model.get(path).map(Option::is_none);
            match (is_directory(from), is_directory(to)) {
                _ if from == to => return Ok(()),
                (Some(false), Some(true)) => return Err("a directory"),
                (Some(true), Some(false)) => return Err("not a directory"),
                _ if model.keys().any(|other| is_below(other, to)) => return Err("not empty"),
                _ => model.remove(to),
            };
            move_all(model, from, to);
        }
        Change::Remove(path) => {
            existing(model, path)?;
            if model.keys().any(|other| is_below(other, path)) {
                return Err("not empty");
            }
            model.remove(path);
        }
        Change::RemoveAll(path) => {
            existing(model, path)?;
            model.retain(|other, _| other != path && !is_below(other, path));
        }
    }
    Ok(())
}

fn apply(store: &impl Store, files: &Files, change: &Change) -> Result<(), &'static str> {
    let done = match change {
        Change::CreateDirectory(path) => {
            store.transact(|txn| files.create_directory(txn, path).map(drop))
        }
        Change::Write(path, contents) => {
            store.transact(|txn| files.write(txn, path, contents.as_bytes()).map(drop))
        }
        Change::Rename(from, to) => store.transact(|txn| files.rename(txn, from, to)),
        Change::RenameOver(from, to) => store.transact(|txn| files.rename_over(txn, from, to)),
        Change::Remove(path) => store.transact(|txn| files.remove(txn, path)),
        Change::RemoveAll(path) => files.remove_all(store, path).map(drop),
    };
    done.map_err(|error| kind(&error))
}

fn stored(files: &Files, reader: &impl Reader) -> Model {
    let mut found = Model::new();
    let mut before = Vec::new();
    for entry in files.walk(reader, "/").unwrap() {
        let (path, id, entry) = entry.unwrap();
        assert_eq!(files.path_of(reader, id).unwrap().as_ref(), Some(&path));
        let directory = directory_of(&path).to_owned();
        assert!(directory.is_empty() || before.contains(&directory), "{path} before its directory");
        before.push(path.clone());
        let contents = match entry.is_directory() {
            true => None,
            false => Some(String::from_utf8(files.read(reader, &path).unwrap()).unwrap()),
        };
        found.insert(path, contents);
    }
    found
}

/// The directory of a search, and whether files of directories below it are found.
type Scope<'s> = Option<(&'s str, bool)>;

/// The paths of all pages.
fn found(files: &Files, reader: &impl Reader, scope: Scope<'_>, name: &str) -> Vec<String> {
    let (mut paths, mut after) = (Vec::new(), None);
    loop {
        let mut search = files.search(Query::term("contents", "x")).limit(2).after(after);
        search = match scope {
            Some((directory, true)) => search.within(directory),
            Some((directory, false)) => search.directly_in(directory),
            None => search,
        };
        if !name.is_empty() {
            search = search.named(name);
        }
        let page = search.page(reader).unwrap();
        paths.extend(page.items.into_iter().map(|file| file.path));
        after = page.next;
        if after.is_none() {
            return paths;
        }
    }
}

pub fn random_changes_are_those_of_the_model(store: &impl Store) {
    laws::very_long_property(prop::collection::vec(a_change(), 1..40), |changes| {
        let files = fresh(store);
        let mut model = Model::new();
        for one in &changes {
            let wanted = change(&mut model, one);
            assert_eq!(apply(store, &files, one), wanted, "{one:?}");
        }
        let snapshot = store.snapshot().unwrap();
        assert_eq!(stored(&files, &snapshot), model);
        assert_eq!(files.check(&snapshot).unwrap(), []);

        let directories: Vec<&String> =
            model.iter().filter(|(_, contents)| contents.is_none()).map(|(path, _)| path).collect();
        let places = directories.iter().map(|path| path.as_str()).chain(["/"]);
        let scopes = places.flat_map(|path| [Some((path, true)), Some((path, false))]);
        let scopes = scopes.chain([None]);
        for (scope, name) in scopes.flat_map(|scope| [(scope, ""), (scope, "a")]) {
            let (within, is_deep) = scope.unwrap_or(("/", true));
            let below = within.trim_end_matches('/');
            let matches = |path: &String, contents: &Option<String>| {
                let has_word = contents.as_ref().is_some_and(|text| text.contains('x'));
                let last = path.rsplit('/').next().unwrap();
                let is_in = is_below(path, below) && (is_deep || directory_of(path) == below);
                has_word && is_in && last.starts_with(name)
            };
            let wanted: BTreeSet<String> = model
                .iter()
                .filter(|(path, contents)| matches(path, contents))
                .map(|(path, _)| path.clone())
                .collect();
            let paths = found(&files, &snapshot, scope, name);
            assert_eq!(paths.len(), wanted.len(), "{scope:?}, {name:?}: {paths:?}");
            assert_eq!(paths.into_iter().collect::<BTreeSet<_>>(), wanted);
        }
        let mut named: Vec<String> = model
            .keys()
            .filter(|path| path.rsplit('/').next().unwrap().starts_with('a'))
            .cloned()
            .collect();
        let mut found: Vec<String> = files
            .find_named(&snapshot, "a", 1_000)
            .unwrap()
            .into_iter()
            .map(|(path, _, _)| path)
            .collect();
        named.sort();
        found.sort();
        assert_eq!(found, named);
    });
}
