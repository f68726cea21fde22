//! `query` of each kind of data, compared with a scan of the records that the test wrote.

mod audiences;
pub mod contents;
mod edges;
mod places;
mod texts;
mod trees;

use serde_json::Value;

use crate::support::{Directory, fine, run, run_into_head};

/// A store with all kinds of data.
fn filled(directory: &Directory) -> String {
    directory.lmdb(contents::fill)
}

/// The objects that a query prints.
fn objects(arguments: &[&str]) -> Vec<Value> {
    let printed = fine(&[&["query"], arguments, &["--json"]].concat());
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_else(|| panic!("no {field} in {object}")).to_owned()
}

/// The queries of each kind that find several records.
pub const QUERIES: [[&str; 2]; 12] = [
    ["pins.by_place", "-60,-100,60,100"],
    ["pins.by_place", "51.5,-0.1,6000km"],
    ["parks.by_extent", "-60,-100,60,100"],
    ["list.tree", "/photos/**"],
    ["names.tree", "/*/2024*"],
    ["sets.tree", "/**/2024"],
    ["docs.by_path", "usr.*"],
    ["links edges", "ada"],
    ["roads edges.incoming", "1"],
    ["letters.words", "sea"],
    ["copies.words", "the st*"],
    ["letters.words", "s*"],
];

#[test]
fn queries_end_at_their_limit_and_say_so() {
    let directory = Directory::new();
    let address = filled(&directory);
    for [name, query] in QUERIES {
        let all = objects(&[&address, name, query, "-n", "100000"]);
        assert!(all.len() >= 3, "{name}: {}", all.len());
        let count = all.len().to_string();
        let whole = run(&["query", &address, name, query, "-n", &count, "--json"]);
        assert_eq!((whole.code, whole.err.as_str()), (0, ""), "{name}");
        for most in [0, 1, 2] {
            let most_text = most.to_string();
            let cut = run(&["query", &address, name, query, "-n", &most_text, "--json"]);
            let rows: Vec<Value> =
                cut.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(rows, all[..most], "{name}");
            assert!(cut.err.contains(&format!("more than {most}")), "{name}: {}", cut.err);
        }
        // The lines of the text are the same records.
        let lines = fine(&["query", &address, name, query, "-n", &count]);
        assert_eq!(lines.lines().count(), all.len());
        for (line, one) in lines.lines().zip(&all) {
            let record = format!("  {} = {}", text(one, "key"), text(one, "value"));
            assert!(line.ends_with(&record), "{line}: {record}");
            assert!(!line.contains('\u{1b}'), "{line:?}");
        }
        let head = run_into_head(&["query", &address, name, query, "-n", &count]);
        assert_eq!((head.code, head.err.as_str()), (0, ""), "{name}");
        assert_eq!(head.out, format!("{}\n", lines.lines().next().unwrap()));
    }
}

#[test]
fn records_of_queries_are_those_of_the_tables() {
    let directory = Directory::new();
    let address = filled(&directory);
    for [name, query] in QUERIES {
        for one in objects(&[&address, name, query]) {
            let value = fine(&["get", &address, &text(&one, "key")]);
            assert_eq!(value, format!("{}\n", text(&one, "value")), "{name}");
        }
    }
}

