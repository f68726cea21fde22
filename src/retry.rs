//! Running a transaction again: how often, after which pauses, and the loop behind
//! [`Store::transact`] and [`Store::try_transact`].

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use crate::{Error, Result, Store, Transaction};

/// How [`Store::transact`] retries.
///
/// ```
/// use keyloom::RetryPolicy;
/// let impatient = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often the body runs at most, the first time included.
    pub max_attempts: u32,
    /// The longest pause before the second attempt. It doubles with each attempt.
    pub first_pause: Duration,
    /// The longest pause of all.
    pub max_pause: Duration,
    /// How long to go on beginning new attempts, however few there were.
    pub max_elapsed: Option<Duration>,
}

impl Default for RetryPolicy {
    /// 20 attempts, pauses from 1 ms to 1 s.
    fn default() -> Self {
        Self {
            max_attempts: 20,
            first_pause: Duration::from_millis(1),
            max_pause: Duration::from_secs(1),
            max_elapsed: None,
        }
    }
}

impl RetryPolicy {
    /// 40 attempts, pauses from 1 ms to 1 s: some fifteen seconds in all, enough for a server to be
    /// started again or for a cluster to elect another leader. No new attempt after 60 seconds,
    /// since attempts may take long when a server is silent. The default of stores that have a
    /// server.
    pub fn remote() -> Self {
        let max_elapsed = Some(Duration::from_secs(60));
        Self { max_attempts: 40, max_elapsed, ..Self::default() }
    }

    /// The pause before attempt `attempt` (the second has number 2): anything between nothing and
    /// twice the last bound, at random, so that writers that met once do not meet again.
    fn pause(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(2).min(31);
        let longest = self.first_pause.saturating_mul(1 << doublings).min(self.max_pause);
        longest.mul_f64(random_fraction())
    }
}

/// At least 0 and less than 1. Each state of the standard library's maps is keyed at random.
fn random_fraction() -> f64 {
    const BITS: u32 = 53;
    let random = RandomState::new().hash_one(()) >> (u64::BITS - BITS);
    random as f64 / (1_u64 << BITS) as f64
}

/// The loop behind both forms of `transact`.
pub(crate) fn run<S: Store + ?Sized, T, E: From<Error>>(
    store: &S,
    mut body: impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    is_retryable: impl Fn(&E) -> bool,
    give_up: impl Fn(u32, E) -> E,
) -> Result<T, E> {
    let policy = store.retry_policy();
    let started = Instant::now();
    let is_over = || policy.max_elapsed.is_some_and(|most| started.elapsed() >= most);
    let mut attempt = 1;
    loop {
        let failure = match run_once(store, &mut body, &is_retryable)? {
            Ran::Committed(value) => return Ok(value),
            Ran::InVain(failure) => failure,
        };
        if attempt >= policy.max_attempts || is_over() {
            return Err(match failure {
                Failure::OfBody(error) => give_up(attempt, error),
                Failure::OfStore(source) => {
                    Error::RetriesExhausted { attempts: attempt, source: Box::new(source) }.into()
                }
            });
        }
        attempt += 1;
        std::thread::sleep(policy.pause(attempt));
    }
}

enum Ran<T, E> {
    Committed(T),
    /// Nothing was kept, and another run may succeed.
    InVain(Failure<E>),
}

enum Failure<E> {
    OfBody(E),
    OfStore(Error),
}

/// Begins, runs the body and commits, once. The transaction is gone when this returns.
fn run_once<S: Store + ?Sized, T, E: From<Error>>(
    store: &S,
    body: &mut impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    is_retryable: &impl Fn(&E) -> bool,
) -> Result<Ran<T, E>, E> {
    let retried_or_not = |error: Error| match error.is_retryable() {
        true => Ok(Ran::InVain(Failure::OfStore(error))),
        false => Err(error.into()),
    };
    let mut txn = match store.begin() {
        Ok(txn) => txn,
        Err(error) => return retried_or_not(error),
    };
    match body(&mut txn) {
        Ok(value) => match txn.commit() {
            Ok(()) => Ok(Ran::Committed(value)),
            Err(error) => retried_or_not(error),
        },
        Err(error) if txn.must_restart() || is_retryable(&error) => {
            Ok(Ran::InVain(Failure::OfBody(error)))
        }
        Err(error) => Err(error),
    }
}
