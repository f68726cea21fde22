//! Updates in random order, some of which die halfway, and concurrent queries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fastrand::Rng;
use keyloom::{Error, Memory, Subspace};
use keyloom_tables::property_index::{PropertyIndex, Stamps};

use crate::property_index::per_key::PerKey;
use crate::property_index::subjects::{Careless, Pattern, Subject};
use crate::property_index::turns::Work;

/// The largest number of items. With so few, updates of the same value compete for the same item.
const ITEMS: u8 = 2;
const VALUES: u8 = 3;
const HOUR_US: u64 = 3_600_000_000;

/// The kinds of violations, with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wrong {
    /// A query without concurrent updates does not find a current value.
    lost: usize,
    /// A query without concurrent updates finds a value that is not current.
    stale: usize,
    /// A query does not find a value that was current throughout the query.
    lost_meanwhile: usize,
    /// The number of keys that should not exist at the end.
    left_over: usize,
    /// The faults that the check of the subject finds without concurrent updates.
    faults: usize,
}

impl Wrong {
    fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.stale += other.stale;
        self.lost_meanwhile += other.lost_meanwhile;
        self.left_over += other.left_over;
        self.faults += other.faults;
    }
}

enum Job {
    Set(u8, Option<u8>),
    Find(u8),
}

fn job(rng: &mut Rng, items: u8, values: u8) -> Job {
    match rng.u8(..10) {
        0..3 => Job::Find(rng.u8(..values)),
        3 => Job::Set(rng.u8(..items), None),
        _ => Job::Set(rng.u8(..items), Some(rng.u8(..values))),
    }
}

/// A query: its first and last turn, the value searched for, and the items found.
type Answer = (usize, usize, u8, BTreeSet<u8>);

/// A common clock; each worker's reading is off by some milliseconds.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn stamps(&self, writer: u64, rng: &mut Rng) -> Stamps {
        let (clock, wrong_us) = (Arc::clone(&self.0), rng.u64(..5_000));
        Stamps::with_clock(writer, move || HOUR_US + wrong_us + clock.load(Relaxed))
    }

    fn advance(&self, us: u64) {
        self.0.fetch_add(us, Relaxed);
    }
}

fn race(subject: &dyn Subject, seed: u64) -> Wrong {
    let mut rng = Rng::with_seed(seed);
    let store = PerKey::new();
    let clock = Clock::default();
    let (items, values) = (rng.u8(1..=ITEMS), rng.u8(1..=VALUES));
    // Values set before the race.
    let mut stamps = clock.stamps(100, &mut rng);
    for item in 0..items {
        if rng.bool() {
            subject.set(&store, &mut stamps, item, Some(rng.u8(..values))).unwrap();
        }
    }
    let answers = Mutex::new(Vec::<Answer>::new());
    let workers = (0..rng.u64(2..6)).map(|writer| {
        let dies = rng.bool().then(|| rng.usize(..25));
        let jobs: Vec<Job> = (0..rng.usize(1..4)).map(|_| job(&mut rng, items, values)).collect();
        let mut stamps = clock.stamps(writer, &mut rng);
        let (store, answers) = (&store, &answers);
        let work: Work<'_> = Box::new(move || {
            for job in jobs {
                let begins = store.turns.step();
                let done = match job {
                    Job::Set(item, value) => subject.set(store, &mut stamps, item, value),
                    Job::Find(value) => subject.find(store, value).map(|found| {
                        let ends = store.turns.step();
                        answers.lock().unwrap().push((begins, ends, value, found));
                    }),
                };
                if let Err(error) = done {
                    assert_eq!(error.to_string(), "the worker died");
                    return;
                }
            }
        });
        (dies, work)
    });
    let workers: Vec<_> = workers.collect();
    let mut wrong = Wrong::default();
    let mut history = Vec::new();
    store.turns.run(workers, |waiting| {
        clock.advance(1_000);
        let current = subject.current(&store.inner);
        look(subject, &store, &current, &mut wrong);
        history.push(current);
        rng.choice(waiting.iter().copied()).unwrap_or_default()
    });
    for (begins, ends, value, found) in answers.into_inner().unwrap() {
        let held =
            |item: u8| history[begins - 1..ends].iter().all(|h| h.get(&item) == Some(&value));
        wrong.lost_meanwhile +=
            (0..ITEMS).filter(|item| held(*item) && !found.contains(item)).count();
    }
    wrong.faults += subject.faults(&store);
    let current = subject.current(&store.inner);
    // After several hours no update is in flight.
    clock.advance(3 * HOUR_US);
    let mut stamps = clock.stamps(200, &mut rng);
    if rng.bool() {
        subject.settle(&store, &stamps);
        assert_eq!(subject.current(&store.inner), current, "cleaning changes no value");
    } else {
        // Alternatively, the next updates remove the remains of earlier ones.
        for item in 0..ITEMS {
            subject.set(&store, &mut stamps, item, Some(VALUES)).unwrap();
        }
    }
    look(subject, &store, &subject.current(&store.inner), &mut wrong);
    wrong.left_over += subject.left_over(&store.inner);
    wrong
}