#[test]
fn wrong_queries_are_refused_with_an_example() {
    let directory = Directory::new();
    let address = filled(&directory);
    for (arguments, reason) in [
        (&["pins.by_place", "London"][..], "south,west,north,east such as 51.2,-0.5,51.7,0.3"),
        (&["pins.by_place", "51.5,-0.1,10"], "a circle such as 51.5,-0.1,10km"),
        (&["pins.by_place", "51.5,-0.1,10km,7"], "such as 51.2"),
        (&["pins.by_place", "95,0,10km"], "latitude"),
        (&["pins.by_place", "1,2,3,4,5"], "is not a place"),
        (&["pins.by_place", "51.5,-0.1,-1km"], "radius"),
        (&["vans.by_place", "0,0"], "name one, such as --group '(\"acme\",)'"),
        (&["vans.by_place", "0,0", "--group", "("], "is not usable"),
        (&["parks.by_extent", "51.5,-0.1,10km"], "nor a position such as 51.5,-0.1"),
        (&["list.tree", "photos"], "begins with a slash, as in /photos/2024/x.jpg"),
        (&["docs.by_path", "/usr/bin"], "such as 'usr.*.bin'"),
        (&["users.sets", "town"], "expected =, <, <=, > or >= after \"town\""),
        (&["users.sets", "town="], "expected a value of \"town\""),
        (&["users.sets", "(town=Rome"], "after 10 characters: expected )"),
        (&["users.sets", "town=Rome level=3"], "expected and, or, or the end"),
        (&["users.sets", "town=Rome and"], "expected the name of a field"),
        (&["users.sets", "city=Rome"], "has no field \"city\"; it has "),
        (&["users.sets", "city=Rome"], "such as 'town=London and level>=3'"),
        (&["users.sets", "level=Rome"], "of another type"),
        (&["users.sets", "town>3"], "of another type"),
        (&["users.sets", "age=x"], "a condition is such as 'age>=3'"),
        (&["users.sets", "town>Lon*"], "only = takes the beginning"),
        (&["users.sets", "town=\"Rome"], "quote is missing"),
        (&["users.sets", "town=Rome", "--field", "1"], "--field does not belong"),
        (&["letters.words"], "such as 'storm sea'"),
        (&["letters.words", "*"], "a prefix has a letter at least"),
        (&["letters.words", "\"sea"], "quote is missing"),
        (&["letters.words", "sea", "--field", "2"], "texts in --field 0, --field 1"),
        (&["shelves.words", "sea"], "--group '(\"acme\",)' --field 0"),
        (&["pins.by_place", "0,0", "--field", "1"], "--field does not belong"),
        (&["links edges"], "such as ada, \"7\" or 7"),
        (&["links edges", "ada", "--reverse"], "--reverse does not belong"),
        (&["pins.by_place", "0,0", "--label", "x"], "--label does not belong"),
        (&["list.tree", "/", "--direction", "in"], "--direction does not belong"),
        (&["docs.by_path", "*", "--group", "(1,)"], "--group does not belong"),
        (&["pins"], "its table has \"pins.by_place\" (points)"),
        (&["links edges.degrees"], "\"links edges.incoming\" (incoming edges)"),
        (&["links vertices"], "the store has"),
    ] {
        let refused = run(&[&["query", &address], arguments].concat());
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{arguments:?}");
        assert!(refused.err.contains(reason), "{arguments:?}: {}", refused.err);
    }
    let scanned = run(&["query", &address, "links edges.degrees"]).err;
    assert!(scanned.contains("`keyloom scan or explore` shows its entries"), "{scanned}");
}

#[test]
fn a_query_without_a_match_says_what_may_be_wrong() {
    let directory = Directory::new();
    let address = filled(&directory);
    for ([name, query], hint) in [
        (["pins.by_place", "89,0,90,1"], "no record at this place"),
        (["parks.by_extent", "89,0"], "no record at this place"),
        (["list.tree", "/nothing/*"], "no node has such a path"),
        (["list.tree", "999"], "no such node"),
        (["docs.by_path", "USR.*"], "case-sensitive"),
        (["letters.words", "Sea"], "as they are stored"),
        (["links edges", "7"], "\"7\" is a text"),
    ] {
        let ran = run(&["query", &address, name, query]);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{name}");
        assert!(ran.err.contains(hint), "{name}: {}", ran.err);
    }
}

#[test]
fn the_help_has_an_example_of_each_kind() {
    let help = fine(&["query", "--help"]);
    for kind in [
        "index",
        "points",
        "extents",
        "tree",
        "path hierarchy",
        "graph",
        "text index",
        "inverted index",
    ] {
        let example =
            |line: &str| line.trim_start().starts_with(kind) && line.contains("keyloom query");
        assert!(help.lines().any(example), "{kind}: {help}");
    }
}
