//! Another process finishes or rolls back the work of a dead process, after each of its commits.

use keyloom::{DynWriter, Reader, Result, Store, Writer};
use keyloom_locking::work::{OnTakeover, Operation, Operations, Step, Work};
use keyloom_locking::{Grant, LeaseOptions, LockError, Mode, Outcome, Session};
use keyloom_testing::on_every_store_and_server;

use super::support::{Bench, exclusive, refused, shared};

const STEPS: u8 = 5;

/// Moves units from one counter to another, in [`STEPS`] steps.
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

/// Begins the work and runs `steps` steps of it.
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
            // Bob takes over, runs some steps, and dies as well.
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
    bench.locks.sweep(store).unwrap();
    let bob = bench.session("bob");
    let error = refused(bench.try_lock(bob, &exclusive("a/b"))).to_string();
    assert!(error.contains(r#"session "ada" has ended with unfinished work under X on /"a""#));
    let unknown = bench.locks.recover(store, bob, &Operations::default());
    let unknown = refused(unknown);
    let LockError::UnknownOperation { operation: name, known } = &unknown else {
        panic!("{unknown}")
    };
    assert_eq!((name.as_str(), known.len()), ("transfer", 0));
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

/// A program that fails to finish work releases it, so another program or a second attempt can
/// finish it.
fn work_that_fails_is_given_back<S: Store>(store: &S) {
    let bench = Bench::new(store);
    begin(&bench, 1, &Transfer(OnTakeover::RollForward));
    bench.let_leases_end();
    let bob = bench.session("bob");
    let failed = bench.locks.recover(store, bob, &Operations::default().with(Failing));
    assert!(failed.unwrap_err().to_string().contains("disk of a service"));
    // Bob does not get the half-done resource, although he has tried to finish the work.
    assert!(bench.try_lock(bob, &exclusive("a")).is_err());
    let operations = Operations::default().with(Transfer(OnTakeover::RollForward));
    assert_eq!(bench.locks.recover(store, bob, &operations).unwrap(), 1);
    assert_eq!(balance(store), (-i64::from(STEPS), i64::from(STEPS)));
    assert!(bench.faults().is_empty());
}

/// A holder whose own work failed does not get its resource back as if the data were consistent.
fn own_unfinished_work_excludes_the_session<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let grant = begin(&bench, 2, &Transfer(OnTakeover::RollForward));
    let again = refused(bench.try_lock(grant.session, &exclusive("a/b")));
    assert!(matches!(again, LockError::UnfinishedWork { .. }), "{again}");
    bench.try_lock(grant.session, &exclusive("b")).unwrap();
    // A weaker lock would expose the half-changed data to other sessions.
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

/// Neither work of live sessions nor work unknown to this program stops the recovery of other work.
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

/// An operator abandons the work after its first step; the holder does not report success.
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
            // This store runs transactions concurrently, so the step conflicts and is retried.
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

/// An operator abandons work during its rescue; the rescuer does not keep its lock.
#[test]
fn work_abandoned_during_its_rescue_is_released() {
    struct Forgotten(&'static keyloom::Memory, keyloom_locking::Locks);
    impl Operation for Forgotten {
        fn name(&self) -> &str {
            "forgotten"
        }

        fn step(&self, _: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
            let Self(store, locks) = self;
            if !work.position.is_empty() {
                let grant = locks.requests(&store.snapshot()?)?[0].grant().unwrap();
                store.transact(|txn| locks.abandon(txn, grant))?;
            }
            Ok(Step::Continue(vec![1]))
        }
    }
    let store = Box::leak(Box::new(keyloom::Memory::builder().optimistic(true).build()));
    let store: &'static keyloom::Memory = store;
    let bench = Bench::new(store);
    let grant = bench.try_lock(bench.session("ada"), &exclusive("a")).unwrap();
    store.transact(|txn| bench.locks.begin_work(txn, grant, "forgotten", b"")).unwrap();
    bench.let_leases_end();
    let operations = Operations::default().with(Forgotten(store, bench.locks.clone()));
    let result = bench.locks.recover(store, bench.session("bob"), &operations);
    assert!(matches!(refused(result), LockError::Abandoned { .. }));
    bench.try_lock(bench.session("carol"), &exclusive("a")).unwrap();
}

/// A waiting session finishes the work that blocks it.
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

/// An operation that panics at its third step.
struct Panicking;

impl Operation for Panicking {
    fn name(&self) -> &str {
        "transfer"
    }

    fn step(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
        assert_ne!(work.position.first(), Some(&2), "a defect of the third step");
        Transfer(OnTakeover::RollForward).step(txn, work)
    }
}

fn panics(body: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err()
}

/// Another session, or a second attempt, finishes the work.
fn assert_is_recovered<S: Store>(bench: &Bench<'_, S>, session: u64) {
    let operations = Operations::default().with(Transfer(OnTakeover::RollForward));
    assert_eq!(bench.locks.recover(bench.store, session, &operations).unwrap(), 1);
    assert_eq!(balance(bench.store), (-i64::from(STEPS), i64::from(STEPS)));
    bench.try_lock(session, &exclusive("a")).unwrap();
    assert!(bench.faults().is_empty());
}

fn a_rescuer_that_panics_gives_the_work_back<S: Store>(store: &S) {
    let bench = Bench::new(store);
    begin(&bench, 1, &Transfer(OnTakeover::RollForward));
    bench.let_leases_end();
    let (bob, carol) = (bench.session("bob"), bench.session("carol"));
    let operations = Operations::default().with(Panicking);
    assert!(panics(|| drop(bench.locks.recover(store, bob, &operations))));
    // Bob is alive.
    assert_is_recovered(&bench, carol);
}

/// The live session keeps neither the work nor its waiting request.
fn a_waiter_whose_rescue_panics_leaves_nothing<S: Store + Clone>(store: &S) {
    let bench = Bench::new(store);
    begin(&bench, 1, &Transfer(OnTakeover::RollForward));
    bench.let_leases_end();
    let options = LeaseOptions::default();
    let bob = Session::without_heartbeat(store, &bench.locks, "bob", options).unwrap();
    let bob = bob.with_operations(Operations::default().with(Panicking));
    assert!(panics(|| drop(bob.lock(&[exclusive("a")]))));
    let requests = bench.locks.requests(&store.snapshot().unwrap()).unwrap();
    assert_eq!(requests.iter().filter(|info| info.session == bob.id()).count(), 0);
    assert_is_recovered(&bench, bench.session("carol"));
}

/// Work that fails or panics under a guard is left to other sessions, although its own session
/// lives.
fn a_dropped_guard_leaves_its_unfinished_work<S: Store + Clone>(store: &S) {
    for is_panicking in [false, true] {
        keyloom_testing::laws::clear(store);
        let bench = Bench::new(store);
        let options = LeaseOptions::default();
        let ada = Session::without_heartbeat(store, &bench.locks, "ada", options).unwrap();
        let has_panicked = panics(|| {
            let guard = ada.lock(&[exclusive("a")]).unwrap();
            match is_panicking {
                true => drop(guard.run(&Panicking, b"")),
                false => assert!(guard.run(&Failing, b"").is_err()),
            }
        });
        assert_eq!(has_panicked, is_panicking);
        let failures = ada.take_failures();
        let unfinished = failures.iter().filter_map(|error| error.downcast_ref());
        assert!(unfinished.into_iter().all(|e| matches!(e, LockError::UnfinishedWork { .. })));
        assert_eq!(failures.len(), 1);
        // The half-changed data stays locked.
        let carol = bench.session("carol");
        let refused_lock = refused(bench.try_lock(carol, &exclusive("a"))).to_string();
        assert!(refused_lock.contains(r#"session "ada" has ended with unfinished work"#));
        if is_panicking {
            assert!(matches!(refused(ada.end()), LockError::LeftUnfinished { count: 1, .. }));
            assert_is_recovered(&bench, carol);
        } else {
            assert_is_recovered(&bench, carol);
            ada.end().unwrap();
        }
    }
}

/// Between the snapshot of the work and the takeover, another operation began under the same lock.
/// The takeover must not roll it back in place of the first operation.
#[test]
fn a_takeover_verifies_the_operation_it_was_decided_for() {
    struct Replaced<'a>(&'a keyloom::Memory, &'a keyloom_locking::Locks, Grant);
    impl Operation for Replaced<'_> {
        fn name(&self) -> &str {
            "undone"
        }

        fn step(&self, _: &mut DynWriter<'_>, _: &Work) -> Result<Step> {
            Ok(Step::Done)
        }

        fn on_takeover(&self) -> OnTakeover {
            let Self(store, locks, grant) = self;
            store.transact(|txn| locks.abandon(txn, *grant)).unwrap();
            store.transact(|txn| locks.begin_work(txn, *grant, "completed", b"")).unwrap();
            OnTakeover::RollBack
        }
    }
    let store: &'static keyloom::Memory = Box::leak(Box::new(keyloom::Memory::new()));
    let bench = Bench::new(store);
    let locks: &'static keyloom_locking::Locks = Box::leak(Box::new(bench.locks.clone()));
    let grant = bench.try_lock(bench.session("ada"), &exclusive("a")).unwrap();
    store.transact(|txn| locks.begin_work(txn, grant, "undone", b"")).unwrap();
    bench.let_leases_end();
    let operations = Operations::default().with(Replaced(store, locks, grant));
    let recovered = locks.recover(store, bench.session("bob"), &operations);
    assert_eq!(recovered.unwrap(), 0);
    let unfinished = locks.unfinished(&store.snapshot().unwrap()).unwrap();
    assert_eq!(unfinished.len(), 1);
    assert_eq!(unfinished[0].1.operation, "completed");
    assert!(!unfinished[0].1.is_rolling_back);
}

on_every_store_and_server! {
    a_rescuer_that_panics_gives_the_work_back,
    a_waiter_whose_rescue_panics_leaves_nothing,
    a_dropped_guard_leaves_its_unfinished_work,
    dead_work_is_completed,
    dead_work_is_undone,
    unfinished_work_keeps_its_lock,
    a_waiting_session_finishes_dead_work,
    work_that_fails_is_given_back,
    own_unfinished_work_excludes_the_session,
    unknown_work_does_not_stop_a_recovery,
}
