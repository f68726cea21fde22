//! How long calls of an `AsyncStore` block the threads of their async runtime.
//!
//! ```text
//! cargo bench -p keyloom-benches --bench async_store
//! ```
//!
//! 10,000 tasks write and read on a runtime of two threads. Every hundredth body takes 5 ms. Counts
//! the polls that took longer than 1 ms, and those among them that blocked: a poll whose thread was
//! preempted is slow, too. On two cores, 6 to 33 of some 45,000 polls block. In a trace, 150 of 151
//! of them waited for the mutex of tokio's `spawn_blocking`, and one for the store's own queue.

#![allow(missing_docs, unsafe_code, clippy::unwrap_used, clippy::indexing_slicing)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use keyloom::{AsyncOptions, AsyncStore, Memory, Reader, Writer};
use tokio::runtime::{Builder, Runtime};

const TASKS: u64 = 10_000;

/// Number of times that the calling thread has given up its processor to wait, for a lock or in a
/// sleep.
#[cfg(target_os = "linux")]
fn waits() -> i64 {
    // SAFETY: `rusage` contains only numbers, so all-zero bytes are a valid value. The call fills
    // it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage.ru_nvcsw
    }
}

#[cfg(not(target_os = "linux"))]
fn waits() -> i64 {
    0
}

/// Counts the polls of a future, those that took longer than 1 ms, and those among them that
/// blocked: a poll whose thread was preempted is slow, too.
async fn timed<F: Future>(future: F, polls: &[AtomicU64; 3]) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let (began, before) = (Instant::now(), waits());
        let poll = future.as_mut().poll(context);
        let is_long = began.elapsed() > Duration::from_millis(1);
        for (count, holds) in polls.iter().zip([true, is_long, is_long && waits() > before]) {
            count.fetch_add(u64::from(holds), Relaxed);
        }
        poll
    })
    .await
}

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap()
}

fn counts(polls: &[AtomicU64; 3]) -> [u64; 3] {
    [0, 1, 2].map(|count: usize| polls[count].load(Relaxed))
}

fn measure(name: &str, store: &AsyncStore<Memory>) {
    let runtime = runtime(2);
    let polls: Arc<[AtomicU64; 3]> = Arc::default();
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let (store, polls) = (store.clone(), Arc::clone(&polls));
            runtime.spawn(async move {
                let write = store.transact(move |txn| {
                    if number % 100 == 0 {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    txn.put(&number.to_be_bytes(), b"")?;
                    txn.add(b"tasks", 1)
                });
                timed(write, &polls).await.unwrap();
                timed(store.read(|snapshot| snapshot.counter(b"tasks")), &polls).await.unwrap();
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    let [all, long, waited] = counts(&polls);
    println!("{name}: of {all} polls {long} took longer than 1 ms, {waited} of which waited");
    assert!(waited < all / 50, "{waited} of {all} polls waited longer than 1 ms");
}

/// The control: a call that blocks its thread is counted.
fn control() {
    let polls: [AtomicU64; 3] = Default::default();
    runtime(1).block_on(async {
        for _ in 0..20 {
            timed(async { std::thread::sleep(Duration::from_millis(2)) }, &polls).await;
        }
    });
    let [all, long, waited] = counts(&polls);
    println!("control: of {all} polls that sleep {long} took longer than 1 ms, {waited} waited");
    assert!(long == 20 && (waited == 20 || cfg!(not(target_os = "linux"))));
}

fn main() {
    control();
    measure("one writer", &AsyncStore::new(Memory::new()));
    let memory = Memory::builder().optimistic(true).build();
    measure("8 writers", &AsyncOptions::new().concurrent_writers(8).wrap(memory));
}
