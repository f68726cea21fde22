//! Double barriers: all begin together, and all end together.

use std::sync::atomic::{AtomicU64, Ordering};

use keyloom::Store;
use keyloom_locking::LockError;
use keyloom_locking::recipes::DoubleBarrier;
use keyloom_testing::laws::dump_all;
use keyloom_testing::on_every_store_and_server;

use super::super::support::{path, refused};
use super::{Kitchen, LONG, NOW, SOON, until};

const THREADS: u64 = 4;
const ROUNDS: u64 = 5;

/// How often a thread began or ended before the others were there.
fn too_early<S: Store + Clone>(store: &S, participants: u64) -> u64 {
    let kitchen = Kitchen::new(store);
    let number = u32::try_from(participants).unwrap();
    let barrier = kitchen.recipes.double_barrier(&path("phase"), number).unwrap();
    let [came, left, early] = std::array::from_fn(|_| AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (kitchen, barrier) = (&kitchen, &barrier);
            let (came, left, early) = (&came, &left, &early);
            scope.spawn(move || {
                let session = kitchen.session(&thread.to_string());
                let mut last = 0;
                for round in 1..=ROUNDS {
                    let all_of_it = |count: &AtomicU64| {
                        let is_early = count.load(Ordering::SeqCst) < round * THREADS;
                        early.fetch_add(u64::from(is_early), Ordering::SeqCst);
                    };
                    came.fetch_add(1, Ordering::SeqCst);
                    let entry = barrier.enter(&session, LONG).unwrap();
                    all_of_it(came);
                    assert!(entry.round() > last);
                    last = entry.round();
                    left.fetch_add(1, Ordering::SeqCst);
                    entry.leave(LONG).unwrap();
                    all_of_it(left);
                }
            });
        }
    });
    early.into_inner()
}

fn threads_begin_and_end_together<S: Store + Clone>(store: &S) {
    assert_eq!(too_early(store, THREADS), 0);
}

fn too_few_participants_time_out<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let barrier = kitchen.recipes.double_barrier(&path("phase"), 3).unwrap();
    let (ada, bob) = (kitchen.session("ada"), kitchen.session("bob"));
    std::thread::scope(|scope| {
        let ada = scope.spawn(|| barrier.enter(&ada, SOON).map(drop));
        let bob = barrier.enter(&bob, SOON).map(drop);
        let text = refused(ada.join().unwrap()).to_string();
        assert!(text.contains("the entry to the double barrier"), "{text}");
        assert!(matches!(refused(bob), LockError::TimedOut { .. }));
    });
    // Both have withdrawn: another one is alone.
    assert!(barrier.enter(&kitchen.session("carol"), NOW).is_err());
}

/// A dead session does not count before the barrier opens, and has left after it.
fn dead_participants_keep_no_one_waiting<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let barrier = kitchen.recipes.double_barrier(&path("phase"), 2).unwrap();
    let [dead, ada, bob] = ["dead", "ada", "bob"].map(|name| kitchen.session(name));
    std::thread::scope(|scope| {
        let entering = scope.spawn(|| barrier.enter(&dead, LONG).map(drop));
        until(|| members(&barrier, store) == 1);
        kitchen.let_leases_end(&[&ada, &bob]);
        assert!(barrier.enter(&ada, NOW).is_err(), "one dead and one alive are not two");
        assert!(matches!(refused(entering.join().unwrap()), LockError::NoRequest { .. }));
    });
    let (bobs, adas) = std::thread::scope(|scope| {
        let adas = scope.spawn(|| barrier.enter(&ada, LONG).unwrap());
        (barrier.enter(&bob, LONG).unwrap(), adas.join().unwrap())
    });
    assert_eq!(bobs.round(), adas.round());
    // A third one waits for the end of the round.
    let carol = kitchen.session("carol");
    let text = refused(barrier.enter(&carol, SOON)).to_string();
    assert!(text.contains(r#"session "bob" holds a place in the double barrier"#), "{text}");
    kitchen.let_leases_end(&[&bob]);
    // Ada is dead, so Bob does not wait for her.
    bobs.leave(NOW).unwrap();
    assert!(matches!(refused(adas.leave(NOW)), LockError::Lost { .. }));
    assert_eq!(members(&barrier, store), 0);
}

fn members(barrier: &DoubleBarrier, store: &impl Store) -> usize {
    barrier.sessions(&store.snapshot().unwrap()).unwrap().len()
}

on_every_store_and_server! {
    threads_begin_and_end_together,
    too_few_participants_time_out,
    dead_participants_keep_no_one_waiting,
}

/// The negative control: a barrier of one participant lets each thread run by itself.
#[test]
fn threads_without_a_common_barrier_are_found() {
    assert!((0..100).any(|_| too_early(&keyloom::Memory::new(), 1) > 0));
}

/// A participant that does not wait for the others to leave.
#[test]
fn a_dropped_entry_leaves() {
    let store = keyloom::Memory::new();
    let kitchen = Kitchen::new(&store);
    let barrier = kitchen.recipes.double_barrier(&path("phase"), 1).unwrap();
    let ada = kitchen.session("ada");
    let before = dump_all(&store).len();
    let first = barrier.enter(&ada, NOW).unwrap();
    let round = first.round();
    drop(first);
    assert!(ada.take_failures().is_empty());
    let second = barrier.enter(&ada, NOW).unwrap();
    assert!(second.round() > round);
    second.leave(NOW).unwrap();
    // The counter of the tickets remains.
    assert_eq!(dump_all(&store).len(), before + 1);
}
