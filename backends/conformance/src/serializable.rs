//! Committed transactions have a serial order.
//!
//! A store may run transactions concurrently and refuse one of them at commit, or make each
//! transaction wait for the previous one. So two threads read, *meet*, and then write. On the first
//! kind of store, both threads read before either writes, unless a thread is later than the
//! time-out. On the second kind, the meeting times out after 15 milliseconds.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Outcome;
use super::compare::{MANY, found, many_keys, plant, same};
use keyloom::{Error, KeyRange, Order, Reader, Result, Store, Writer};

/// A barrier with a short time-out.
pub(super) struct Meeting {
    arrived: Mutex<usize>,
    changed: Condvar,
    expected: usize,
}

impl Meeting {
    const PATIENCE: Duration = Duration::from_millis(15);

    pub(super) fn new(expected: usize) -> Self {
        Self { arrived: Mutex::new(0), changed: Condvar::new(), expected }
    }

    /// Returns when all expected threads have arrived, or after the time-out.
    pub(super) fn wait(&self) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        *arrived += 1;
        self.changed.notify_all();
        let missing = |arrived: &mut usize| *arrived < self.expected;
        drop(self.changed.wait_timeout_while(arrived, Self::PATIENCE, missing));
    }
}

/// Runs a transaction until it commits, or gives up after many conflicts.
pub(super) fn insist<T>(mut transact: impl FnMut() -> Result<T>) -> Outcome<T> {
    const MOST_TRIES: usize = 50;
    for _ in 0..MOST_TRIES {
        match transact() {
            Err(Error::RetriesExhausted { .. }) => {}
            Err(error) if error.is_retryable() => {}
            answer => return Ok(answer?),
        }
    }
    found("a transaction did not get through")
}

/// Runs `work` on `threads` threads, each with its number.
pub(super) fn on_threads(threads: u8, work: impl Fn(u8) -> Outcome + Sync) -> Outcome {
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        let panicked = |_| found("a thread panicked");
        running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(panicked))
    })
}

fn increment<W: Writer>(txn: &mut W, between: impl Fn()) -> Result<()> {
    let seen = txn.counter(b"n")?;
    between();
    txn.put(b"n", &(seen + 1).to_le_bytes())
}

pub(super) fn two_writers_that_read_the_same_counter_lose_no_update<S: Store>(
    store: &S,
) -> Outcome {
    const ROUNDS: i64 = 4;
    for _ in 0..ROUNDS {
        let meeting = Meeting::new(2);
        on_threads(2, |_| insist(|| store.transact(|txn| increment(txn, || meeting.wait()))))?;
    }
    same("increments of two threads", &store.snapshot()?.counter(b"n")?, &(2 * ROUNDS))
}

pub(super) fn many_writers_lose_no_update<S: Store>(store: &S) -> Outcome {
    const ROUNDS: i64 = 25;
    on_threads(4, |_| {
        (0..ROUNDS)
            .try_for_each(|_| insist(|| store.transact(|txn| increment(txn, thread::yield_now))))
    })?;
    same("increments of four threads", &store.snapshot()?.counter(b"n")?, &(4 * ROUNDS))
}

pub(super) fn counters_of_many_writers_lose_no_update<S: Store>(store: &S) -> Outcome {
    const ROUNDS: u8 = 25;
    on_threads(4, |thread| {
        (0..ROUNDS).try_for_each(|round| {
            insist(|| {
                store.transact(|txn| {
                    txn.add(b"n", 1)?;
                    txn.max(b"max", u64::from(thread * ROUNDS + round))
                })
            })
        })
    })?;
    let snapshot = store.snapshot()?;
    same("added by four threads", &snapshot.counter(b"n")?, &(4 * i64::from(ROUNDS)))?;
    same("the largest number", &snapshot.counter(b"max")?, &(4 * i64::from(ROUNDS) - 1))
}

/// A way to test whether a key exists. Together, the variants cover all reads that a store must
/// track.
#[derive(Clone, Copy, Debug)]
enum Look {
    Get,
    GetMany,
    Counter,
    RangeAscending,
    RangeDescending,
    Count,
    First,
    Last,
    Page,
    RangeMany,
}

const LOOKS: [Look; 10] = [
    Look::Get,
    Look::GetMany,
    Look::Counter,
    Look::RangeAscending,
    Look::RangeDescending,
    Look::Count,
    Look::First,
    Look::Last,
    Look::Page,
    Look::RangeMany,
];

impl Look {
    fn finds<R: Reader>(self, reader: &R, key: &[u8]) -> Result<bool> {
        let range = KeyRange::prefix(key);
        Ok(match self {
            Self::Get => reader.get(key)?.is_some(),
            Self::GetMany => reader.get_many(&[key])?.iter().any(Option::is_some),
            Self::Counter => reader.counter(key)? != 0,
            Self::RangeAscending => reader.range(range, Order::Ascending)?.next().is_some(),
            Self::RangeDescending => reader.range(range, Order::Descending)?.next().is_some(),
            Self::Count => reader.count(range)? > 0,
            Self::First => reader.first(range)?.is_some(),
            Self::Last => reader.last(range)?.is_some(),
            Self::Page => !reader.page(range, Order::Ascending, 5)?.entries.is_empty(),
            Self::RangeMany => {
                let pages = reader.range_many(&[KeyRange::single(b"absent"), range], 5)?;
                pages.iter().any(|page| !page.entries.is_empty())
            }
        })
    }
}

