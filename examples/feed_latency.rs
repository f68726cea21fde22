//! How long after a commit a waiting consumer of a feed continues, on each store:
//!
//! ```text
//! cargo run --release -p keyloom-examples --bin feed_latency
//! tests/servers/with.sh cargo run --release -p keyloom-examples --features postgres,etcd \
//!     --bin feed_latency
//! ```
//!
//! A producer commits a change every 5 to 25 ms. The consumer waits in another thread, or in
//! another process for `LMDB, two processes`.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use keyloom::{Lmdb, Memory, Result, Store, Subspace};
use keyloom_patterns::{Feed, Table};
use keyloom_redb::Redb;

const CHANGES: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(30);

type Changes = Feed<u64, u64>;

fn declare() -> (Changes, Table<u64, u64>) {
    let space = Subspace::new("latency");
    let feed = Changes::new(&space.child("feed"));
    let table = Table::new(&space.child("table")).with(&feed);
    (feed, table)
}

/// Nanoseconds since 1970: a clock that two processes share.
fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// Waits for each change and reports the time at which the wait ended.
fn consume(store: &impl Store, mut ended: impl FnMut(u128) -> Result<()>) -> Result<()> {
    let (feed, _) = declare();
    let consumer = feed.consumer("waiter");
    for _ in 0..CHANGES {
        while !consumer.wait(store, PATIENCE)? {}
        ended(now())?;
        store.transact(|txn| consumer.process(txn, 10, |_, _| Ok(())))?;
    }
    Ok(())
}

/// Commits the changes, each after the previous one was consumed. Returns the latencies.
fn produce(
    store: &impl Store,
    mut next_end: impl FnMut() -> Result<u128>,
) -> Result<Vec<Duration>> {
    let (_, table) = declare();
    let mut latencies = Vec::new();
    for n in 0..CHANGES {
        thread::sleep(Duration::from_micros(fastrand::u64(5_000..25_000)));
        store.transact(|txn| table.put(txn, &1, &n))?;
        let committed = now();
        let nanoseconds = next_end()?.saturating_sub(committed);
        latencies.push(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)));
    }
    Ok(latencies)
}

fn begin(store: &impl Store) -> Result<()> {
    let (feed, _) = declare();
    store.transact(|txn| feed.consumer("waiter").start(txn, 0))
}

fn report(store: &str, mut latencies: Vec<Duration>) {
    latencies.sort();
    let at = |part: usize| latencies.get((latencies.len() - 1) * part / 100).copied();
    let shown = |part| at(part).unwrap_or_default().as_secs_f64() * 1e3;
    println!("| {store} | {:.3} | {:.3} | {:.3} |", shown(50), shown(90), shown(100));
}

/// The consumer is a thread of this process.
fn in_one_process(name: &str, store: &impl Store) -> Result<()> {
    begin(store)?;
    let (send, receive) = mpsc::channel();
    let latencies = thread::scope(|scope| {
        scope.spawn(move || consume(store, |end| send.send(end).map_err(keyloom::Error::other)));
        produce(store, || receive.recv().map_err(keyloom::Error::other))
    })?;
    report(name, latencies);
    Ok(())
}

/// The consumer is another process on the same LMDB store.
fn in_two_processes(path: &Path) -> Result<(), Box<dyn Error>> {
    let store = Lmdb::open(path)?;
    begin(&store)?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("--consume")
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("the consumer has no output")?;
    let mut lines = BufReader::new(output).lines();
    let latencies = produce(&store, || {
        let line = lines.next().ok_or_else(|| keyloom::Error::other("the consumer has ended"))?;
        let line = line.map_err(keyloom::Error::other)?;
        line.parse().map_err(keyloom::Error::other)
    })?;
    child.wait()?;
    report("LMDB, two processes", latencies);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let [flag, path] = arguments.as_slice()
        && flag == "--consume"
    {
        let mut out = std::io::stdout();
        return Ok(consume(&Lmdb::open(path)?, |end| {
            writeln!(out, "{end}").and_then(|()| out.flush()).map_err(keyloom::Error::other)
        })?);
    }
    println!("| store | median, ms | 90 of 100, ms | largest, ms |\n|---|---|---|---|");
    let directory = tempfile::tempdir()?;
    in_one_process("memory", &Memory::new())?;
    in_one_process("LMDB", &Lmdb::open(directory.path().join("one"))?)?;
    in_two_processes(&directory.path().join("two"))?;
    in_one_process("redb", &Redb::open(directory.path().join("redb"))?)?;
    #[cfg(feature = "postgres")]
    if let Ok(address) = std::env::var("KEYLOOM_POSTGRES") {
        in_one_process("PostgreSQL", &keyloom_postgres::Postgres::open(&address)?)?;
    }
    #[cfg(feature = "etcd")]
    if let Ok(address) = std::env::var("KEYLOOM_ETCD") {
        in_one_process("etcd", &keyloom_etcd::Etcd::open(&address)?)?;
    }
    Ok(())
}
