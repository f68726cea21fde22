//! `--color`: escape sequences of the command, and none of the store.

use keyloom::{Lmdb, Store, Writer, pack};
use keyloom_locking::WorkQueue;
use keyloom_redb::Redb;
use keyloom_tables::{Schema, entry};

use crate::support::{Directory, run};

const HOSTILE: &str = "a\u{1b}[2J\u{202e}\u{7}\r\nb";

/// A store whose names, keys and values contain escape sequences, with some faults.
fn hostile(store: &impl Store) {
    let schema = Schema::open(store, HOSTILE).unwrap();
    let notes = schema.table::<String, String>(HOSTILE).unwrap();
    schema.index(&notes, HOSTILE, 1, |_, text: &String| entry(text)).unwrap();
    let queue = WorkQueue::<String>::open(&schema, &format!("{HOSTILE} jobs")).unwrap();
    let written = store.transact(|txn| {
        notes.put(txn, &HOSTILE.into(), &HOSTILE.into())?;
        notes.put(txn, &"other".into(), &HOSTILE.into())?;
        txn.put(&pack(HOSTILE), HOSTILE.as_bytes())?;
        txn.put(b"\xFEraw\x1b[2J", &[0x1B, b'[', b'2', b'J', 0xFF])?;
        queue.enqueue(txn, (HOSTILE, HOSTILE.to_owned())).map(drop)
    });
    written.unwrap();
    let broken = notes.space().pack(&("broken",));
    let damaged = store.transact(|txn| {
        txn.delete(&notes.space().pack(&("other",)))?;
        txn.put(&broken, b"\xFF\x1b[2J")
    });
    damaged.unwrap();
}

/// The text without the escape sequences of the command.
fn plain(text: &str) -> String {
    let sequences =
        ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[34m", "\u{1b}[36m"];
    sequences.into_iter().fold(text.to_owned(), |text, one| text.replace(one, ""))
}

#[test]
fn colors_do_not_let_a_store_write_escape_sequences() {
    let (directory, other) = (Directory::new(), Directory::new());
    let is_control = |one: char| one != '\n' && (one.is_control() || one == '\u{202e}');
    let table = format!("{HOSTILE}.{HOSTILE}");
    for address in [directory.lmdb(hostile), directory.redb(|store: &Redb| hostile(store))] {
        let empty = other.lmdb(|_: &Lmdb| ());
        let missing = format!("{HOSTILE}.nothing");
        for arguments in [
            &["ls", &address][..],
            &["scan", &address],
            &["scan", &address, "--as=utf8", "--full"],
            &["query", &address, &table],
            &["query", &address, &missing],
            &["get", &address, "\"nothing\""],
            &["du", &address],
            &["stats", &address],
            &["check", &address],
            &["repair", &address, &missing, "--write"],
            &["diff", &address, &empty],
            &["diff", &empty, &address],
            &["queues", &address],
            &["queues", &address, "--state=waiting"],
            &["locks", &address],
            &["ls", HOSTILE],
            &["verify", HOSTILE],
        ] {
            let with = |color: &str| run(&[arguments, &["--color", color]].concat());
            let (colored, never, auto) = (with("always"), with("never"), run(arguments));
            assert_eq!((colored.code, auto.code), (never.code, never.code), "{arguments:?}");
            for text in [&never.out, &never.err] {
                assert!(!text.contains(is_control), "{arguments:?}: {text:?}");
            }
            // A pipe has no colors, and colors add nothing but the sequences of the command.
            let of = |ran: &crate::support::Ran| (plain(&ran.out), plain(&ran.err));
            assert_eq!((auto.out, auto.err), (never.out.clone(), never.err.clone()));
            assert_eq!(of(&colored), (never.out, never.err), "{arguments:?}");
            let json = run(&[arguments, &["--color=always", "--json"]].concat()).out;
            assert!(!json.contains(is_control), "{arguments:?}: {json:?}");
        }
        // The names and the fault are painted, so the comparison above can fail.
        let listed = run(&["ls", &address, "--color=always"]).out;
        assert!(listed.contains("\u{1b}[1m") && listed.contains("\u{1b}[36m"), "{listed:?}");
        let checked = run(&["check", &address, "--color=always"]).out;
        assert!(checked.contains("\u{1b}[31mthe entry dangles"), "{checked:?}");
    }
}

#[test]
fn columns_are_aligned_with_and_without_colors() {
    let directory = Directory::new();
    let address = directory.lmdb(crate::support::town_hall);
    let listed = run(&["ls", &address, "--color=always"]).out;
    let widths: Vec<_> = plain(&listed).lines().map(|line| line.chars().count()).collect();
    assert!(widths.len() > 4 && widths.iter().all(|width| *width == widths[0]), "{listed}");
}
