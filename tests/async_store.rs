//! Transactions and reads of tasks: results, cancellation, panics, shut-down, and threads.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use keyloom::backend::{ChangeListener, CommitSignal};
use keyloom::{
    AsyncOptions, AsyncStore, Error, KeyRange, Limits, Memory, Metered, Order, Reader, Store,
    Writer,
};
use tokio::runtime::{Builder, Handle, Runtime};

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap()
}

/// The stores, one for each way to write.
fn both() -> [AsyncStore<Memory>; 2] {
    let memory = || Memory::builder().optimistic(true).build();
    [AsyncStore::new(Memory::new()), AsyncOptions::new().concurrent_writers(8).wrap(memory())]
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("sold out of {0}")]
struct SoldOut(u64);

#[derive(Debug)]
enum Booking {
    SoldOut,
    Store(Error),
}

impl From<Error> for Booking {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Puts a pair of keys, or fails between the two, depending on `fate`.
fn pair(txn: &mut impl Writer, number: u64, fate: u64) -> keyloom::Result<u64> {
    txn.put(&[b"a", &number.to_be_bytes()[..]].concat(), b"")?;
    match fate {
        1 => return Err(Error::other(SoldOut(number))),
        2 => panic!("number {number} panics"),
        3 => _ = txn.guarded(|_| Err::<(), _>(Error::other(SoldOut(number)))),
        _ => {}
    }
    txn.put(&[b"b", &number.to_be_bytes()[..]].concat(), b"")?;
    txn.add(b"pairs", 1)?;
    Ok(number)
}

/// Whether the pair exists; it must be complete or absent.
fn is_there(store: &impl Store, number: u64) -> bool {
    let snapshot = store.snapshot().unwrap();
    let [a, b] = [b"a", b"b"]
        .map(|side| snapshot.get(&[side, &number.to_be_bytes()[..]].concat()).unwrap().is_some());
    assert_eq!(a, b, "half of pair {number}");
    a
}

#[test]
fn each_task_receives_the_answer_of_its_own_body() {
    for store in both() {
        let runtime = runtime(2);
        let tasks: Vec<_> = (0..2_000)
            .map(|number| {
                let store = store.clone();
                runtime.spawn(async move {
                    store.transact(move |txn| pair(txn, number, number % 5)).await
                })
            })
            .collect();
        for (number, task) in (0..).zip(tasks) {
            let answer = runtime.block_on(task);
            match (number % 5, answer) {
                (0 | 4, Ok(Ok(of))) => assert_eq!(of, number),
                (1, Ok(Err(error))) => assert_eq!(error.downcast_ref(), Some(&SoldOut(number))),
                (2, Err(error)) => {
                    let panic = error.into_panic().downcast::<String>().unwrap();
                    assert_eq!(*panic, format!("number {number} panics"));
                }
                (3, Ok(Err(error @ Error::CommitRefused { .. }))) => {
                    assert_eq!(error.downcast_ref(), Some(&SoldOut(number)));
                }
                other => panic!("number {number}: {other:?}"),
            }
            assert_eq!(is_there(store.blocking(), number), matches!(number % 5, 0 | 4));
        }
        let stored = runtime.block_on(store.read(|snapshot| snapshot.counter(b"pairs")));
        assert_eq!(stored.unwrap(), 800);
    }
}

#[test]
fn tasks_that_wait_are_committed_together() {
    let inner = Metered::new(Memory::new());
    let store = AsyncStore::new(inner.clone());
    let tasks = (0..1_500).map(|n| store.transact(move |txn| pair(txn, n, 0)));
    runtime(1).block_on(async {
        // The first transaction is held until all others wait.
        let release = Arc::new(AtomicBool::new(false));
        let (held, seen) = (store.clone(), Arc::clone(&release));
        let first = tokio::spawn(async move {
            held.transact(move |_| {
                while !seen.load(Relaxed) {
                    std::thread::yield_now();
                }
                Ok(())
            })
            .await
        });
        tokio::task::yield_now().await;
        let mut all = pin!(futures_util::future::join_all(tasks));
        assert!(futures_util::poll!(&mut all).is_pending());
        release.store(true, Relaxed);
        first.await.unwrap().unwrap();
        assert!(all.await.into_iter().all(|answer| answer.is_ok()));
    });
    // The first batch contains the transactions that arrived while the first one ran; each batch
    // has at most 1,000.
    let cost = inner.cost();
    assert_eq!(cost.keys_written, 3 * 1_500);
    assert!(cost.commits <= 3, "{cost}");
}

#[test]
fn errors_of_a_type_of_their_own_come_back() {
    for store in both() {
        let answer = runtime(1).block_on(store.try_transact(|txn| {
            txn.put(b"seat", b"taken")?;
            Err::<(), _>(Booking::SoldOut)
        }));
        assert!(matches!(answer, Err(Booking::SoldOut)));
        let answer = runtime(1).block_on(store.try_transact(|txn| {
            txn.put(b"", b"")?;
            Ok::<_, Booking>(())
        }));
        assert!(matches!(answer, Err(Booking::Store(Error::EmptyKey))));
        let answer = runtime(1).block_on(store.try_read(|snapshot| {
            assert!(snapshot.get(b"seat")?.is_none());
            Err::<(), _>(Booking::SoldOut)
        }));
        assert!(matches!(answer, Err(Booking::SoldOut)));
    }
}

#[test]
fn a_body_that_waits_for_another_transaction_is_refused() {
    for store in both() {
        let inner = store.clone();
        let nested = runtime(1).block_on(store.transact(move |_| {
            Handle::current().block_on(inner.transact(|txn| txn.put(b"nested", b"")))
        }));
        assert!(matches!(nested, Err(Error::NestedTransaction)), "{nested:?}");
        let inner = store.clone();
        let nested =
            runtime(1)
                .block_on(store.transact(move |_| {
                    inner.blocking().transact_batched(|txn| txn.put(b"n", b""))
                }));
        assert!(matches!(nested, Err(Error::NestedTransaction)), "{nested:?}");
        runtime(1).block_on(store.transact(|txn| txn.put(b"after", b""))).unwrap();
    }
}

#[test]
fn without_a_runtime_there_is_an_error() {
    for store in both() {
        let mut call = pin!(store.transact(|txn| txn.put(b"a", b"")));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Err(error)) = call.as_mut().poll(&mut context) else { panic!() };
        assert!(error.to_string().contains("runtime"), "{error}");
        let mut call = pin!(store.read(|snapshot| snapshot.counter(b"n")));
        assert!(matches!(call.as_mut().poll(&mut context), Poll::Ready(Err(_))));
        runtime(1).block_on(store.transact(|txn| txn.put(b"a", b""))).unwrap();
    }
}

