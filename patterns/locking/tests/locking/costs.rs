//! An uncontended lock costs a constant number of keys, independent of the number of other locks. A
//! step of a waiter also has a constant cost, independent of the number of other waiters.

use keyloom::{Memory, Metered, Store};
use keyloom_locking::{Grant, Lock, Outcome};
use keyloom_testing::{laws, on_every_store_and_server};
use proptest::prelude::ProptestConfig;

use super::support::{Bench, exclusive, path, shared};

/// The keys written to lock and to release, and the keys and ranges read to lock.
fn written<S: Store>(bench: &Bench<'_, Metered<S>>, session: u64, lock: &Lock) -> [u64; 4] {
    let store = bench.store;
    let locks = std::slice::from_ref(lock);
    let (grant, locking) =
        store.measure(|store| store.transact(|txn| bench.locks.try_lock(txn, session, locks)));
    let grant = grant.unwrap();
    let (released, releasing) =
        store.measure(|store| store.transact(|txn| bench.locks.release(txn, grant)));
    released.unwrap();
    assert_eq!((locking.commits, releasing.commits), (1, 1));
    [locking.keys_written, releasing.keys_written, locking.keys_read, locking.ranges]
}

#[test]
fn a_lock_of_depth_d_writes_d_plus_1_claims() {
    let store = Metered::new(Memory::new());
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    let cases = [("", 1), ("a", 2), ("a/b", 3), ("a/b/c", 4), ("a/b/c/d/e/f/g", 8)];
    for (text, claims) in cases {
        let [locked, released, ..] = written(&bench, ada, &exclusive(text));
        // A lock writes the claims, the request and the counter of tokens. A release writes the
        // claims and the request.
        assert_eq!((locked, released), (claims + 2, claims + 1), "{text}");
    }
}

/// A lock takes two round trips: one reads the claims with everything else that the request needs,
/// and one commits. A release also takes two: one reads the request with its work, and one commits.
fn a_lock_and_its_release_cost_few_round_trips<S: Store + Clone>(store: &S) {
    let store = Metered::new(store.clone());
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    // A lock of the root also reads all counters.
    for (text, gets, trips) in [("a/b", 10, 4), ("a/b/c/d", 10, 4), ("", 8, 5)] {
        written(&bench, ada, &exclusive(text));
        let (_, cost) = store.measure(|_| written(&bench, ada, &exclusive(text)));
        assert_eq!(cost.gets, gets, "{text}");
        if store.inner().round_trips().is_some() {
            assert_eq!(cost.round_trips, trips, "{text}");
        }
    }
}

on_every_store_and_server! { a_lock_and_its_release_cost_few_round_trips }

#[test]
fn other_locks_do_not_raise_the_cost() {
    let store = Metered::new(Memory::new());
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    let lock = exclusive("a/b/c");
    // The first lock creates the counter of the tokens.
    written(&bench, ada, &lock);
    let alone = written(&bench, ada, &lock);
    for count in [100, 1_000] {
        let bob = bench.session("bob");
        for n in 0..count {
            bench.try_lock(bob, &Lock::exclusive(path("a/b").child(10 * count + n))).unwrap();
        }
        assert_eq!(written(&bench, ada, &lock), alone, "beside {count}");
    }
    // The session, its own tokens, and the states of the tables.
    assert!(alone[2] <= 12, "{alone:?}");
}

#[test]
fn a_verified_write_costs_one_get_more() {
    let store = Metered::new(Memory::new());
    let bench = Bench::new(&store);
    let grant = bench.try_lock(bench.session("ada"), &exclusive("a")).unwrap();
    let [gets, ranges, read, written] = laws::writing(&store, |txn| bench.locks.verify(txn, grant));
    assert_eq!([gets, ranges, read, written], [1, 0, 1, 0]);
}

/// A queue of waiters that measures every operation.
struct Queue<'s> {
    bench: Bench<'s, Metered<Memory>>,
    waiters: Vec<(u64, u64)>,
    /// The reads and writes of all operations.
    total: u64,
    /// The maximum reads of one operation.
    most: u64,
}

impl<'s> Queue<'s> {
    fn new(store: &'s Metered<Memory>) -> Self {
        Self { bench: Bench::new(store), waiters: Vec::new(), total: 0, most: 0 }
    }

