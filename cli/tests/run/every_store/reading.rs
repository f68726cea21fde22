//! The commands that read.

use serde_json::Value;

use super::contents::NUMBERS;
use super::pair::Pair;
use crate::engines::Engine;

pub fn all(pair: &mut Pair) {
    ls_and_scan(pair);
    query_and_get(pair);
    #[cfg(feature = "explore")]
    query_by_kind(pair);
    sizes(pair);
    check(pair);
    locks_and_queues(pair);
    verify_and_backup(pair);
    for arguments in [&["completions", "bash"][..], &["man"], &["man", "scan"]] {
        pair.fine(arguments);
    }
}

fn ls_and_scan(pair: &mut Pair) {
    let listed = pair.fine(&["ls", "STORE"]);
    assert!(listed.contains("people.by_town") && listed.contains("1,500"), "{listed}");
    for more in [&["--json"][..], &["--limit", "1"], &["numbers", "--json"], &["(\"orders\",)"]] {
        pair.same(&[&["ls", "STORE"], more].concat());
    }
    pair.fine(&["ls", "STORE", "(\"orders\",)", "--depth", "2", "--json"]);
    let all = pair.fine(&["scan", "STORE", "--full", "--as=hex", "--json"]);
    assert_eq!(all.lines().count(), pair.entries("STORE").len());
    let years = pair.fine(&["scan", "STORE", "(\"orders\", 7, 2026..)"]);
    assert_eq!(years.lines().count(), 2, "{years}");
    let numbers = pair.fine(&["scan", "STORE", "(\"numbers\",)", "--reverse"]);
    let last = format!("(\"numbers\", {}) = {}\n", NUMBERS - 1, NUMBERS - 1);
    assert!(numbers.starts_with(&last) && numbers.lines().count() == NUMBERS as usize);
    for more in [
        &[][..],
        &["people"],
        &["people.by_town"],
        &["tickets"],
        &["desk/slips", "--as", "json"],
        &["(\"orders\", _, 2026)"],
        &["(\"orders\", 7)", "--after", "(\"orders\", 7, 2025)"],
        &["(\"orders\", 7)", "--after", "(\"orders\", 7, 2027)", "--reverse", "--limit=1"],
        &["0xfe"],
        &["(\"numbers\", 1100..)", "-n", "50"],
        &["(\"nothing\",)"],
        &["nothing"],
    ] {
        pair.same(&[&["scan", "STORE"], more].concat());
    }
}

fn query_and_get(pair: &mut Pair) {
    let people = pair.fine(&["query", "STORE", "people.by_town"]);
    assert!(people.lines().count() == 3 && people.contains("Ada"), "{people}");
    for more in [
        &["people.by_town", "(\"New York\", \"J\"..)"][..],
        &["people.by_town", "\"London\"", "--json"],
        &["people.by_town", "--reverse", "-n", "1"],
        &["parcels.by_note", "\"note 3\"", "--json"],
        &["parcels.unique", "(7,)"],
        &["people"],
        &["people.by_town", "("],
    ] {
        pair.same(&[&["query", "STORE"], more].concat());
    }
    assert_eq!(pair.fine(&["get", "STORE", "(\"numbers\", 1234)"]), "1234\n");
    assert_eq!(pair.same(&["get", "STORE", "(\"nothing\",)"]).code, 1);
    for more in [
        &["(\"orders\", 7, 2025)", "--as", "utf8"][..],
        &["(\"hostile\", 2)", "--full"],
        &["0xfe726177", "--as=hex"],
        &["(\"hostile\", 1)", "--json"],
    ] {
        pair.fine(&[&["get", "STORE"], more].concat());
    }
}

/// Each kind of data that can be queried, page by page of the store and at once.
#[cfg(feature = "explore")]
fn query_by_kind(pair: &mut Pair) {
    for [name, query] in crate::querying::QUERIES {
        for more in [&["-n", "3"][..], &["-n", "100000", "--json"]] {
            let found = pair.fine(&[&["query", "STORE", name, query], more].concat());
            assert!(found.lines().count() >= 3, "{name}: {found}");
        }
    }
    for more in [
        &["vans.by_place", "51.5,-0.1,9000km", "--group", "(\"acme\",)"][..],
        &["pins.by_place", "-33.9,151.2"],
        &["unique.tree", "/photos/2024/1.jpg"],
        &["ids.tree", "1001"],
        &["links edges", "ada", "--direction", "in", "--label", "knows"],
        &["letters.words", "the sea", "--field", "1"],
        &["shelves.words", "the", "--group", "(\"acme\",)", "--json"],
        &["shelves.words", "the"],
        &["users.sets", "town=Rome or age>=100"],
        &["guests.sets", "town=Lon* and not level<3", "--json", "-n", "1000"],
        &["guests.sets"],
        &["guests.sets", "town"],
        &["vans.by_place"],
        &["links edges"],
        &["list.tree", "photos"],
    ] {
        pair.same(&[&["query", "STORE"], more].concat());
    }
}

