//! A work queue on PostgreSQL, compared with `SELECT … FOR UPDATE SKIP LOCKED` on the same server
//! in one run: 16 producers alone, 16 consumers alone, and both at once. Each producer and consumer
//! has its own connection.
//!
//! Both queues lease a job in one transaction and complete it in another, which checks that the
//! consumer still holds the lease. keyloom's transactions are serializable. The other queue is
//! measured at this isolation level and at read committed, the default, at which its statements are
//! correct, too.
//!
//! ```text
//! tests/servers/with.sh cargo bench -p keyloom-compare --features servers --bench work_queue
//! ```

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use keyloom::Store;
use keyloom_locking::WorkQueue;
use keyloom_locking::queue::QueueOptions;
use keyloom_patterns::Schema;
use keyloom_postgres::Postgres;
use postgres::error::SqlState;
use postgres::{Client, IsolationLevel, NoTls, Transaction};

const THREADS: u32 = 16;
const JOBS: u32 = 125;
const ALL: u32 = THREADS * JOBS;
const TENANTS: u32 = 20;
const ROUNDS: usize = 3;
const PAYLOAD: [u8; 100] = [0x2A; 100];

fn tenant(n: u32) -> String {
    format!("tenant {}", n % TENANTS)
}

/// A queue, used by one thread.
trait Worker {
    fn enqueue(&mut self, n: u32);
    /// Leases up to `n` jobs and completes each. Returns their number.
    fn work(&mut self, n: usize) -> u32;
}

struct Keyloom<'s>(&'s Postgres, WorkQueue<Vec<u8>>);

impl Worker for Keyloom<'_> {
    fn enqueue(&mut self, n: u32) {
        let Self(store, queue) = self;
        let mut runs = 0;
        let added = store.transact(|txn| {
            runs += 1;
            queue.enqueue(txn, (tenant(n), PAYLOAD.to_vec()))
        });
        added.unwrap();
        CONFLICTS.fetch_add(runs - 1, Relaxed);
    }

    fn work(&mut self, n: usize) -> u32 {
        let Self(store, queue) = self;
        let delivered = queue.dequeue(*store, n).unwrap();
        for delivery in &delivered {
            let mut runs = 0;
            let completed = store.transact(|txn| {
                runs += 1;
                queue.complete(txn, delivery)
            });
            completed.unwrap();
            CONFLICTS.fetch_add(runs - 1, Relaxed);
        }
        delivered.len() as u32
    }
}

const SCHEMA: &str = "
    DROP TABLE IF EXISTS skip_locked;
    CREATE TABLE skip_locked (
        id bigserial PRIMARY KEY, tenant text NOT NULL, payload bytea NOT NULL,
        due timestamptz NOT NULL DEFAULT now(), attempts int NOT NULL DEFAULT 0);
    CREATE INDEX ON skip_locked (due, id)";

