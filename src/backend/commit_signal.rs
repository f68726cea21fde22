//! Wakes the threads and tasks that wait for a change when a transaction commits.

use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::future::{Future, poll_fn};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::TransactionState;

/// The first pause between two polls of a waiter, on a store that other processes write to.
// A poll is a snapshot and a get. Shorter pauses cost more polls; longer ones add to the latency of
// a change by another process.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// All waiters of a store in one process together poll at most ten thousand times a second: the
/// more waiters there are, the longer each one pauses.
const PAUSE_PER_WAITER: Duration = Duration::from_micros(100);

/// The pause between two polls while a [`Watch`] notifies of commits of other processes.
// The polls are a precaution, for example against a proxy that drops notifications.
const WATCHED_PAUSE: Duration = Duration::from_secs(1);

/// All waiters of a store in one process together poll at most a hundred times a second during a
/// watch.
const WATCHED_PAUSE_PER_WAITER: Duration = Duration::from_millis(10);

/// A watch ends this long after the last listener.
// A service waits again and again: a shorter time would start a thread for many of its waits.
const IDLE: Duration = Duration::from_secs(1);

/// The largest number of keys that a transaction notes. A transaction that writes more keys wakes
/// all waiters.
// A note costs 8 bytes and a hash. With a higher limit, large transactions take more notes; with a
// lower limit, more transactions wake all waiters.
const MOST_NOTED: usize = 1_000;

/// Notifies the threads and tasks of one process of commits.
///
/// A store holds one signal; clones are handles of the same signal. A transaction notes the keys
/// that it writes in [`ChangedKeys`] and passes them to [`notify`](CommitSignal::notify) after the
/// engine's commit. [`Store::listen`](crate::Store::listen) returns a
/// [listener](CommitSignal::listen) of the signal. Commits of other processes are found by
/// [polling](ChangeListener::polling), or by a [watch](CommitSignal::watch).
///
/// ```
/// use std::time::Duration;
/// use keyloom::backend::CommitSignal;
/// let signal = CommitSignal::default();
/// let mut listener = signal.listen(b"door");
/// listener.wait(Duration::from_secs(1));
/// // Here the caller reads the key.
/// let mut changed = signal.changed_keys();
/// changed.note(b"door");
/// signal.notify(changed);
/// assert!(listener.wait(Duration::from_secs(1)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct CommitSignal(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The number of listeners. A commit takes the lock only if there is a listener.
    waiting: AtomicUsize,
    /// The awaited keys, by their hashes, with the number of listeners of each.
    // When each commit woke all waiters, n waiters for one lock read n^2 keys. 400 threads took 15
    // s on LMDB and in memory. With one condition per key they take 0.15 s and 0.12 s.
    awaited: Mutex<HashMap<u64, (usize, Arc<Awaited>)>>,
    /// Whether a watch runs.
    runs_watch: Mutex<bool>,
    /// Whether the watch notifies of commits of other processes.
    is_watched: AtomicBool,
    /// The number of beginnings and ends of those transactions of this process that note their
    /// keys.
    own_writes: Arc<AtomicU64>,
}

/// A key that is awaited, or several keys with the same hash.
#[derive(Debug, Default)]
struct Awaited {
    commits: Mutex<Commits>,
    committed: Condvar,
}

#[derive(Debug, Default)]
struct Commits {
    count: u64,
    listeners: u64,
    /// The wakers of the tasks that wait, by the number that identifies each listener.
    tasks: HashMap<u64, Waker>,
}