    fn measured<T>(&mut self, operation: impl FnOnce(&Bench<'s, Metered<Memory>>) -> T) -> T {
        let Self { bench, .. } = self;
        let (done, cost) = bench.store.measure(|_| operation(bench));
        let read = cost.keys_read + cost.gets + cost.ranges;
        self.total += read + cost.keys_written;
        self.most = self.most.max(read);
        done
    }

    fn enter(&mut self, lock: &Lock) {
        let session = self.bench.session("waiter");
        let ticket = self.measured(|bench| bench.wait(session, lock));
        self.waiters.push((session, ticket));
    }

    /// Polls the waiter at this index. Returns its grant; `None` if it still waits or does not
    /// exist.
    fn poll(&mut self, at: usize) -> Option<Grant> {
        let (session, ticket) = *self.waiters.get(at)?;
        match self.measured(|bench| bench.poll(session, ticket)).unwrap() {
            Outcome::Granted(grant) => Some(grant),
            Outcome::Waiting { .. } => None,
        }
    }

    /// Serves all waiters. The grant and the release of the predecessor wake each waiter.
    fn serve(&mut self, mut held: Grant) {
        for at in 0..self.waiters.len() {
            self.measured(|bench| bench.release(held)).unwrap();
            held = self.poll(at).unwrap();
            assert_eq!(self.poll(at + 1), None);
        }
        self.measured(|bench| bench.release(held)).unwrap();
    }
}

#[test]
fn a_wake_up_reads_as_many_keys_for_any_number_of_waiters() {
    // The last queue length takes a minute in a debug build.
    let is_full = ProptestConfig::default().cases >= 256;
    let most = if is_full { 10_000 } else { 2_000 };
    let mut all = Vec::new();
    for count in [10, 100, 1_000, most] {
        let store = Metered::new(Memory::new());
        let mut queue = Queue::new(&store);
        let lock = exclusive("a/b");
        let held = queue.bench.try_lock(queue.bench.session("holder"), &lock).unwrap();
        (0..count).for_each(|_| queue.enter(&lock));
        let entering = std::mem::take(&mut queue.most);
        queue.serve(held);
        println!("{count}: {entering} to enter, {} to poll, {} in all", queue.most, queue.total);
        let n_log_n = u64::from(count) * u64::from(u32::ilog2(count));
        assert!(queue.total <= 100 * n_log_n, "{} for {count}", queue.total);
        all.push((entering.max(60), queue.most));
    }
    assert!(all.iter().all(|costs| *costs == all[0] && costs.1 <= 60), "{all:?}");
}

/// Readers between writers: a wake-up reads a constant number of keys in each mode.
#[test]
fn a_wake_up_among_readers_and_writers_reads_few_keys() {
    let mut all = Vec::new();
    for count in [100, 1_000] {
        let store = Metered::new(Memory::new());
        let mut queue = Queue::new(&store);
        let held = queue.bench.try_lock(queue.bench.session("holder"), &exclusive("a")).unwrap();
        for n in 0..count {
            // Runs of readers that are longer than a page.
            let lock = if n % 40 == 0 { exclusive("a") } else { shared("a") };
            queue.enter(&lock);
        }
        for at in (0..count).rev() {
            assert_eq!(queue.poll(at), None);
        }
        queue.measured(|bench| bench.release(held)).unwrap();
        let mut held = Vec::new();
        let mut served = 0;
        while served < count {
            let is_first = served == 0 || served % 40 == 0 || served % 40 == 1;
            if is_first {
                held.drain(..).for_each(|grant| {
                    queue.measured(|bench| bench.release(grant)).unwrap();
                });
            }
            held.push(queue.poll(served).unwrap_or_else(|| panic!("{served} waits")));
            served += 1;
            let next_waits = served % 40 == 0 || served % 40 == 1;
            assert!(!next_waits || queue.poll(served).is_none());
        }
        all.push(queue.most);
    }
    assert!(all[0] == all[1] && all[0] <= 120, "{all:?}");
}

/// A session that holds the lock passes the whole queue.
#[test]
fn a_holder_passes_any_number_of_waiters_at_one_price() {
    let mut all = Vec::new();
    for count in [10, 100, 1_000] {
        let store = Metered::new(Memory::new());
        let mut queue = Queue::new(&store);
        let holder = queue.bench.session("holder");
        let _held = queue.bench.try_lock(holder, &exclusive("a/1")).unwrap();
        (0..count).for_each(|_| queue.enter(&exclusive("a")));
        queue.most = 0;
        queue.measured(|bench| bench.try_lock(holder, &exclusive("a/2"))).unwrap();
        all.push(queue.most);
    }
    assert!(all[2] <= all[0] + 10 && all[2] <= 70, "{all:?}");
}

/// The search for a deadlock follows the chain of waiters. It costs reads only for a session whose
/// lock another session waits for.
#[test]
fn only_a_session_that_is_awaited_searches_a_deadlock() {
    let store = Metered::new(Memory::new());
    let mut queue = Queue::new(&store);
    let lock = exclusive("a");
    let _held = queue.bench.try_lock(queue.bench.session("holder"), &lock).unwrap();
    (0..20).for_each(|_| queue.enter(&lock));
    let (session, _) = queue.waiters[19];
    let poll = |queue: &mut Queue<'_>| {
        queue.most = 0;
        assert_eq!(queue.poll(19), None);
        queue.most
    };
    let alone = poll(&mut queue);
    queue.bench.try_lock(session, &exclusive("b")).unwrap();
    let with_a_lock = poll(&mut queue);
    assert!(with_a_lock <= alone + 30, "{with_a_lock} and {alone}");
    queue.bench.wait(queue.bench.session("other"), &exclusive("b"));
    let awaited = poll(&mut queue);
    assert!(awaited > alone + 200, "{awaited} and {alone}");
}

/// All sessions also share another lock, like programs that share the lock of a whole collection.
#[test]
fn a_second_lock_does_not_make_waiters_search() {
    let mut all = Vec::new();
    for count in [20, 200] {
        let store = Metered::new(Memory::new());
        let mut queue = Queue::new(&store);
        let lock = exclusive("a");
        let held = queue.bench.try_lock(queue.bench.session("holder"), &lock).unwrap();
        for _ in 0..count {
            let session = queue.bench.session("waiter");
            queue.bench.try_lock(session, &shared("b")).unwrap();
            let ticket = queue.measured(|bench| bench.wait(session, &lock));
            queue.waiters.push((session, ticket));
        }
        queue.serve(held);
        all.push(queue.most);
    }
    assert!(all[0] == all[1] && all[0] <= 100, "{all:?}");
}
