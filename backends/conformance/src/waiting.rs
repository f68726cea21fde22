//! A wait for a change ends with the change.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::compare::{ensure, same};
use super::serializable::{insist, on_threads};
use super::{Finding, Outcome};
use keyloom::{AtomicOp, Error, KeyRange, Reader, Store, Writer};

const SHORT: Duration = Duration::from_millis(20);
/// A long time-out, reached only if a store misses a change.
const LONG: Duration = Duration::from_secs(10);

pub(super) fn a_wait_ends_at_once_if_the_value_differs<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| txn.put(b"door", b"open"))?;
    for seen in [None, Some(&b"shut"[..]), Some(b""), Some(b"open\0")] {
        same("a value that differs", &store.wait_for_change(b"door", seen, LONG)?, &true)?;
    }
    same("an absent key", &store.wait_for_change(b"window", Some(b""), LONG)?, &true)?;
    let error = store.wait_for_change(&[7; 512], None, SHORT);
    ensure(matches!(error, Err(Error::KeyTooLong { .. })), "a key of 512 bytes is not an error")?;
    let error = store.wait_for_change(b"", None, SHORT);
    ensure(matches!(error, Err(Error::EmptyKey)), "an empty key is not an error")
}

pub(super) fn a_wait_without_a_change_ends_with_its_time<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| txn.put(b"door", b"open"))?;
    let is_changed = store.wait_for_change(b"door", Some(b"open"), SHORT)?;
    same("the value that was seen", &is_changed, &false)?;
    same("an absent key", &store.wait_for_change(b"window", None, SHORT)?, &false)
}

/// Waits for a change that another thread makes.
fn wait<S: Store>(store: &S, key: &[u8], seen: Option<&[u8]>) -> Outcome {
    let began = Instant::now();
    same("the change", &store.wait_for_change(key, seen, LONG)?, &true)?;
    // At the time-out, a wait reads the key and so finds a change even without a notification.
    ensure(began.elapsed() < LONG / 2, "a wait slept through the change of its key")
}

/// Waits for a change of a key on one thread, and calls `write` on another thread.
fn beside_a_wait<S: Store>(
    store: &S,
    key: &[u8],
    seen: Option<&[u8]>,
    write: impl Fn() -> Outcome + Sync,
) -> Outcome {
    let both = Barrier::new(2);
    on_threads(2, |thread| {
        both.wait();
        match thread {
            0 => wait(store, key, seen),
            _ => {
                // By then, the other thread is most likely waiting.
                std::thread::sleep(Duration::from_millis(10));
                write()
            }
        }
    })
}

pub(super) fn a_wait_ends_with_each_kind_of_write<S: Store>(store: &S) -> Outcome {
    let many: Vec<_> = (b' '..b'~').map(|last| [b'm', last]).collect();
    let many: Vec<(&[u8], &[u8])> = many.iter().map(|key| (&key[..], &b""[..])).collect();
    type Write<'w, S> =
        &'w (dyn Fn(&mut <S as Store>::Transaction<'_>) -> keyloom::Result<()> + Sync);
    let writes: [(&str, Write<'_, S>); 7] = [
        ("put", &|txn| txn.put(b"door", b"open")),
        ("delete", &|txn| txn.delete(b"door")),
        ("put_sorted", &|txn| txn.put_sorted(&[(b"a", b""), (b"door", b"shut"), (b"e", b"")])),
        ("delete_range", &|txn| txn.delete_range(KeyRange::half_open(b"do", b"dp"))),
        ("apply", &|txn| txn.apply(b"door", AtomicOp::Max(7))),
        ("a put after many others", &|txn| {
            txn.put_sorted(&many)?;
            txn.put(b"door", b"wide")
        }),
        ("a delete before many others", &|txn| {
            txn.delete(b"door")?;
            txn.put_sorted(&many)
        }),
    ];
    for (name, write) in writes {
        let before = store.snapshot()?.get(b"door")?.map(|value| value.to_vec());
        let written =
            beside_a_wait(store, b"door", before.as_deref(), || insist(|| store.transact(write)));
        written.map_err(|Finding(what)| Finding(format!("{name}: {what}")))?;
    }
    Ok(())
}

pub(super) fn a_listener_is_notified_of_commits<S: Store>(store: &S) -> Outcome {
    let both = Barrier::new(2);
    on_threads(2, |thread| {
        both.wait();
        if thread == 1 {
            std::thread::sleep(Duration::from_millis(10));
            return insist(|| store.transact(|txn| txn.put(b"bell", b"rings")));
        }
        let began = Instant::now();
        let mut listener = store.listen(b"bell");
        while store.snapshot()?.get(b"bell")?.is_none() && began.elapsed() < LONG {
            listener.wait(LONG);
        }
        ensure(began.elapsed() < LONG / 2, "a listener was not notified of a commit")
    })
}

pub(super) fn a_wake_writes_no_key<S: Store>(store: &S) -> Outcome {
    insist(|| {
        store.transact(|txn| {
            txn.wake(b"bell");
            txn.put(b"door", b"open")
        })
    })?;
    insist(|| {
        store.transact(|txn| {
            txn.wake(b"bell");
            Ok(())
        })
    })?;
    let snapshot = store.snapshot()?;
    same("the woken key", &snapshot.get(b"bell")?.is_some(), &false)?;
    same("the number of keys", &snapshot.count(KeyRange::all())?, &1)
}

pub(super) fn a_wait_ends_with_the_commit_of_another_thread<S: Store>(store: &S) -> Outcome {
    type Change = (&'static [u8], Option<&'static [u8]>);
    const CHANGES: [Change; 4] =
        [(b"a", Some(b"1")), (b"a", Some(b"2")), (b"b", Some(b"")), (b"a", None)];
    let mut seen: [Option<&[u8]>; 2] = [None, None];
    for (key, value) in CHANGES {
        let before = if key == b"a" { &mut seen[0] } else { &mut seen[1] };
        beside_a_wait(store, key, *before, || {
            // A change of another key does not end the wait.
            insist(|| store.transact(|txn| txn.add(b"other", 1)))?;
            insist(|| {
                store.transact(|txn| match value {
                    Some(value) => txn.put(key, value),
                    None => txn.delete(key),
                })
            })
        })?;
        *before = value;
    }
    Ok(())
}