/// Shutting down a runtime leaves its calls without results, and the store serves the next runtime.
#[test]
fn a_store_outlives_its_runtimes() {
    for store in both() {
        for round in 0..20_u64 {
            let runtime = runtime(2);
            let begun = Arc::new(AtomicUsize::new(0));
            for number in 0..50 {
                let (store, begun) = (store.clone(), Arc::clone(&begun));
                runtime.spawn(async move {
                    store
                        .transact(move |txn| {
                            begun.fetch_add(1, Relaxed);
                            pair(txn, round * 1_000 + number, 0)
                        })
                        .await
                });
            }
            if round % 2 == 0 {
                while begun.load(Relaxed) == 0 {
                    std::thread::yield_now();
                }
            }
            runtime.shutdown_timeout(Duration::from_secs(10));
        }
        let runtime = runtime(1);
        runtime.block_on(store.transact(|txn| txn.put(b"after", b""))).unwrap();
        let pairs = runtime.block_on(store.read(|snapshot| snapshot.counter(b"pairs"))).unwrap();
        let whole = (0..20_000).filter(|number| is_there(store.blocking(), *number)).count();
        assert_eq!(pairs, i64::try_from(whole).unwrap());
    }
}

/// A store that panics at the start of the n-th transaction.
#[derive(Debug)]
struct Panics(Memory, AtomicUsize);

impl Store for Panics {
    type Snapshot<'s> = <Memory as Store>::Snapshot<'s>;
    type Transaction<'s> = <Memory as Store>::Transaction<'s>;

    fn snapshot(&self) -> keyloom::Result<Self::Snapshot<'_>> {
        self.0.snapshot()
    }

    fn begin(&self) -> keyloom::Result<Self::Transaction<'_>> {
        assert_ne!(self.1.fetch_add(1, Relaxed), 3, "the store panics");
        self.0.begin()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }
}

