//! Rate limits beside a bucket of fractions, and their costs, faults and damage.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use keyloom::value::{Codec, Postcard};
use keyloom::{AnyStore, DynWriter, Error, Metered, Result, Store, Writer};
use keyloom_locking::rate_limit::{RateLimit, Take};
use keyloom_locking::{Clock, ManualClock};
use keyloom_tables::{RepairOptions, Schema};
use keyloom_testing::laws::{self, clear, counts, dump_all, writing};
use keyloom_testing::on_every_store;

/// Ids that are empty, prefixes, suffixes and extensions of each other.
const CLIENTS: [&str; 7] = ["", "a", "ab", "b", "a\0", "\0", "\u{FF}"];

fn open(store: &impl Store, limit: u32, per: Duration) -> (RateLimit<String>, ManualClock) {
    let clock = ManualClock::at(1_000_000);
    let schema = Schema::open(store, "web").unwrap();
    let limit = RateLimit::open(&schema, "logins", limit, per).unwrap();
    (limit.with_clock(clock.clone()), clock)
}

/// Permits that come back continuously.
struct Bucket {
    /// Permits times the length of the interval, in ns.
    level: u128,
    at: u64,
}

/// The oracle: a bucket per client, refilled by the elapsed time.
struct Model {
    limit: u32,
    interval: u128,
    buckets: BTreeMap<String, Bucket>,
}

impl Model {
    fn new(limit: u32, per: Duration) -> Self {
        let interval = per.as_nanos().div_ceil(u128::from(limit));
        Self { limit, interval, buckets: BTreeMap::new() }
    }

    fn level(&mut self, client: &str, now: u64) -> &mut u128 {
        let full = u128::from(self.limit) * self.interval;
        let bucket =
            self.buckets.entry(client.to_owned()).or_insert(Bucket { level: full, at: now });
        bucket.level = full.min(bucket.level + u128::from(now - bucket.at) * 1_000_000);
        bucket.at = now;
        &mut bucket.level
    }

    fn take(&mut self, client: &str, permits: u32, now: u64) -> Take {
        let interval = self.interval;
        let level = self.level(client, now);
        let cost = u128::from(permits) * interval;
        match level.checked_sub(cost) {
            Some(rest) => {
                *level = rest;
                Take::Granted { left: (rest / interval) as u32 }
            }
            None => {
                let retry_in = Duration::from_millis((cost - *level).div_ceil(1_000_000) as u64);
                Take::Refused { retry_in }
            }
        }
    }
}

pub fn histories_agree_with_a_bucket(store: &AnyStore) {
    let mut random = fastrand::Rng::with_seed(7);
    let limits = [(1, 1_000), (3, 1_000), (7, 60_000), (1_000, 1), (5, 86_400_000)];
    let mut refused = 0;
    for (limit, per) in limits {
        clear(store);
        let per = Duration::from_millis(per);
        let ((permits, clock), mut model) = (open(store, limit, per), Model::new(limit, per));
        for _ in 0..200 {
            let client = random.choice(CLIENTS).unwrap().to_owned();
            if random.bool() {
                clock.advance(per.mul_f64(random.f64() * 1.5 / f64::from(limit)));
            }
            let (number, now) = (random.u32(0..=limit.min(4)), clock.now().unwrap());
            match random.u8(0..10) {
                0 => {
                    store.transact(|txn| permits.reset(txn, &client)).unwrap();
                    model.buckets.remove(&client);
                }
                1 => assert!(permits.sweep(store).unwrap().finished),
                _ => {
                    let expected = model.take(&client, number, now);
                    let taken = store.transact(|txn| permits.take(txn, &client, number)).unwrap();
                    assert_eq!(taken, expected, "{number} of {client:?}, {limit} per {per:?}");
                    refused += usize::from(matches!(taken, Take::Refused { .. }));
                }
            }
            let left = (*model.level(&client, now) / model.interval) as u32;
            assert_eq!(permits.left(&store.snapshot().unwrap(), &client).unwrap(), left);
        }
    }
    assert!(refused > 50, "only {refused} requests were refused");
}

/// Threads that take permits of one client get as many as there are, whatever the order.
pub fn concurrent_requests_get_no_more_than_the_limit(store: &AnyStore) {
    let (permits, clock) = open(store, 50, Duration::from_secs(50));
    let take_all = || {
        let take = || {
            let take = || store.transact(|txn| permits.take(txn, &"ada".to_owned(), 1)).unwrap();
            (0..20).filter(|_| matches!(take(), Take::Granted { .. })).count()
        };
        std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum::<usize>()
        })
    };
    assert_eq!(take_all(), 50);
    clock.advance(Duration::from_secs(30));
    assert_eq!(take_all(), 30);
}

