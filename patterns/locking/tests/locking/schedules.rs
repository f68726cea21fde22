//! Random schedules of requests, compared with a list of locks without claims.
//!
//! The model defines when two locks exclude each other: their resources overlap, and one of the
//! locks is exclusive. The model has neither intention locks nor a key layout. The number of
//! schedules is `KEYLOOM_LOCK_SCHEDULES`, 500 by default.

use keyloom::key::Element;
use keyloom::{Memory, Store, pack};
use keyloom_locking::{Grant, Lock, LockError, LockPath, Mode, Outcome};

use super::support::{Bench, GRACE, LEASE};

/// The number of names that a resource or a range may have.
const NAMES: u8 = 12;

/// The names in key order; they share prefixes and suffixes. A tuple is one name.
fn name(n: u8) -> Element {
    let text = |text: &str| Element::Str(text.to_owned());
    match n {
        0 => Element::Bytes(Vec::new()),
        1 => Element::Bytes(vec![0xFF]),
        2 => text(""),
        3 => text("\0"),
        4 => text("a"),
        5 => text("a\0"),
        6 => text("a\0\u{FF}"),
        7 => text("aa"),
        8 => Element::Tuple(vec![text("a")]),
        9 => Element::Int(0),
        10 => Element::Int(20),
        _ => Element::Int(0x1414),
    }
}

/// Usually one of three names, so that resources overlap.
fn random_name(random: &mut fastrand::Rng) -> u8 {
    if random.u8(0..4) == 0 { random.u8(0..NAMES) } else { random.u8(3..6) }
}

#[test]
fn names_of_the_model_are_in_the_order_of_their_keys() {
    let keys: Vec<_> = (0..NAMES).map(|n| pack(&name(n))).collect();
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
}

/// A resource of the model: names from the root, and a range of children. A name is given by its
/// index in the order of all names.
#[derive(Clone, Debug)]
pub struct Resource {
    names: Vec<u8>,
    range: Option<(u8, u8)>,
    is_exclusive: bool,
}

impl Resource {
    pub fn random(random: &mut fastrand::Rng) -> Self {
        let names: Vec<_> = (0..random.usize(0..4)).map(|_| random_name(random)).collect();
        let from = random_name(random).min(NAMES - 2);
        let range = random.u8(0..5) == 0;
        let range = range.then(|| (from, random.u8(from + 1..NAMES.min(from + 4))));
        Self { names, range, is_exclusive: random.bool() }
    }

    pub fn lock(&self) -> Lock {
        let path = LockPath::of(self.names.iter().map(|n| name(*n)));
        let range = self.range.map(|(from, to)| (name(from), name(to)));
        match (range, self.is_exclusive) {
            (None, true) => Lock::exclusive(path),
            (None, false) => Lock::shared(path),
            (Some((from, to)), true) => Lock::exclusive_range(path, from, to),
            (Some((from, to)), false) => Lock::shared_range(path, from, to),
        }
    }

    /// Whether the resource, with everything below it, contains the path.
    fn contains(&self, names: &[u8]) -> bool {
        match (names.strip_prefix(self.names.as_slice()), self.range) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(rest), Some((from, to))) => rest.first().is_some_and(|n| (from..to).contains(n)),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self.range, other.range) {
            (Some((from, to)), Some((other_from, other_to))) if self.names == other.names => {
                from < other_to && other_from < to
            }
            (Some(_), _) if self.contains(&other.names) => true,
            (_, Some(_)) if other.contains(&self.names) => true,
            (None, None) => self.contains(&other.names) || other.contains(&self.names),
            // The range is below the other resource.
            (Some(_), None) => other.contains(&self.names),
            (None, Some(_)) => self.contains(&other.names),
            (Some(_), Some(_)) => false,
        }
    }

    pub fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    /// The same resource after an upgrade.
    pub fn exclusive(&self) -> Self {
        Self { is_exclusive: true, ..self.clone() }
    }

    pub fn excludes(&self, other: &Self) -> bool {
        (self.is_exclusive || other.is_exclusive) && self.overlaps(other)
    }
}

