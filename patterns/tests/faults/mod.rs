//! A campaign against a store: writers commit numbered transactions and a reader checks them, while
//! faults are injected into the store. At the end each transaction must have the outcome that was
//! reported to its writer.
//!
//! A test crate includes it with `#[path = "../faults/mod.rs"] mod faults;`:
//!
//! ```ignore
//! let report = faults::campaign(&store, 20, |_round| {
//!     server.kill();
//!     server.start_again();
//! });
//! println!("{report}");
//! ```
//!
//! A transaction is retried until its commit is known. A transaction with an unknown outcome is
//! retried like a failed one. This is safe because every run first checks, *in the transaction that
//! writes*, whether an earlier run was committed. A check in an earlier transaction would not
//! suffice, because a commit in flight may arrive after it.
#![allow(dead_code, reason = "each test crate takes what it needs")]

mod ledger;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use keyloom::key::Subspace;
use keyloom::{Error, Result, StorageError, Store};
use ledger::{Ledger, Number, Transfer};

/// The parameters of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The number of writer threads.
    pub writers: u32,
    /// The number of accounts; fewer accounts cause more conflicts.
    pub accounts: u16,
    /// The number of transactions that must be acknowledged between two disturbances, so that each
    /// happens under load.
    pub between: u64,
    /// The time-out of a transaction. The whole store must also acknowledge a transaction within
    /// this time.
    pub patience: Duration,
    /// The pause of the reader between two snapshots.
    pub rest: Duration,
    /// A bug of the writers, as a negative control: a transaction with an unknown outcome is
    /// retried without a check.
    pub blind: bool,
}

impl Default for Campaign {
    fn default() -> Self {
        Self {
            writers: 6,
            accounts: 24,
            between: 30,
            patience: Duration::from_secs(60),
            rest: Duration::from_millis(5),
            blind: false,
        }
    }
}

/// Disturbs a store under load. Panics with the violations, if there are any.
pub fn campaign<S: Store>(store: &S, disturbances: usize, disturb: impl FnMut(usize)) -> Report {
    let report = Campaign::default().run(store, disturbances, disturb);
    report.assert_sound();
    report
}

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Report {
    /// Transactions that are known to be committed, including those with an unknown outcome that a
    /// later run found.
    pub acknowledged: u64,
    /// Commits of unknown outcome that had succeeded.
    pub unknown_committed: u64,
    /// Commits of unknown outcome that had failed.
    pub unknown_lost: u64,
    /// Transactions that failed without effect, and were retried.
    pub retried: u64,
    pub disturbances: usize,
    /// The number of snapshots checked.
    pub snapshots: u64,
    /// The longest time without an acknowledgement.
    pub longest_pause: Duration,
    pub took: Duration,
    /// Each kind of error, with its count.
    pub errors: BTreeMap<String, u64>,
    /// The violations of the invariants.
    pub violations: Vec<String>,
}

impl Report {
    pub fn assert_sound(&self) {
        assert!(self.violations.is_empty(), "{:#?}\n{self}", self.violations);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, unknown_committed, unknown_lost, retried, .. } = self;
        write!(
            f,
            "{acknowledged} acknowledged, {unknown_committed} + {unknown_lost} unknown (committed + lost), \
             {retried} retried, {} disturbances, {} snapshots, longest pause {:.2?}, {:.2?} in all; {:?}",
            self.disturbances, self.snapshots, self.longest_pause, self.took, self.errors
        )
    }
}

/// The state that the threads of a campaign share.
struct Shared<'c, S, W> {
    campaign: &'c Campaign,
    store: &'c S,
    /// The same store, through the reader's connection.
    watched: &'c W,
    ledger: Ledger,
    progress: Vec<Progress>,
    stop: AtomicBool,
    notes: Mutex<Notes>,
}

/// The progress of a writer.
#[derive(Default)]
struct Progress {
    acknowledged: AtomicU32,
    tried: AtomicU32,
}

struct Notes {
    report: Report,
    last_acknowledged: Instant,
}

