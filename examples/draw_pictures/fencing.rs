//! A lock whose holder is paused for longer than its lease, as a timeline of real events in a
//! store.

use std::fmt::Write as _;
use std::time::Duration;

use keyloom::{Memory, Reader, Store, Writer};
use keyloom_patterns::Schema;
use keyloom_patterns::locking::{
    Clock, Grant, LeaseOptions, Lock, LockError, LockPath, Locks, ManualClock,
};

use crate::Drawn;
use crate::card::Card;

const WIDTH: u32 = 760;
const HEIGHT: u32 = 300;
/// The position of a second, and the width of one.
const ORIGIN: u32 = 90;
const SECOND: u32 = 34;
/// The heights of the lines of Ada, of the store and of Bob.
const LINES: [u32; 3] = [80, 160, 240];
const LEASE: LeaseOptions =
    LeaseOptions { lease: Duration::from_secs(5), grace: Duration::from_secs(1) };
/// When Ada's process is paused, and when it continues, in seconds.
const PAUSE: (u64, u64) = (2, 14);
/// When Bob requests the lock, and when he writes.
const BOB: (u64, u64) = (4, 10);

/// Recorded events, in seconds after the beginning.
struct Story {
    ada: Grant,
    bob: Grant,
    /// When Bob's request was granted.
    granted: u64,
    /// Why Ada's write was refused.
    refusal: String,
    file: String,
}

fn story() -> Drawn<Story> {
    let store = Memory::new();
    let clock = ManualClock::at(0);
    let locks = Locks::open(&Schema::open(&store, "files")?, "locks")?.with_clock(clock.clone());
    let session = |name: &str| store.transact(|txn| locks.begin_session(txn, name, &LEASE));
    let file = [Lock::exclusive(LockPath::of(["file"]))];
    let write = |grant, text: &str| {
        store.transact(|txn| {
            locks.verify(txn, grant)?;
            txn.put(b"file", text.as_bytes())
        })
    };
    let first = session("ada")?;
    let ada = store.transact(|txn| locks.try_lock(txn, first, &file))?;
    clock.advance(Duration::from_secs(BOB.0));
    let second = session("bob")?;
    let bob = loop {
        match store.transact(|txn| locks.try_lock(txn, second, &file)) {
            Ok(grant) => break grant,
            Err(error) if error.downcast_ref::<LockError>().is_some() => {
                clock.advance(Duration::from_secs(1));
                store.transact(|txn| locks.renew(txn, second, LEASE.lease))?;
            }
            Err(error) => return Err(error.into()),
        }
    };
    let granted = clock.now()? / 1_000;
    write(bob, "Bob's")?;
    let refusal = write(ada, "Ada's").err().ok_or("the stale write was made")?;
    let refusal = match refusal.downcast_ref() {
        Some(LockError::Lost { token, .. }) => format!("the lock with the token {token} is lost"),
        _ => return Err(refusal.into()),
    };
    let snapshot = store.snapshot()?;
    let file = String::from_utf8(snapshot.get(b"file")?.unwrap_or_default().to_vec())?;
    Ok(Story { ada, bob, granted, refusal, file })
}

pub fn picture() -> Drawn<String> {
    let story = story()?;
    let [ada, middle, bob] = LINES;
    let mut card = Card::new(
        WIDTH,
        HEIGHT,
        "A fenced write",
        "Ada locks a file and is paused. Her lease ends, Bob gets the lock and writes. Ada wakes \
         up, and the store refuses her write, because her lock is lost.",
    );
    for (y, name) in [(ada, "Ada"), (middle, "store"), (bob, "Bob")] {
        card.text(10, y + 5, name);
        card.path("grid", format!("M{ORIGIN} {y}H{}", at(18)));
    }
    let (pause, wakes) = PAUSE;
    card.path("curve", format!("M{} {ada}H{}", at(0), at(pause)));
    card.path("leap", format!("M{} {ada}H{}", at(pause), at(wakes)));
    card.path("curve", format!("M{} {ada}H{}", at(wakes), at(wakes + 1)));
    card.text(at(pause) + 6, ada - 10, "paused: no renewals");
    let (asks, writes) = BOB;
    card.path("leap", format!("M{} {bob}H{}", at(asks), at(story.granted)));
    card.path("curve", format!("M{} {bob}H{}", at(story.granted), at(writes + 1)));
    card.text(at(asks), bob + 24, "Bob waits");
    held(&mut card, 0, story.granted, &format!("held by Ada, token {}", story.ada.token));
    held(&mut card, story.granted, 18, &format!("held by Bob, token {}", story.bob.token));
    arrow(&mut card, "area", 0, ada, middle - 13);
    card.text(at(0) + 6, ada - 10, "lock");
    arrow(&mut card, "area", story.granted, bob, middle + 13);
    card.text(at(story.granted) + 6, bob + 24, "granted");
    arrow(&mut card, "found", writes, bob, middle + 13);
    card.text(at(writes) + 6, bob + 24, &format!("writes, file = {:?}", story.file));
    arrow(&mut card, "vain", wakes, ada, middle - 13);
    card.text(at(wakes) - 60, ada - 10, "wakes up and writes");
    card.text(at(wakes) - 275, ada + 34, &format!("refused: {}", story.refusal));
    card.text(at(story.granted) - 185, middle + 34, "5 s of lease and 1 s of grace");
    for second in (0..=18).step_by(2) {
        card.text(at(second) - 4, HEIGHT - 6, &second.to_string());
    }
    card.text(10, HEIGHT - 6, "seconds");
    Ok(card.finish())
}

fn at(second: u64) -> u32 {
    ORIGIN + SECOND * u32::try_from(second).unwrap_or(u32::MAX / SECOND - ORIGIN)
}

/// A bar on the line of the store.
fn held(card: &mut Card, from: u64, to: u64, text: &str) {
    let (y, width) = (LINES[1] - 11, at(to) - at(from) - 2);
    card.path("inside edges", format!("M{} {y}h{width}v22h-{width}z", at(from)));
    card.text(at(from) + 8, LINES[1] + 5, text);
}

fn arrow(card: &mut Card, class: &str, second: u64, from: u32, to: u32) {
    let (x, back) = (at(second), if from < to { -6_i64 } else { 6 });
    let mut data = format!("M{x} {from}V{to}");
    let _infallible = write!(data, "m-4 {back}l4 {}l4 {back}", -back);
    card.path(class, data);
}
