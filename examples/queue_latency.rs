//! How long after its commit a job reaches an idle consumer, on each store:
//!
//! ```text
//! cargo run --release -p keyloom-examples --bin queue_latency
//! tests/servers/with.sh cargo run --release -p keyloom-examples --features postgres,etcd \
//!     --bin queue_latency
//! ```
//!
//! Three consumers in a process wait for one job every 0.5 to 1.5 s.

use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use keyloom::{Lmdb, Memory, Result, Store};
use keyloom_patterns::Schema;
use keyloom_patterns::locking::WorkQueue;
use keyloom_patterns::locking::queue::{Answer, Stop, WorkOptions};
use keyloom_redb::Redb;

const JOBS: u64 = 40;

fn measure(name: &str, store: &impl Store) -> Result<()> {
    let queue = WorkQueue::<u64>::open(&Schema::open(store, "latency")?, "jobs")?;
    let (stop, (send, receive)) = (Stop::new(), mpsc::channel());
    let mut latencies = thread::scope(|scope| {
        let consume = |send: mpsc::Sender<Instant>| {
            queue.work(store, &stop, &WorkOptions::default(), |_| {
                let sent = send.send(Instant::now());
                sent.map_or_else(|error| Answer::Retry(error.to_string()), |()| Answer::Complete)
            })
        };
        let consumers = [(); 3].map(|()| {
            let send = send.clone();
            scope.spawn(move || consume(send))
        });
        let produced = (0..JOBS).map(|n| {
            thread::sleep(Duration::from_millis(fastrand::u64(500..1_500)));
            store.transact(|txn| queue.enqueue(txn, ("acme", n)).map(drop))?;
            let committed = Instant::now();
            let delivered = receive.recv().map_err(keyloom::Error::other)?;
            Ok(delivered.saturating_duration_since(committed))
        });
        let produced = produced.collect::<Result<Vec<_>>>();
        stop.request();
        for consumer in consumers {
            consumer.join().map_err(|_| keyloom::Error::other("a consumer panicked"))??;
        }
        produced
    })?;
    latencies.sort();
    let at = |part: usize| latencies.get((latencies.len() - 1) * part / 100).copied();
    let shown = |part| at(part).unwrap_or_default().as_secs_f64() * 1e3;
    println!("| {name} | {:.2} | {:.2} | {:.2} |", shown(50), shown(90), shown(100));
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    println!("| store | median, ms | 90 of 100, ms | largest, ms |\n|---|---|---|---|");
    let directory = tempfile::tempdir()?;
    measure("memory", &Memory::new())?;
    measure("LMDB", &Lmdb::open(directory.path().join("lmdb"))?)?;
    measure("redb", &Redb::open(directory.path().join("redb"))?)?;
    #[cfg(feature = "postgres")]
    if let Ok(address) = std::env::var("KEYLOOM_POSTGRES") {
        measure("PostgreSQL", &keyloom_postgres::Postgres::open(&address)?)?;
    }
    #[cfg(feature = "etcd")]
    if let Ok(address) = std::env::var("KEYLOOM_ETCD") {
        measure("etcd", &keyloom_etcd::Etcd::open(&address)?)?;
    }
    Ok(())
}
