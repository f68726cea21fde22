//! Work on several threads. Results do not depend on the number of threads.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The number of threads of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threads(usize);

impl Threads {
    /// One thread per core.
    pub(crate) fn all() -> Self {
        Self(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

/// Calls `work` with each job, on several threads.
pub(crate) fn each<J: Send>(
    Threads(threads): Threads,
    jobs: impl Iterator<Item = J> + Send,
    work: impl Fn(J) + Sync,
) {
    let jobs = Mutex::new(jobs);
    let run = || {
        while let Some(job) = {
            let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
            jobs.next()
        } {
            work(job);
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| {
            scope.spawn(run);
        });
        run();
    });
}

/// The results of `work` for each job, in the order of the jobs.
pub(crate) fn collect<J: Send, T: Send>(
    threads: Threads,
    jobs: Vec<J>,
    work: impl Fn(J) -> T + Sync,
) -> Vec<T> {
    let mut results: Vec<Option<T>> = jobs.iter().map(|_| None).collect();
    each(threads, jobs.into_iter().zip(&mut results), |(job, result)| *result = Some(work(job)));
    results.into_iter().flatten().collect()
}

/// Calls `work` with each range and the values of this range. The ranges must be consecutive and
/// start at 0. Returns the results in the order of the ranges.
pub(crate) fn fill<V: Send, T: Send>(
    threads: Threads,
    ranges: &[Range<u32>],
    mut values: &mut [V],
    work: impl Fn(Range<u32>, &mut [V]) -> T + Sync,
) -> Vec<T> {
    let mut jobs = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (own, rest) = values.split_at_mut(range.len().min(values.len()));
        jobs.push((range.clone(), own));
        values = rest;
    }
    collect(threads, jobs, |(range, values)| work(range, values))
}