#[test]
fn a_panic_of_the_store_strands_no_task() {
    let store = AsyncStore::new(Panics(Memory::new(), AtomicUsize::new(0)));
    let runtime = runtime(2);
    let tasks: Vec<_> = (0..300)
        .map(|number| {
            let store = store.clone();
            runtime.spawn(async move { store.transact(move |txn| pair(txn, number, 0)).await })
        })
        .collect();
    let mut lost = 0;
    for (number, task) in (0..).zip(tasks) {
        match runtime.block_on(task) {
            Ok(answer) => {
                let is_unknown = answer.as_ref().is_err_and(Error::maybe_committed);
                lost += usize::from(is_unknown);
                assert!(is_unknown || is_there(store.blocking(), number) == answer.is_ok());
            }
            Err(panic) => assert!(panic.is_panic()),
        }
    }
    assert!(lost < 300, "one batch may be lost");
}

#[test]
fn streams_yield_each_item_once_and_read_ahead_one_page() {
    let inner = Metered::new(Memory::new());
    let store = AsyncStore::new(inner.clone());
    runtime(1).block_on(async {
        store
            .transact(|txn| (0..1_000_u16).try_for_each(|n| txn.put(&n.to_be_bytes(), b"")))
            .await
            .unwrap();
        for (order, page) in
            [(Order::Ascending, 1), (Order::Descending, 7), (Order::Ascending, 5_000)]
        {
            let entries = store.entries(KeyRange::all().into_owned(), order, page);
            let mut keys: Vec<Vec<u8>> =
                entries.map_ok(|(key, _)| key).try_collect().await.unwrap();
            if order == Order::Descending {
                keys.reverse();
            }
            assert_eq!(keys, (0..1_000_u16).map(|n| n.to_be_bytes().to_vec()).collect::<Vec<_>>());
        }
        let before = inner.cost();
        let mut entries = pin!(store.entries(KeyRange::all().into_owned(), Order::Ascending, 10));
        for _ in 0..10 {
            entries.next().await.unwrap().unwrap();
        }
        assert_eq!((inner.cost() - before).ranges, 1, "one page is read for its ten entries");
        entries.next().await.unwrap().unwrap();
        assert_eq!((inner.cost() - before).ranges, 2);
    });
}

#[test]
fn a_stream_ends_after_an_error() {
    let store = AsyncStore::new(Memory::new());
    runtime(1).block_on(async {
        let pages = store.stream(|_, after: Option<u8>| match after {
            None => Ok((vec![1, 2], Some(1))),
            Some(_) => Err(Error::other(SoldOut(2))),
        });
        let all: Vec<_> = pages.collect().await;
        assert!(matches!(all[..], [Ok(1), Ok(2), Err(_)]), "{all:?}");
    });
}

/// At most as many reads run concurrently as there are permits, and a waiting read that is dropped
/// does not run.
#[test]
fn readers_are_bounded() {
    let store = AsyncOptions::new().readers(3).wrap(Memory::new());
    let runtime = runtime(2);
    let [now, most, runs] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let (store, now, most, runs) =
                (store.clone(), Arc::clone(&now), Arc::clone(&most), Arc::clone(&runs));
            let read = async move {
                store
                    .read(move |_| {
                        runs.fetch_add(1, Relaxed);
                        most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                        std::thread::sleep(Duration::from_micros(200));
                        now.fetch_sub(1, Relaxed);
                        Ok(())
                    })
                    .await
            };
            let task = runtime.spawn(read);
            if number % 2 == 1 {
                task.abort();
            }
            task
        })
        .collect();
    let answers: Vec<_> = tasks.into_iter().map(|task| runtime.block_on(task)).collect();
    let answered = answers.iter().filter(|answer| matches!(answer, Ok(Ok(())))).count();
    assert!(answered >= 100 && most.load(Relaxed) <= 3, "{most:?}");
    assert!(runs.load(Relaxed) <= answered + 3, "{runs:?} reads for {answered} answers");
}

