//! Transactions of several sessions that are open concurrently.
//!
//! Each session begins a transaction, then requests, releases or writes, and then commits. Between
//! these steps the other sessions do the same. A transaction of the optimistic stores reads the
//! state at its beginning, so a finer interleaving of its reads makes no difference. Holders also
//! die, and their open transactions are committed later. Locks are revoked while their holders
//! live, and locks are upgraded. The number of schedules is `KEYLOOM_LOCK_INTERLEAVINGS`, 200 by
//! default.

mod model;

use keyloom::{Memory, Result, Store, Transaction, Writer};
use keyloom_locking::{Grant, LockError, Locks, Mode, Outcome};
use keyloom_mutant_stores::{Weakened, Weakness};
use model::{Did, Model};

use super::schedules::Resource;
use super::support::{Bench, GRACE, LEASE};

/// A transaction that is not committed yet.
struct Open<'s, S: Store + 's> {
    txn: S::Transaction<'s>,
    did: Option<Did>,
    /// The model state that the transaction reads.
    began: Model,
}

/// A session, and the state of its requests as the session sees it.
struct Client<'s, S: Store> {
    id: u64,
    open: Option<Open<'s, S>>,
    grants: Vec<(Grant, Resource)>,
    waits: Option<Waits>,
}

/// A waiting request.
#[derive(Clone, Debug)]
struct Waits {
    ticket: u64,
    resource: Resource,
    /// The grant that the request upgrades.
    replaces: Option<Grant>,
}

/// The checks that the schedules leave out, as negative controls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    None,
    /// Writes are not verified.
    UnverifiedWrites,
    /// An upgrade is a new request, followed by a release of the old lock if it still exists.
    UnverifiedUpgrades,
}

#[derive(Debug, Default)]
struct Counts {
    upgraded: u64,
    /// Refused upgrades of live sessions whose lock was revoked.
    lost: u64,
    granted: u64,
    waited: u64,
    writes: u64,
    conflicts: u64,
    /// Refused writes of dead sessions.
    stale: u64,
}

struct Schedule<'s, S: Store> {
    bench: Bench<'s, S>,
    clients: Vec<Client<'s, S>>,
    model: Model,
    counts: Counts,
    random: fastrand::Rng,
    /// The grant that the last operation verifies or removes.
    target: Option<Grant>,
    mutant: Mutant,
}

type Judged = Result<(), String>;

impl<'s, S: Store> Schedule<'s, S> {
    fn new(store: &'s S, seed: u64, mutant: Mutant) -> Self {
        let bench = Bench::new(store);
        let random = fastrand::Rng::with_seed(seed);
        // Session ids are random, so the generator is seeded.
        fastrand::seed(seed);
        let mut schedule = Self {
            bench,
            clients: Vec::new(),
            model: Model::default(),
            counts: Counts::default(),
            random,
            target: None,
            mutant,
        };
        (0..3).for_each(|_| schedule.join());
        schedule
    }

    fn join(&mut self) {
        // Names that are prefixes of each other.
        let id = self.bench.session(&"a".repeat(self.clients.len()));
        self.clients.push(Client { id, open: None, grants: Vec::new(), waits: None });
    }

    /// Begins a transaction, runs an operation in it, or commits it.
    fn step(&mut self) -> Judged {
        if self.random.u8(0..60) == 0 {
            self.kill();
        }
        let at = self.random.usize(0..self.clients.len());
        match self.clients[at].open.take() {
            None => {
                let (txn, began) = (self.bench.store.begin().unwrap(), self.model.clone());
                self.clients[at].open = Some(Open { txn, did: None, began });
                Ok(())
            }
            Some(Open { txn, did: Some(did), .. }) => self.commit(at, txn, did),
            Some(open) => self.work(at, open),
        }
    }

    fn commit(&mut self, at: usize, txn: S::Transaction<'s>, did: Did) -> Judged {
        if let Err(error) = txn.commit() {
            assert!(error.is_retryable(), "{error}");
            self.counts.conflicts += 1;
            return Ok(());
        }
        self.model.commit(&did)?;
        let client = &mut self.clients[at];
        match did {
            Did::Granted { grant, resource, replaces, waited } => {
                client.waits.take_if(|waits| waited == Some(waits.ticket));
                client.grants.retain(|(grant, _)| Some(*grant) != replaces);
                client.grants.push((grant, resource));
                self.counts.granted += 1;
                self.counts.upgraded += u64::from(replaces.is_some());
            }
            Did::Waits { ticket, resource, replaces, .. } => {
                client.waits = Some(Waits { ticket, resource, replaces });
                self.counts.waited += 1;
            }
            // A holder is not notified that its lock was revoked.
            Did::Removed { session, ticket } if session == client.id => {
                client.grants.retain(|(grant, _)| grant.ticket != ticket);
                client.waits.take_if(|waits| waits.ticket == ticket);
            }
            Did::Removed { .. } => {}
            Did::Wrote(_) => self.counts.writes += 1,
            Did::StillWaits { .. } | Did::Nothing => {}
        }
        Ok(())
    }