impl Awaited {
    fn notify(&self) {
        let mut commits = lock(&self.commits);
        commits.count += 1;
        let tasks = std::mem::take(&mut commits.tasks);
        drop(commits);
        self.committed.notify_all();
        tasks.into_values().for_each(Waker::wake);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The FNV-1a hash of a key. The hash is the same in all processes and versions, since a store may
/// send it to other processes.
fn hash_of(key: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01B3;
    key.iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// The keys that a transaction changes, for the listeners of a [`CommitSignal`].
///
/// A set can be sent to other processes as text:
///
/// ```
/// use keyloom::backend::ChangedKeys;
/// let mut changed = ChangedKeys::none();
/// changed.note(b"door");
/// let same: ChangedKeys = changed.to_string().parse().unwrap();
/// assert_eq!(same.to_string(), changed.to_string());
/// ```
#[derive(Debug)]
pub struct ChangedKeys {
    /// `None` if any key may have changed.
    hashes: Option<Vec<u64>>,
    _own: Option<OwnWrite>,
}

/// Counts the beginning of a transaction when this value is created, and the end of the transaction
/// when this value is dropped.
#[derive(Debug)]
struct OwnWrite(Arc<AtomicU64>);

impl OwnWrite {
    fn begin(all: &Arc<AtomicU64>) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(all))
    }
}

impl Drop for OwnWrite {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl ChangedKeys {
    /// An empty set, to which each noted key is added, whether there is a listener or not.
    pub fn none() -> Self {
        Self { hashes: Some(Vec::new()), _own: None }
    }

    /// The set of all keys.
    pub fn any() -> Self {
        Self { hashes: None, _own: None }
    }

    /// Notes a key that the transaction puts or deletes.
    #[inline]
    pub fn note(&mut self, key: &[u8]) {
        let Some(hashes) = &mut self.hashes else { return };
        match hashes.len() < MOST_NOTED {
            true => hashes.push(hash_of(key)),
            false => self.hashes = None,
        }
    }

    /// Notes the keys whose listeners the transaction [wakes](crate::Writer::wake). Call this at
    /// the commit.
    pub fn note_woken(&mut self, state: &TransactionState) {
        state.woken().for_each(|key| self.note(key));
    }

    /// Notes that any key may change, for example because a range is deleted.
    pub fn note_any(&mut self) {
        self.hashes = None;
    }
}

impl fmt::Display for ChangedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hashes {
            None => f.write_str("*"),
            Some(hashes) => hashes.iter().try_for_each(|hash| write!(f, "{hash:016x}")),
        }
    }
}

impl FromStr for ChangedKeys {
    type Err = std::convert::Infallible;

    /// Text of another format, such as that of a later version, means any key.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hash = |digits: &[u8]| {
            // `from_str_radix` would accept a sign before the digits.
            let is_hash = digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit);
            let digits = std::str::from_utf8(digits).ok().filter(|_| is_hash)?;
            u64::from_str_radix(digits, 16).ok()
        };
        Ok(Self { hashes: text.as_bytes().chunks(16).map(hash).collect(), _own: None })
    }
}

/// Listens for commits that may change one key, until it is dropped: see
/// [`Store::listen`](crate::Store::listen).
#[derive(Debug)]
pub struct ChangeListener {
    signal: CommitSignal,
    hash: u64,
    awaited: Arc<Awaited>,
    number: u64,
    /// The number of commits at the end of the last wait.
    seen: u64,
    /// The longest pause between two polls; `None` if the store notifies of every commit.
    poll: Option<Duration>,
    pause: Duration,
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

impl ChangeListener {
    /// A listener of a store that cannot notify of changes. Each wait ends after a pause, and the
    /// pauses grow from 1 ms to `longest`.
    pub fn of_polls(longest: Duration) -> Self {
        CommitSignal::default().listen(&[]).unnotified().polling(longest)
    }

    /// Makes even the first wait last until a notification. For a store that notifies the signal as
    /// soon as the store watches the key.
    #[must_use]
    pub fn unnotified(mut self) -> Self {
        self.seen = lock(&self.awaited.commits).count;
        self
    }

    /// Keeps `guard`, such as a task that watches the key, until the listener is dropped.
    #[must_use]
    pub fn with_guard(mut self, guard: impl Send + Sync + 'static) -> Self {
        self._guard = Some(Box::new(guard));
        self
    }

    /// Also ends each wait after a pause, which grows from 1 ms to `longest`. If many threads or
    /// tasks listen to the signal, the pauses are longer: 0.1 ms for each listener.
    #[must_use]
    pub fn polling(mut self, longest: Duration) -> Self {
        self.poll = Some(longest);
        self
    }

