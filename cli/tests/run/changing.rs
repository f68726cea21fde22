//! `put`, `rm`, `copy` and `diff`, and the changes that they must refuse.

use keyloom::{Lmdb, Store, Writer, pack};
use keyloom_redb::Redb;

use crate::support::{Directory, fine, orders, run, town_hall};

#[test]
fn put_and_rm_write_only_with_permission() {
    let directory = Directory::new();
    for address in [directory.lmdb(orders), directory.redb(orders)] {
        let key = "(\"orders\", 9)";
        let ran = run(&["put", &address, key, "{\"total\": 4}"]);
        assert!(ran.code == 2 && ran.err.contains("--write"), "{}", ran.err);
        assert_eq!(run(&["get", &address, key]).code, 1);
        let put = fine(&["put", &address, key, "{\"total\": 4}", "--write", "--as", "json"]);
        assert_eq!(put, "added (\"orders\", 9) (12 bytes)\n");
        assert_eq!(fine(&["get", &address, key]), "{\"total\": 4}\n");
        assert_eq!(run(&["put", &address, key, "{", "--write", "--as=json"]).code, 2);
        fine(&["put", &address, key, "[1, \"a\"]", "--write", "--as=messagepack"]);
        assert_eq!(fine(&["get", &address, key, "--as=messagepack"]), "[1,\"a\"]\n");
        assert_eq!(fine(&["get", &address, key]), "0x9201a161\n");
        assert_eq!(run(&["rm", &address, key]).code, 2);
        assert_eq!(fine(&["rm", &address, key, "--write"]), "removed (\"orders\", 9)\n");
        assert_eq!(run(&["rm", &address, key, "--write"]).code, 1);
    }
}

#[test]
fn rm_of_a_prefix_says_how_many_keys_and_needs_a_yes() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let prefix = "(\"orders\", _, ..2027)";
    let selected = fine(&["scan", &address, prefix]);
    assert_eq!(selected.lines().count(), 3, "{selected}");
    let arguments = ["rm", &address, "--prefix", prefix, "--write"];
    let ran = run(&arguments);
    assert!(
        ran.code == 2 && ran.err.contains("3 keys") && ran.err.contains("--yes"),
        "{}",
        ran.err
    );
    assert_eq!(fine(&[&arguments[..], &["--yes"]].concat()), "removed 3 keys\n");
    assert_eq!(fine(&["scan", &address, "\"orders\""]), "(\"orders\", 7, 2027) = {\"total\": 3}\n");
    assert_eq!(run(&["rm", &address, "--write"]).code, 2);
}

#[test]
fn many_keys_are_removed_in_several_transactions() {
    let directory = Directory::new();
    let address = directory.lmdb(many);
    let removed = fine(&["rm", &address, "--prefix", "(10..)", "--write", "--yes", "--json"]);
    assert_eq!(removed, "{\"prefix\":\"(10..)\",\"removed\":2990}\n");
    assert!(fine(&["stats", &address, "--json"]).contains("\"entries\":10,"));
}

fn many(store: &Lmdb) {
    store.transact(|txn| (0..3_000).try_for_each(|id| txn.put(&pack(&id), &[7; 1_000]))).unwrap();
}

#[test]
fn data_of_a_schema_is_not_changed_by_mistake() {
    let directory = Directory::new();
    let address = directory.lmdb(town_hall);
    for arguments in [
        ["put", "(-1, 1)", "text"].as_slice(),
        &["rm", "(-1, 1)"],
        &["rm", "--prefix", "()", "--yes"],
        &["rm", "--prefix", "people", "--yes"],
        &["rm", "--prefix", "\"keyloom\"", "--yes"],
    ] {
        let (command, rest) = arguments.split_first().unwrap();
        let ran = run(&[&[*command, &address, "--write"], rest].concat());
        assert!(ran.code == 2 && ran.err.contains("--bypass-schema"), "{arguments:?}: {}", ran.err);
    }
    fine(&["rm", &address, "(-1, 1)", "--write", "--bypass-schema"]);
    fine(&["rm", &address, "(\"orders\", 7, 2026)", "--write"]);
}

