//! Nodes and paths, compared with a search through all paths.

use super::contents::{Node, PATHS, TREES, nodes};
use super::{filled, objects, text};
use crate::support::Directory;

/// The names on the way to a node.
fn names(all: &[Node], node: &Node) -> Vec<String> {
    let above = all.iter().find(|(id, ..)| Some(*id) == node.1);
    let mut names = above.map(|above| names(all, above)).unwrap_or_default();
    names.push(node.2.clone());
    names
}

/// A name that a pattern allows.
type IsName = fn(&str) -> bool;

/// A pattern, and its names; `None` stands for any number of names.
fn patterns() -> Vec<(&'static str, Vec<Option<IsName>>)> {
    let any: Option<IsName> = Some(|_| true);
    let photos: Option<IsName> = Some(|name| name == "photos");
    let year: Option<IsName> = Some(|name| name == "2024");
    vec![
        ("/", vec![any]),
        ("/*", vec![any]),
        ("/photos", vec![photos]),
        ("/photos/", vec![photos, any]),
        ("/photos/2024", vec![photos, year]),
        ("/photos/2024*", vec![photos, Some(|name| name.starts_with("2024"))]),
        ("/photos/*/*.jpg", vec![photos, any, Some(|name| name.ends_with(".jpg"))]),
        ("/photos/2*4/1.*", vec![photos, year, Some(|name| name.starts_with("1."))]),
        ("/**", vec![None]),
        ("/**/2024", vec![None, year]),
        ("/photos/**", vec![photos, None]),
        ("/photos/**/2024/**", vec![photos, None, year, None]),
        ("/\\*/*", vec![Some(|name| name == "*"), any]),
        ("/*/a\\/b/2024", vec![any, Some(|name| name == "a/b"), year]),
        ("/*/*/*/*", vec![any, any, any, any]),
    ]
}

fn matches(pattern: &[Option<IsName>], names: &[String]) -> bool {
    match (pattern, names) {
        ([], names) => names.is_empty(),
        ([None, rest @ ..], names) => (0..=names.len()).any(|at| matches(rest, &names[at..])),
        ([Some(is_name), rest @ ..], [first, names @ ..]) => is_name(first) && matches(rest, names),
        _ => false,
    }
}

#[test]
fn patterns_of_paths_find_their_nodes_in_every_model() {
    let directory = Directory::new();
    let address = filled(&directory);
    let all = nodes();
    for model in TREES {
        let tree = format!("{model}.tree");
        for (query, pattern) in patterns() {
            let mut expected: Vec<(Vec<String>, u64)> =
                all.iter().map(|node| (names(&all, node), node.0)).collect();
            expected.retain(|(names, _)| matches(&pattern, names));
            // A walk is in depth-first order, and siblings are sorted by name.
            expected.sort();
            let found: Vec<u64> = objects(&[&address, &tree, query, "-n", "1000"])
                .iter()
                .map(|one| text(one, "node").parse().unwrap())
                .collect();
            let expected: Vec<u64> = expected.into_iter().map(|(_, id)| id).collect();
            assert_eq!(found, expected, "{tree} {query}");
        }
        let roots = objects(&[&address, &tree]);
        assert_eq!(roots, objects(&[&address, &tree, "/*"]));
    }
    let empty: Vec<_> = patterns()
        .into_iter()
        .filter(|(_, pattern)| !all.iter().any(|node| matches(pattern, &names(&all, node))))
        .collect();
    assert_eq!(empty.len(), 1, "only the deepest pattern matches nothing");
}

#[test]
fn a_node_is_found_by_its_number_and_by_its_own_path() {
    let directory = Directory::new();
    let address = filled(&directory);
    for model in TREES {
        let tree = format!("{model}.tree");
        for (id, ..) in nodes() {
            let by_number = objects(&[&address, &tree, &id.to_string()]);
            assert_eq!(by_number.len(), 1);
            let path = text(&by_number[0], "path");
            assert_eq!(objects(&[&address, &tree, &path]), by_number, "{tree} {path}");
        }
    }
}

#[test]
fn patterns_of_labels_find_the_records_of_paths() {
    let directory = Directory::new();
    let address = filled(&directory);
    for (query, is_of) in [
        ("usr.*", (|path| path.starts_with("/usr")) as IsName),
        ("*.bin.ls", |path| path.ends_with("/bin/ls")),
        ("usr.*{1}.*", |path| path.starts_with("/usr/")),
        ("usr.lib.\"libm.so\"", |path| path == "/usr/lib/libm.so"),
        ("!usr.*", |path| !path.starts_with("/usr")),
    ] {
        let mut expected: Vec<&str> = PATHS.into_iter().filter(|path| is_of(path)).collect();
        expected.sort_by_key(|path| path.split('/').collect::<Vec<_>>());
        let values = |more: &[&str]| -> Vec<String> {
            let all = objects(&[&[&address, "docs.by_path", query], more].concat());
            all.iter().map(|one| text(one, "value").trim_matches('"').to_owned()).collect()
        };
        assert!(!expected.is_empty());
        assert_eq!(values(&[]), expected, "{query}");
        expected.reverse();
        assert_eq!(values(&["--reverse"]), expected, "{query}");
    }
}