impl Campaign {
    /// Calls `disturb` on this thread `disturbances` times, with the number of the round.
    pub fn run<S: Store>(
        &self,
        store: &S,
        disturbances: usize,
        disturb: impl FnMut(usize),
    ) -> Report {
        self.run_watched(store, store, disturbances, disturb)
    }

    /// The same, with a reader on a separate connection that is not disturbed.
    pub fn run_watched<S: Store, W: Store>(
        &self,
        store: &S,
        watched: &W,
        disturbances: usize,
        mut disturb: impl FnMut(usize),
    ) -> Report {
        let begun = Instant::now();
        let shared = Shared {
            campaign: self,
            store,
            watched,
            ledger: Ledger::new(&Subspace::new("faults"), self.accounts),
            progress: (0..self.writers).map(|_| Progress::default()).collect(),
            stop: AtomicBool::new(false),
            notes: Mutex::new(Notes { report: Report::default(), last_acknowledged: begun }),
        };
        watched.transact(|txn| shared.ledger.reset(txn)).unwrap();
        shared.notes().last_acknowledged = Instant::now();
        let logs: Vec<Vec<Transfer>> = thread::scope(|scope| {
            // Also stops if `disturb` panics: the threads below must end.
            let _stop = StopAtTheEnd(&shared.stop);
            let writers: Vec<_> = (0..self.writers)
                .map(|writer| {
                    scope.spawn({
                        let shared = &shared;
                        move || shared.write(writer)
                    })
                })
                .collect();
            scope.spawn(|| shared.read());
            for round in 0..disturbances {
                shared.wait_for_load();
                if shared.stop.load(SeqCst) {
                    break;
                }
                disturb(round);
                shared.notes().report.disturbances += 1;
            }
            // One more time, to check that the store has recovered.
            shared.wait_for_load();
            shared.stop.store(true, SeqCst);
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        shared.compare(&logs);
        let mut report = shared.notes.into_inner().unwrap().report;
        report.took = begun.elapsed();
        report
    }
}

struct StopAtTheEnd<'s>(&'s AtomicBool);

impl Drop for StopAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// The outcome of a run of a transaction's body.
enum Ran {
    Wrote(Transfer),
    Found(Transfer),
}

impl<S: Store, W: Store> Shared<'_, S, W> {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// Reports a violation and ends the campaign, because later violations would be repetitions.
    fn violation(&self, what: impl Into<String>) {
        self.notes().report.violations.push(what.into());
        self.stop.store(true, SeqCst);
    }

    fn acknowledged(&self) -> u64 {
        self.progress.iter().map(|writer| u64::from(writer.acknowledged.load(SeqCst))).sum()
    }