#[derive(Clone, Debug)]
struct Asked {
    session: usize,
    ticket: u64,
    resource: Resource,
    /// The grant, or `None` while the request waits.
    grant: Option<Grant>,
}

struct Schedule<'s> {
    bench: Bench<'s, Memory>,
    sessions: Vec<u64>,
    asked: Vec<Asked>,
    granted: u64,
    deadlocks: u64,
}

impl Schedule<'_> {
    fn excluded(&self, session: usize, resource: &Resource) -> bool {
        let held = self.asked.iter().filter(|asked| asked.grant.is_some());
        held.into_iter().any(|a| a.session != session && a.resource.excludes(resource))
    }

    fn waits(&self) -> bool {
        self.asked.iter().any(|asked| asked.grant.is_none())
    }

    fn request(&mut self, session: usize, resource: Resource) {
        let expected = self.excluded(session, &resource);
        // A session waits for at most one request at a time, like a thread.
        if self.asked.iter().any(|a| a.session == session && a.grant.is_none()) {
            return;
        }
        match self.bench.request(self.sessions[session], &resource.lock()) {
            Ok(Outcome::Granted(grant)) => {
                assert!(!expected, "{resource:?} is granted beside {:?}", self.asked);
                self.granted += 1;
                self.asked.push(Asked {
                    session,
                    ticket: grant.ticket,
                    resource,
                    grant: Some(grant),
                });
            }
            Ok(Outcome::Waiting { ticket, .. }) => {
                assert!(expected || self.waits(), "{resource:?} waits beside {:?}", self.asked);
                self.asked.push(Asked { session, ticket, resource, grant: None });
            }
            Err(error) => {
                let error = error.downcast_ref::<LockError>().expect("only deadlocks");
                assert!(matches!(error, LockError::Deadlock { .. }), "{error}");
                self.deadlocks += 1;
                self.release_all(session);
            }
        }
    }

    fn release_all(&mut self, session: usize) {
        for asked in self.asked.iter().filter(|asked| asked.session == session) {
            match asked.grant {
                Some(grant) => self.bench.release(grant).unwrap(),
                None => drop(self.withdraw(asked)),
            }
        }
        self.asked.retain(|asked| asked.session != session);
    }

    fn withdraw(&self, asked: &Asked) -> Option<Grant> {
        let Bench { store, locks, .. } = &self.bench;
        store
            .transact(|txn| locks.withdraw(txn, self.sessions[asked.session], asked.ticket))
            .unwrap()
    }

    fn poll(&mut self, at: usize) {
        let Asked { session, ticket, resource, grant } = self.asked[at].clone();
        if grant.is_some() {
            return;
        }
        let expected = self.excluded(session, &resource);
        match self.bench.poll(self.sessions[session], ticket) {
            Ok(Outcome::Granted(grant)) => {
                assert!(!expected, "{resource:?} is granted beside {:?}", self.asked);
                self.granted += 1;
                self.asked[at].grant = Some(grant);
            }
            Ok(Outcome::Waiting { .. }) => assert!(expected || self.is_behind(at), "{resource:?}"),
            Err(_) => self.release_all(session),
        }
    }

    /// Whether an earlier waiting request excludes this one.
    fn is_behind(&self, at: usize) -> bool {
        let Asked { session, ticket, resource, .. } = &self.asked[at];
        self.asked.iter().any(|other| {
            other.grant.is_none()
                && other.session != *session
                && other.ticket < *ticket
                && other.resource.excludes(resource)
        })
    }

    fn step(&mut self, random: &mut fastrand::Rng) {
        let session = random.usize(0..self.sessions.len());
        match random.u8(0..10) {
            0..4 => self.request(session, Resource::random(random)),
            4..6 if !self.asked.is_empty() => self.poll(random.usize(0..self.asked.len())),
            6 => self.release_all(session),
            7 => self.expire(session),
            _ if !self.asked.is_empty() => {
                let asked = self.asked.swap_remove(random.usize(0..self.asked.len()));
                match asked.grant {
                    Some(grant) => self.bench.release(grant).unwrap(),
                    None => assert_eq!(self.withdraw(&asked), None),
                }
            }
            _ => {}
        }
    }

    /// All sessions except one renew their leases, and the lease of that one ends.
    fn expire(&mut self, dead: usize) {
        for part in [LEASE, GRACE] {
            self.bench.clock.advance(part);
            for (session, id) in self.sessions.iter().enumerate() {
                if session != dead {
                    self.bench.renew(*id).unwrap();
                }
            }
        }
        // The locks of the session still exist, but exclude no other session.
        self.asked.retain(|asked| asked.session != dead);
        self.sessions[dead] = self.bench.session("successor");
    }

    /// Polls in ticket order until no request waits. Each round must grant a request.
    fn finish(mut self) -> (u64, u64) {
        loop {
            let holders: Vec<_> =
                self.asked.iter().filter(|a| a.grant.is_some()).map(|a| a.session).collect();
            holders.into_iter().for_each(|session| {
                let waiting: Vec<_> =
                    self.asked.iter().filter(|a| a.grant.is_none()).cloned().collect();
                self.asked.retain(|a| a.grant.is_some());
                self.release_all(session);
                self.asked.extend(waiting);
            });
            if self.asked.is_empty() {
                break;
            }
            self.asked.sort_by_key(|asked| asked.ticket);
            for at in 0..self.asked.len() {
                if at < self.asked.len() {
                    self.poll(at);
                }
            }
            assert!(self.asked.iter().any(|a| a.grant.is_some()) || self.asked.is_empty());
        }
        assert!(self.bench.faults().is_empty(), "{:?}", self.bench.faults());
        (self.granted, self.deadlocks)
    }
}

