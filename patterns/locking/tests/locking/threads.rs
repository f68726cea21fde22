//! Threads lock at random; their critical sections never overlap, whichever operation fails.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use keyloom::{Error, Fault, Faulty, Result, Store};
use keyloom_locking::{Lock, LockPath, Session};
use keyloom_testing::ids::text;
use keyloom_testing::on_every_store_and_server;

use super::support::Bench;

const THREADS: u64 = 4;
const ROUNDS: u64 = 25;
const DOCUMENTS: usize = 3;

/// Counts the readers of each document; a writer is -1.
struct Inside([AtomicI64; DOCUMENTS]);

impl Inside {
    fn enter(&self, document: usize, is_writer: bool) -> bool {
        let count = &self.0[document];
        match is_writer {
            true => count.compare_exchange(0, -1, Ordering::SeqCst, Ordering::SeqCst).is_ok(),
            false => count.fetch_add(1, Ordering::SeqCst) >= 0,
        }
    }

    fn leave(&self, document: usize, is_writer: bool) {
        let change = if is_writer { 1 } else { -1 };
        self.0[document].fetch_add(change, Ordering::SeqCst);
    }
}

/// The configuration and the results of the threads.
struct Run<'s, S> {
    bench: &'s Bench<'s, S>,
    /// The store of the threads, with injected faults.
    store: Faulty<S>,
    is_locking: bool,
    has_faults: bool,
    inside: Inside,
    overlaps: AtomicU64,
    entered: AtomicU64,
    failures: AtomicU64,
}

/// Documents that are read or written together: one or all.
struct Section {
    documents: std::ops::Range<usize>,
    lock: Lock,
    is_writer: bool,
}

impl Section {
    fn random(random: &mut fastrand::Rng) -> Self {
        let is_writer = random.bool();
        let all = random.u8(0..4) == 0;
        let first = random.usize(0..DOCUMENTS);
        let path = LockPath::of(["documents"]);
        let path = if all { path } else { path.child(text(first)) };
        let lock = if is_writer { Lock::exclusive(path) } else { Lock::shared(path) };
        Self { documents: if all { 0..DOCUMENTS } else { first..first + 1 }, lock, is_writer }
    }
}

impl<S: Store + Clone> Run<'_, S> {
    /// The work of one thread: enters sections until enough were entered.
    fn work(&self, thread: u64) {
        let mut random = fastrand::Rng::with_seed(thread);
        let mut session = self.begin(thread);
        let mut left = ROUNDS;
        while left > 0 {
            self.disturb(&mut random);
            let section = Section::random(&mut random);
            match self.locked(&session, &section, &mut left) {
                Ok(()) => {}
                Err(error) => {
                    assert!(is_injected(&error), "{error}");
                    self.failures.fetch_add(1, Ordering::SeqCst);
                    self.end(session);
                    session = self.begin(thread);
                }
            }
        }
        self.end(session);
    }

    /// Makes a later operation of some thread fail, with a random kind of fault.
    fn disturb(&self, random: &mut fastrand::Rng) {
        let kinds =
            [Fault::Error, Fault::Conflict, Fault::UnknownAndLost, Fault::UnknownButCommitted];
        if self.has_faults && random.bool() {
            self.store.fail_at(random.u64(..40), kinds[random.usize(..4)]);
        }
    }

    fn locked(
        &self,
        session: &Session<Faulty<S>>,
        section: &Section,
        left: &mut u64,
    ) -> Result<()> {
        let lock = std::slice::from_ref(&section.lock);
        let guard = self.is_locking.then(|| session.lock(lock)).transpose()?;
        self.enter(section);
        *left -= 1;
        guard.map_or(Ok(()), |guard| guard.release())
    }

    /// Enters the section, and leaves it.
    fn enter(&self, section: &Section) {
        let Section { is_writer, .. } = *section;
        let documents = section.documents.clone();
        let entries: Vec<_> = documents.map(|d| (d, self.inside.enter(d, is_writer))).collect();
        std::thread::yield_now();
        for (document, is_alone) in entries {
            self.overlaps.fetch_add(u64::from(!is_alone), Ordering::SeqCst);
            if is_alone || !is_writer {
                self.inside.leave(document, is_writer);
            }
        }
        self.entered.fetch_add(1, Ordering::SeqCst);
    }

    fn begin(&self, thread: u64) -> Session<Faulty<S>> {
        let begin = || Session::begin(&self.store, &self.bench.locks, &thread.to_string());
        loop {
            match begin() {
                Ok(session) => return session,
                Err(error) => assert!(is_injected(&error), "{error}"),
            }
        }
    }

    /// Ends the session as an expired lease would, if the session cannot end itself.
    fn end(&self, session: Session<Faulty<S>>) {
        let id = session.id();
        if session.end().is_err() {
            let Bench { store, locks, .. } = self.bench;
            store.transact(|txn| locks.end_session(txn, id)).unwrap();
        }
    }
}

fn is_injected(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("was made to fail") || text.contains("on demand")
}

struct Outcome {
    overlaps: u64,
    entered: u64,
    failures: u64,
}

fn run<S: Store + Clone>(store: &S, is_locking: bool, has_faults: bool) -> Outcome {
    let bench = Bench::new(store);
    let run = Run {
        bench: &bench,
        store: Faulty::new(store.clone()),
        is_locking,
        has_faults,
        inside: Inside(std::array::from_fn(|_| AtomicI64::new(0))),
        overlaps: AtomicU64::new(0),
        entered: AtomicU64::new(0),
        failures: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let run = &run;
            scope.spawn(move || run.work(thread));
        }
    });
    assert!(bench.faults().is_empty());
    assert!(bench.locks.requests(&store.snapshot().unwrap()).unwrap().is_empty());
    Outcome {
        overlaps: run.overlaps.into_inner(),
        entered: run.entered.into_inner(),
        failures: run.failures.into_inner(),
    }
}

fn critical_sections_do_not_overlap<S: Store + Clone>(store: &S) {
    let Outcome { overlaps, entered, failures } = run(store, true, false);
    assert_eq!((overlaps, entered, failures), (0, THREADS * ROUNDS, 0));
}

fn critical_sections_do_not_overlap_through_faults<S: Store + Clone>(store: &S) {
    let Outcome { overlaps, entered, failures } = run(store, true, true);
    assert_eq!((overlaps, entered), (0, THREADS * ROUNDS));
    assert!(failures > 0);
}

on_every_store_and_server! {
    critical_sections_do_not_overlap,
    critical_sections_do_not_overlap_through_faults,
}

/// The negative control: without locks the sections overlap.
#[test]
fn without_locks_they_overlap() {
    let found = (0..100).any(|_| run(&keyloom::Memory::new(), false, false).overlaps > 0);
    assert!(found);
}
