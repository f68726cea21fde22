//! Elections: one leader, which all sessions can observe.

use std::sync::atomic::{AtomicU64, Ordering};

use keyloom::{Reader, Store, Writer};
use keyloom_locking::LockError;
use keyloom_locking::recipes::Leader;
use keyloom_testing::on_every_store_and_server;

use super::super::support::{path, refused};
use super::{Kitchen, LONG, NOW, SOON};

fn a_leader_is_known_until_it_resigns<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let election = kitchen.recipes.election(&path("mailer")).unwrap();
    let leader = || election.leader(&store.snapshot().unwrap()).unwrap();
    assert_eq!(leader(), None);
    assert_eq!(election.observe(store, None, NOW).unwrap(), None);
    let (ada, bob) = (kitchen.session("ada"), kitchen.session("bob"));
    let office = election.campaign(&ada, b"host a", LONG).unwrap();
    let first = leader().unwrap();
    assert_eq!((first.session, &first.value[..]), (ada.id(), &b"host a"[..]));
    assert_eq!(first.token, office.token());
    assert_eq!(election.observe(store, None, LONG).unwrap().as_ref(), Some(&first));
    assert_eq!(election.observe(store, Some(&first), SOON).unwrap(), None);
    office.proclaim(b"host b").unwrap();
    let moved = election.observe(store, Some(&first), LONG).unwrap().unwrap();
    assert_eq!((moved.token, &moved.value[..]), (first.token, &b"host b"[..]));
    assert!(matches!(refused(election.campaign(&bob, b"", SOON)), LockError::TimedOut { .. }));
    assert_eq!(leader().as_ref(), Some(&moved));
    std::thread::scope(|scope| {
        let next = scope.spawn(|| election.observe(store, Some(&moved), LONG).unwrap().unwrap());
        let campaign = scope.spawn(|| election.campaign(&bob, b"bob", LONG).unwrap().resign());
        std::thread::sleep(SOON);
        office.resign().unwrap();
        campaign.join().unwrap().unwrap();
        // The leadership may have ended before the observer reads it; then a later leader is
        // observed.
        let again = election.campaign(&ada, b"again", LONG).unwrap();
        let seen = next.join().unwrap();
        assert!(seen.token > moved.token && again.token() >= seen.token);
        drop(again);
    });
    assert_eq!(leader(), None);
}

/// A leader that is paused for longer than its lease changes nothing.
fn a_dead_leader_is_none_and_commits_nothing<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let election = kitchen.recipes.election(&path("mailer")).unwrap();
    let leader = || election.leader(&store.snapshot().unwrap()).unwrap();
    let (ada, bob) = (kitchen.session("ada"), kitchen.session("bob"));
    let late = election.campaign(&ada, b"ada", NOW).unwrap();
    late.transact(|txn| txn.put(b"mail", b"first")).unwrap();
    kitchen.let_leases_end(&[&bob]);
    assert_eq!(leader(), None);
    let office = election.campaign(&bob, b"bob", NOW).unwrap();
    assert!(office.token() > late.token());
    let stale = late.transact(|txn| txn.put(b"mail", b"stale"));
    assert!(matches!(refused(stale), LockError::Lost { .. }));
    assert!(matches!(refused(late.proclaim(b"still me")), LockError::Lost { .. }));
    assert!(matches!(refused(late.resign()), LockError::Lost { .. }));
    assert_eq!(leader().unwrap().value, b"bob");
    assert_eq!(store.snapshot().unwrap().get(b"mail").unwrap().as_deref(), Some(&b"first"[..]));
    // The leader's session ends without a resignation.
    drop(office);
    assert_eq!(leader(), None);
}

/// Threads that campaign: one leads at a time, and the observer sees increasing tokens.
fn threads_lead_one_at_a_time<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let election = kitchen.recipes.election(&path("mailer")).unwrap();
    let (leading, overlaps, terms) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let mut seen: Option<Leader> = None;
            while terms.load(Ordering::SeqCst) < 20 {
                let Some(leader) = election.observe(store, seen.as_ref(), SOON).unwrap() else {
                    continue;
                };
                assert!(seen.is_none_or(|seen| leader.token > seen.token));
                seen = Some(leader);
            }
        });
        for thread in 0..4_u8 {
            let (kitchen, election) = (&kitchen, &election);
            let (leading, overlaps, terms) = (&leading, &overlaps, &terms);
            scope.spawn(move || {
                let session = kitchen.session(&thread.to_string());
                for _ in 0..5 {
                    let office = election.campaign(&session, &[thread], LONG).unwrap();
                    overlaps.fetch_add(leading.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                    std::thread::yield_now();
                    leading.fetch_sub(1, Ordering::SeqCst);
                    terms.fetch_add(1, Ordering::SeqCst);
                    office.resign().unwrap();
                }
            });
        }
        observer.join().unwrap();
    });
    assert_eq!((overlaps.into_inner(), terms.into_inner()), (0, 20));
}

on_every_store_and_server! {
    a_leader_is_known_until_it_resigns,
    a_dead_leader_is_none_and_commits_nothing,
    threads_lead_one_at_a_time,
}
