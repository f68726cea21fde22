//! Group commit: the bodies of a batch, and the outcome of each.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod answers;
mod fates;
mod hooked;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use keyloom::{Batched, Result, Store};

/// Calls `call` on several threads, whose bodies form one batch in the order of their numbers. A
/// body before them occupies the store until all wait.
fn batch<S: Store, R: Send>(
    store: &Batched<S>,
    calls: usize,
    call: impl Fn(usize) -> R + Sync,
) -> Vec<thread::Result<R>> {
    let is_occupied = AtomicBool::new(false);
    let (is_occupied, call) = (&is_occupied, &call);
    thread::scope(|scope| {
        let first = scope.spawn(|| occupy(store, calls, is_occupied));
        let enter = |number| {
            while !is_occupied.load(Relaxed) || store.waiting() < number {
                thread::yield_now();
            }
            scope.spawn(move || catch_unwind(AssertUnwindSafe(|| call(number))))
        };
        let entered: Vec<_> = (0..calls).map(enter).collect();
        first.join().unwrap().unwrap();
        entered.into_iter().map(|call| call.join().unwrap()).collect()
    })
}

/// A transaction that ends when `waiting` bodies wait.
fn occupy<S: Store>(store: &Batched<S>, waiting: usize, is_occupied: &AtomicBool) -> Result<()> {
    store.transact_batched(|_| {
        is_occupied.store(true, Relaxed);
        while store.waiting() < waiting {
            thread::yield_now();
        }
        Ok(())
    })
}

/// The numbers of batches, bodies in them, bodies alone, and restarts.
fn counts<S: Store>(store: &Batched<S>) -> [u64; 4] {
    let counts = store.counts();
    [counts.batches, counts.together, counts.alone, counts.restarts]
}
