//! Semaphores, compared with a list, and used by threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyloom::{Metered, Store, Writer};
use keyloom_locking::recipes::{Permit, Recipes, Semaphore};
use keyloom_locking::{LockError, LockPath, Locks, Session};
use keyloom_tables::Schema;
use keyloom_testing::laws::{counts, dump_all};
use keyloom_testing::on_every_store_and_server;

use super::super::support::{path, refused};
use super::{Kitchen, LONG, NOW, SOON, until};

/// Random requests and releases; the model is the list of holders.
fn permits_are_given_as_in_the_model<S: Store + Clone>(store: &S) {
    for seed in 0..20 {
        keyloom_testing::laws::clear(store);
        let kitchen = Kitchen::new(store);
        let mut random = fastrand::Rng::with_seed(seed);
        let permits = random.u32(1..4);
        let semaphore = kitchen.recipes.semaphore(&path("downloads"), permits).unwrap();
        let sessions: Vec<_> = (0..3).map(|n| kitchen.session(&n.to_string())).collect();
        let mut held: Vec<Permit<'_, S>> = Vec::new();
        let mut last = 0;
        for _ in 0..30 {
            let session = &sessions[random.usize(0..3)];
            let got = match random.u8(0..4) {
                0 => semaphore.try_acquire(session),
                1 => semaphore.acquire_within(session, NOW),
                _ if held.is_empty() => continue,
                _ => {
                    held.swap_remove(random.usize(0..held.len())).release().unwrap();
                    continue;
                }
            };
            assert_eq!(got.is_ok(), held.len() < permits as usize, "{held:?}");
            match got {
                Ok(permit) => {
                    assert!(permit.ticket() > last);
                    last = permit.ticket();
                    held.push(permit);
                }
                Err(error) => assert_eq!(blockers(&error), held.len(), "{error}"),
            }
        }
        drop(held);
        assert!(semaphore.sessions(&store.snapshot().unwrap()).unwrap().is_empty());
        assert!(sessions.iter().all(|session| session.take_failures().is_empty()));
    }
}

fn blockers(error: &keyloom::Error) -> usize {
    match error.downcast_ref::<LockError>() {
        Some(LockError::Blocked { blockers, .. } | LockError::TimedOut { blockers, .. }) => {
            blockers.len()
        }
        _ => panic!("{error}"),
    }
}

/// The sessions that wait, and their number.
fn waiting(semaphore: &Semaphore, store: &impl Store) -> usize {
    let sessions = semaphore.sessions(&store.snapshot().unwrap()).unwrap();
    sessions.iter().filter(|session| session.is_waiting).count()
}

fn permits_are_given_in_the_order_of_requests<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let semaphore = kitchen.recipes.semaphore(&path("downloads"), 2).unwrap();
    let holder = kitchen.session("holder");
    let held = [semaphore.acquire(&holder).unwrap(), semaphore.acquire(&holder).unwrap()];
    let order = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (kitchen, semaphore, order) = (&kitchen, &semaphore, &order);
            scope.spawn(move || {
                let session = kitchen.session(&format!("waiter {n}"));
                let permit = semaphore.acquire_within(&session, LONG).unwrap();
                order.lock().unwrap().push(n);
                permit.release().unwrap();
            });
            until(|| waiting(semaphore, store) == n + 1);
        }
        // One permit at a time passes to the next waiter.
        let [first, second] = held;
        assert!(semaphore.try_acquire(&holder).is_err());
        first.release().unwrap();
        until(|| order.lock().unwrap().len() == 4);
        second.release().unwrap();
    });
    assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3]);
}

fn permits_of_dead_sessions_are_freed<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let semaphore = kitchen.recipes.semaphore(&path("downloads"), 1).unwrap();
    let (ada, bob, carol) =
        (kitchen.session("ada"), kitchen.session("bob"), kitchen.session("carol"));
    let late = semaphore.acquire(&ada).unwrap();
    std::thread::scope(|scope| {
        // Bob waits, and his lease ends, too.
        let bob = scope.spawn(|| semaphore.acquire_within(&bob, LONG).map(drop));
        until(|| waiting(&semaphore, store) == 1);
        assert!(semaphore.try_acquire(&carol).is_err());
        kitchen.let_leases_end(&[&carol]);
        let permit = semaphore.try_acquire(&carol).unwrap();
        assert!(permit.ticket() > late.ticket());
        assert!(matches!(refused(bob.join().unwrap()), LockError::NoRequest { .. }));
        // Ada is not dead but slow.
        let stale = store.transact(|txn| {
            txn.put(b"download", b"stale")?;
            late.verify(txn)
        });
        let text = refused(stale).to_string();
        assert!(text.contains(r#"a permit of /"downloads""#) && text.contains("is lost"), "{text}");
        store.transact(|txn| permit.verify(txn)).unwrap();
        assert!(matches!(refused(late.release()), LockError::Lost { .. }));
    });
    // The clean-up frees the permits without another request.
    let _held = semaphore.acquire(&carol).unwrap();
    kitchen.let_leases_end(&[]);
    assert_eq!(kitchen.recipes.sweep(store).unwrap().removed, 1);
    assert_eq!(kitchen.recipes.sweep(store).unwrap().removed, 0);
    assert_eq!(semaphore.sessions(&store.snapshot().unwrap()).unwrap(), []);
}

/// The maximum number of sessions that were inside at once, with this number of permits.
fn most_inside<S: Store + Clone>(store: &S, permits: u32) -> usize {
    let schema = Schema::open(store, "shop").unwrap();
    let locks = Locks::open(&schema, "locks").unwrap();
    let recipes = Recipes::open(&schema, &locks, "recipes").unwrap();
    let semaphore = recipes.semaphore(&LockPath::of(["downloads"]), permits).unwrap();
    let [inside, most] = [(); 2].map(|()| AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..5 {
            let (locks, semaphore, inside, most) = (&locks, &semaphore, &inside, &most);
            scope.spawn(move || {
                let session = Session::begin(store, locks, &thread.to_string()).unwrap();
                for _ in 0..10 {
                    let permit = semaphore.acquire_within(&session, LONG).unwrap();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    permit.release().unwrap();
                }
                session.end().unwrap();
            });
        }
    });
    assert_eq!(semaphore.sessions(&store.snapshot().unwrap()).unwrap(), []);
    most.into_inner()
}

