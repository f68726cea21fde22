//! Wakes the threads that wait for a change when a thread of the same process commits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Reader, Result, Store};

/// The first pause between two polls of a waiter, on a store that other processes write to.
// A poll is a snapshot and a get. Shorter pauses cost more polls; longer ones add to the latency of
// a change by another process.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// All waiters of a process together poll at most ten thousand times a second: the more waiters
/// there are, the longer each one pauses.
const PAUSE_PER_WAITER: Duration = Duration::from_micros(100);

/// The largest number of keys that a transaction notes. A transaction that writes more keys wakes
/// all waiters.
// A note costs 8 bytes and a hash. With a higher limit, large transactions take more notes; with a
// lower limit, more transactions wake all waiters.
const MOST_NOTED: usize = 1_000;

/// Notifies the waiters of one process of the commits of that process.
///
/// A store holds one signal, shared by its clones. A transaction notes the keys that it writes in
/// [`ChangedKeys`] and passes them to [`notify`](CommitSignal::notify) after the engine's commit;
/// [`Store::wait_for_change`] calls [`wait_for_change`](CommitSignal::wait_for_change). Commits of
/// other processes are found by polling.
///
/// ```
/// use std::time::Duration;
/// use keyloom::backend::CommitSignal;
/// use keyloom::{Memory, Store, Writer};
/// let (store, signal) = (Memory::new(), CommitSignal::default());
/// let mut changed = signal.changed_keys();
/// store.transact(|txn| txn.put(b"door", b"open"))?;
/// changed.note(b"door");
/// signal.notify(changed);
/// let second = Duration::from_secs(1);
/// assert!(signal.wait_for_change(&store, b"door", None, second, second)?);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct CommitSignal {
    /// The number of waiting threads. A commit takes the lock only if a thread waits.
    waiting: AtomicUsize,
    hasher: RandomState,
    /// The awaited keys, by their hashes, with the number of threads that wait for each.
    // When each commit woke all waiters, n waiters for one lock read n^2 keys. 400 threads took 15
    // s on LMDB and in memory. With one condition per key they take 0.15 s and 0.12 s.
    awaited: Mutex<HashMap<u64, (usize, Arc<Awaited>)>>,
}

/// A key that threads wait for, or several keys with the same hash.
#[derive(Debug, Default)]
struct Awaited {
    commits: Mutex<u64>,
    committed: Condvar,
}

impl Awaited {
    fn notify(&self) {
        *lock(&self.commits) += 1;
        self.committed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The keys that a transaction changes, for the waiters of a [`CommitSignal`]. Nothing is noted
/// while no thread waits.
#[derive(Debug)]
pub struct ChangedKeys {
    hasher: RandomState,
    /// `None` if any key may have changed.
    hashes: Option<Vec<u64>>,
}

impl ChangedKeys {
    /// Notes a key that the transaction puts or deletes.
    #[inline]
    pub fn note(&mut self, key: &[u8]) {
        let Some(hashes) = &mut self.hashes else { return };
        match hashes.len() < MOST_NOTED {
            true => hashes.push(self.hasher.hash_one(key)),
            false => self.hashes = None,
        }
    }

    /// Notes that any key may change, for example because a range is deleted.
    pub fn note_any(&mut self) {
        self.hashes = None;
    }
}

/// Registers a thread as waiting for a key, until this value is dropped.
struct Waiting<'s> {
    signal: &'s CommitSignal,
    hash: u64,
    awaited: Arc<Awaited>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.signal.awaited);
        if let Entry::Occupied(mut one) = all.entry(self.hash) {
            one.get_mut().0 -= 1;
            if one.get().0 == 0 {
                one.remove();
            }
        }
        drop(all);
        self.signal.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CommitSignal {
    /// Returns an empty set of keys for a new transaction. Costs one atomic load. If no thread
    /// waits now, the keys are not noted, and the commit wakes every thread that has begun to wait
    /// by then.
    pub fn changed_keys(&self) -> ChangedKeys {
        let is_awaited = self.waiting.load(Ordering::SeqCst) > 0;
        ChangedKeys { hasher: self.hasher.clone(), hashes: is_awaited.then(Vec::new) }
    }

    /// Wakes the threads that wait for a changed key. Costs one atomic load if no thread waits.
    pub fn notify(&self, changed: ChangedKeys) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let all = lock(&self.awaited);
        match changed.hashes {
            None => all.values().for_each(|(_, awaited)| awaited.notify()),
            Some(hashes) => {
                let found = hashes.iter().filter_map(|hash| all.get(hash));
                found.for_each(|(_, awaited)| awaited.notify());
            }
        }
    }