pub fn operations_cost_what_the_documentation_says(store: &AnyStore) {
    let (permits, clock) = open(store, 2, Duration::from_secs(2));
    let ada = "ada".to_owned();
    let metered = &Metered::new(store.clone());
    let take = |number| writing(metered, |txn| permits.take(txn, &ada, number).map(drop));
    assert_eq!(take(1), [2, 0, 1, 1], "granted, without a record");
    assert_eq!(take(0), [1, 0, 1, 0], "none");
    assert_eq!(take(2), [1, 0, 1, 0], "refused");
    let snapshot = metered.snapshot().unwrap();
    let left = || assert_eq!(permits.left(&snapshot, &ada).unwrap(), 1);
    assert_eq!(counts(metered.measure(|_| left()).1), [1, 0, 1, 0]);
    drop(snapshot);
    clock.advance(Duration::from_secs(2));
    let (done, cost) = metered.measure(|store| permits.sweep(store).unwrap());
    assert_eq!((done.removed, done.entries), (1, 1));
    assert_eq!(counts(cost), [2, 1, 3, 1]);
    assert_eq!(counts(metered.measure(|store| permits.sweep(store).unwrap()).1), [1, 1, 1, 0]);
}

/// A transaction that fails takes no permit, whichever operation fails.
pub fn faults_take_no_permit(store: &AnyStore) {
    let (permits, _) = open(store, 2, Duration::from_secs(2));
    let prepared = dump_all(store);
    let prepare = |store: &AnyStore| {
        let put = |txn: &mut <AnyStore as Store>::Transaction<'_>| {
            prepared.iter().try_for_each(|(key, value)| txn.put(key, value))
        };
        store.transact(put).unwrap();
    };
    let take = |txn: &mut DynWriter<'_>| {
        for client in ["ada", "bob"] {
            let taken = permits.take(txn, &client.to_owned(), 1)?;
            assert_eq!(taken, Take::Granted { left: 1 });
        }
        Ok(())
    };
    laws::faults_leave_nothing_half_done(store, prepare, take, |_| Vec::new());
    laws::conflicts_are_retried_to_the_same_end(store, prepare, take);
}

pub fn records_of_other_clocks_and_limits_refuse_for_a_bounded_time(store: &AnyStore) {
    let per = Duration::from_secs(10);
    let (permits, clock) = open(store, 5, per);
    let ada = "ada".to_owned();
    let take = |number| store.transact(|txn| permits.take(txn, &ada, number)).unwrap();
    let set = |full_at: u64| {
        let mut record = Vec::new();
        Postcard::encode(&full_at, &mut record).unwrap();
        store.transact(|txn| txn.put(&key_of(store, "ada"), &record)).unwrap();
    };
    let left = || permits.left(&store.snapshot().unwrap(), &ada).unwrap();
    // As of a clock that is ahead, or from before `per` was made shorter: refused for `per` at
    // most, whether or not the record is changed meanwhile.
    for ahead in [per + Duration::from_millis(1), 3 * per, Duration::from_secs(1 << 32)] {
        set(clock.now().unwrap() * 1_000_000 + ahead.as_nanos() as u64);
        assert_eq!(left(), 0);
        assert_eq!(take(5), Take::Refused { retry_in: per });
        clock.advance(per / 5);
        assert_eq!(take(1), Take::Granted { left: 0 });
        clock.advance(per - per / 5);
        assert_eq!(left(), 4);
    }
    set(u64::MAX);
    assert_eq!(take(5), Take::Refused { retry_in: per });
    clock.advance(per);
    assert_eq!(take(5), Take::Granted { left: 0 });
    // Two programs in a rolling update, the new one with a shorter time: the old one's client does
    // not get more by the new one.
    let (longer, _) = open(store, 5, 360 * per);
    let longer = longer.with_clock(clock.clone());
    let take_longer = || store.transact(|txn| longer.take(txn, &ada, 1)).unwrap();
    store.transact(|txn| permits.reset(txn, &ada)).unwrap();
    (0..5).for_each(|_| assert!(matches!(take_longer(), Take::Granted { .. })));
    let granted = (0..20).filter(|_| matches!(take(1), Take::Granted { .. })).count();
    assert_eq!(granted, 0);
    set(0);
    assert_eq!(take(5), Take::Granted { left: 0 });
    // A program with a smaller limit sees the same client.
    let (smaller, _) = open(store, 1, per);
    let smaller = smaller.with_clock(clock.clone());
    let refused = store.transact(|txn| smaller.take(txn, &ada, 1)).unwrap();
    assert_eq!(refused, Take::Refused { retry_in: per });
    clock.advance(per);
    assert_eq!(take(5), Take::Granted { left: 0 });
}

