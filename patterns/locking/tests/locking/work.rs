//! Work of a dead process is finished or undone by another one, after each of its commits.

use keyloom::{DynWriter, Reader, Result, Store, Writer};
use keyloom_locking::work::{OnTakeover, Operation, Operations, Step, Work};
use keyloom_locking::{Grant, LockError, Outcome};
use keyloom_testing::on_every_store_and_server;

use super::support::{Bench, exclusive, refused};

const STEPS: u8 = 5;

/// Moves units from one counter to the other, in [`STEPS`] steps.
#[derive(Clone, Copy)]
struct Transfer(OnTakeover);

impl Operation for Transfer {
    fn name(&self) -> &str {
        "transfer"
    }

    fn step(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
        let done = work.position.first().copied().unwrap_or(0);
        if done == STEPS {
            return Ok(Step::Done);
        }
        txn.add(b"a", -1)?;
        txn.add(b"b", 1)?;
        Ok(Step::Continue(vec![done + 1]))
    }

    fn undo(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
        let done = work.position.first().copied().unwrap_or(0);
        if done == 0 {
            return Ok(Step::Done);
        }
        txn.add(b"a", 1)?;
        txn.add(b"b", -1)?;
        Ok(Step::Continue(vec![done - 1]))
    }

    fn on_takeover(&self) -> OnTakeover {
        self.0
    }
}

fn balance(store: &impl Store) -> (i64, i64) {
    let snapshot = store.snapshot().unwrap();
    (snapshot.counter(b"a").unwrap(), snapshot.counter(b"b").unwrap())
}

/// Begins the work and does `steps` of it.
fn begin<S: Store>(bench: &Bench<'_, S>, steps: u8, operation: &Transfer) -> Grant {
    let grant = bench.try_lock(bench.session("ada"), &exclusive("a")).unwrap();
    let Bench { store, locks, .. } = bench;
    store.transact(|txn| locks.begin_work(txn, grant, "transfer", b"")).unwrap();
    for _ in 0..steps {
        store.transact(|txn| locks.work_step(txn, grant, operation)).unwrap();
    }
    grant
}

fn dead_work<S: Store>(store: &S, on_takeover: OnTakeover, expected: impl Fn(u8) -> (i64, i64)) {
    for steps in 0..=STEPS {
        for first_takeover in 0..=STEPS {
            keyloom_testing::laws::clear(store);
            let bench = Bench::new(store);
            let operation = Transfer(on_takeover);
            let ada = begin(&bench, steps, &operation);
            bench.let_leases_end();
            // Bob takes over, does some steps, and dies as well.
            let bob = bench.session("bob");
            let key = (ada.session, ada.ticket);
            let locks = &bench.locks;
            let taken = store.transact(|txn| locks.take_over(txn, bob, key, on_takeover));
            let taken = taken.unwrap().unwrap();
            assert!(taken.token > ada.token);
            for _ in 0..first_takeover {
                let more = store.transact(|txn| locks.work_step(txn, taken, &operation)).unwrap();
                if !more {
                    break;
                }
            }
            let stale = store.transact(|txn| locks.work_step(txn, ada, &operation));
            assert!(matches!(refused(stale), LockError::Lost { .. }));
            bench.let_leases_end();
            let carol = bench.session("carol");
            let operations = Operations::default().with(operation);
            locks.recover(store, carol, &operations).unwrap();
            assert_eq!(balance(store), expected(steps), "{steps} {first_takeover}");
            assert!(bench.locks.unfinished(&store.snapshot().unwrap()).unwrap().is_empty());
            bench.try_lock(carol, &exclusive("a")).unwrap();
            assert!(bench.faults().is_empty());
        }
    }
}

fn dead_work_is_completed<S: Store>(store: &S) {
    dead_work(store, OnTakeover::RollForward, |_| (-i64::from(STEPS), i64::from(STEPS)));
}

fn dead_work_is_undone<S: Store>(store: &S) {
    dead_work(store, OnTakeover::RollBack, |_| (0, 0));
}

/// The lock of a dead session stays until its work is finished.
fn unfinished_work_keeps_its_lock<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let operation = Transfer(OnTakeover::RollForward);
    let ada = begin(&bench, 2, &operation);
    assert!(matches!(refused(bench.release(ada)), LockError::UnfinishedWork { .. }));
    let again = store.transact(|txn| bench.locks.begin_work(txn, ada, "transfer", b""));
    assert!(matches!(refused(again), LockError::UnfinishedWork { .. }));
    // Ada is alive: Bob cannot take over.
    let bob = bench.session("bob");
    let key = (ada.session, ada.ticket);
    let on = OnTakeover::RollForward;
    let taken = store.transact(|txn| bench.locks.take_over(txn, bob, key, on)).unwrap();
    assert_eq!(taken, None);
    bench.let_leases_end();
    bench.locks.clean_up(store).unwrap();
    let bob = bench.session("bob");
    let error = refused(bench.try_lock(bob, &exclusive("a/b"))).to_string();
    assert!(error.contains(r#"session "ada" has ended with unfinished work under X on /"a""#));
    let unknown = bench.locks.recover(store, bob, &Operations::default());
    assert!(refused(unknown).to_string().contains("transfer"));
    let Outcome::Waiting { blockers, .. } = bench.request(bob, &exclusive("a/b")).unwrap() else {
        panic!()
    };
    assert!(blockers[0].has_unfinished_work);
    let operations = Operations::default().with(operation);
    assert_eq!(bench.locks.recover(store, bob, &operations).unwrap(), 1);
    assert_eq!(bench.locks.recover(store, bob, &operations).unwrap(), 0);
    assert_eq!(balance(store), (-i64::from(STEPS), i64::from(STEPS)));
}

/// A session that waits finishes the work that is in its way.
fn a_waiting_session_finishes_dead_work<S: Store + Clone>(store: &S) {
    let bench = Bench::new(store);
    let operation = Transfer(OnTakeover::RollForward);
    begin(&bench, 3, &operation);
    bench.let_leases_end();
    let options = keyloom_locking::LeaseOptions::default();
    let bob = keyloom_locking::Session::without_heartbeat(store, &bench.locks, "bob", options);
    let bob = bob.unwrap().with_operations(Operations::default().with(operation));
    let guard = bob.lock(&[exclusive("a")]).unwrap();
    assert_eq!(balance(store), (-i64::from(STEPS), i64::from(STEPS)));
    guard.release().unwrap();
}

on_every_store_and_server! {
    dead_work_is_completed,
    dead_work_is_undone,
    unfinished_work_keeps_its_lock,
    a_waiting_session_finishes_dead_work,
}
