//! Spans, events and metrics.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use keyloom::{
    Batched, Error, KeyRange, Memory, Metered, Order, Reader, Result, RetryPolicy, Store,
    Transaction, Writer, pack,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber, subscriber};

/// Keeps a line for each span, record and event: level, name or message, and fields.
#[derive(Clone, Default)]
struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    next: Arc<AtomicU64>,
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.0.insert_str(0, &format!("{value:?}")),
            name => self.0.push_str(&format!(" {name}={value:?}")),
        }
    }
}

impl Lines {
    fn push(&self, level: Level, line: &str) {
        self.lines.lock().unwrap().push(format!("{level} {line}"));
    }

    fn of<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
        let lines = Self::default();
        let result = subscriber::with_default(lines.clone(), work);
        let lines = std::mem::take(&mut *lines.lines.lock().unwrap());
        (result, lines)
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "keyloom"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(span.metadata().name().to_owned());
        span.record(&mut line);
        self.push(*span.metadata().level(), &line.0);
        Id::from_u64(self.next.fetch_add(1, Relaxed) + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line::default();
        values.record(&mut line);
        self.push(Level::DEBUG, &format!("recorded{}", line.0));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.push(*event.metadata().level(), &line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn optimistic(max_attempts: u32) -> Memory {
    let policy = RetryPolicy {
        max_attempts,
        first_pause: Duration::from_micros(1),
        ..RetryPolicy::default()
    };
    Memory::builder().optimistic(true).retry_policy(policy).build()
}

/// Reads and writes a key, which other transactions change during the first `conflicts` runs.
fn meet_conflicts(store: &impl Store, conflicts: u32) -> Result<()> {
    let mut runs = 0;
    store.transact(|txn| {
        runs += 1;
        let seen = txn.counter(&pack(&("seats", 7)))?;
        if runs <= conflicts {
            store.transact(|other| other.add(&pack(&("seats", 7)), 1))?;
        }
        txn.put(&pack(&("seats", 7)), &(seen - 1).to_le_bytes())
    })
}

#[test]
fn a_transaction_is_a_span_with_its_attempts() {
    let store = optimistic(5);
    let (result, lines) = Lines::of(|| store.transact(|txn| txn.put(b"a", b"1")));
    result.unwrap();
    assert_eq!(lines, ["DEBUG transaction", "DEBUG recorded attempts=1"]);
}

#[test]
fn each_conflict_is_an_event_with_its_key() {
    let store = optimistic(5);
    let (result, lines) = Lines::of(|| meet_conflicts(&store, 2));
    result.unwrap();
    let again: Vec<_> = lines.iter().filter(|line| line.contains("runs again")).collect();
    assert_eq!(again.len(), 2, "{lines:#?}");
    assert!(again[0].contains("attempt=2 ") && again[1].contains("attempt=3 "), "{lines:#?}");
    assert!(again.iter().all(|line| line.contains(r#"("seats", 7)"#)), "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "DEBUG recorded attempts=3");
}

#[test]
fn a_transaction_that_gives_up_is_a_warning() {
    let store = optimistic(2);
    let (result, lines) = Lines::of(|| meet_conflicts(&store, 9));
    assert!(matches!(result, Err(Error::RetriesExhausted { attempts: 2, .. })));
    let last = lines.last().unwrap();
    assert!(last.starts_with("WARN transaction gave up attempts=2 reason="), "{lines:#?}");
}

#[test]
fn an_error_of_the_body_is_no_conflict() {
    let store = optimistic(5);
    let failing = || store.transact(|_| Err::<(), _>(Error::other("no seat")));
    let (result, lines) = Lines::of(failing);
    result.unwrap_err();
    assert_eq!(lines, ["DEBUG transaction", "DEBUG recorded attempts=1"]);
}

/// The number of transactions in the batches that were reported.
fn batched(lines: &[String]) -> usize {
    let counts = lines.iter().filter_map(|line| line.split_once("batch committed transactions="));
    counts.map(|(_, rest)| rest.split(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}

#[test]
fn a_batch_is_an_event() {
    const TASKS: u8 = 8;
    let store = Batched::new(Memory::new());
    let lines = Lines::default();
    let put = &|n: u8| {
        let put = || store.transact_batched(|txn| txn.put(&[n], b""));
        subscriber::with_default(lines.clone(), put).unwrap();
    };
    thread::scope(|scope| {
        // This body runs alone, and ends when the others wait for a batch of their own.
        store
            .transact_batched(|_| {
                for n in 0..TASKS {
                    scope.spawn(move || put(n));
                }
                while store.waiting() < usize::from(TASKS) {
                    thread::yield_now();
                }
                Ok(())
            })
            .unwrap();
    });
    let lines = std::mem::take(&mut *lines.lines.lock().unwrap());
    let counted = usize::try_from(store.counts().together).unwrap();
    assert!(counted > 1, "{lines:#?}");
    assert_eq!(batched(&lines), counted, "{lines:#?}");
    // A body alone is no batch.
    let alone = || store.transact_batched(|txn| txn.put(b"a", b"1"));
    let (result, lines) = Lines::of(alone);
    result.unwrap();
    assert_eq!(batched(&lines), 0, "{lines:#?}");
}

#[test]
fn only_slow_scans_are_reported() {
    let store = Metered::new(Memory::new());
    store.transact(|txn| (0..5_u8).try_for_each(|n| txn.put(&pack(&("log", n)), b"12"))).unwrap();
    let scan = |store: &Metered<Memory>, pause| {
        let snapshot = store.snapshot().unwrap();
        let range = KeyRange::self_and_children(&pack(&"log")).into_owned();
        for entry in snapshot.range(range, Order::Ascending).unwrap() {
            entry.unwrap();
            std::thread::sleep(pause);
        }
    };
    let slow = store.clone().with_slow_scans(Duration::from_millis(10));
    let (_, lines) = Lines::of(|| scan(&slow, Duration::from_millis(4)));
    let bytes = 5 * (pack(&("log", 1_u8)).len() + 2) - 1;
    let begins = format!(r#"WARN slow scan begins_at="(\"log\",)" keys=5 bytes={bytes} "#);
    assert!(lines.len() == 1 && lines[0].starts_with(&begins), "{lines:#?}");
    // Pages and counts are scans, too.
    let all = store.clone().with_slow_scans(Duration::ZERO);
    let snapshot = all.snapshot().unwrap();
    let (_, lines) = Lines::of(|| snapshot.count(KeyRange::all()).unwrap());
    assert!(lines.len() == 1 && lines[0].contains(" keys=5 "), "{lines:#?}");
    let (_, lines) =
        Lines::of(|| drop(snapshot.page(KeyRange::all(), Order::Ascending, 3).unwrap()));
    assert!(lines.len() == 1 && lines[0].contains(" keys=3 "), "{lines:#?}");
    let slow = store.clone().with_slow_scans(Duration::from_secs(60));
    assert_eq!(Lines::of(|| scan(&slow, Duration::ZERO)).1, [""; 0]);
    assert_eq!(Lines::of(|| scan(&store, Duration::from_millis(4))).1, [""; 0]);
}

#[test]
fn conflicts_are_counted() {
    let store = Metered::new(optimistic(9));
    let (result, cost) = store.measure(|store| meet_conflicts(store, 3));
    result.unwrap();
    // Three commits of the other transactions, and one of this one.
    assert_eq!((cost.commits, cost.conflicts), (4, 3));
    let (_, cost) = store.measure(|store| {
        let mut txn = store.begin().unwrap();
        txn.put(b"a", b"").unwrap();
        txn.commit().unwrap();
    });
    assert_eq!((cost.commits, cost.conflicts), (1, 0));
}

/// Keeps the value of each counter.
#[derive(Clone, Default)]
struct Counters(Arc<Mutex<Vec<(String, Arc<AtomicU64>)>>>);

impl metrics::Recorder for Counters {
    fn describe_counter(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn describe_gauge(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn describe_histogram(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        let labels = key.labels().map(|label| format!("{}={}", label.key(), label.value()));
        let name = format!("{}{:?}", key.name(), labels.collect::<Vec<_>>());
        let value = Arc::new(AtomicU64::new(0));
        self.0.lock().unwrap().push((name, Arc::clone(&value)));
        metrics::Counter::from_arc(value)
    }

    fn register_gauge(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::noop()
    }

    fn register_histogram(
        &self,
        _: &metrics::Key,
        _: &metrics::Metadata<'_>,
    ) -> metrics::Histogram {
        metrics::Histogram::noop()
    }
}

#[test]
fn metrics_have_the_counts_of_the_store() {
    let store = Metered::new(Memory::new());
    store.transact(|txn| txn.put(b"key", b"value")).unwrap();
    store.snapshot().unwrap().get(b"key").unwrap();
    let counters = Counters::default();
    metrics::with_local_recorder(&counters, || store.export("orders"));
    let found = counters.0.lock().unwrap();
    let value = |name: &str| {
        let name = format!("keyloom_{name}[\"store=orders\"]");
        found.iter().find(|(other, _)| *other == name).unwrap().1.load(Relaxed)
    };
    let cost = store.cost();
    assert_eq!((value("gets"), value("commits"), value("bytes_written")), (1, 1, 8));
    assert_eq!(value("round_trips"), cost.round_trips);
    assert_eq!(found.len(), 9, "one for each field of Cost");
}