/// Each of two transactions writes its key if `finds` does not find the key of the other.
fn write_unless_found<S: Store>(
    store: &S,
    what: &str,
    finds: impl Fn(&S::Transaction<'_>, &[u8]) -> Result<bool> + Sync,
) -> Outcome {
    store.transact(|txn| txn.delete_range(KeyRange::all()))?;
    let meeting = Meeting::new(2);
    on_threads(2, |me| {
        let (mine, other) = ([b'k', me], [b'k', 1 - me]);
        insist(|| {
            store.transact(|txn| {
                let is_alone = !finds(txn, &other)?;
                meeting.wait();
                if is_alone { txn.put(&mine, &1_i64.to_le_bytes()) } else { Ok(()) }
            })
        })
    })?;
    same(what, &store.snapshot()?.count(KeyRange::all())?, &1)
}

/// Write skew: each of two transactions writes its key if the key of the other does not exist. The
/// second transaction must see the write of the first. A store that compares only writes commits
/// both.
pub(super) fn two_writers_that_look_for_each_other_do_not_both_miss<S: Store>(
    store: &S,
) -> Outcome {
    for look in LOOKS {
        let what = format!("keys of two writers that looked by {look:?}");
        write_unless_found(store, &what, |txn, key| look.finds(txn, key))?;
    }
    Ok(())
}

/// One transaction reads a key and depends on it; the other deletes a range that contains the key.
pub(super) fn a_deleted_range_meets_what_was_read_of_it<S: Store>(store: &S) -> Outcome {
    for look in LOOKS {
        store.transact(|txn| {
            txn.delete_range(KeyRange::all())?;
            txn.put(b"m", &1_i64.to_le_bytes())
        })?;
        let meeting = Meeting::new(2);
        on_threads(2, |me| {
            insist(|| {
                store.transact(|txn| {
                    // Thread 0 records in `said` whether `m` exists; thread 1 deletes `m` unless
                    // `said` exists.
                    let key: &[u8] = if me == 0 { b"m" } else { b"said" };
                    let is_there = look.finds(txn, key)?;
                    meeting.wait();
                    match (me, is_there) {
                        (0, true) => txn.put(b"said", &1_i64.to_le_bytes()),
                        (1, false) => txn.delete_range(KeyRange::half_open(b"k", b"n")),
                        _ => Ok(()),
                    }
                })
            })
        })?;
        // Either both `m` and `said` exist, or neither.
        let there = store.snapshot()?.count(KeyRange::all())?;
        if there != 2 && there != 0 {
            return found(format!(
                "by {look:?}: one says that a key is there, the other deleted it"
            ));
        }
    }
    Ok(())
}

/// Each of two transactions counts many keys and adds a key after them. The second transaction must
/// have counted the key of the first.
pub(super) fn two_writers_that_count_many_keys_do_not_both_miss<S: Store>(store: &S) -> Outcome {
    plant(store, &many_keys(MANY))?;
    let meeting = Meeting::new(2);
    on_threads(2, |me| {
        insist(|| {
            store.transact(|txn| {
                let counted = txn.count(KeyRange::all())?;
                meeting.wait();
                txn.put(&[0xFF, me], &counted.to_be_bytes())
            })
        })
    })?;
    let snapshot = store.snapshot()?;
    let mut counted = Vec::new();
    for entry in snapshot.range(KeyRange::prefix(b"\xFF"), Order::Ascending)? {
        counted.push(entry?.1.to_vec());
    }
    counted.sort_unstable();
    let right = [MANY, MANY + 1].map(|n| u64::from(n).to_be_bytes().to_vec());
    same("the counts of both", &counted, &right.to_vec())
}

/// A transaction reads a key in a snapshot read, and then in an ordinary read. The store must check
/// the second read at commit.
pub(super) fn a_read_after_a_snapshot_read_is_checked<S: Store>(store: &S) -> Outcome {
    for look in LOOKS {
        let what = format!("keys of two writers that looked by {look:?} after a snapshot read");
        write_unless_found(store, &what, |txn, key| {
            txn.snapshot_read(|txn| look.finds(txn, key))?;
            look.finds(txn, key)
        })?;
    }
    Ok(())
}

pub(super) fn an_iterator_is_checked_within_a_snapshot_read_too<S: Store>(store: &S) -> Outcome {
    for order in [Order::Ascending, Order::Descending] {
        let what = format!("keys of two writers that looked by an iterator, {order:?}");
        write_unless_found(store, &what, |txn, key| {
            let mut entries = txn.range(KeyRange::prefix(key), order)?;
            txn.snapshot_read(|_| Ok(entries.next().transpose()?.is_some()))
        })?;
    }
    Ok(())
}
