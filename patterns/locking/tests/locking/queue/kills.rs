//! Consumers that are killed, each in its own process, on LMDB.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Reader, Store, Subspace, Writer};
use keyloom_locking::ManualClock;
use keyloom_locking::queue::{JobId, JobState, QueueOptions};

use super::{START, VISIBILITY, assert_sound, fill, open, open_with, options};

const PATH: &str = "KEYLOOM_QUEUE_PATH";
const NOW: &str = "KEYLOOM_QUEUE_NOW";
const MODE: &str = "KEYLOOM_QUEUE_MODE";
const DELIVERED: &str = "delivered ";
const STARTED: &str = "started";
const JOBS: u32 = 300;
/// Counts jobs that were completed after the consumer of their first delivery was killed.
const AGAIN: &[u8] = b"again";

fn open_store(path: &Path) -> Lmdb {
    // Writes of a killed process survive in the page cache, even without a sync.
    Lmdb::options().durability(Durability::MayLoseStore).open(path).unwrap()
}

fn results() -> Subspace {
    Subspace::new("results")
}

/// Not a test of its own: a consumer process that runs until a test below kills it.
#[test]
fn in_a_process_of_its_own() {
    let Ok(path) = std::env::var(PATH) else { return };
    let clock = ManualClock::at(std::env::var(NOW).unwrap().parse().unwrap());
    let store = open_store(Path::new(&path));
    let queue = open_with(&store, QueueOptions { max_attempts: u32::MAX, ..options(&clock) });
    let mode = std::env::var(MODE).unwrap();
    println!("{STARTED}");
    loop {
        let delivered = queue.dequeue(&store, 3).unwrap();
        if delivered.is_empty() {
            return;
        }
        for delivery in delivered {
            if mode == "forget" {
                store.transact(|txn| queue.delete(txn, delivery.id)).unwrap();
            }
            if mode != "all" {
                println!("{DELIVERED}{}", delivery.id);
                std::thread::park();
            }
            let done = store.transact(|txn| {
                txn.add(&results().pack(&delivery.job.payload), 1)?;
                if delivery.token > 1 {
                    txn.add(AGAIN, 1)?;
                }
                queue.complete(txn, &delivery)
            });
            done.unwrap();
        }
    }
}

struct Child {
    process: std::process::Child,
    output: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Child {
    fn start(path: &Path, now: u64, mode: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "queue::kills::in_a_process_of_its_own", "--nocapture"])
            .env(PATH, path)
            .env(NOW, now.to_string())
            .env(MODE, mode)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, output }
    }

    /// The rest of the first line that contains `mark`.
    fn wait_for(&mut self, mark: &str) -> String {
        let mut lines = self.output.by_ref().map(Result::unwrap);
        lines.find_map(|line| Some(line.split_once(mark)?.1.to_owned())).unwrap()
    }

    /// Kills the process. Returns false if it had already ended.
    fn kill(mut self) -> bool {
        self.process.kill().unwrap();
        !self.process.wait().unwrap().success()
    }
}

/// Kills a consumer that holds one job. Returns the jobs that are delivered before and after the
/// time-out.
fn kill_a_holder(mode: &str) -> [Vec<JobId>; 2] {
    let directory = tempfile::tempdir().unwrap();
    {
        let store = open_store(directory.path());
        fill(&store, &open(&store).0, "acme", 1);
    }
    let mut child = Child::start(directory.path(), START, mode);
    let id: JobId = child.wait_for(DELIVERED).parse().unwrap();
    assert!(child.kill());
    let store = open_store(directory.path());
    let (queue, clock) = open(&store);
    if mode == "hold" {
        let job = queue.get(&store.snapshot().unwrap(), id).unwrap().unwrap();
        assert_eq!(job.state, JobState::Leased { until: START + 30_000 });
    }
    clock.advance(VISIBILITY - Duration::from_millis(1));
    let ids = || queue.dequeue(&store, 9).unwrap().into_iter().map(|one| one.id).collect();
    let early: Vec<JobId> = ids();
    clock.advance(Duration::from_millis(1));
    let late: Vec<JobId> = ids();
    assert!(late.iter().all(|other| *other == id));
    assert_sound(&store, &queue);
    [early, late]
}

#[test]
fn jobs_of_a_killed_consumer_are_delivered_again() {
    let [early, late] = kill_a_holder("hold");
    assert_eq!((early.len(), late.len()), (0, 1));
    // A control: a consumer that removes jobs before it works on them loses them.
    let [early, late] = kill_a_holder("forget");
    assert_eq!((early.len(), late.len()), (0, 0));
}

#[test]
fn consumers_killed_anywhere_do_each_job_once() {
    let most = std::env::var("KEYLOOM_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let (mut kills, mut again) = (0, 0);
    while kills < most {
        let directory = tempfile::tempdir().unwrap();
        {
            let store = open_store(directory.path());
            fill(&store, &open(&store).0, "acme", JOBS);
        }
        let mut now = START;
        loop {
            let mut child = Child::start(directory.path(), now, "all");
            child.wait_for(STARTED);
            std::thread::sleep(Duration::from_micros(fastrand::u64(..20_000)));
            if !child.kill() {
                break;
            }
            kills += 1;
            // The leases of the killed consumer end.
            now += 30_000;
        }
        let store = open_store(directory.path());
        let (queue, _) = open(&store);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(queue.counts(&snapshot, None).unwrap(), Default::default());
        for n in 0..JOBS {
            assert_eq!(snapshot.counter(&results().pack(&n)).unwrap(), 1, "job {n}");
        }
        again += snapshot.counter(AGAIN).unwrap();
        assert_sound(&store, &queue);
    }
    println!("{kills} kills, after which {again} jobs were delivered again");
    assert!(again > 0);
}