    fn work(&mut self, at: usize, mut open: Open<'s, S>) -> Judged {
        let resource = Resource::random(&mut self.random);
        let (done, asked) = self.act(at, &mut open.txn, &resource);
        match done {
            Ok(did) => {
                // A transaction without writes is serialized at its beginning, not at its commit.
                if let Did::StillWaits { ticket, resource } = &did {
                    let mut in_the_way =
                        open.began.in_the_way(self.clients[at].id, *ticket, resource);
                    if in_the_way.next().is_none() {
                        return Err(format!("{did:?}, and nothing is in the way"));
                    }
                }
                open.did = Some(did);
                self.clients[at].open = Some(open);
                Ok(())
            }
            Err(error) if error.is_retryable() => Ok(()),
            Err(error) => {
                let error = error.downcast_ref::<LockError>().expect("an error of locks").clone();
                self.judge_refusal(at, &open.began, &error, &asked)
            }
        }
    }

    /// Runs a random operation. Returns its resource.
    fn act(
        &mut self,
        at: usize,
        txn: &mut S::Transaction<'s>,
        resource: &Resource,
    ) -> (Result<Did>, Resource) {
        let others = self.clients.iter().flat_map(|client| client.grants.iter());
        let others: Vec<_> = others.map(|(grant, _)| *grant).collect();
        let Self { bench, clients, random, model, mutant, target, .. } = self;
        let (locks, client) = (&bench.locks, &clients[at]);
        let (session, lock) = (client.id, [resource.lock()]);
        let held = (!client.grants.is_empty())
            .then(|| client.grants[random.usize(0..client.grants.len())].clone());
        *target = held.as_ref().map(|(grant, _)| *grant);
        if model.dead.contains(&session) {
            // A holder that resumes late.
            return match held {
                Some((grant, resource)) => (write(bench, txn, grant, *mutant), resource),
                None => (locks.renew(txn, session, LEASE).map(|()| Did::Nothing), resource.clone()),
            };
        }
        let done = match (random.u8(0..12), held, &client.waits) {
            (0..3, Some((grant, resource)), _) => {
                return (write(bench, txn, grant, *mutant), resource);
            }
            (3..5, Some((grant, resource)), _) => {
                let removed = Did::Removed { session, ticket: grant.ticket };
                return (locks.release(txn, grant).map(|()| removed), resource);
            }
            (5, _, Some(Waits { ticket, .. })) => match locks.withdraw(txn, session, *ticket) {
                Ok(None) => Ok(Did::Removed { session, ticket: *ticket }),
                other => other.map(|_| Did::Nothing),
            },
            (6, ..) if !others.is_empty() => {
                let revoked = others[random.usize(0..others.len())];
                let Grant { session, ticket, .. } = revoked;
                *target = Some(revoked);
                locks.revoke(txn, revoked).map(|()| Did::Removed { session, ticket })
            }
            (_, _, Some(waits)) => {
                *target = waits.replaces;
                return (poll(locks, txn, session, waits, *mutant), waits.resource.clone());
            }
            (7..9, Some((grant, resource)), None) if !resource.is_exclusive() => {
                let upgraded = upgrade(locks, txn, grant, &resource, *mutant);
                return (upgraded, resource.exclusive());
            }
            (9, ..) => locks.renew(txn, session, LEASE).map(|()| Did::Nothing),
            (10, ..) => locks.try_lock(txn, session, &lock).map(|grant| {
                let resource = resource.clone();
                Did::Granted { waited: None, replaces: None, grant, resource }
            }),
            _ => {
                let requested = locks.request(txn, session, &lock);
                requested.map(|outcome| requested_as(outcome, session, resource, None))
            }
        };
        (done, resource.clone())
    }