#[test]
fn copy_goes_between_engines_and_diff_finds_the_changes() {
    let directory = Directory::new();
    let from = directory.lmdb(|store: &Lmdb| {
        orders(store);
        many(store);
    });
    let to = format!("redb:{}", directory.path().join("copy.redb").display());
    assert_eq!(run(&["copy", &from, &to, "--write"]).code, 2);
    let ran = run(&["copy", &from, &to, "--create"]);
    assert!(ran.code == 2 && ran.err.contains("--write"), "{}", ran.err);
    let copied = fine(&["copy", &from, &to, "--create", "--write"]);
    assert!(
        copied.starts_with("copied 3,007 entries; both stores hold 3,007, SHA-256 "),
        "{copied}"
    );
    assert_eq!(fine(&["diff", &from, &to]), "");

    fine(&["rm", &to, "(5,)", "--write"]);
    fine(&["put", &to, "(6,)", "other", "--write"]);
    fine(&["put", &to, "(6, 1)", "new", "--write"]);
    let ran = run(&["diff", &from, &to]);
    assert_eq!((ran.code, &*ran.out), (1, "- (5,)\n~ (6,)\n+ (6, 1)\n"));
    let ran = run(&["diff", &to, &from, "--limit=1", "--json"]);
    assert_eq!((ran.code, &*ran.out), (1, "{\"change\":\"added\",\"key\":\"(5,)\"}\n"));
    // Nothing is left to copy, and the digests show that the beginning differs.
    let ran = run(&["copy", &from, &to, "--write"]);
    assert!(ran.code == 2 && ran.err.contains("differ"), "{}", ran.err);
}

#[test]
fn copy_continues_after_the_last_key() {
    let directory = Directory::new();
    let from = directory.lmdb(many);
    let path = directory.path().join("half.redb");
    let half = Redb::open(&path).unwrap();
    half.transact(|txn| (0..1_200).try_for_each(|id| txn.put(&pack(&id), &[7; 1_000]))).unwrap();
    drop(half);
    let to = format!("redb:{}", path.display());
    let ran = run(&["copy", &from, &to, "--write"]);
    assert!(ran.err.contains("continues after (1199,)"), "{}", ran.err);
    assert!(ran.out.starts_with("copied 1,800 entries; both stores hold 3,000,"), "{}", ran.out);
    fine(&["put", &to, "true", "data", "--write"]);
    let ran = run(&["copy", &from, &to, "--write"]);
    assert!(ran.code == 2 && ran.err.contains("other data"), "{}", ran.err);
}

#[test]
fn du_lists_the_largest_prefixes_first() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let listed = fine(&["du", &address]);
    let first: Vec<_> = listed.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(first, ["PREFIX", "(\"hostile\",)", "(\"orders\",)", "0xfe…"]);
    let listed = fine(&["du", &address, "--depth=2", "-n1", "--json"]);
    let row: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&row["prefix"], &row["entries"]), (&"(\"hostile\", 2)".into(), &1.into()));
    let stats = fine(&["stats", &address, "--json"]);
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!((&stats["entries"], &stats["keys_that_are_tuples"]), (&7.into(), &6.into()));
}

/// Every command without `--write`, on a store with two schemas.
#[test]
fn no_command_writes_without_write() {
    let directory = Directory::new();
    let lmdb = directory.lmdb(town_hall);
    let redb = directory.redb(town_hall);
    let target = directory.path().join("target");
    let created = format!("lmdb:{}", target.display());
    let entries = |address: &str| fine(&["scan", address, "--full", "--as", "hex", "--json"]);
    let before = [&lmdb, &redb].map(|address| entries(address));
    let key = "(\"orders\", 7, 2026)";
    for address in [&lmdb, &redb] {
        for arguments in [
            &["ls"][..],
            &["scan"],
            &["query", "people.by_town"],
            &["get", key],
            &["put", key, "1"],
            &["put", key, "1", "--bypass-schema"],
            &["rm", key],
            &["rm", "--prefix", key, "--yes"],
            &["stats"],
            &["du"],
            &["check"],
            &["verify"],
            &["repair", "people.by_town"],
            &["bench"],
            &["locks"],
            &["queues"],
            &["queues", "mails", "--requeue=all"],
            &["diff", &redb],
            &["copy", &redb],
            &["copy", &created, "--create"],
            &["export"],
            &["watch", key, "--for=0.01"],
            &["import", "no such file"],
        ] {
            let (command, rest) = arguments.split_first().unwrap();
            let ran = run(&[&[*command, address.as_str()], rest].concat());
            let writes = ["put", "rm", "copy", "import", "repair", "bench"].contains(command)
                || arguments.contains(&"--requeue=all");
            assert!((ran.code == 2) == writes || address == &redb, "{arguments:?}: {}", ran.err);
            assert_eq!([&lmdb, &redb].map(|address| entries(address)), before, "{arguments:?}");
            assert!(!target.exists(), "{arguments:?}");
        }
    }
}