    /// Waits for a commit that may change the key, or for the pause between two polls, at most for
    /// `timeout`. Returns whether there was such a commit since the last wait. The first wait
    /// returns at once.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let pause = self.pause().min(timeout);
        let Awaited { commits, committed } = &*self.awaited;
        let seen = self.seen;
        let is_waiting = |commits: &mut Commits| commits.count == seen;
        let commits = committed.wait_timeout_while(lock(commits), pause, is_waiting);
        self.seen = commits.unwrap_or_else(PoisonError::into_inner).0.count;
        self.seen != seen
    }

    /// Completes with the next commit that may change the key. The first time, it completes at
    /// once. The caller must also end the wait after [`pause`](ChangeListener::pause).
    pub fn changed(&mut self) -> impl Future<Output = ()> + Send + '_ {
        poll_fn(|context| {
            let mut commits = lock(&self.awaited.commits);
            if commits.count != self.seen {
                self.seen = commits.count;
                return Poll::Ready(());
            }
            commits.tasks.insert(self.number, context.waker().clone());
            Poll::Pending
        })
    }

    /// The longest duration of the next wait, after which the caller reads the key again. Each call
    /// doubles the pause, up to the longest pause of [`polling`](ChangeListener::polling). Without
    /// polling, returns [`Duration::MAX`]. While a [`Watch`] notifies of all commits, the pause is
    /// at least one second.
    pub fn pause(&mut self) -> Duration {
        let Some(poll) = self.poll else { return Duration::MAX };
        if self.signal.0.is_watched.load(Ordering::Relaxed) {
            return self.signal.for_each(WATCHED_PAUSE_PER_WAITER).max(WATCHED_PAUSE);
        }
        let shortest = self.signal.for_each(PAUSE_PER_WAITER).max(FIRST_PAUSE);
        let pause = self.pause.max(shortest);
        self.pause = pause.saturating_mul(2).min(poll.max(shortest));
        pause
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        lock(&self.awaited.commits).tasks.remove(&self.number);
        let mut all = lock(&self.signal.0.awaited);
        if let Entry::Occupied(mut one) = all.entry(self.hash) {
            one.get_mut().0 -= 1;
            if one.get().0 == 0 {
                one.remove();
            }
        }
        drop(all);
        self.signal.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CommitSignal {
    /// Returns an empty set of keys for a new transaction. Costs one atomic load if there is no
    /// listener. In this case, the keys are not noted, and the commit notifies every listener that
    /// has begun by then.
    pub fn changed_keys(&self) -> ChangedKeys {
        let is_awaited = self.waiting() > 0;
        let own = is_awaited.then(|| OwnWrite::begin(&self.0.own_writes));
        ChangedKeys { hashes: is_awaited.then(Vec::new), _own: own }
    }

    /// Wakes the listeners of the changed keys. Costs one atomic load if there is no listener.
    pub fn notify(&self, changed: ChangedKeys) {
        if self.waiting() == 0 {
            return;
        }
        let all = lock(&self.0.awaited);
        let woken: Vec<Arc<Awaited>> = match &changed.hashes {
            None => all.values().map(|(_, awaited)| Arc::clone(awaited)).collect(),
            Some(hashes) => {
                let found = hashes.iter().filter_map(|hash| all.get(hash));
                found.map(|(_, awaited)| Arc::clone(awaited)).collect()
            }
        };
        // A task may drop a listener when it is woken, which takes the lock.
        drop(all);
        woken.iter().for_each(|awaited| awaited.notify());
    }

    /// The number of listeners.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::SeqCst)
    }

    /// Listens for commits that may change `key`.
    pub fn listen(&self, key: &[u8]) -> ChangeListener {
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        let hash = hash_of(key);
        let mut all = lock(&self.0.awaited);
        let (listeners, awaited) = all.entry(hash).or_default();
        *listeners += 1;
        let awaited = Arc::clone(awaited);
        drop(all);
        let mut commits = lock(&awaited.commits);
        commits.listeners += 1;
        // The caller has read the key before, so the first wait ends at once, and the caller reads
        // it again.
        let (number, seen) = (commits.listeners, commits.count.wrapping_sub(1));
        drop(commits);
        let (signal, pause) = (self.clone(), FIRST_PAUSE);
        ChangeListener { signal, hash, awaited, number, seen, poll: None, pause, _guard: None }
    }

    /// `pause`, multiplied by the number of listeners.
    fn for_each(&self, pause: Duration) -> Duration {
        let waiting = self.0.waiting.load(Ordering::Relaxed).try_into().unwrap_or(u32::MAX);
        pause.saturating_mul(waiting)
    }

    /// Calls `work` and runs the function that it returns on a new thread, unless an earlier watch
    /// still runs. The function watches for commits of other processes and notifies this signal of
    /// them, until the watch [is not needed](Watch::is_needed). If the system starts no thread, the
    /// waiters poll.
    ///
    /// Call this after [`listen`](CommitSignal::listen): a watch ends if there is no listener.
    pub fn watch<W: FnOnce(&Watch) + Send + 'static>(&self, work: impl FnOnce() -> W) {
        let mut runs = lock(&self.0.runs_watch);
        if !*runs {
            let (work, signal) = (work(), self.clone());
            let thread = thread::Builder::new().name("keyloom-watch".into());
            *runs = thread.spawn(move || work(&Watch::new(signal))).is_ok();
        }
    }
}

