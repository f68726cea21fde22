//! Waits for the commits of other processes.

use std::time::Instant;

use keyloom::backend::ChangeListener;

use super::child::Holder;
use super::*;

const LONG: Duration = Duration::from_secs(30);

/// The number of the next `most` waits that end with a notification.
fn notified(listener: &mut ChangeListener, most: usize, each: Duration) -> usize {
    (0..most).filter(|_| listener.wait(each)).count()
}

#[test]
fn commits_of_another_process_end_waits() {
    const COMMITS: usize = 20;
    let directory = tempdir().unwrap();
    let store = quick().begin_patience(LONG).open(directory.path()).unwrap();
    let mut listener = store.listen(b"any");
    // The first wait ends at once, and another one when the store begins to watch the file.
    let began = Instant::now();
    let mut beginning = 0;
    while beginning < 2 && began.elapsed() < LONG {
        beginning += notified(&mut listener, 1, LONG);
    }
    let short = Duration::from_millis(1);
    assert_eq!(notified(&mut listener, 300, short), 0, "there is no commit");
    let writer = Holder::of(Child::WriteOn, directory.path());
    // The pauses between two polls have grown to a second.
    assert!(listener.pause() >= Duration::from_millis(500));
    assert_eq!(notified(&mut listener, COMMITS, LONG), COMMITS);
    writer.kill();
    // The control: a listener that polls is not notified.
    let mut polls = ChangeListener::of_polls(short);
    assert_eq!(notified(&mut polls, COMMITS, LONG), 0);
}

#[test]
fn waits_find_the_value_of_another_process() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    std::thread::scope(|scope| {
        let wait = || store.wait_for_change(&0_u32.to_be_bytes(), None, LONG).unwrap();
        let found = scope.spawn(wait);
        std::thread::sleep(Duration::from_millis(20));
        run_child(Child::Grow, directory.path());
        assert!(found.join().unwrap(), "{} entries", count(&store));
    });
}