fn run(seed: u64) -> (u64, u64) {
    let store = Memory::new();
    let bench = Bench::new(&store);
    let mut random = fastrand::Rng::with_seed(seed);
    let sessions = ["", "a", "aa"].map(|name| bench.session(name)).to_vec();
    let mut schedule = Schedule { bench, sessions, asked: Vec::new(), granted: 0, deadlocks: 0 };
    for _ in 0..random.usize(4..24) {
        schedule.step(&mut random);
    }
    schedule.finish()
}

#[test]
fn locks_exclude_exactly_what_the_model_excludes() {
    let schedules = std::env::var("KEYLOOM_LOCK_SCHEDULES");
    let schedules: u64 = schedules.map_or(500, |text| text.parse().unwrap());
    let (mut granted, mut deadlocks) = (0, 0);
    for seed in 0..schedules {
        let (more, cycles) = run(seed);
        granted += more;
        deadlocks += cycles;
    }
    println!("{schedules} schedules: {granted} grants, {deadlocks} deadlocks");
    assert!(granted > schedules && deadlocks > 0);
}

/// The negative control: the same model catches sessions that do not take intention locks.
#[test]
fn locks_without_intentions_are_caught() {
    let caught = (0..300).any(|seed| {
        std::panic::catch_unwind(|| {
            let store = Memory::new();
            let bench = Bench::new(&store);
            let mut random = fastrand::Rng::with_seed(seed);
            let (ada, bob) = (bench.session("ada"), bench.session("bob"));
            let [one, two] = [(); 2].map(|()| Resource::random(&mut random));
            // A program that locks a child like a separate resource.
            let flat = |r: &Resource| {
                let name = format!("{:?}", r.names);
                Lock::new(LockPath::root().child(name), mode(r))
            };
            bench.try_lock(ada, &flat(&one)).unwrap();
            let second = bench.try_lock(bob, &flat(&two));
            assert_eq!(second.is_err(), one.excludes(&two));
        })
        .is_err()
    });
    assert!(caught);
}

fn mode(resource: &Resource) -> Mode {
    if resource.is_exclusive { Mode::Exclusive } else { Mode::Shared }
}
