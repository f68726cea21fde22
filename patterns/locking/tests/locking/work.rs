//! Work of a dead process is finished or undone by another one, after each of its commits.

use keyloom::{DynWriter, Reader, Result, Store, Writer};
use keyloom_locking::work::{OnTakeover, Operation, Operations, Step, Work};
use keyloom_locking::{Grant, LockError, Mode, Outcome};
use keyloom_testing::on_every_store_and_server;

use super::support::{Bench, exclusive, refused, shared};

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

/// An operation that fails at its third step.
struct Failing;

impl Operation for Failing {
    fn name(&self) -> &str {
        "transfer"
    }

    fn step(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
        match work.position.first() {
            Some(2) => Err(keyloom::Error::other("the disk of a service is full")),
            _ => Transfer(OnTakeover::RollForward).step(txn, work),
        }
    }
}

/// A program that fails to finish work gives it back: another one, or a second attempt, finishes
/// it.
fn work_that_fails_is_given_back<S: Store>(store: &S) {
    let bench = Bench::new(store);
    begin(&bench, 1, &Transfer(OnTakeover::RollForward));
    bench.let_leases_end();
    let bob = bench.session("bob");
    let failed = bench.locks.recover(store, bob, &Operations::default().with(Failing));
    assert!(failed.unwrap_err().to_string().contains("disk of a service"));
    // Bob does not get the half-done resource, although he touched it.
    assert!(bench.try_lock(bob, &exclusive("a")).is_err());
    let operations = Operations::default().with(Transfer(OnTakeover::RollForward));
    assert_eq!(bench.locks.recover(store, bob, &operations).unwrap(), 1);
    assert_eq!(balance(store), (-i64::from(STEPS), i64::from(STEPS)));
    assert!(bench.faults().is_empty());
}

/// A holder whose own work failed does not get its resource again as if it were whole.
fn own_unfinished_work_excludes_the_session<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let grant = begin(&bench, 2, &Transfer(OnTakeover::RollForward));
    let again = refused(bench.try_lock(grant.session, &exclusive("a/b")));
    assert!(matches!(again, LockError::UnfinishedWork { .. }), "{again}");
    bench.try_lock(grant.session, &exclusive("b")).unwrap();
    // A weaker lock would show the half-changed data to others.
    let weaker = store.transact(|txn| bench.locks.downgrade(txn, grant, Mode::Shared));
    assert!(matches!(refused(weaker), LockError::UnfinishedWork { .. }));
    assert!(bench.try_lock(bench.session("bob"), &shared("a")).is_err());
    let other = Named("another operation");
    let step = store.transact(|txn| bench.locks.work_step(txn, grant, &other));
    assert!(matches!(refused(step), LockError::OtherOperation { .. }));
}

/// An operation that only has a name.
struct Named(&'static str);

impl Operation for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn step(&self, _: &mut DynWriter<'_>, _: &Work) -> Result<Step> {
        Ok(Step::Done)
    }
}

/// Work of live sessions, and work that this program does not know, keep no other from its end.
fn unknown_work_does_not_stop_a_recovery<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let unknown = bench.try_lock(bench.session("eve"), &exclusive("x")).unwrap();
    store.transact(|txn| bench.locks.begin_work(txn, unknown, "unknown", b"")).unwrap();
    begin(&bench, 3, &Transfer(OnTakeover::RollForward));
    bench.let_leases_end();
    let alive = bench.try_lock(bench.session("dave"), &exclusive("y")).unwrap();
    store.transact(|txn| bench.locks.begin_work(txn, alive, "also unknown", b"")).unwrap();
    let bob = bench.session("bob");
    let operations = Operations::default().with(Transfer(OnTakeover::RollForward));
    let error = refused(bench.locks.recover(store, bob, &operations));
    assert!(error.to_string().contains(r#""unknown""#), "{error}");
    assert_eq!(balance(store), (-i64::from(STEPS), i64::from(STEPS)));
    assert_eq!(bench.locks.unfinished(&store.snapshot().unwrap()).unwrap().len(), 2);
}

/// An operator forgets the work after its first step: the holder does not report success.
#[test]
fn abandoned_work_is_not_reported_as_done() {
    struct Interrupted<'a>(&'a keyloom::Memory, &'a keyloom_locking::Locks, Grant);
    impl Operation for Interrupted<'_> {
        fn name(&self) -> &str {
            "interrupted"
        }

        fn step(&self, _: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
            let Self(store, locks, grant) = self;
            if work.position.is_empty() {
                return Ok(Step::Continue(vec![1]));
            }
            // Transactions of this store run side by side, so the step conflicts and runs again.
            store.transact(|txn| locks.abandon(txn, *grant))?;
            Ok(Step::Continue(vec![2]))
        }
    }
    let store = keyloom::Memory::builder().optimistic(true).build();
    let bench = Bench::new(&store);
    let grant = bench.try_lock(bench.session("ada"), &exclusive("a")).unwrap();
    let operation = Interrupted(&store, &bench.locks, grant);
    let result = bench.locks.run(&store, grant, &operation, b"");
    assert!(matches!(refused(result), LockError::Abandoned { .. }));
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
    work_that_fails_is_given_back,
    own_unfinished_work_excludes_the_session,
    unknown_work_does_not_stop_a_recovery,
}