/// Queries every value while no writer runs.
fn look(subject: &dyn Subject, store: &PerKey, current: &BTreeMap<u8, u8>, wrong: &mut Wrong) {
    let asked_for: BTreeSet<u8> = current.values().copied().chain([0, VALUES]).collect();
    for value in asked_for {
        let found = subject.find(store, value).unwrap();
        let holds = |item: &u8| current.get(item) == Some(&value);
        wrong.lost += current.keys().filter(|item| holds(item) && !found.contains(item)).count();
        wrong.stale += found.iter().filter(|item| !holds(item)).count();
    }
}

/// The number of interleavings.
fn cases() -> u64 {
    let asked_for = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    asked_for.unwrap_or(400)
}

#[test]
fn races_and_crashes_leave_no_lost_and_no_stale_value() {
    let (narrow, wide) = (Pattern::new(1), Pattern::new(1_000));
    for seed in 0..cases() {
        let pattern = if seed % 4 == 0 { &narrow } else { &wide };
        assert_eq!(race(pattern, seed), Wrong::default(), "with seed {seed}");
    }
}

#[test]
fn removing_by_the_value_that_was_read_is_caught() {
    let careless = Careless(Subspace::new("careless"));
    let mut wrong = Wrong::default();
    // The rarest fault needs more than a hundred interleavings.
    for seed in 0..cases().max(400) {
        wrong.add(&race(&careless, seed));
    }
    assert!(wrong.lost > 0 && wrong.left_over > 0, "{wrong:?}");
    assert!(wrong.lost_meanwhile > 0, "{wrong:?}");
}

#[test]
fn the_same_seed_is_the_same_race() {
    let careless = Careless(Subspace::new("careless"));
    for seed in 0..20 {
        assert_eq!(race(&careless, seed), race(&careless, seed));
    }
}

#[test]
fn an_update_that_took_too_long_gives_up_before_it_counts() {
    // A clock that advances by a minute at every read.
    let minutes = AtomicU64::new(0);
    let mut stamps = Stamps::with_clock(1, move || minutes.fetch_add(60_000_000, Relaxed));
    let space = Subspace::new("slow");
    let slow = PropertyIndex::<u8, u8, u8>::new(&space).grace_us(60_000_000);
    let store = Memory::new();
    let error: Error = slow.set(&store, &mut stamps, &1, &2, &3).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("more than half of the grace") && text.contains(r#"("slow", 0, 1, 2"#),
        "{text}"
    );
    use keyloom::Store as _;
    assert_eq!(slow.value(&store.snapshot().unwrap(), &1, &2).unwrap(), None);
    let patient = PropertyIndex::<u8, u8, u8>::new(&space);
    patient.set(&store, &mut stamps, &1, &2, &3).unwrap();
    assert_eq!(patient.value(&store.snapshot().unwrap(), &1, &2).unwrap(), Some(3));
}
