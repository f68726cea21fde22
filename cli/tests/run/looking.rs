//! `ls`, `scan` and `get`.

use keyloom::{Lmdb, Store, Writer, pack};

use crate::support::{Directory, fine, orders, run, run_into_head, town_hall};

#[test]
fn ls_names_tables_and_indexes_with_their_sizes() {
    let directory = Directory::new();
    for address in [directory.lmdb(town_hall), directory.redb(town_hall)] {
        let listed = fine(&["ls", &address]);
        let row = |name: &str| {
            let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            listed.lines().map(words).find(|row| row.iter().any(|cell| cell == name)).unwrap()
        };
        let people = row("people");
        assert_eq!(people[..6], ["town", "hall", "people", "table", "readable", "(-1,)"]);
        assert_eq!(people[6], "3");
        assert_eq!(row("people.by_town")[3], "index");
        assert_eq!(row("(\"orders\",)")[1], "1");
    }
}

#[test]
fn ls_without_a_schema_lists_the_first_elements() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let listed = fine(&["ls", &address]);
    assert!(listed.starts_with("PREFIX"), "{listed}");
    let groups: Vec<_> =
        listed.lines().skip(1).map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(groups, ["(\"hostile\",)", "(\"orders\",)", "0xfe…"]);
    let deeper = fine(&["ls", &address, "(\"orders\",)", "--depth", "2", "--json"]);
    let levels: Vec<_> = deeper
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|row| (row["prefix"].as_str().unwrap().to_owned(), row["entries"].as_u64().unwrap()))
        .collect();
    assert_eq!(levels[0], ("(\"orders\", 7)".to_owned(), 3));
    assert_eq!(levels[1], ("(\"orders\", 7, 2025)".to_owned(), 1));
    assert_eq!(levels.len(), 6);
    let limited = fine(&["ls", &address, "--limit", "1"]);
    assert!(limited.contains("(all further)  "), "{limited}");
}

#[test]
fn scan_selects_by_prefix_range_and_any() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let keys = |arguments: &[&str]| {
        let out = fine(&[&["scan", &address], arguments].concat());
        let keys = out.lines().map(|line| line.split(" = ").next().unwrap().to_owned());
        keys.collect::<Vec<_>>()
    };
    let all = ["(\"orders\", 7, 2025)", "(\"orders\", 7, 2026)", "(\"orders\", 7, 2027)"];
    assert_eq!(keys(&["(\"orders\", 7)"]), all);
    assert_eq!(keys(&["(\"orders\", 7)", "--reverse", "-n", "1"]), all[2..]);
    assert_eq!(keys(&["(\"orders\", 7)", "--after", all[0]]), all[1..]);
    assert_eq!(keys(&["(\"orders\", 7)", "--after", all[2], "--reverse", "--limit=1"]), all[1..2]);
    assert_eq!(keys(&["(\"orders\", _, 2026)"]), [all[1], "(\"orders\", 8, 2026)"]);
    assert_eq!(keys(&["(\"orders\", 7, 2026..)"]), all[1..]);
    assert_eq!(keys(&["(\"orders\", 7, ..2026)"]), all[..1]);
    assert_eq!(keys(&["(\"orders\", 8.., _)"]), ["(\"orders\", 8, 2026)"]);
    assert_eq!(keys(&["0xfe"]), ["0xfe726177"]);
    assert_eq!(keys(&[]).len(), 7);
    assert_eq!(keys(&["(\"orders\", 9)"]), [""; 0]);
}

#[test]
fn hostile_values_are_escaped_and_cut() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        orders(store);
        store
            .transact(|txn| txn.put(&pack("a\u{1b}[2J\u{202e}"), "[\"\u{202e}\"]".as_bytes()))
            .unwrap();
    });
    let out = fine(&["scan", &address]);
    assert!(!out.contains(['\u{1b}', '\u{202e}']), "{out:?}");
    assert!(out.contains(r#"("hostile", 1) = "\u{1b}[2J<script>""#), "{out}");
    assert!(out.contains("ffff… (1000 bytes)"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() < 260), "{out}");
    assert!(fine(&["scan", &address, "--full"]).contains(&"ff".repeat(1000)));
    let json = fine(&["scan", &address, "--json"]);
    assert!(!json.contains(['\u{1b}', '\u{202e}', '<']), "{json:?}");
    assert!(json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn get_shows_a_value_in_the_wanted_form() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let key = "(\"orders\", 7, 2025)";
    assert_eq!(fine(&["get", &address, key]), "{\"total\": 3}\n");
    assert_eq!(fine(&["get", &address, key, "--as", "utf8"]), "\"{\\\"total\\\": 3}\"\n");
    assert_eq!(fine(&["get", &address, "0xfe726177", "--as=hex"]), "0x706c61696e\n");
    let missing = run(&["get", &address, "(\"orders\",)"]);
    assert_eq!((missing.code, &*missing.out), (1, ""));
    assert!(missing.err.contains("(\"orders\",)"), "{}", missing.err);
}

#[test]
fn values_of_tables_are_shown_by_their_codec() {
    let directory = Directory::new();
    let address = directory.lmdb(town_hall);
    let scanned = fine(&["scan", &address, "notes"]);
    assert!(scanned.ends_with(" = [\"tea\"]\n"), "{scanned}");
    let scanned = fine(&["scan", &address, "people", "-n1"]);
    assert_eq!(scanned, "(-1, 1) = {\"name\":\"Ada\",\"town\":\"London\",\"age\":36}\n");
    assert_eq!(fine(&["get", &address, "(-1, 1)", "--as=postcard"]), scanned[10..]);
    let scanned = fine(&["scan", &address, "tickets"]);
    assert_eq!(scanned.matches("{\"title\":\"no tea\",\"priority\":3}").count(), 1, "{scanned}");
    assert_eq!(scanned.matches("= {\"title\":\"old\"}").count(), 1, "{scanned}");
    let scanned = fine(&["scan", &address, "desk/slips"]);
    assert!(scanned.ends_with(" = {\"title\":\"no tea\",\"priority\":3}\n"), "{scanned}");
    let scanned = fine(&["scan", &address, "people.by_town"]);
    assert!(scanned.contains("\"London\", \"Ada\""), "{scanned}");
}

#[test]
fn errors_name_the_store_and_create_none() {
    let directory = Directory::new();
    for scheme in ["lmdb", "redb", "fjall"] {
        let path = directory.path().join(scheme);
        let address = format!("{scheme}:{}", path.display());
        let ran = run(&["ls", &address]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(&address), "{}", ran.err);
        assert!(!path.exists(), "{scheme}");
    }
    let ran = run(&["ls", "postgres://ada:secret@127.0.0.1:1/none"]);
    assert!(ran.code == 2 && !ran.err.contains("secret"), "{}", ran.err);
    let ran = run(&["ls", directory.path().to_str().unwrap()]);
    assert!(ran.code == 2 && ran.err.contains("there is no store"), "{}", ran.err);
    let address = directory.lmdb(orders);
    let bare = address.strip_prefix("lmdb:").unwrap();
    assert_eq!(fine(&["ls", bare]), fine(&["ls", &address]));
    let ran = run(&["scan", &address, "orders"]);
    assert!(ran.code == 2 && ran.err.contains("\"orders\""), "{}", ran.err);
}

#[test]
fn a_closed_pipe_ends_the_output() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        store.transact(|txn| (0..20_000).try_for_each(|id| txn.put(&pack(&id), b"value"))).unwrap();
    });
    let ran = run_into_head(&["scan", &address]);
    assert_eq!((ran.code, &*ran.out, &*ran.err), (0, "(0,) = \"value\"\n", ""));
}

