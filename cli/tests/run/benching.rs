//! `bench`: rates that are plausible, and a store that is as it was.

use std::time::{Duration, Instant};

use keyloom::{Lmdb, Store, Writer, pack};

use crate::support::{Directory, fine, orders, run};

fn rows(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn bench_leaves_the_entries_as_they_were() {
    let directory = Directory::new();
    for address in [directory.lmdb(orders), directory.redb(orders)] {
        let entries = || fine(&["scan", &address, "--full", "--as=hex", "--json"]);
        let before = entries();
        let ran = run(&["bench", &address, "--seconds=0.05"]);
        assert!(ran.code == 2 && ran.err.contains("--write"), "{}", ran.err);
        let arguments = ["bench", &address, "--seconds=0.05", "--write"];
        let ran = run(&arguments);
        assert_eq!((ran.code, ran.out.lines().count()), (0, 5), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("puts in transactions of 1,000"), "{}", ran.out);
        assert!(ran.err.contains("medians of 5 rounds"), "{}", ran.err);
        assert_eq!(entries(), before);
        let found = rows(&fine(&[&arguments[..], &["--json"]].concat()));
        for (row, measured) in found.iter().zip(["commits", "puts", "gets", "scanned"]) {
            let of = |field: &str| row[field].as_u64().unwrap();
            assert_eq!(row["measured"], measured);
            assert!(of("least") > 0 && of("least") <= of("per_second"), "{row}");
            assert!(of("per_second") <= of("most"), "{row}");
        }
        assert_eq!(entries(), before);
    }
}

/// The commits a second of a loop of this test.
fn commits_of(path: &str) -> u64 {
    let (store, begin) = (Lmdb::open(path).unwrap(), Instant::now());
    let mut commits = 0_u64;
    while begin.elapsed() < Duration::from_millis(200) {
        store.transact(|txn| txn.put(&pack(&("own", commits)), &[1; 100])).unwrap();
        commits += 1;
    }
    commits * 5
}

#[test]
fn bench_agrees_with_a_loop_of_commits() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let begin = Instant::now();
    let found = rows(&fine(&["bench", &address, "--seconds=0.2", "--write", "--json"]));
    let elapsed = begin.elapsed().as_secs_f64();
    assert!((0.8..20.0).contains(&elapsed), "four measurements of 0.2 s took {elapsed} s");
    let [commits, puts] = [0, 1].map(|place: usize| found[place]["per_second"].as_u64().unwrap());
    let own = commits_of(address.strip_prefix("lmdb:").unwrap());
    // Other tests run at the same time.
    assert!((own / 20..own * 20).contains(&commits), "{commits} commits, {own} of the test");
    assert!(puts > 2 * commits, "{puts} puts of large transactions, {commits} commits");
}

#[test]
fn bench_refuses_a_store_with_entries_of_another_run() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        store.transact(|txn| txn.put(&pack(&("keyloom bench", 7)), b"v")).unwrap();
    });
    let refused = run(&["bench", &address, "--seconds=0.01", "--write"]);
    assert!(refused.code == 2 && refused.err.contains("keyloom rm"), "{}", refused.err);
    assert_eq!(fine(&["get", &address, "(\"keyloom bench\", 7)"]), "\"v\"\n");
    // The remedy of the message.
    fine(&["rm", &address, "--prefix", "(\"keyloom bench\",)", "--write", "--yes"]);
    fine(&["bench", &address, "--seconds=0.01", "--write"]);
}
