//! A process is killed while it runs a program.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Store, Writer};
use keyloom_graph::messages::programs::{LabelPropagation, PageRank};
use keyloom_testing::laws::{Dump, clear, dump_all};

use super::{declare, edge};

const PATH: &str = "KEYLOOM_MESSAGES_PATH";
const STARTED: &str = "started";
/// The number of vertices; batches have 20.
const VERTICES: u32 = 200;

fn open(path: &Path) -> Lmdb {
    // Writes of a killed process survive in the page cache, even without a sync.
    Lmdb::options().durability(Durability::MayLoseStore).open(path).unwrap()
}

fn prepare(store: &impl Store) {
    clear(store);
    let graph = super::super::directed(store);
    let mut rng = fastrand::Rng::with_seed(5);
    let edges: Vec<_> =
        (0..1_000).map(|_| edge(rng.u32(..VERTICES), rng.u32(..VERTICES), 1)).collect();
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    run(store, false);
}

/// Declares both programs, and runs them.
fn run(store: &impl Store, is_run: bool) {
    let graph = super::super::directed(store);
    let ranks = declare(store, &graph, PageRank::new(9)).max_batch_vertices(20).threads(2);
    let labels = declare(store, &graph, LabelPropagation::new(5)).max_batch_vertices(20).threads(2);
    if is_run {
        ranks.run(store).unwrap();
        labels.run(store).unwrap();
    }
}

/// Not a test of its own: a child process that runs until the test below kills it.
#[test]
fn in_a_process_of_its_own() {
    let Ok(path) = std::env::var(PATH) else { return };
    let store = open(Path::new(&path));
    println!("{STARTED}");
    run(&store, true);
}

/// Starts a process that runs the programs, and kills it after a pause. Returns false if the
/// process had ended before.
fn kill_after(path: &Path, pause: Duration) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "messages::kills::in_a_process_of_its_own", "--nocapture"])
        .env(PATH, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().ends_with(STARTED)));
    std::thread::sleep(pause);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Repeatedly starts and kills a process that runs the programs, until one finishes. Calls `damage`
/// after each kill. Returns the bytes and the number of kills.
fn run_with_kills(directory: &Path, longest: u64, damage: impl Fn(&Lmdb)) -> (Dump, u32) {
    prepare(&open(directory));
    let mut kills = 0;
    while kill_after(directory, Duration::from_micros(fastrand::u64(..longest))) {
        kills += 1;
        damage(&open(directory));
    }
    (dump_all(&open(directory)), kills)
}

#[test]
fn killed_runs_end_with_the_same_bytes() {
    let most = std::env::var("KEYLOOM_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let wanted = {
        let store = open(directory.path());
        prepare(&store);
        run(&store, true);
        dump_all(&store)
    };
    let (mut kills, mut runs) = (0, 0);
    while kills < most {
        let (bytes, killed) = run_with_kills(directory.path(), 30_000, |_| {});
        assert!(bytes == wanted, "after {killed} kills");
        (kills, runs) = (kills + killed, runs + 1);
    }
    println!("{kills} kills in {runs} runs");
    // A control: without the messages of the next superstep, the same comparison fails.
    let graph = super::super::directed(&open(directory.path()));
    let lose = |store: &Lmdb| {
        let ranks = declare(store, &graph, PageRank::new(9));
        for superstep in 0..10_u64 {
            let messages = ranks.space().range_of(&(3_u8, superstep));
            store.transact(|txn| txn.delete_range(messages.clone())).unwrap();
        }
    };
    let differs = (0..50).any(|_| {
        let (bytes, _) = run_with_kills(directory.path(), 20_000, lose);
        bytes != wanted
    });
    assert!(differs, "lost messages change the outcome");
}