    fn wait_for_load(&self) {
        let wanted = self.acknowledged() + self.campaign.between;
        let begun = Instant::now();
        while self.acknowledged() < wanted && !self.stop.load(SeqCst) {
            // Each writer has its own time-out; this one is for all writers together.
            if begun.elapsed() > self.campaign.patience * 2 {
                return self.violation("the store does not get on");
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Commits one transaction after the other. Returns them.
    fn write(&self, writer: u32) -> Vec<Transfer> {
        let mut log = Vec::new();
        let progress = &self.progress[writer as usize];
        for n in 0.. {
            if self.stop.load(SeqCst) {
                break;
            }
            progress.tried.store(n + 1, SeqCst);
            let Some(transfer) = self.commit((writer, n)) else { break };
            log.push(transfer);
            progress.acknowledged.store(n + 1, SeqCst);
            let mut notes = self.notes();
            let pause = notes.last_acknowledged.elapsed();
            notes.last_acknowledged = Instant::now();
            notes.report.longest_pause = notes.report.longest_pause.max(pause);
            notes.report.acknowledged += 1;
        }
        log
    }

    /// Retries until the transaction is known to be committed exactly once.
    fn commit(&self, number: Number) -> Option<Transfer> {
        let begun = Instant::now();
        let mut run = 0;
        // The last runs with an unknown outcome.
        let mut unknown: Vec<u32> = Vec::new();
        loop {
            let looks = !self.campaign.blind || unknown.is_empty();
            let ran = self.store.transact(|txn| {
                run += 1;
                if looks && let Some(found) = self.ledger.find(txn, number)? {
                    return Ok(Ran::Found(found));
                }
                let transfer = self.ledger.invent(run);
                self.ledger.write(txn, number, &transfer)?;
                Ok(Ran::Wrote(transfer))
            });
            match ran {
                Ok(Ran::Wrote(transfer)) => {
                    self.resolve(0, unknown.len());
                    return Some(transfer);
                }
                Ok(Ran::Found(transfer)) if unknown.contains(&transfer.run) => {
                    self.resolve(1, unknown.len() - 1);
                    return Some(transfer);
                }
                Ok(Ran::Found(transfer)) => {
                    self.violation(format!(
                        "run {} of {number:?} is there, but nothing of it should have been kept",
                        transfer.run
                    ));
                    return None;
                }
                Err(error) => {
                    self.note(&error);
                    match error.maybe_committed() {
                        true => unknown.push(run),
                        false => self.notes().report.retried += 1,
                    }
                    if begun.elapsed() > self.campaign.patience {
                        self.violation(format!("{number:?} was given up: {error}"));
                        return None;
                    }
                    thread::sleep(Duration::from_millis(fastrand::u64(1..20)));
                }
            }
        }
    }

    fn resolve(&self, committed: u64, lost: usize) {
        let report = &mut self.notes().report;
        report.unknown_committed += committed;
        report.unknown_lost += lost as u64;
    }

    /// Counts an error by the name of its variant.
    fn note(&self, error: &Error) {
        let variant = keyloom_testing::errors::variant(error);
        *self.notes().report.errors.entry(variant).or_default() += 1;
        // No disturbance may cause bytes that do not decode.
        if matches!(
            error,
            Error::At { .. }
                | Error::Key(_)
                | Error::NotACounter { .. }
                | Error::Storage(StorageError::Damaged { .. })
        ) {
            self.violation(format!("what is stored is no longer readable: {error}"));
        }
    }

    /// Takes one snapshot after the other. Each must contain only complete transactions, and all
    /// transactions that were acknowledged before.
    fn read(&self) {
        while !self.stop.load(SeqCst) {
            if let Err(error) = self.look() {
                self.note(&error);
            }
            thread::sleep(self.campaign.rest);
        }
    }

    fn look(&self) -> Result<BTreeMap<Number, Transfer>> {
        let all = |of: fn(&Progress) -> &AtomicU32| {
            self.progress.iter().map(move |writer| of(writer).load(SeqCst))
        };
        let acknowledged: Vec<u32> = all(|writer| &writer.acknowledged).collect();
        let snapshot = self.watched.snapshot()?;
        let seen = self.ledger.look(&snapshot)?;
        // Read after the snapshot, so the snapshot may contain fewer transactions, but not more.
        let tried = all(|writer| &writer.tried);
        let expected: Vec<Range<u32>> =
            acknowledged.into_iter().zip(tried).map(|(least, most)| least..most).collect();
        self.notes().report.snapshots += 1;
        self.ledger.judge(&seen, &expected).into_iter().for_each(|wrong| self.violation(wrong));
        Ok(seen.transfers)
    }

    /// Called after the last write: the store must contain exactly the acknowledged transactions.
    fn compare(&self, logs: &[Vec<Transfer>]) {
        let begun = Instant::now();
        let seen = loop {
            match self.look() {
                Ok(seen) => break seen,
                Err(error) if begun.elapsed() > self.campaign.patience => {
                    return self.violation(format!("the store cannot be read at the end: {error}"));
                }
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        };
        for (writer, log) in (0..).zip(logs) {
            for (n, wanted) in (0..).zip(log) {
                let found = seen.get(&(writer, n));
                if found != Some(wanted) {
                    return self.violation(format!(
                        "({writer}, {n}) was acknowledged as {wanted:?}, there is {found:?}"
                    ));
                }
            }
        }
        let acknowledged = logs.iter().map(Vec::len).sum::<usize>();
        // If a writer gave up, its number of transactions is unknown.
        if seen.len() != acknowledged && self.notes().report.violations.is_empty() {
            let there = seen.len();
            self.violation(format!("{acknowledged} were acknowledged, {there} are there"));
        }
    }
}
