//! Waits for the commits of other processes.

use std::time::Instant;

use keyloom::backend::ChangeListener;

use super::child::Holder;
use super::*;

const LONG: Duration = Duration::from_secs(30);

/// Waits for a notification, also beyond the pauses between polls.
fn is_notified(listener: &mut ChangeListener) -> bool {
    let began = Instant::now();
    std::iter::repeat_with(|| listener.wait(LONG))
        .take_while(|_| began.elapsed() < LONG)
        .any(|is| is)
}

/// Lets all notifications of earlier writes arrive.
fn settle(listener: &mut ChangeListener) {
    while listener.wait(Duration::from_millis(300)) {}
}

/// A listener of a store that watches its file, and has nothing left to notify of.
fn watching(store: &Lmdb) -> ChangeListener {
    let mut listener = store.listen(b"any");
    let began = Instant::now();
    // Until the store watches, there are short polls.
    while listener.pause() < Duration::from_millis(500) {
        assert!(began.elapsed() < LONG, "the store does not watch");
        std::thread::sleep(Duration::from_millis(1));
    }
    settle(&mut listener);
    listener
}

#[test]
fn commits_of_another_process_end_waits() {
    const COMMITS: usize = 20;
    let directory = tempdir().unwrap();
    let store = quick().begin_patience(LONG).open(directory.path()).unwrap();
    let mut listener = watching(&store);
    let writer = Holder::of(Child::WriteOn, directory.path());
    for _ in 0..COMMITS {
        assert!(is_notified(&mut listener));
    }
    writer.kill();
    // The control: without commits there are no notifications.
    settle(&mut listener);
    assert!(!listener.wait(Duration::from_millis(500)));
}

/// A listener of one key is woken by commits of other keys only now and then.
#[test]
fn own_commits_wake_the_listeners_of_their_keys() {
    const COMMITS: u32 = 500;
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let mut listener = watching(&store);
    let mut woken = 0;
    let began = Instant::now();
    for n in 0..COMMITS {
        store.transact(|txn| txn.put(&n.to_be_bytes(), b"")).unwrap();
        woken += u128::from(listener.wait(Duration::ZERO));
    }
    let most = 2 + began.elapsed().as_millis() / 10;
    assert!(woken <= most, "{woken} of {COMMITS} commits, {most} expected");
    store.transact(|txn| txn.put(b"any", b"")).unwrap();
    assert!(listener.wait(Duration::ZERO));
}
