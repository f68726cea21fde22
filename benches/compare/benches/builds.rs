//! A text index is built while two writers commit: does the build finish, and what does it cost the
//! writers? 3,000 documents of 40 words by Zipf's law (300 in etcd), so that any two documents
//! share words.
//!
//! ```text
//! tests/servers/with.sh cargo bench -p keyloom-compare --features servers --bench builds
//! ```
//!
//! `-- --seconds 10` limits each build (default: 60 s), `-- --writes 100` runs one rate only.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use keyloom::{Memory, Store};
use keyloom_etcd::Etcd;
use keyloom_patterns::{Attached, Schema, Table};
use keyloom_postgres::Postgres;
use keyloom_text::{Analyzer, TextIndex};

const DOCUMENTS: u32 = 3_000;
/// A build writes some 60 keys for each document, and etcd synchronizes three members.
const IN_ETCD: u32 = 300;
const WORDS: usize = 40;
const WRITERS: u32 = 2;

type Texts = Attached<TextIndex<u32, String>>;

/// Measurements of the writers.
#[derive(Default)]
struct Written {
    commits: AtomicU64,
    runs: AtomicU64,
    refused: AtomicU64,
    /// The longest time of one write, in microseconds.
    longest: AtomicU64,
}

fn main() {
    let seconds = option("--seconds").unwrap_or(60);
    let rates = option("--writes").map_or(vec![0, 10, 100, 1_000], |rate| vec![rate]);
    println!(
        "{:<18} {:>8} {:>8} {:>8} {:>9} {:>12} {:>12} {:>8} {:>10}",
        "store",
        "writes/s",
        "build s",
        "batches",
        "given up",
        "committed/s",
        "runs/commit",
        "refused",
        "longest"
    );
    for rate in rates {
        let memory = Memory::builder().optimistic(true).build();
        measure("optimistic memory", &memory, DOCUMENTS, rate, seconds);
        let name = format!("builds_{rate}_{}", std::process::id());
        if let Some(address) = server("KEYLOOM_POSTGRES") {
            let store = Postgres::options().table(&name).open(&address).unwrap();
            measure("PostgreSQL", &store, DOCUMENTS, rate, seconds);
        }
        if let Some(address) = server("KEYLOOM_ETCD") {
            // The last part of the address is the name of the keyspace.
            let cluster = address.rsplit_once('/').map_or(&*address, |(cluster, _)| cluster);
            let store = Etcd::open(&format!("{cluster}/{name}")).unwrap();
            measure("etcd", &store, IN_ETCD, rate, seconds);
        }
    }
}

fn option(name: &str) -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).map(|value| value.parse().unwrap())
}

/// The address of a server, from an environment variable.
fn server(variable: &str) -> Option<String> {
    let address = std::env::var(variable).ok();
    if address.is_none() {
        println!("no {variable}: run it under tests/servers/with.sh");
    }
    address
}

fn table(store: &impl Store) -> Table<u32, String> {
    Schema::open(store, "app").unwrap().table("documents").unwrap()
}

fn declared(store: &impl Store) -> (Table<u32, String>, Texts) {
    let schema = Schema::open(store, "app").unwrap();
    let table = schema.table("documents").unwrap();
    let texts = schema
        .derive(&table, "texts", 1, |space| {
            Ok(TextIndex::new(space)
                .field("body", Analyzer::simple(), |_, body: &String, add| add(body)))
        })
        .unwrap();
    (table, texts)
}

/// Words by Zipf's law: the second word is half as frequent as the first.
fn text(rng: &mut fastrand::Rng) -> String {
    let words = (0..WORDS).map(|_| format!("w{}", 5_000_f64.powf(rng.f64()) as u32));
    words.collect::<Vec<_>>().join(" ")
}

fn measure(name: &str, store: &impl Store, documents: u32, rate: u64, seconds: u64) {
    let mut rng = fastrand::Rng::with_seed(7);
    let filled = table(store);
    for part in (0..documents).collect::<Vec<_>>().chunks(250) {
        let some: Vec<(u32, String)> = part.iter().map(|id| (*id, text(&mut rng))).collect();
        store.transact(|txn| filled.put_many(txn, some.clone())).unwrap();
    }
    let (table, texts) = declared(store);
    let (written, is_over) = (Written::default(), AtomicBool::new(false));
    let begun = Instant::now();
    let built = thread::scope(|scope| {
        for writer in 0..if rate > 0 { WRITERS } else { 0 } {
            let (table, written, is_over) = (table.clone(), &written, &is_over);
            let pause = Duration::from_secs(1) * WRITERS / rate as u32;
            scope.spawn(move || write(store, &table, documents, writer, pause, written, is_over));
        }
        thread::sleep(Duration::from_millis(200));
        let built = build(store, &texts, Duration::from_secs(seconds));
        is_over.store(true, Relaxed);
        built
    });
    let time = begun.elapsed().as_secs_f64();
    let (commits, runs) = (written.commits.load(Relaxed), written.runs.load(Relaxed));
    println!(
        "{name:<18} {rate:>8} {:>8} {:>8} {:>9} {:>12.0} {:>12.2} {:>8} {:>7.0} ms",
        built.time.map_or("-".into(), |time| format!("{:.2}", time.as_secs_f64())),
        built.batches,
        built.given_up,
        commits as f64 / time,
        runs as f64 / commits.max(1) as f64,
        written.refused.load(Relaxed),
        written.longest.load(Relaxed) as f64 / 1e3,
    );
    if built.time.is_some() {
        assert!(texts.check(&store.snapshot().unwrap()).unwrap().is_empty());
    }
}

/// Result of a build; without a time if the build did not finish before the deadline.
struct Built {
    time: Option<Duration>,
    batches: u64,
    given_up: u64,
}

fn build(store: &impl Store, texts: &Texts, most: Duration) -> Built {
    let begun = Instant::now();
    let mut built = Built { time: None, batches: 0, given_up: 0 };
    let batches = Cell::new(0);
    while begun.elapsed() < most {
        let done = texts.build_with(store, 1_000, |_| {
            batches.set(batches.get() + 1);
            if begun.elapsed() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        match done {
            Ok(done) if done.finished => {
                built.time = Some(begun.elapsed());
                break;
            }
            Ok(_) => break,
            Err(error) => {
                assert!(matches!(error, keyloom::Error::RetriesExhausted { .. }), "{error}");
                built.given_up += 1;
            }
        }
    }
    built.batches = batches.get();
    built
}

fn write(
    store: &impl Store,
    table: &Table<u32, String>,
    documents: u32,
    writer: u32,
    pause: Duration,
    written: &Written,
    is_over: &AtomicBool,
) {
    let mut rng = fastrand::Rng::with_seed(u64::from(writer));
    let mut next = Instant::now();
    while !is_over.load(Relaxed) {
        let (id, text) = (rng.u32(..documents), text(&mut rng));
        let begun = Instant::now();
        let outcome = store.transact(|txn| {
            written.runs.fetch_add(1, Relaxed);
            table.put(txn, &id, &text)
        });
        written.longest.fetch_max(begun.elapsed().as_micros() as u64, Relaxed);
        match outcome {
            Ok(()) => written.commits.fetch_add(1, Relaxed),
            Err(error) => {
                assert!(matches!(error, keyloom::Error::RetriesExhausted { .. }), "{error}");
                written.refused.fetch_add(1, Relaxed)
            }
        };
        // A late writer does not catch up.
        next = (next + pause).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}