const LEASE: &str = "
    UPDATE skip_locked SET due = now() + interval '30 s', attempts = attempts + 1
    WHERE id IN (SELECT id FROM skip_locked WHERE due <= now() ORDER BY due, id
                 LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING id, attempts, payload";

struct SkipLocked {
    client: Client,
    level: IsolationLevel,
    conflicts: &'static AtomicU64,
}

static CONFLICTS: AtomicU64 = AtomicU64::new(0);

impl SkipLocked {
    fn new(address: &str, level: IsolationLevel) -> Self {
        Self { client: Client::connect(address, NoTls).unwrap(), level, conflicts: &CONFLICTS }
    }

    /// Repeats a transaction after a conflict, as every client of PostgreSQL must.
    fn transact<T>(
        &mut self,
        body: impl Fn(&mut Transaction<'_>) -> Result<T, postgres::Error>,
    ) -> T {
        loop {
            let mut txn =
                self.client.build_transaction().isolation_level(self.level).start().unwrap();
            let done = body(&mut txn).and_then(|done| txn.commit().map(|()| done));
            match done {
                Ok(done) => return done,
                Err(error) if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => {
                    self.conflicts.fetch_add(1, Relaxed);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

impl Worker for SkipLocked {
    fn enqueue(&mut self, n: u32) {
        let insert = "INSERT INTO skip_locked (tenant, payload) VALUES ($1, $2)";
        self.transact(|txn| txn.execute(insert, &[&tenant(n), &&PAYLOAD[..]]));
    }

    fn work(&mut self, n: usize) -> u32 {
        let jobs = self.transact(|txn| txn.query(LEASE, &[&(n as i64)]));
        let complete = "DELETE FROM skip_locked WHERE id = $1 AND attempts = $2";
        for job in &jobs {
            let (id, attempts): (i64, i32) = (job.get(0), job.get(1));
            let deleted = self.transact(|txn| txn.execute(complete, &[&id, &attempts]));
            assert_eq!(deleted, 1);
        }
        jobs.len() as u32
    }
}

/// The workers that run concurrently.
#[derive(Clone, Copy)]
enum Part {
    Producers,
    Consumers,
    Both,
}

const PARTS: [(&str, Part); 3] = [
    ("enqueue", Part::Producers),
    ("lease and complete", Part::Consumers),
    ("both at the same time", Part::Both),
];

/// Measures the time until all jobs are enqueued, completed, or both.
fn run<W: Worker>(part: Part, batch: usize, worker: impl Fn() -> W + Sync) -> Duration {
    let done = AtomicU32::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (worker, done) = (&worker, &done);
            if !matches!(part, Part::Consumers) {
                scope.spawn(move || {
                    let mut worker = worker();
                    (thread * JOBS..(thread + 1) * JOBS).for_each(|n| worker.enqueue(n));
                });
            }
            if !matches!(part, Part::Producers) {
                scope.spawn(move || {
                    let mut worker = worker();
                    while done.load(Relaxed) < ALL {
                        match worker.work(batch) {
                            0 => std::thread::sleep(Duration::from_millis(2)),
                            n => drop(done.fetch_add(n, Relaxed)),
                        }
                    }
                });
            }
        }
    });
    begun.elapsed()
}

fn main() {
    let Ok(address) = std::env::var("KEYLOOM_POSTGRES") else {
        println!("no KEYLOOM_POSTGRES: run it under tests/servers/with.sh");
        return;
    };
    let connections = 2 * THREADS as usize + 4;
    let store = Postgres::options().table("queued").max_connections(connections);
    let store = store.open(&address).unwrap();
    let schema = Schema::open(&store, "bench").unwrap();
    let queue = WorkQueue::<Vec<u8>>::open_with(&schema, "jobs", QueueOptions::default()).unwrap();
    let mut setup = Client::connect(&address, NoTls).unwrap();
    setup.batch_execute(SCHEMA).unwrap();
    let levels = [IsolationLevel::Serializable, IsolationLevel::ReadCommitted];
    for batch in [1, 10] {
        println!("{ALL} jobs, {THREADS} producers, {THREADS} consumers of up to {batch} jobs:");
        // The consumers of the second part take the jobs that the producers of the first part
        // added.
        for (name, part) in (0..ROUNDS).flat_map(|_| PARTS) {
            CONFLICTS.store(0, Relaxed);
            let own = run(part, batch, || Keyloom(&store, queue.clone()));
            let own_conflicts = CONFLICTS.swap(0, Relaxed);
            let mut theirs = Vec::new();
            for (n, level) in levels.into_iter().enumerate() {
                // Both isolation levels use one table, so the second level needs new jobs.
                if n == 1 && matches!(part, Part::Consumers) {
                    run(Part::Producers, batch, || SkipLocked::new(&address, level));
                } else if n == 1 && matches!(part, Part::Producers) {
                    setup.batch_execute("TRUNCATE skip_locked").unwrap();
                }
                theirs.push(run(part, batch, || SkipLocked::new(&address, level)));
            }
            let per_second = |time: Duration| f64::from(ALL) / time.as_secs_f64();
            println!(
                "    {name}: keyloom {:.0} jobs/s ({own_conflicts} conflicts); SKIP LOCKED serializable {:.0} ({} \
                 conflicts), read committed {:.0}; rate ratios {:.2} and {:.2}",
                per_second(own),
                per_second(theirs[0]),
                CONFLICTS.load(Relaxed),
                per_second(theirs[1]),
                theirs[0].as_secs_f64() / own.as_secs_f64(),
                theirs[1].as_secs_f64() / own.as_secs_f64(),
            );
        }
    }
}