    /// A refusal changes nothing. It must be correct for the state that the transaction has read.
    fn judge_refusal(
        &mut self,
        at: usize,
        began: &Model,
        error: &LockError,
        resource: &Resource,
    ) -> Judged {
        let Client { id, waits, .. } = &self.clients[at];
        let is_dead = self.model.dead.contains(id);
        let is_true = match error {
            LockError::Blocked { .. } | LockError::Deadlock { .. } => {
                began.in_the_way(*id, u64::MAX, resource).next().is_some()
            }
            LockError::Lost { .. } => {
                self.counts.stale += u64::from(is_dead);
                self.counts.lost += u64::from(!is_dead);
                // Later requests may have removed the lock of a dead session.
                self.target.is_some_and(|grant| {
                    self.model.dead.contains(&grant.session) || !began.holds(&grant)
                })
            }
            LockError::NoRequest { ticket, .. } => is_dead || !began.has(*id, *ticket),
            // The transaction may have begun before the last renewal and read the clock after it.
            LockError::SessionEnded { .. } => is_dead || began.dead.len() < self.model.dead.len(),
            _ => false,
        };
        match is_true {
            true => Ok(()),
            false => Err(format!("{error} is not true for {id} ({waits:?}) in {began:?}")),
        }
    }

    /// Ends the lease of one session; the others renew theirs. A new session joins.
    fn kill(&mut self) {
        let at = self.random.usize(0..self.clients.len());
        let killed = self.clients[at].id;
        if !self.model.dead.insert(killed) {
            return;
        }
        for part in [LEASE, GRACE] {
            self.bench.clock.advance(part);
            let living = self.clients.iter().filter(|other| !self.model.dead.contains(&other.id));
            living.for_each(|other| self.bench.renew(other.id).unwrap());
        }
        self.join();
    }

    /// Runs the schedule, and checks the state of the store at its end.
    fn run(mut self) -> Result<Counts, String> {
        for _ in 0..self.random.usize(20..150) {
            self.step()?;
        }
        self.clients.iter_mut().for_each(|client| drop(client.open.take()));
        match self.bench.faults() {
            faults if faults.is_empty() => Ok(self.counts),
            faults => Err(faults.join("; ")),
        }
    }
}

fn write<S: Store>(
    bench: &Bench<'_, S>,
    txn: &mut S::Transaction<'_>,
    grant: Grant,
    mutant: Mutant,
) -> Result<Did> {
    if mutant != Mutant::UnverifiedWrites {
        bench.locks.verify(txn, grant)?;
    }
    // Each write has a separate key, so that only the verification can conflict.
    txn.put(format!("written by {}", grant.token).as_bytes(), b"")?;
    Ok(Did::Wrote(grant))
}

/// Requests the exclusive lock of a resource that the session shares. The mutant behaves like a
/// program without [`Locks::request_upgrade`].
fn upgrade(
    locks: &Locks,
    txn: &mut impl Writer,
    old: Grant,
    resource: &Resource,
    mutant: Mutant,
) -> Result<Did> {
    let resource = resource.exclusive();
    let outcome = match mutant {
        Mutant::UnverifiedUpgrades => {
            let outcome = locks.request(txn, old.session, &[resource.lock()])?;
            release_if_held(locks, txn, old, outcome)?
        }
        _ => locks.request_upgrade(txn, old, Mode::Exclusive)?,
    };
    Ok(requested_as(outcome, old.session, &resource, Some(old)))
}

fn poll(
    locks: &Locks,
    txn: &mut impl Writer,
    session: u64,
    waits: &Waits,
    mutant: Mutant,
) -> Result<Did> {
    let outcome = match (waits.replaces, mutant) {
        (None, _) => locks.poll(txn, session, waits.ticket)?,
        (Some(old), Mutant::UnverifiedUpgrades) => {
            let outcome = locks.poll(txn, session, waits.ticket)?;
            release_if_held(locks, txn, old, outcome)?
        }
        (Some(old), _) => locks.poll_upgrade(txn, old, waits.ticket)?,
    };
    Ok(polled_as(outcome, waits))
}

fn release_if_held(
    locks: &Locks,
    txn: &mut impl Writer,
    old: Grant,
    outcome: Outcome,
) -> Result<Outcome> {
    if let (Outcome::Granted(_), Some(found)) =
        (&outcome, locks.withdraw(txn, old.session, old.ticket)?)
    {
        locks.release(txn, found)?;
    }
    Ok(outcome)
}

fn requested_as(
    outcome: Outcome,
    session: u64,
    resource: &Resource,
    replaces: Option<Grant>,
) -> Did {
    let resource = resource.clone();
    match outcome {
        Outcome::Granted(grant) => Did::Granted { waited: None, replaces, grant, resource },
        Outcome::Waiting { ticket, .. } => Did::Waits { session, ticket, resource, replaces },
    }
}