/// Polls a future up to `polls` times, then drops it; 5 polls are always enough.
async fn cancelled_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    if polls == 5 {
        return Some(future.await);
    }
    for _ in 0..polls {
        if let Poll::Ready(output) = futures_util::poll!(&mut future) {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Futures dropped at random points leave complete transactions or none, and leak neither a permit
/// nor a transaction.
fn cancellations<S: Store>(store: &AsyncStore<S>, each: u64, seed: u64) {
    const TASKS: u64 = 50;
    let runtime = runtime(2);
    let [answered, cancelled] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, answered, cancelled) =
                (store.clone(), Arc::clone(&answered), Arc::clone(&cancelled));
            let mut random = fastrand::Rng::with_seed(seed + task);
            runtime.spawn(async move {
                for round in 0..each {
                    let (number, polls) = (task * each + round, random.usize(0..6));
                    if random.u8(0..4) == 0 {
                        let read = store.read(|snapshot| snapshot.counter(b"pairs"));
                        let _ = cancelled_after(polls, read).await;
                        continue;
                    }
                    let fate = if random.u8(0..8) == 0 { 1 } else { 0 };
                    let call = store.transact(move |txn| pair(txn, number, fate));
                    match cancelled_after(polls, call).await {
                        Some(answer) => {
                            assert_eq!(is_there(store.blocking(), number), answer.is_ok());
                            answered.fetch_add(1, Relaxed);
                        }
                        None => _ = cancelled.fetch_add(1, Relaxed),
                    }
                }
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    // Running transactions finish, and the store remains usable.
    runtime.block_on(store.transact(|txn| txn.put(b"after", b""))).unwrap();
    runtime.shutdown_timeout(Duration::from_secs(60));
    let snapshot = store.blocking().snapshot().unwrap();
    let [a, b] = [b"a", b"b"].map(|side| snapshot.count(KeyRange::prefix(side)).unwrap());
    assert_eq!((a, snapshot.counter(b"pairs").unwrap()), (b + 1, i64::try_from(b).unwrap()));
    assert!(answered.load(Relaxed) > 0 && cancelled.load(Relaxed) > each, "{answered:?}");
}

#[test]
fn cancelled_transactions_are_whole_or_absent() {
    for store in both() {
        cancellations(&store, 200, 1);
    }
}

#[cfg(feature = "lmdb")]
#[test]
fn cancelled_transactions_on_lmdb_are_whole_or_absent() {
    let directory = tempfile::tempdir().unwrap();
    let lmdb = keyloom::Lmdb::open(directory.path()).unwrap();
    let store = AsyncStore::new(lmdb.clone());
    cancellations(&store, 100, 2);
    assert_eq!(lmdb.statistics().unwrap().oldest_reader_age, None, "no snapshot stays open");
}

/// Drops most of 200,000 futures on each store. Runs in the nightly tests.
#[test]
#[ignore = "takes ten seconds on two cores; the tests before it do the same with fewer"]
fn a_hundred_thousand_cancellations_are_whole_or_absent() {
    for store in both() {
        cancellations(&store, 4_000, 3);
    }
}

/// While a body blocks its thread, the single thread of the runtime runs all other tasks.
#[test]
fn a_body_that_blocks_holds_up_no_task() {
    for store in both() {
        runtime(1).block_on(async {
            let (release, blocked) = std::sync::mpsc::channel::<()>();
            let held = store.clone();
            let write = tokio::spawn(async move {
                held.transact(move |txn| {
                    blocked.recv().unwrap();
                    txn.put(b"late", b"")
                })
                .await
            });
            let mut tasks = Vec::new();
            for number in 0..200 {
                let store = store.clone();
                tasks.push(tokio::spawn(async move {
                    tokio::task::yield_now().await;
                    store.read(move |snapshot| Ok((number, snapshot.counter(b"n")?))).await.unwrap()
                }));
            }
            for (number, task) in (0..).zip(tasks) {
                assert_eq!(task.await.unwrap(), (number, 0));
            }
            assert!(!write.is_finished());
            release.send(()).unwrap();
            write.await.unwrap().unwrap();
        });
    }
}

#[test]
fn tasks_that_wait_for_a_change_hold_no_thread() {
    const TASKS: u32 = 2_000;
    let inner = Metered::new(Memory::new());
    let store = AsyncOptions::new().readers(1).wrap(inner.clone());
    let runtime = runtime(2);
    let wait = |n: u32, timeout| {
        let store = store.clone();
        async move { store.wait_for_change(&n.to_be_bytes(), None, timeout).await.unwrap() }
    };
    let tasks: Vec<_> = (0..TASKS).map(|n| runtime.spawn(wait(n, LONG))).collect();
    // Each task has read its key twice, so all of them wait.
    while inner.cost().gets < 2 * u64::from(TASKS) {
        std::thread::yield_now();
    }
    // The one thread that reads is free, and no task is woken by a commit of another key.
    runtime.block_on(async {
        assert!(!wait(TASKS, Duration::from_millis(1)).await);
        store.transact(|txn| txn.put(b"other", b"")).await.unwrap();
        store.transact(|txn| (0..TASKS).try_for_each(|n| put(txn, n))).await.unwrap();
        for task in tasks {
            assert!(task.await.unwrap());
        }
    });
    let gets = inner.cost().gets;
    assert!(gets <= 3 * u64::from(TASKS) + 3, "{gets} gets");
}

const LONG: Duration = Duration::from_secs(60);

fn put(txn: &mut impl Writer, n: u32) -> keyloom::Result<()> {
    txn.put(&n.to_be_bytes(), b"")
}

#[test]
fn a_body_is_run_until_it_returns_a_value() {
    let store = AsyncStore::new(Memory::new());
    runtime(2).block_on(async {
        let third = |snapshot: &<Memory as Store>::Snapshot<'_>| {
            Ok(Some(snapshot.counter(b"n")?).filter(|n| *n >= 3))
        };
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { store.wait_until(b"n", LONG, third).await }
        });
        for _ in 0..3 {
            assert!(!waiting.is_finished());
            store.transact(|txn| txn.add(b"n", 1)).await.unwrap();
        }
        assert_eq!(waiting.await.unwrap().unwrap(), Some(3));
        let never = |_: &<Memory as Store>::Snapshot<'_>| Ok(None::<()>);
        let time = Duration::from_millis(2);
        assert_eq!(store.wait_until(b"n", time, never).await.unwrap(), None);
        let fails = |snapshot: &<Memory as Store>::Snapshot<'_>| {
            snapshot.get(&[0; 512]).map(|_| None::<()>)
        };
        let error = store.wait_until(b"n", LONG, fails).await.unwrap_err();
        assert!(matches!(error, Error::KeyTooLong { .. }), "{error}");
    });
}