/// A thread that notifies a [`CommitSignal`] of commits of other processes; see
/// [`CommitSignal::watch`].
#[derive(Debug)]
pub struct Watch {
    signal: CommitSignal,
    /// When a listener was last seen.
    last_needed: Cell<Instant>,
    has_ended: Cell<bool>,
}

impl Watch {
    fn new(signal: CommitSignal) -> Self {
        Self { signal, last_needed: Cell::new(Instant::now()), has_ended: Cell::new(false) }
    }

    /// Whether there is a listener, or was one in the last second. If this returns `false`, the
    /// thread must end.
    pub fn is_needed(&self) -> bool {
        if self.has_ended.get() {
            return false;
        }
        // Because of the lock, a new listener is either counted here or starts the next watch.
        let mut runs = lock(&self.signal.0.runs_watch);
        if self.signal.waiting() > 0 {
            self.last_needed.set(Instant::now());
        } else if self.last_needed.get().elapsed() > IDLE {
            self.end(&mut runs);
        }
        !self.has_ended.get()
    }

    /// Ends the watch. Another watch may begin as soon as the lock is released.
    fn end(&self, runs: &mut bool) {
        self.signal.0.is_watched.store(false, Ordering::Relaxed);
        self.has_ended.set(true);
        *runs = false;
    }

    /// The number of beginnings and ends of the transactions of this process. If the store allows
    /// one writer at a time, the number is odd while this process writes. Transactions that began
    /// without a listener are not counted.
    pub fn own_writes(&self) -> u64 {
        self.signal.0.own_writes.load(Ordering::SeqCst)
    }

    /// Sets whether this watch notifies of every commit of other processes. Also wakes all
    /// listeners, so that they read their keys again. While the watch notifies of every commit,
    /// each listener polls at most once a second.
    pub fn set_complete(&self, is_complete: bool) {
        if !self.has_ended.get() {
            self.signal.0.is_watched.store(is_complete, Ordering::Relaxed);
            self.signal.notify(ChangedKeys::any());
        }
    }