fn key_of(store: &AnyStore, client: &str) -> keyloom::KeyBuf {
    let schema = Schema::open(store, "web").unwrap();
    let table = schema.table::<String, u64>("logins").unwrap();
    table.space().pack(client)
}

pub fn damaged_records_are_errors_until_they_are_reset(store: &AnyStore) {
    let (permits, clock) = open(store, 2, Duration::from_secs(2));
    let ada = "ada".to_owned();
    for client in CLIENTS {
        let _ = store.transact(|txn| permits.take(txn, &client.to_owned(), 1)).unwrap();
    }
    store.transact(|txn| txn.put(&key_of(store, "ada"), b"\xFF")).unwrap();
    let error = store.transact(|txn| permits.take(txn, &ada, 1)).unwrap_err();
    assert!(error.to_string().contains("\"ada\""), "{error}");
    clock.advance(Duration::from_secs(2));
    let options = RepairOptions { batch: 2, ..RepairOptions::default() };
    let done = permits.sweep_with(store, &options, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((done.removed, done.undecodable), (CLIENTS.len() as u64, 1));
    store.transact(|txn| permits.reset(txn, &ada)).unwrap();
    let taken = store.transact(|txn| permits.take(txn, &ada, 2)).unwrap();
    assert_eq!(taken, Take::Granted { left: 0 });
}

pub fn sweeps_stop_and_resume(store: &AnyStore) {
    let (permits, clock) = open(store, 2, Duration::from_secs(2));
    for client in CLIENTS {
        let _ = store.transact(|txn| permits.take(txn, &client.to_owned(), 1)).unwrap();
    }
    clock.advance(Duration::from_secs(1));
    let late = "late".to_owned();
    let _ = store.transact(|txn| permits.take(txn, &late, 1)).unwrap();
    let options = RepairOptions { batch: 3, ..RepairOptions::default() };
    let stopped = permits.sweep_with(store, &options, |_| ControlFlow::Break(())).unwrap();
    assert_eq!((stopped.removed, stopped.finished), (3, false));
    let options = RepairOptions { resume: Some(stopped.position), ..options };
    let done = permits.sweep_with(store, &options, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((done.removed, done.finished), (CLIENTS.len() as u64 - 3, true));
    assert!(dump_all(store).contains_key(&key_of(store, "late").to_vec()));
}

on_every_store! {
    histories_agree_with_a_bucket,
    concurrent_requests_get_no_more_than_the_limit,
    operations_cost_what_the_documentation_says,
    faults_take_no_permit,
    records_of_other_clocks_and_limits_refuse_for_a_bounded_time,
    damaged_records_are_errors_until_they_are_reset,
    sweeps_stop_and_resume,
}

#[test]
fn impossible_limits_are_refused() {
    let store = keyloom_testing::memory();
    let open = |limit, per| {
        let schema = Schema::open(&store, "web").unwrap();
        RateLimit::<String>::open(&schema, "logins", limit, per)
    };
    let message = |result: Result<_>| match result.map(|_: RateLimit<String>| ()) {
        Err(error @ Error::InvalidArgument { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(message(open(0, Duration::from_secs(1))).contains("at least 1 permit"));
    assert!(message(open(1, Duration::ZERO)).contains("1 µs"));
    assert!(message(open(u32::MAX, Duration::from_secs(1))).contains("1 µs"));
    assert!(message(open(1, Duration::MAX)).contains("10 years"));
    let limit = open(u32::MAX, Duration::from_secs(10 * 365 * 86_400)).unwrap();
    let limit = limit.with_clock(ManualClock::at(u64::MAX));
    let all = store.transact(|txn| limit.take(txn, &"ada".to_owned(), u32::MAX)).unwrap();
    assert_eq!(all, Take::Granted { left: 0 });
    let limit = open(2, Duration::from_secs(1)).unwrap();
    let error = store.transact(|txn| limit.take(txn, &"ada".to_owned(), 3)).unwrap_err();
    assert!(error.to_string().contains("never be granted"), "{error}");
}