/// A store in memory whose listeners are those of a signal of the test.
#[derive(Debug)]
struct Listened(Memory, CommitSignal);

impl Store for Listened {
    type Snapshot<'s> = <Memory as Store>::Snapshot<'s>;
    type Transaction<'s> = <Memory as Store>::Transaction<'s>;

    fn snapshot(&self) -> keyloom::Result<Self::Snapshot<'_>> {
        self.0.snapshot()
    }

    fn begin(&self) -> keyloom::Result<Self::Transaction<'_>> {
        self.0.begin()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.1.listen(key)
    }
}

#[test]
fn a_cancelled_wait_leaves_no_listener() {
    let signal = CommitSignal::default();
    let store = AsyncStore::new(Listened(Memory::new(), signal.clone()));
    let mut most = 0;
    runtime(2).block_on(async {
        for polls in 0..200 {
            let wait = store.wait_for_change(b"key", None, LONG);
            let mut wait = Box::pin(wait);
            for _ in 0..polls % 8 {
                assert!(futures_util::poll!(&mut wait).is_pending());
                tokio::time::sleep(Duration::from_micros(100)).await;
                most = most.max(signal.waiting());
            }
            drop(wait);
            assert_eq!(signal.waiting(), 0);
        }
    });
    assert_eq!(most, 1, "no wait came so far as to listen");
}

#[test]
fn a_wait_continues_beside_cancelled_ones() {
    let store = AsyncStore::new(Memory::new());
    runtime(2).block_on(async {
        for polls in 0..200 {
            let wait = store.wait_for_change(b"key", None, LONG);
            assert_eq!(cancelled_after(polls % 4, wait).await.transpose().unwrap(), None);
        }
        let waiting = store.wait_for_change(b"key", None, LONG);
        let both = futures_util::future::join(waiting, async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            store.transact(|txn| txn.put(b"key", b"")).await
        });
        let (is_changed, put) = both.await;
        put.unwrap();
        assert!(is_changed.unwrap());
    });
}
