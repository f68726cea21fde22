//! Two regions of France are merged: work under a lock, whose process dies halfway.

use std::time::Duration;

use keyloom::{DynWriter, Result, Store};
use keyloom_patterns::Table;
use keyloom_patterns::locking::work::{Operation, Operations, Step as Done, Work};
use keyloom_patterns::locking::{
    Clock, Grant, LeaseOptions, Lock, LockError, LockPath, Locks, ManualClock, SystemClock,
};

use crate::cities::Cities;
use crate::options::Options;
use crate::report::{act, ask, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "locks with leases, fencing and unfinished work",
    title: "Lock data, and finish the work of a program that died",
    chapter: "book/src/locking.md",
    layout: "(locks_requests.claims, path, waits, kind, ..., token, request)",
    data: &[
        "regions",
        "locks_requests",
        "locks_requests.claims",
        "locks_sessions",
        "locks_tokens",
        "locks_work",
    ],
    shown: "It wakes up",
};

/// Île-de-France, whose cities become part of Hauts-de-France in this example.
const FROM: &str = "11";
const TO: &str = "32";
/// Number of cities that a step moves.
const BATCH: usize = 100;
/// The lease of a session, and the grace period after it.
const LEASE: LeaseOptions =
    LeaseOptions { lease: Duration::from_secs(10), grace: Duration::from_secs(2) };

type Regions = Table<(String, u32), String>;

/// Moves all cities of one region to another.
#[derive(Clone)]
struct Merge(Regions);

impl Operation for Merge {
    fn name(&self) -> &str {
        "merge regions"
    }

    fn step(&self, txn: &mut DynWriter<'_>, _: &Work) -> Result<Done> {
        let cities = self.0.page(txn, FROM, BATCH, None)?.items;
        for ((region, id), name) in &cities {
            self.0.delete(txn, &(region.clone(), *id))?;
            self.0.put(txn, &(TO.into(), *id), name)?;
        }
        let last = cities.last().map(|((_, id), _)| id.to_be_bytes().to_vec());
        Ok(last.map_or(Done::Done, Done::Continue))
    }
}

pub struct LocksAndWork {
    cities: Cities,
    regions: Regions,
    locks: Locks,
    clock: ManualClock,
}

impl LocksAndWork {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let regions = tour.schema.table("regions")?;
        // The tour does not wait for a lease to end: it moves the clock.
        let clock = ManualClock::at(SystemClock.now()?);
        let locks = Locks::open(&tour.schema, "locks")?.with_clock(clock.clone());
        Ok(Self { cities: tour.cities.clone(), regions, locks, clock })
    }

    fn count(&self, store: &TourStore) -> TourResult<String> {
        let snapshot = store.snapshot()?;
        let [from, to] = [FROM, TO].map(|region| self.regions.count(&snapshot, region));
        Ok(format!("{} cities in Île-de-France, {} in Hauts-de-France", from?, to?))
    }

    /// The first program: it acquires the lock, begins the work, and dies.
    fn begin(&self, store: &TourStore) -> TourResult<(Grant, Vec<String>)> {
        let session = store.transact(|txn| self.locks.begin_session(txn, "program 1", &LEASE))?;
        let france = [Lock::exclusive(LockPath::of(["regions", "FR"]))];
        let merge = Merge(self.regions.clone());
        let grant = store.transact(|txn| {
            let grant = self.locks.try_lock(txn, session, &france)?;
            self.locks.begin_work(txn, grant, merge.name(), b"").map(|()| grant)
        })?;
        for _ in 0..2 {
            store.transact(|txn| self.locks.work_step(txn, grant, &merge))?;
        }
        Ok((grant, vec![self.count(store)?, "and program 1 dies".into()]))
    }

    /// The second program: it waits for the end of the lease, and finishes the work.
    fn recover(&self, store: &TourStore, first: Grant) -> TourResult<Vec<String>> {
        let session = store.transact(|txn| self.locks.begin_session(txn, "program 2", &LEASE))?;
        let paris = [Lock::exclusive(LockPath::of(["regions", "FR", FROM]))];
        let refused = store.transact(|txn| self.locks.try_lock(txn, session, &paris));
        let mut lines = vec![refused.err().ok_or("the lock is free")?.to_string()];
        // The lease of program 2 is renewed; the lease of program 1 is not.
        for part in [LEASE.lease, LEASE.grace] {
            self.clock.advance(part);
            store.transact(|txn| self.locks.renew(txn, session, LEASE.lease))?;
        }
        let operations = Operations::default().with(Merge(self.regions.clone()));
        let finished = self.locks.recover(store, session, &operations)?;
        lines
            .push(format!("12 seconds later it takes the lock over, and finishes {finished} work"));
        lines.push(self.count(store)?);
        let grant = store.transact(|txn| self.locks.try_lock(txn, session, &paris))?;
        let order = if grant.token > first.token { "greater" } else { "not greater" };
        lines.push(format!("then it gets its own lock; its fencing token is {order}"));
        store.transact(|txn| self.locks.end_session(txn, session))?;
        Ok(lines)
    }
}

impl Step for LocksAndWork {
    /// Replaces the data in each run, so that there are cities to move.
    fn load(&self, store: &TourStore, _: &Options) -> TourResult {
        self.locks.sweep(store)?;
        let snapshot = store.snapshot()?;
        let mut of_france = Vec::new();
        for region in [FROM, TO] {
            let select = ("FR".to_owned(), region.to_owned());
            for found in self.cities.by_place.query().prefix(select).entries(&snapshot)? {
                let found = found?;
                let (_, region, name) = found.owned_parts()?;
                of_france.push(((region, found.record_key()?), name));
            }
        }
        store.transact(|txn| {
            let moved: Vec<_> = of_france.iter().map(|((_, id), _)| (TO.to_owned(), *id)).collect();
            self.regions.delete_many(txn, &moved)?;
            self.regions.put_many(txn, &of_france)
        })?;
        say!("regions    {}", self.count(store)?);
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let mut stale = None;
        act(store, "Program 1 locks France, and merges two regions in steps:", |store| {
            let (grant, lines) = self.begin(store)?;
            stale = Some(grant);
            Ok(lines)
        })?;
        ask(store, "Who holds what?", |snapshot| {
            let all = self.locks.requests(snapshot)?;
            let lines = all.iter().map(|info| {
                let owner = info.owner.as_ref().map_or("", |owner| &owner.name);
                let unfinished = info.unfinished.as_deref().unwrap_or("none");
                let locks = info.request.locks().iter().map(ToString::to_string);
                let locks = locks.collect::<Vec<_>>().join(", ");
                format!("{owner}: {locks}; unfinished work: {unfinished}")
            });
            Ok((lines.collect(), ()))
        })?;
        let first = stale.ok_or("program 1 had no lock")?;
        act(store, "Program 2 locks Île-de-France:", |store| self.recover(store, first))?;
        act(store, "Program 1 was only slow. It wakes up, and takes its next step:", |store| {
            let merge = Merge(self.regions.clone());
            let step = store.transact(|txn| self.locks.work_step(txn, first, &merge));
            let error = step.err().ok_or("a stale holder could write")?;
            store.transact(|txn| self.locks.end_session(txn, first.session))?;
            match error.downcast_ref() {
                Some(LockError::Lost { .. }) => Ok(vec!["refused: its lock is lost".into()]),
                _ => Err(error.into()),
            }
        })
    }
}