fn polled_as(outcome: Outcome, waits: &Waits) -> Did {
    let Waits { ticket, replaces, .. } = *waits;
    let resource = waits.resource.clone();
    match outcome {
        Outcome::Granted(grant) => Did::Granted { waited: Some(ticket), replaces, grant, resource },
        Outcome::Waiting { .. } => Did::StillWaits { ticket, resource },
    }
}

/// Runs schedules. Returns the first violation with the number of its schedule.
fn run<S: Store>(schedules: u64, mutant: Mutant, store: impl Fn() -> S) -> Result<Counts, String> {
    let mut all = Counts::default();
    for seed in 0..schedules {
        let store = store();
        let counts = Schedule::new(&store, seed, mutant).run();
        let counts = counts.map_err(|violation| format!("schedule {seed}: {violation}"))?;
        all.granted += counts.granted;
        all.waited += counts.waited;
        all.writes += counts.writes;
        all.conflicts += counts.conflicts;
        all.stale += counts.stale;
        all.upgraded += counts.upgraded;
        all.lost += counts.lost;
    }
    Ok(all)
}

/// Every history is linearizable: no two sessions hold locks that exclude each other, also if a
/// lease ends between any two operations.
#[test]
fn locks_have_one_holder_in_every_interleaving() {
    let schedules = std::env::var("KEYLOOM_LOCK_INTERLEAVINGS");
    let schedules = schedules.map_or(200, |text| text.parse().unwrap());
    let counts = run(schedules, Mutant::None, keyloom_testing::optimistic_memory).unwrap();
    println!("{schedules} schedules: {counts:?}");
    assert!(counts.granted.min(counts.waited).min(counts.writes) > schedules);
    assert!(counts.conflicts > schedules && counts.stale > 0);
    assert!(counts.upgraded.min(counts.lost) > schedules / 4);
}

/// The negative control of upgrades: an upgrade that does not verify the old lock overwrites a
/// value that its holder has not read.
#[test]
fn upgrades_without_verification_are_found() {
    let violation = run(2_000, Mutant::UnverifiedUpgrades, keyloom_testing::optimistic_memory);
    let violation = violation.unwrap_err();
    println!("{violation}");
    assert!(violation.contains("an unseen value is overwritten"), "{violation}");
}

/// The same law on a hand-made history, which verified upgrades rule out.
#[test]
fn a_history_with_an_unseen_value_is_refused() {
    let mut random = fastrand::Rng::with_seed(1);
    let exclusive = Resource::random(&mut random).exclusive();
    let store = Memory::new();
    let bench = Bench::new(&store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    let next = |session| {
        let grant = bench.try_lock(session, &exclusive.lock()).unwrap();
        bench.release(grant).unwrap();
        grant
    };
    let [read, other, upgraded] = [next(ada), next(bob), next(ada)];
    let granted = |grant, replaces| Did::Granted {
        waited: None,
        replaces,
        grant,
        resource: exclusive.clone(),
    };
    let removed = |grant: Grant| Did::Removed { session: grant.session, ticket: grant.ticket };
    let history = |replaces| {
        let mut model = Model::default();
        let steps = [
            granted(read, None),
            removed(read),
            granted(other, None),
            Did::Wrote(other),
            removed(other),
            granted(upgraded, replaces),
            Did::Wrote(upgraded),
        ];
        steps.iter().try_for_each(|did| model.commit(did))
    };
    // The holder of a new lock reads again; the holder of an upgraded lock does not.
    history(None).unwrap();
    assert!(history(Some(read)).unwrap_err().contains("an unseen value is overwritten"));
}

/// The negative controls run the same schedules on stores that skip a part of the validation.
#[test]
fn weaker_isolation_is_found() {
    let on = |weakness| run(30, Mutant::None, || Weakened::new(Memory::new(), weakness));
    on(Weakness::None).unwrap();
    for weakness in [Weakness::LostUpdates, Weakness::WriteSkew, Weakness::Phantoms] {
        let violation = on(weakness).unwrap_err();
        println!("{weakness:?}: {violation}");
    }
}

/// The negative control of fencing: without a verified token, dead holders can write.
#[test]
fn writes_without_fencing_are_found() {
    let violation =
        run(100, Mutant::UnverifiedWrites, keyloom_testing::optimistic_memory).unwrap_err();
    assert!(violation.contains("a stale write"), "{violation}");
}