fn threads_never_exceed_the_permits<S: Store + Clone>(store: &S) {
    assert_eq!(most_inside(store, 1), 1);
    assert!(most_inside(store, 2) <= 2);
}

on_every_store_and_server! {
    permits_are_given_as_in_the_model,
    permits_are_given_in_the_order_of_requests,
    permits_of_dead_sessions_are_freed,
    threads_never_exceed_the_permits,
}

/// The negative control: with one more permit, the same count finds two sessions inside.
#[test]
fn one_permit_more_is_found() {
    assert!((0..100).any(|_| most_inside(&keyloom::Memory::new(), 2) == 2));
}

#[test]
fn a_timeout_names_the_holders_and_withdraws() {
    let store = keyloom::Memory::new();
    let kitchen = Kitchen::new(&store);
    let semaphore = kitchen.recipes.semaphore(&path("downloads"), 1).unwrap();
    let (ada, bob) = (kitchen.session("ada"), kitchen.session("bob"));
    let permit = semaphore.acquire(&ada).unwrap();
    let text = refused(semaphore.acquire_within(&bob, SOON)).to_string();
    assert!(text.starts_with(r#"a permit of /"downloads" was not granted within"#), "{text}");
    assert!(text.contains(r#"session "ada" holds a permit of /"downloads""#), "{text}");
    assert_eq!(waiting(&semaphore, &store), 0);
    // The end of the session frees the permit.
    std::mem::forget(permit);
    ada.end().unwrap();
    drop(semaphore.try_acquire(&bob).unwrap());
}

#[test]
fn bad_semaphores_are_refused() {
    let store = keyloom::Memory::new();
    let kitchen = Kitchen::new(&store);
    let recipes = &kitchen.recipes;
    let none = recipes.semaphore(&path("a"), 0).unwrap_err().to_string();
    assert!(none.contains("at least 1"), "{none}");
    let null = path("a").child(None::<u8>);
    assert!(matches!(refused(recipes.semaphore(&null, 1)), LockError::BadLock { .. }));
    assert!(matches!(refused(recipes.election(&null)), LockError::BadLock { .. }));
    let (ada, bob) = (kitchen.session("ada"), kitchen.session("bob"));
    let held = recipes.semaphore(&path("a"), 2).unwrap().acquire(&ada).unwrap();
    let before = dump_all(&store);
    let other = recipes.semaphore(&path("a"), 3).unwrap().try_acquire(&bob).unwrap_err();
    assert!(other.to_string().contains("3, beside 2 of session ada"), "{other}");
    let long = recipes.semaphore(&path(&"x".repeat(600)), 3).unwrap();
    assert!(long.try_acquire(&bob).unwrap_err().to_string().contains("511"));
    assert_eq!(dump_all(&store), before);
    held.release().unwrap();
    kitchen.let_leases_end(&[&ada]);
    let ended = recipes.semaphore(&path("a"), 3).unwrap().try_acquire(&bob);
    assert!(matches!(refused(ended), LockError::SessionEnded { .. }));
}

/// Requests for other resources do not affect the cost.
#[test]
fn a_permit_costs_what_the_docs_say() {
    let store = Metered::new(keyloom::Memory::new());
    let kitchen = Kitchen::new(&store);
    let ada = kitchen.session("ada");
    let semaphore = kitchen.recipes.semaphore(&path("a"), 1_000).unwrap();
    // The first request reads the states of the tables.
    semaphore.try_acquire(&ada).unwrap().release().unwrap();
    let cost = |store: &Metered<keyloom::Memory>| {
        let (permit, acquired) = store.measure(|_| semaphore.try_acquire(&ada).unwrap());
        let (_, verified) = store.measure(|store| {
            let txn = &mut store.begin().unwrap();
            permit.verify(txn).unwrap();
        });
        let (_, released) = store.measure(|_| permit.release().unwrap());
        assert_eq!((acquired.commits, released.commits), (1, 1));
        [acquired, verified, released].map(counts)
    };
    let alone = cost(&store);
    // Gets, ranges, keys read, keys written.
    assert_eq!(alone, [[5, 1, 4, 2], [1, 0, 1, 0], [4, 0, 4, 2]]);
    let bob = kitchen.session("bob");
    let other = kitchen.recipes.semaphore(&path("b"), 1_000).unwrap();
    let _others: Vec<_> = (0..50).map(|_| other.try_acquire(&bob).unwrap()).collect();
    assert_eq!(cost(&store), alone);
    let _same: Vec<_> = (0..50).map(|_| semaphore.try_acquire(&bob).unwrap()).collect();
    // One more get for the session of the other holders, and the 50 members.
    assert_eq!(cost(&store), [[6, 1, 55, 2], alone[1], alone[2]]);
}