    /// Wakes all listeners, because of a commit whose keys are unknown. Then sleeps for 0.1 ms for
    /// each listener, so that they read at most 10,000 keys a second.
    pub fn notify_any(&self) {
        self.signal.notify(ChangedKeys::any());
        thread::sleep(self.signal.for_each(PAUSE_PER_WAITER));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.has_ended.get() {
            // The function of the watch returned or panicked before the watch ended.
            self.end(&mut lock(&self.signal.0.runs_watch));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    const THREADS: usize = 20;
    const COMMITS: usize = 200;

    /// The number of waits of threads that each listen for their own key, during commits that
    /// change other keys.
    fn waits_beside_other_commits(note: impl Fn(&mut ChangedKeys)) -> u64 {
        let (signal, waits) = (CommitSignal::default(), AtomicU64::new(0));
        let is_over = AtomicBool::new(false);
        let wait = |thread: usize| {
            let mut listener = signal.listen(&[thread as u8]);
            while !is_over.load(Ordering::SeqCst) {
                assert!(listener.wait(Duration::from_secs(60)), "a commit was not noticed");
                waits.fetch_add(1, Ordering::SeqCst);
            }
        };
        thread::scope(|scope| {
            let wait = &wait;
            (0..THREADS).for_each(|n| drop(scope.spawn(move || wait(n))));
            while waits.load(Ordering::SeqCst) < THREADS as u64 {
                thread::yield_now();
            }
            for _ in 0..COMMITS {
                let mut changed = signal.changed_keys();
                note(&mut changed);
                signal.notify(changed);
                thread::sleep(Duration::from_millis(1));
            }
            is_over.store(true, Ordering::SeqCst);
            for n in 0..THREADS {
                let mut changed = signal.changed_keys();
                changed.note(&[n as u8]);
                signal.notify(changed);
            }
        });
        assert!(lock(&signal.0.awaited).is_empty() && signal.waiting() == 0);
        waits.load(Ordering::SeqCst)
    }

    #[test]
    fn a_commit_wakes_the_waiters_of_its_keys_alone() {
        let waits = waits_beside_other_commits(|changed| changed.note(b"other"));
        assert_eq!(waits, 2 * THREADS as u64, "the first wait, and the one for the change");
        let most =
            |changed: &mut ChangedKeys| (0..=MOST_NOTED).for_each(|_| changed.note(b"other"));
        for any in [ChangedKeys::note_any, most] {
            let waits = waits_beside_other_commits(any);
            assert!(waits > 10 * THREADS as u64, "{waits}: any keys wake all");
        }
    }

    #[test]
    fn text_names_the_same_keys_or_any_key() {
        let signal = CommitSignal::default();
        let (mut door, mut bell) = (signal.listen(b"door"), signal.listen(b"bell"));
        let now = Duration::ZERO;
        assert!(door.wait(now) && bell.wait(now));
        let mut changed = ChangedKeys::none();
        changed.note(b"door");
        changed.note(b"bells");
        let text = changed.to_string();
        signal.notify(text.parse().unwrap());
        assert_eq!((door.wait(now), bell.wait(now)), (true, false));
        signal.notify("".parse().unwrap());
        assert_eq!((door.wait(now), bell.wait(now)), (false, false));
        for any in ["*", "later version", &text[1..], "+123456789abcdef", "\u{e4}23456789abcdef0"] {
            signal.notify(any.parse().unwrap());
            assert_eq!((door.wait(now), bell.wait(now)), (true, true), "{any}");
        }
    }

    #[test]
    fn a_watch_runs_while_there_are_listeners() {
        let (signal, begun) = (CommitSignal::default(), Arc::new(AtomicU64::new(0)));
        let start = || {
            signal.watch(|| {
                let begun = Arc::clone(&begun);
                move |watch: &Watch| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    watch.set_complete(true);
                    while watch.is_needed() {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        };
        for round in 1..3 {
            let listeners = [signal.listen(b"a"), signal.listen(b"b").polling(IDLE / 100)];
            start();
            start();
            while !signal.0.is_watched.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            assert_eq!(begun.load(Ordering::SeqCst), round);
            let [first, poll] = listeners;
            assert_eq!(poll.pause_after(20), WATCHED_PAUSE);
            drop(first);
            while *lock(&signal.0.runs_watch) {
                thread::yield_now();
            }
            assert_eq!(signal.listen(b"b").polling(IDLE / 100).pause_after(20), IDLE / 100);
        }
    }

    /// After a watch panics, the listeners poll. Only another call of `watch` starts another watch.
    #[test]
    fn a_watch_that_fails_leaves_polls() {
        let signal = CommitSignal::default();
        let mut listener = signal.listen(b"a").polling(IDLE / 100);
        signal.watch(|| {
            |watch: &Watch| {
                watch.set_complete(true);
                panic!("on purpose");
            }
        });
        while *lock(&signal.0.runs_watch) {
            thread::yield_now();
        }
        assert!(listener.wait(IDLE));
        assert_eq!(listener.pause_after(20), IDLE / 100);
        signal.watch(|| |watch: &Watch| watch.set_complete(false));
    }

    impl ChangeListener {
        fn pause_after(mut self, polls: usize) -> Duration {
            (0..polls).fold(self.pause(), |_, _| self.pause())
        }
    }
}