    fn shortest_poll(&self) -> Duration {
        let waiting = self.waiting.load(Ordering::Relaxed).try_into().unwrap_or(u32::MAX);
        PAUSE_PER_WAITER.saturating_mul(waiting).max(FIRST_PAUSE)
    }

    fn enter(&self, key: &[u8]) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let hash = self.hasher.hash_one(key);
        let mut all = lock(&self.awaited);
        let (threads, awaited) = all.entry(hash).or_default();
        *threads += 1;
        Waiting { signal: self, hash, awaited: Arc::clone(awaited) }
    }

    /// Waits until the value of `key` differs from `seen`, at most for `timeout`. Reads the key
    /// after each commit of this process that may change it. Also polls: the pauses begin with 1 ms
    /// and grow to `poll`, or to 0.1 ms for each waiter of the process if that is longer. If no
    /// other process writes to the store, `poll` may be as long as `timeout`.
    ///
    /// # Errors
    /// The errors of [`Store::snapshot`] and [`Reader::get`].
    pub fn wait_for_change(
        &self,
        store: &(impl Store + ?Sized),
        key: &[u8],
        seen: Option<&[u8]>,
        timeout: Duration,
        poll: Duration,
    ) -> Result<bool> {
        let began = Instant::now();
        let waiting = self.enter(key);
        let Awaited { commits, committed } = &*waiting.awaited;
        let mut pause = if poll < timeout { FIRST_PAUSE } else { timeout };
        loop {
            let before = *lock(commits);
            if store.snapshot()?.get(key)?.as_deref() != seen {
                return Ok(true);
            }
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let is_waiting = |commits: &mut u64| *commits == before;
            drop(committed.wait_timeout_while(lock(commits), pause.min(left), is_waiting));
            pause = pause.saturating_mul(2).min(poll.max(self.shortest_poll()));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Memory, Metered, Writer};

    const THREADS: usize = 20;
    const COMMITS: usize = 200;

    /// The number of reads of threads that each wait for their own key, during commits that change
    /// other keys.
    fn reads_beside_other_commits(note: impl Fn(&mut ChangedKeys)) -> u64 {
        let (store, signal) = (Metered::new(Memory::new()), CommitSignal::default());
        let long = Duration::from_secs(60);
        let wait = |thread: usize| {
            let key = [thread as u8 + 1];
            signal.wait_for_change(&store, &key, None, long, long).unwrap()
        };
        std::thread::scope(|scope| {
            let wait = &wait;
            let waiters: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || wait(n))).collect();
            while store.cost().gets < THREADS as u64 {
                std::thread::yield_now();
            }
            for _ in 0..COMMITS {
                let mut changed = signal.changed_keys();
                note(&mut changed);
                signal.notify(changed);
                std::thread::sleep(Duration::from_millis(1));
            }
            for (n, waiter) in waiters.into_iter().enumerate() {
                let (mut changed, key) = (signal.changed_keys(), [n as u8 + 1]);
                store.transact(|txn| txn.put(&key, b"")).unwrap();
                changed.note(&key);
                signal.notify(changed);
                assert!(waiter.join().unwrap());
            }
        });
        assert!(lock(&signal.awaited).is_empty());
        store.cost().gets
    }

    #[test]
    fn a_commit_wakes_the_waiters_of_its_keys_alone() {
        let reads = reads_beside_other_commits(|changed| changed.note(b"other"));
        assert_eq!(reads, 2 * THREADS as u64, "the first read, and the one after the change");
        let most =
            |changed: &mut ChangedKeys| (0..=MOST_NOTED).for_each(|_| changed.note(b"other"));
        for any in [ChangedKeys::note_any, most] {
            let reads = reads_beside_other_commits(any);
            assert!(reads > 10 * THREADS as u64, "{reads}: any keys wake all");
        }
    }
}
