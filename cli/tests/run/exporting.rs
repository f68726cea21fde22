//! `export` and `import`: nothing is lost, and damage is found.

use keyloom::{Lmdb, Store, Writer, pack};

use crate::support::{Directory, Ran, fine, orders, run, run_into_head, run_with_input, town_hall};

/// Keys and values that text formats lose.
fn hostile(store: &impl Store) {
    orders(store);
    town_hall(store);
    let keys = [
        pack("").to_vec(),
        pack("nul \0 <b>&amp;'\"\\ \u{1b}[2J \u{202e} \u{2028} é 😀").to_vec(),
        pack(&(&b"\0\xFF"[..], f64::NAN, -1, None::<u8>)).to_vec(),
        vec![0],
        vec![0xFF; 100],
        b"\xC3\x28 not UTF-8".to_vec(),
        b"{\"key\":\"plain\"}\n".to_vec(),
    ];
    let values: [&[u8]; 7] =
        [b"", b"\0", b"\xFF", b"\xC3\x28", b"<script>&\x1b[2J\n\r\t", b"\"}\n{\"", &[7; 1 << 20]];
    store
        .transact(|txn| {
            for (n, key) in keys.iter().enumerate() {
                txn.put(key, values[n])?;
                txn.put(&pack(&("value", n)), values[n])?;
            }
            Ok(())
        })
        .unwrap();
}

fn many(store: &impl Store) {
    store.transact(|txn| (0..3_000).try_for_each(|id| txn.put(&pack(&id), b"value"))).unwrap();
}

/// The export of a store, written to a file.
pub fn exported(directory: &Directory, address: &str) -> (String, String) {
    let text = fine(&["export", address]);
    let file = directory.path().join("export.ndjson").display().to_string();
    std::fs::write(&file, &text).unwrap();
    (text, file)
}

