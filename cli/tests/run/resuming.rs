//! `check` and `repair` with `--resume`, killed again and again.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use keyloom::{Lmdb, Store, Writer};
use keyloom_tables::{Schema, entry};

use crate::engines::entries;
use crate::support::{Directory, fine, piped, run};

/// More than five pages of entries.
const SOME: u32 = 5_500;

/// Every second record is missing.
fn damaged(store: &Lmdb) {
    let schema = Schema::open(store, "shop").unwrap();
    let orders = schema.table::<u32, u32>("orders").unwrap();
    schema.index(&orders, "by_hash", 1, |_, n: &u32| entry(n.wrapping_mul(0x9E37_79B9))).unwrap();
    store.transact(|txn| orders.put_many(txn, (0..SOME).map(|n| (n, n)))).unwrap();
    let lost = store.transact(|txn| {
        (0..SOME).step_by(2).try_for_each(|n| txn.delete(&orders.space().pack(&n)))
    });
    lost.unwrap();
}

/// Runs the command, and kills it after `lines` lines. Returns its lines, and whether it ended by
/// itself.
fn run_for(arguments: &[&str], lines: usize) -> (Vec<String>, bool) {
    let mut child = piped(arguments);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen: Vec<String> = out.by_ref().take(lines).map(Result::unwrap).collect();
    let is_killed = seen.len() == lines;
    if is_killed {
        child.kill().unwrap();
    }
    // Lines that were in the pipe.
    seen.extend(out.map_while(Result::ok));
    child.wait().unwrap();
    (seen, !is_killed)
}

/// Runs the command with kills until it ends, and returns the lines of each run.
fn with_kills(arguments: &[&str]) -> Vec<Vec<String>> {
    let mut runs = Vec::new();
    loop {
        let (lines, has_ended) = run_for(arguments, 1_100);
        runs.push(lines);
        if has_ended {
            return runs;
        }
    }
}

#[test]
fn a_killed_check_resumes_and_reports_each_fault() {
    let directory = Directory::new();
    let address = directory.lmdb(damaged);
    let file = directory.path().join("position");
    let whole = run(&["check", &address, "--limit", "100000", "--json"]);
    let expected: BTreeSet<&str> = whole.out.lines().collect();
    assert_eq!(expected.len() as u32, SOME / 2);
    let resume = format!("--resume={}", file.display());
    let runs = with_kills(&["check", &address, "--limit", "100000", "--json", &resume]);
    assert!(runs.len() > 2, "{}", runs.len());
    let all: Vec<&str> = runs.iter().flatten().map(String::as_str).collect();
    assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), expected);
    // A page of faults may be reported twice for each kill.
    assert!(all.len() < expected.len() + runs.len() * 1_000, "{}", all.len());
    assert!(runs[1..].iter().all(|run| run.first() != runs[0].first()), "it began again");
    assert!(!file.exists());
}

#[test]
fn a_killed_repair_resumes_and_removes_all() {
    let (directory, sound) = (Directory::new(), Directory::new());
    let address = directory.lmdb(damaged);
    let expected = sound.lmdb(damaged);
    fine(&["repair", &expected, "orders.by_hash", "--write"]);
    let file = directory.path().join("position");
    let resume = format!("--resume={}", file.display());
    let runs = with_kills(&["repair", &address, "orders.by_hash", "--write", &resume]);
    assert!(runs.len() > 2 && !file.exists());
    assert!(entries(&address) == entries(&expected));
    assert_eq!(run(&["check", &address]).code, 0);
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
}

#[test]
fn a_position_of_other_work_is_refused() {
    let directory = Directory::new();
    let address = directory.lmdb(damaged);
    let file = directory.path().join("position");
    let resume = format!("--resume={}", file.display());
    let (_, has_ended) = run_for(&["check", &address, &resume, "--limit=9999"], 1_100);
    assert!(!has_ended && file.exists());
    for arguments in [
        vec!["check", &address, "orders", &resume],
        vec!["repair", &address, "orders.by_hash", "--write", &resume],
    ] {
        let refused = run(&arguments);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("remove it to begin again"), "{}", refused.err);
    }
    // A new table changes the parts of the work.
    let store = Lmdb::open(directory.path().join("lmdb")).unwrap();
    Schema::open(&store, "a").unwrap().table::<u32, u32>("new").unwrap();
    drop(store);
    assert_eq!(run(&["check", &address, &resume]).code, 2);
    write(&file, "{");
    let refused = run(&["check", &address, &resume]);
    assert!(refused.code == 2 && refused.err.contains("cannot be resumed"), "{}", refused.err);
    let nowhere = format!("--resume={}", directory.path().join("none/position").display());
    let refused = run(&["check", &address, &nowhere]);
    assert!(refused.code == 2 && refused.err.contains("cannot be written"), "{}", refused.err);
}