fn sizes(pair: &mut Pair) {
    for more in [&[][..], &["--depth=2", "-n3", "--json"], &["numbers"], &["--exact"]] {
        pair.same(&[&["du", "STORE"], more].concat());
    }
    // The engine of LMDB has statistics of its own.
    pair.seen.insert("stats".into());
    let [mut expected, found] = pair.both(&["stats", "STORE", "--json"], "").map(|ran| {
        assert_eq!(ran.code, 0, "{}", ran.err);
        serde_json::from_str::<Value>(&ran.out).unwrap()
    });
    let of_lmdb = expected.as_object_mut().unwrap();
    of_lmdb.retain(|name, _| found.get(name).is_some());
    assert!(found.get("page_bytes").is_none());
    assert_eq!(found, expected);
    let entries = pair.entries("STORE");
    let bytes = |of: fn((&Vec<u8>, &Vec<u8>)) -> usize| entries.iter().map(of).sum::<usize>();
    assert_eq!(found["entries"], entries.len());
    assert_eq!(found["key_bytes"], bytes(|(key, _)| key.len()));
    assert_eq!(found["value_bytes"], bytes(|(_, value)| value.len()));
    assert_eq!(pair.other.run(&["stats", "STORE"], "").code, 0);
}

fn check(pair: &mut Pair) {
    let sound = pair.same(&["check", "STORE"]);
    assert_eq!((sound.code, &*sound.out), (0, ""), "{}", sound.err);
    assert!(sound.err.contains(" 0 faults"), "{}", sound.err);
    pair.fine(&["check", "STORE", "people.by_town", "--json"]);
    assert_eq!(pair.same(&["check", "STORE", "nothing"]).code, 2);
}

/// Only the JSON has points of time and no distances from now.
fn locks_and_queues(pair: &mut Pair) {
    let locks = pair.fine(&["locks", "STORE", "--json"]);
    assert!(locks.lines().count() == 1 && locks.contains("editor"), "{locks}");
    let [expected, found] = pair.both(&["locks", "STORE"], "").map(|ran| without_digits(&ran.out));
    assert_eq!(found, expected);
    let queues = pair.fine(&["queues", "STORE"]);
    let words: Vec<_> = queues.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words, ["shop", "mails", "2", "0", "1", "1"], "{queues}");
    for state in ["waiting", "leased", "overdue", "dead"] {
        let listed = pair.fine(&["queues", "STORE", "mails", "--state", state, "--json"]);
        let jobs = ["waiting", "leased", "overdue", "dead"].iter().zip([2, 0, 1, 1]);
        let jobs = jobs.filter(|(name, _)| **name == state).map(|(_, jobs)| jobs).sum::<usize>();
        assert_eq!(listed.lines().count(), jobs, "{listed}");
    }
    pair.fine(&["queues", "STORE", "--json"]);
    assert_eq!(pair.same(&["queues", "STORE", "nothing"]).code, 2);
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|char| !char.is_ascii_digit()).collect()
}

/// Both read files of LMDB, and name a command for the other engines.
fn verify_and_backup(pair: &mut Pair) {
    let directory = crate::support::Directory::new();
    for (arguments, remedy) in
        [(&["verify", "STORE"][..], "keyloom check"), (&["backup", "STORE"], "keyloom copy")]
    {
        pair.seen.insert(arguments[0].into());
        let to = |side: &str| directory.path().join(side).display().to_string();
        for (side, to) in [(&pair.lmdb, to("lmdb")), (&pair.other, to("other"))] {
            let is_backup = arguments[0] == "backup";
            let to = [&*to];
            let all = [arguments, if is_backup { &to } else { &[] }].concat();
            let ran = side.run(&all, "");
            if side.engine == Engine::Lmdb {
                assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
            } else {
                let is_refused = ran.code == 2 && ran.err.contains(remedy);
                assert!(is_refused, "{arguments:?}: {} {}", ran.code, ran.err);
                assert!(!std::path::Path::new(to[0]).exists());
            }
        }
    }
}