#[test]
fn an_export_and_an_import_keep_every_byte() {
    let directory = Directory::new();
    let from = directory.lmdb(hostile);
    let (text, file) = exported(&directory, &from);
    assert!(!text.contains(['\u{1b}', '\u{202e}', '<', '\0']));
    assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));

    let to = directory.address("redb", "to.redb");
    let imported = fine(&["import", &to, &file, "--write", "--create"]);
    let copied = fine(&["copy", &from, &directory.address("lmdb", "copy"), "--write", "--create"]);
    let sha256 = |text: &str| text.trim().rsplit("SHA-256 ").next().unwrap().to_owned();
    assert_eq!(sha256(&imported), sha256(&copied), "{imported}");
    assert_eq!(fine(&["diff", &from, &to]), "");
    assert_eq!(fine(&["export", &to]), text);
    assert_eq!(run(&["check", &to]).code, 0);

    // From a pipe, with the values decoded.
    let decoded = fine(&["export", &from, "--decoded"]);
    assert!(decoded.contains(r#""form":"postcard","decoded":"{\"name\":\"Ada\""#), "{decoded}");
    for (store, dash) in [("one", None), ("two", Some("-"))] {
        let to = directory.address("lmdb", store);
        let arguments = ["import", &to, "--write", "--create", "--json"].into_iter().chain(dash);
        let ran = run_with_input(&arguments.collect::<Vec<_>>(), decoded.as_bytes());
        let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(report["added"].as_u64().unwrap() as usize, text.lines().count() - 2);
        assert_eq!(fine(&["diff", &from, &to]), "");
    }
}

#[test]
fn an_export_of_a_prefix_holds_only_its_keys() {
    let directory = Directory::new();
    let from = directory.lmdb(hostile);
    for (prefix, entries) in [("people", 3), ("(\"orders\", _, 2026..)", 3), ("\"nothing\"", 0)] {
        let text = fine(&["export", &from, prefix]);
        assert_eq!(text.lines().count(), entries + 2, "{text}");
        assert!(text.lines().last().unwrap().starts_with(&format!("{{\"entries\":{entries},")));
        let to = directory.address("lmdb", "to");
        let ran = run_with_input(&["import", &to, "--write", "--create"], text.as_bytes());
        assert!(ran.out.starts_with(&format!("imported {entries} entries")), "{}", ran.err);
    }
    assert_eq!(run(&["export", &from, "nothing"]).code, 2);
}

/// An import that must fail.
pub fn refused(to: &str, text: &str) -> String {
    let Ran { code, out, err } =
        run_with_input(&["import", to, "--write", "--create"], text.as_bytes());
    assert_eq!((code, &*out), (2, ""), "{err}");
    err
}

#[test]
fn a_truncated_export_is_found_wherever_it_ends() {
    let directory = Directory::new();
    let from = directory.lmdb(many);
    let (text, file) = exported(&directory, &from);
    let to = directory.address("lmdb", "to");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let cut_at = |line: usize| lines[..line].concat();
    assert!(refused(&to, "").contains("the standard input is empty"));
    assert!(refused(&to, &cut_at(1)).contains("line 1: the file is truncated"));
    let err = refused(&to, &cut_at(3_001));
    assert!(err.contains("truncated") && err.contains("2,000 entries were imported"), "{err}");
    // Within a line; the first digits of the last line are cut off, too.
    let last = text.rfind('{').unwrap();
    for end in [last + 1, last + 12, text.len() - 3] {
        let err = refused(&to, &text[..end]);
        assert!(err.contains("line 3002, column") && err.contains("truncated"), "{end}: {err}");
    }
    // A missing end of the last line loses nothing.
    let ran = run_with_input(&["import", &to, "--write"], text.trim_end().as_bytes());
    assert!(
        ran.out.contains("1,000 added, 0 replaced, 2,000 were there"),
        "{}{}",
        ran.out,
        ran.err
    );
    let again = fine(&["import", &to, &file, "--write"]);
    assert!(again.contains("0 added, 0 replaced, 3,000 were there"), "{again}");
}

/// A transaction of an import has about 1 MiB, as one of `copy`.
#[test]
fn large_values_are_imported_in_several_transactions() {
    let directory = Directory::new();
    let from = directory.lmdb(|store: &Lmdb| {
        let large = [7; 600_000];
        store.transact(|txn| (0..4).try_for_each(|id| txn.put(&pack(&id), &large))).unwrap();
    });
    let (text, _) = exported(&directory, &from);
    let to = directory.address("lmdb", "to");
    let err = refused(&to, &text[..text.rfind('{').unwrap()]);
    assert!(err.contains("truncated") && err.contains("; 3 entries were imported"), "{err}");
    assert_eq!(fine(&["scan", &to]).lines().count(), 3);
}

#[test]
fn a_damaged_line_is_named_and_not_written() {
    let directory = Directory::new();
    let from = directory.lmdb(orders);
    let (text, _) = exported(&directory, &from);
    let to = directory.address("lmdb", "to");
    let lines: Vec<&str> = text.lines().collect();
    let with = |line: usize, new: &str| {
        let mut all = lines.clone();
        all[line - 1] = new;
        all.join("\n")
    };
    let fourth = lines[3];
    let no_line = text.replace(&format!("{fourth}\n"), "");
    let tail = format!("{text}{fourth}");
    for (damaged, why) in [
        (with(1, "{}"), "line 1: this is not the first line"),
        (with(1, &lines[0].replace(":1,", ":2,")), "version 2"),
        (with(4, ""), "line 4, column 1"),
        (with(4, "{\"key\": }"), "line 4, column 9"),
        (with(4, &fourth.replace("key", "\u{1b}")), "line 4, column"),
        (with(4, &fourth.replacen("value_hex\":\"7b", "value_hex\":\"7c", 1)), "line 4: the check"),
        (with(4, &fourth.replace("2025", "2024")), "line 4: the check"),
        (with(4, &fourth.replace("value_hex\":\"7", "value_hex\":\"")), "line 4: value_hex"),
        (with(4, &fourth.replace("(\\\"orders", "(orders")), "line 4: the key"),
        (with(4, "{\"key\":\"(1,)\"}"), "line 4: this is neither"),
        (with(4, lines[4]), "line 5: the key (\"orders\", 7, 2026) does not follow"),
        (no_line, "the export had 7 entries, the file has 6"),
        (tail, "continues after the last line"),
        (text.replace("\"entries\":7", "\"entries\":8"), "the export had 8 entries"),
        (text.replace("sha256\":\"", "sha256\":\"0"), "SHA-256"),
    ] {
        let err = refused(&to, &damaged);
        assert!(err.contains(why) && !err.contains('\u{1b}'), "{why}: {err}");
        let was_opened = !why.starts_with("line 1") && !why.starts_with("version");
        assert_eq!(err.contains("; 0 entries were imported"), was_opened, "{err}");
        assert!(!err.contains("repeat"), "{err}");
    }
    assert_eq!(fine(&["scan", &to]), "");
    let binary = run_with_input(&["import", &to, "--write"], b"\xFF\n");
    assert!(binary.code == 2 && binary.err.contains("line 1, column"), "{}", binary.err);
}

#[test]
fn an_export_fails_if_its_pipe_is_closed() {
    let directory = Directory::new();
    let address = directory.lmdb(many);
    let ran = run_into_head(&["export", &address]);
    assert!(ran.code == 2 && ran.out.starts_with("{\"keyloom\":\"export\""), "{}", ran.err);
    assert!(ran.err.contains("closed the pipe; the export is incomplete"), "{}", ran.err);
}