/// A key with the name of a table is not the key of a record: the answer says where the records
/// are.
#[test]
fn a_key_with_the_name_of_a_table_leads_to_its_records() {
    let directory = Directory::new();
    let address = directory.lmdb(town_hall);
    let hint = "the records of the table \"people\" begin with (-1,): did you mean (-1, 2)?";
    let missing = run(&["get", &address, r#"("people", 2)"#]);
    assert!(missing.code == 1 && missing.err.contains(hint), "{}", missing.err);
    assert!(fine(&["get", &address, "(-1, 2)"]).contains("Grace"));
    let scanned = run(&["scan", &address, r#"("people", 2)"#]);
    assert!(scanned.code == 0 && scanned.err.contains(hint), "{}", scanned.err);
    assert!(scanned.err.contains("no such entry") && scanned.out.is_empty());
    let put = run(&["put", &address, r#"("people", 2)"#, "{}", "--write"]);
    assert!(put.code == 2 && put.err.contains(hint), "{}", put.err);
    let other = run(&["get", &address, r#"("person", 2)"#]);
    assert!(other.code == 1 && !other.err.contains("did you mean"), "{}", other.err);
    let queried = run(&["query", &address, "people.by_town", r#"("Paris",)"#]);
    assert!(queried.code == 0 && queried.err.contains("no such entry"), "{}", queried.err);
    let unquoted = run(&["query", &address, "people.by_town", "London"]);
    assert!(unquoted.err.contains("a string has quotes"), "{}", unquoted.err);
}

/// Bytes that no program can read do not replace a record.
#[test]
fn a_value_that_is_no_record_of_its_table_is_refused() {
    let directory = Directory::new();
    let address = directory.lmdb(town_hall);
    let before = fine(&["get", &address, "(-1, 2)"]);
    let put = ["put", &address, "(-1, 2)", "{\"name\":1}", "--write", "--bypass-schema"];
    let refused = run(&put);
    assert!(refused.code == 2 && refused.err.contains("is not a record"), "{}", refused.err);
    assert_eq!(fine(&["get", &address, "(-1, 2)"]), before);
    fine(&["put", &address, "(-1, 2)", "ff", "--as", "hex", "--write", "--bypass-schema"]);
    assert_eq!(run(&["check", &address]).code, 1);
}

#[test]
fn errors_have_remedies_of_the_command() {
    let directory = Directory::new();
    for kind in ["lmdb", "redb", "fjall"] {
        let missing = run(&["ls", &directory.address(kind, "missing")]);
        assert_eq!(missing.code, 2);
        assert!(!missing.err.contains("(true)"), "{}", missing.err);
        assert!(missing.err.contains("check the"), "{}", missing.err);
    }
    let file = directory.path().join("a.redb");
    std::fs::write(&file, b"").unwrap();
    let refused = run(&["ls", file.to_str().unwrap()]);
    assert!(refused.err.contains("write redb:"), "{}", refused.err);
}

/// A reader that closes the output does not change the result of a comparison.
#[test]
fn a_difference_that_is_not_read_to_its_end_is_one() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        let put = store.transact(|txn| {
            (0..20_000_u32).try_for_each(|n| txn.put(&keyloom::pack(&("key", n)), b""))
        });
        put.unwrap();
    });
    let other = directory.redb(|_| ());
    let ran = run_into_head(&["diff", &address, &other]);
    assert_eq!((ran.code, &*ran.out), (1, "- (\"key\", 0)\n"), "{}", ran.err);
}
