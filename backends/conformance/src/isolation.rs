//! A transaction does not see uncommitted writes of other transactions.

use std::thread;

use super::compare::{Model, agree, plant};
use super::{Finding, Outcome};
use keyloom::{KeyRange, Result, Store, Transaction, Writer};

const KEYS: [&[u8]; 6] = [b"a", b"aa", b"b", b"c", b"d", b"e"];

type Write<W> = (&'static str, fn(&mut W) -> Result<()>);

/// One write of each kind.
fn writes<W: Writer>() -> [Write<W>; 8] {
    [
        ("a put of a new key", |txn| txn.put(b"ab", b"new")),
        ("a put of another value", |txn| txn.put(b"b", b"changed")),
        ("a delete", |txn| txn.delete(b"a")),
        ("a range delete", |txn| txn.delete_range(KeyRange::half_open(b"c", b"e"))),
        ("an add", |txn| txn.add(b"n", 1)),
        ("a min", |txn| txn.min(b"m", 1)),
        ("a max", |txn| txn.max(b"m", 9)),
        ("a delete of everything", |txn| txn.delete_range(KeyRange::all())),
    ]
}

pub(super) fn a_snapshot_does_not_see_uncommitted_writes<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &KEYS)?;
    let before = store.snapshot()?;
    let mut txn = store.begin()?;
    for (what, write) in writes() {
        write(&mut txn)?;
        agree(&format!("a snapshot taken after {what}, uncommitted"), &store.snapshot()?, &model)?;
        agree(&format!("a snapshot taken before {what}, uncommitted"), &before, &model)?;
    }
    txn.commit()?;
    agree("after the commit", &store.snapshot()?, &Model::new())
}

pub(super) fn another_thread_does_not_see_uncommitted_writes<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &KEYS)?;
    let mut txn = store.begin()?;
    for (what, write) in writes() {
        write(&mut txn)?;
        let what = format!("on another thread, after {what}, uncommitted");
        let look = || agree(&what, &store.snapshot()?, &model);
        thread::scope(|scope| scope.spawn(look).join())
            .unwrap_or_else(|_| Err(Finding("a thread that only reads panicked".into())))?;
    }
    Ok(())
}
