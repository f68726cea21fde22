//! Barriers: waited for by programs without a session.

use keyloom::{Metered, Store};
use keyloom_locking::LockError;
use keyloom_testing::laws::dump_all;
use keyloom_testing::on_every_store_and_server;

use super::super::support::{path, refused};
use super::{Kitchen, LONG, NOW, SOON};

fn a_held_barrier_stops_all_until_its_release<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let barrier = kitchen.recipes.barrier(&path("moving")).unwrap();
    barrier.wait(store, NOW).unwrap();
    let (ada, bob) = (kitchen.session("ada"), kitchen.session("bob"));
    let held = barrier.hold(&ada).unwrap();
    assert!(matches!(refused(barrier.hold(&bob)), LockError::Blocked { .. }));
    let text = refused(barrier.wait(store, SOON)).to_string();
    assert!(text.starts_with(r#"the way through the barrier /"moving" was not granted"#), "{text}");
    assert!(text.contains(r#"session "ada" holds X on /"moving""#), "{text}");
    let holder = barrier.holder(&store.snapshot().unwrap()).unwrap();
    assert_eq!(holder.unwrap().name, "ada");
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| barrier.wait(store, LONG))).collect();
        std::thread::sleep(SOON);
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        held.release().unwrap();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap().unwrap());
    });
    assert_eq!(barrier.holder(&store.snapshot().unwrap()).unwrap(), None);
}

fn a_barrier_ends_with_its_session<S: Store + Clone>(store: &S) {
    let kitchen = Kitchen::new(store);
    let barrier = kitchen.recipes.barrier(&path("moving")).unwrap();
    let (ada, bob) = (kitchen.session("ada"), kitchen.session("bob"));
    let late = barrier.hold(&ada).unwrap();
    assert!(barrier.wait(store, NOW).is_err());
    kitchen.let_leases_end(&[&bob]);
    let before = dump_all(store);
    barrier.wait(store, NOW).unwrap();
    assert_eq!(dump_all(store), before, "waiting writes nothing");
    let _held = barrier.hold(&bob).unwrap();
    assert!(matches!(refused(late.release()), LockError::Lost { .. }));
    assert!(barrier.wait(store, NOW).is_err());
}

on_every_store_and_server! {
    a_held_barrier_stops_all_until_its_release,
    a_barrier_ends_with_its_session,
}

#[test]
fn waiting_for_a_barrier_commits_nothing() {
    let store = Metered::new(keyloom::Memory::new());
    let kitchen = Kitchen::new(&store);
    let barrier = kitchen.recipes.barrier(&path("moving")).unwrap();
    let (_, cost) = store.measure(|store| barrier.wait(store, NOW).unwrap());
    assert_eq!((cost.commits, cost.keys_written), (0, 0));
}
